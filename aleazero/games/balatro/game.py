"""Balatro as a host game: batches of runs behind the contract of `HostGame`.

One player; a point for every blind beaten. Red Deck, White Stake unless told otherwise, to the end of ante 8. What the
network sees is the three arrays of `observe`, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aleazero.core.game import GameSpec, HostGame, HostStatus
from aleazero.games.balatro import actions, observe
from aleazero.games.balatro.engine import Batch, cores, seed_text
from aleazero.games.balatro.observe import observe_batch

_CARDS = observe.CARD_ROWS * observe.CARD_COLUMNS
_JOKERS = observe.JOKER_ROWS * observe.JOKER_COLUMNS
OBSERVATION = _CARDS + _JOKERS + observe.STATE_SIZE


class Balatro(HostGame):
    """The game by name: `balatro`."""

    def __init__(self, deck: str = "Red Deck", stake: str = "White", last_ante: int = 8, threads: int = 0) -> None:
        self.deck, self.stake, self.last_ante = deck, stake, last_ante
        self.threads = threads or cores()
        self.spec = GameSpec(
            name="balatro",
            version=1,
            num_players=1,
            num_actions=actions.NUM_ACTIONS,
            max_legal=actions.A_END,
            observation_shape=(OBSERVATION,),
            outcomes=(),
            max_plies=5000,
            chance="sampled",
        )

    def init_batch(self, seeds: np.ndarray) -> Batch:
        """Runs of these numbers `[B]`, each a seed of eight characters."""
        texts = [seed_text(int(seed)) for seed in seeds]
        return Batch.start(texts, self.deck, self.stake, self.last_ante, self.threads)

    def step_batch(self, states: Batch, actions: np.ndarray, lanes: np.ndarray | None = None) -> Batch:
        """The batch after legal actions; the argument is unchanged."""
        after = states.copy()
        after.step(actions, lanes)
        return after

    def legal_actions(self, states: Batch) -> np.ndarray:
        """`[B, 1000]` bool."""
        return states.masks.copy()

    def observe(self, states: Batch) -> np.ndarray:
        """`[B, 1458]` float32: cards, jokers and the table."""
        seen = observe_batch(states)
        parts = [seen[name].reshape(len(states), -1) for name in ("cards", "jokers", "game_state")]
        return np.concatenate(parts, axis=1)

    def status(self, states: Batch) -> HostStatus:
        """A point for every blind beaten."""
        fields = states.states
        return HostStatus(
            to_play=np.zeros(len(states), np.int64),
            terminated=states.over.copy(),
            rewards=fields["gained"].astype(np.float32)[:, None],
            returns=fields["beaten"].astype(np.float32)[:, None],
        )

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
