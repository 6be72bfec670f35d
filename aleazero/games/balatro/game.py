"""Balatro as a host game: batches of runs behind the contract of `HostGame`.

One player; a point for every blind beaten. Red Deck, White Stake unless told otherwise, to the end of ante 8. What the
network sees is the three arrays of `observe`, one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aleazero.core.errors import UnknownName
from aleazero.core.game import GameSpec, HostGame, HostStatus
from aleazero.games.balatro import actions, contest, embedding, entities, observe, promises
from aleazero.games.balatro.engine import Batch, EngineError, cores, seed_text
from aleazero.games.balatro.layout import ERR_ACTION, P_OVER, P_PLAY
from aleazero.games.balatro.observe import observe_batch

_CARDS = observe.CARD_ROWS * observe.CARD_COLUMNS
_JOKERS = observe.JOKER_ROWS * observe.JOKER_COLUMNS
OBSERVATION = _CARDS + _JOKERS + observe.STATE_SIZE
ROWS_OBSERVATION = entities.WIDTH + promises.SIZE


class Balatro(HostGame):
    """The game by name: `balatro`."""

    def __init__(
        self,
        deck: str = "Red Deck",
        stake: str = "White",
        last_ante: int = 8,
        threads: int = 0,
        *,
        rows: bool = False,
        seed_length: int = 8,
        graph: str = "none",
    ) -> None:
        """With `rows` things are seen one by one, and what plays promise; seeds have `seed_length` characters.

        With a `graph` (`embedding.KINDS`) the mean of the owned jokers' numbers follows.
        """
        self.deck, self.stake, self.last_ante = deck, stake, last_ante
        self.rows, self.seed_length, self.graph = rows, seed_length, graph
        embedding.table(graph)  # an unknown one is said now
        more = embedding.WIDTH if graph != "none" else 0
        self.threads = threads or cores()
        self.spec = GameSpec(
            name="balatro",
            version=2,  # 2: rows are followed by what plays promise
            num_players=1,
            num_actions=actions.NUM_ACTIONS,
            max_legal=actions.A_END,
            observation_shape=((ROWS_OBSERVATION if rows else OBSERVATION) + more,),
            outcomes=(),
            max_plies=5000,
            chance="sampled",
        )

    def init_batch(self, seeds: np.ndarray) -> Batch:
        """Runs of these numbers `[B]`, each a seed of eight characters."""
        return Batch.start(self._texts(seeds), self.deck, self.stake, self.last_ante, self.threads)

    def _texts(self, seeds: np.ndarray) -> list[str]:
        return [seed_text(int(seed))[: self.seed_length] for seed in seeds]

    def step_batch(self, states: Batch, actions: np.ndarray, lanes: np.ndarray | None = None) -> Batch:
        """The batch after legal actions; the argument is unchanged."""
        return self.advance(states.copy(), actions, lanes)

    def advance(self, states: Batch, actions: np.ndarray, lanes: np.ndarray | None = None) -> Batch:
        """The same in place. A run that needs more room than a record has is over: it is too rare to end training."""
        stopped = states.try_step(actions, lanes)
        if len(stopped):
            wrong = stopped[states.states["error"][stopped] == ERR_ACTION]
            if len(wrong):
                raise EngineError(f"game {int(wrong[0])}, action {int(actions[wrong[0]])}: {states.why(int(wrong[0]))}")
            states.states["phase"][stopped], states.over[stopped], states.masks[stopped] = P_OVER, True, False
        return states

    def renew(self, states: Batch, lanes: np.ndarray, seeds: np.ndarray) -> Batch:
        """New runs in place."""
        states.restart(lanes, self._texts(seeds), self.deck, self.stake, self.last_ante)
        return states

    def legal_actions(self, states: Batch) -> np.ndarray:
        """`[B, 1000]` bool."""
        return states.masks.copy()

    def observe(self, states: Batch) -> np.ndarray:
        """`[B, 1458]` float32: cards, jokers, table; by rows `[B, 1077]`: the table, every row, what is promised.

        With a graph 128 more.
        """
        out = np.empty((len(states), *self.spec.observation_shape), np.float32)
        self.observe_into(states, out)
        return out

    def observe_into(self, states: Batch, out: np.ndarray) -> None:
        """Rows are written where they are wanted."""
        own = ROWS_OBSERVATION if self.rows else OBSERVATION
        if self.rows:
            entities.observe_flat(states, out)
            promises.promise(states, out, entities.WIDTH)
        else:
            seen = observe_batch(states)
            parts = [seen[name].reshape(len(states), -1) for name in ("cards", "jokers", "game_state")]
            np.concatenate(parts, axis=1, out=out[:, :own])
        if self.graph != "none":
            out[:, own:] = embedding.of_games(states.states, self.graph)

    def status(self, states: Batch) -> HostStatus:
        """A point for every blind beaten."""
        fields = states.states
        return HostStatus(
            to_play=np.zeros(len(states), np.int64),
            terminated=states.over.copy(),
            rewards=fields["gained"].astype(np.float32)[:, None],
            returns=fields["beaten"].astype(np.float32)[:, None],
        )

    def measures(self, states: Batch) -> dict[str, np.ndarray]:
        """Ante, blinds beaten, whether the run is won, the share of the blind's target that is scored, money."""
        fields = states.states
        target = np.maximum(fields["target"].astype(np.float64), 1.0)
        playing = fields["phase"] == P_PLAY
        return {
            "ante": fields["ante"].astype(np.float64),
            "beaten": fields["beaten"].astype(np.float64),
            "won": fields["won"].astype(np.float64),
            "progress": np.where(playing, np.minimum(fields["round_score"] / target, 1.0), 0.0),
            "money": np.clip(fields["money"] / 25.0, 0.0, 1.0),
        }

    def put(self, states: Batch, lanes: np.ndarray, fresh: Batch) -> Batch:
        """The runs with others in some lanes."""
        other = states.copy()
        other.put(lanes, fresh)
        return other

    def take(self, states: Batch, lanes: np.ndarray) -> Batch:
        """The runs of some lanes."""
        return states.take(lanes)

    def teacher(self, name: str) -> Callable[[Batch, int], np.ndarray]:
        """Greedy or expectimax."""
        known = {player: kind for player, kind in contest.PLAYERS.items() if kind}
        if name not in known:
            raise UnknownName("teacher of balatro", name, known)
        return lambda states, word: contest.by_rule(states, known[name], word)

    def seen_by(self, kind: str, graph: str = "none") -> Balatro:
        """By rows, for the network that attends to them; with the numbers of a graph behind."""
        wanted = {"rows": kind == "balatro_rows", "graph": graph}
        return self if wanted == {"rows": self.rows, "graph": self.graph} else self._copy(**wanted)

    def for_practice(self) -> Balatro:
        """Seeds of seven characters, where those of ratings have eight."""
        return self._copy(seed_length=7)

    def _copy(self, **changes: Any) -> Balatro:
        kept: dict[str, Any] = {"rows": self.rows, "seed_length": self.seed_length, "graph": self.graph}
        return Balatro(self.deck, self.stake, self.last_ante, self.threads, **(kept | changes))

    def reseed(self, states: Batch, seeds: np.ndarray) -> Batch:
        """The same positions; what is not seen is drawn anew."""
        other = states.copy()
        other.reseed(seeds)
        return other

    def snapshot(self, states: Batch) -> list[bytes]:
        """Each game as bytes."""
        return states.snapshot()

    def restore(self, rows: Sequence[bytes]) -> Batch:
        """The games that `snapshot` saved."""
        return Batch.restore(rows, self.threads)
