"""Games of chess written down: those of a match while it is played, and those of self-play out of a run's replay log,
or out of the replay in its newest checkpoint; and how far off a network is in the positions of those.

Matches know players by what they choose, so games are taken down by players that pass on what others choose. Random
opening moves are nobody's choice: such a game is written from the position after them.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero import checkpoint as checkpoints
from aleazero.core.opinions import certain, seen_by_seat
from aleazero.core.records import Trajectory, Weights
from aleazero.games.chess.game import Chess, ChessState
from aleazero.games.chess.pgn import pgn_of
from aleazero.models.build import Model
from aleazero.play.episodes import Episode, EpisodeAssembler
from aleazero.play.match import Player
from aleazero.players import NetworkPlayer
from aleazero.replay.log import ReplayLog, ReplayLogError
from aleazero.runs import RunFolder

logger = logging.getLogger(__name__)

RESULTS = {1.0: "1-0", 0.0: "1/2-1/2", -1.0: "0-1"}  # by White's points


@dataclasses.dataclass
class _Game:
    """One lane."""

    start: ChessState
    actions: list[int] = dataclasses.field(default_factory=list)
    values: list[float | None] = dataclasses.field(default_factory=list)


class Scorebook:
    """Takes down the games of matches, chunk by chunk."""

    def __init__(self, game: Chess, event: str) -> None:
        self.games: list[str] = []  # PGN
        self._game, self._event = game, event
        self._lanes: dict[int, _Game] = {}

    def watch(self, player: Player) -> Watched:
        """The player, its moves taken down."""
        return Watched(player, self)

    def note(self, states: Any, lanes: Array, actions: Array, values: Array | None) -> None:
        """What was chosen in lanes `[B]` bool."""
        rows = np.flatnonzero(np.asarray(lanes))
        if any(row not in self._lanes for row in rows):
            host = jax.tree.map(np.asarray, states)
            for row in set(rows.tolist()) - self._lanes.keys():
                self._lanes[row] = _Game(jax.tree.map(lambda x, row=row: x[row], host))
        chosen, worth = np.asarray(actions), None if values is None else np.asarray(values)
        for row in rows.tolist():
            self._lanes[row].actions.append(int(chosen[row]))
            self._lanes[row].values.append(None if worth is None else float(worth[row]))

    def finish(self, player: str, opponent: str, points: np.ndarray) -> None:
        """The match, or a chunk of it, is over: `points` `[P, 2]` are the player's, from seat 0 and from seat 1."""
        for lane, one in sorted(self._lanes.items()):
            pair, seat = divmod(lane, 2)
            if pair < len(points):
                won = float(points[pair, seat]) * (1 if seat == 0 else -1)
                names = (player, opponent) if seat == 0 else (opponent, player)
                tags = {"Event": self._event, "Round": str(len(self.games) + 1), "White": names[0], "Black": names[1]}
                result = RESULTS.get(won, "*")
                self.games.append(pgn_of(self._game, one.start, one.actions, one.values, headers=tags, result=result))
        self._lanes = {}


@dataclasses.dataclass(frozen=True)
class Watched:
    """A player whose moves are taken down; a network's, with what it thought."""

    player: Player
    book: Scorebook

    @property
    def name(self) -> str:
        """The player's."""
        return self.player.name

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        """What the player chooses."""
        if isinstance(self.player, NetworkPlayer):
            found = self.player.look(states, keys, lanes)
            self.book.note(states, lanes, found.action, found.value)
            return found.action
        actions = self.player.choose(states, lanes, keys)
        self.book.note(states, lanes, actions, None)
        return actions


def episode_pgn(game: Chess, episode: Episode, event: str) -> str:
    """A game of self-play, with the search's values; random moves have none."""
    moves = episode.moves
    start = jax.tree.map(np.asarray, jax.jit(game.unpack)(moves.state[0]))
    values = [None if by_lot else float(value) for by_lot, value in zip(moves.random, moves.value, strict=True)]
    result = RESULTS.get(float(moves.points[-1]), "*") if moves.ended[-1] else "*"
    tags = {"Event": event, "Round": episode.id, "White": f"version {episode.version}", "Black": "itself"}
    return pgn_of(game, start, [int(action) for action in moves.action], values, headers=tags, result=result)


def selfplay_games(run: RunFolder, newest: int | None = None) -> Iterator[Episode]:
    """The whole games that a run's newest replay log holds, or its `newest` so many slabs, as they ended.

    Of any game, not of chess alone.
    """
    logs = sorted(run.replay.iterdir()) if run.replay.is_dir() else []
    if not logs:
        return
    log = ReplayLog(logs[-1])
    fields = {field.name for field in dataclasses.fields(Trajectory)}
    needed = fields - {"resign"}
    start = log.first_number if newest is None else max(log.first_number, log.next_number - newest)
    seed, lost = run.read_config().seed, int(start > 0)  # games under way at a cut have lost their beginning
    assemblers: dict[int, EpisodeAssembler] = {}  # by source: each plays games of its own, in order
    moves: dict[int, int] = {}
    for number, arrays in log.read(start, log.next_number):
        missing = sorted(needed - arrays.keys())
        if missing:
            raise ReplayLogError(f"record {number} of {logs[-1]} has no {', '.join(missing)}: another version wrote it")
        known: dict[str, Any] = {name: arrays[name] for name in fields & arrays.keys()}
        slab, source = Trajectory(**known), int(arrays.get("source", 0))
        length, lanes = slab.action.shape
        assembler = assemblers.setdefault(source, EpisodeAssembler(seed, np.arange(lanes)))
        first = moves.setdefault(source, lost)
        moves[source] = first + length
        yield from assembler.add(first, slab)


def held_games(run: RunFolder) -> Iterator[Episode]:
    """The whole games in the replay of a run's newest checkpoint, which is there where the run has no log.

    What the search thought is not: values are the network's. Of any game, not of chess alone.
    """
    found = checkpoints.newest(run.checkpoints, logger.warning)
    if found is None or "replay/action" not in found.arrays:
        return
    ring = {name.partition("/")[2]: array for name, array in found.arrays.items() if name.startswith("replay/")}
    slabs, length, lanes = ring["action"].shape
    played = found.facts["slabs"]
    slots = [number % slabs for number in range(max(played - slabs, 0), played)]
    follows = {int(ring["following"][slot]) for slot in slots}
    nothing = np.zeros((length, lanes), np.uint32)
    for first in slots:  # each begins a chain of slabs in which the same games go on, or is part of one
        if first in follows:
            continue
        lost, slot = int(played > slabs), first  # games under way at the first slab have lost their beginning
        assembler = EpisodeAssembler(run.read_config().seed, np.arange(lanes))
        while slot < slabs:
            fields: dict[str, Any] = {field: ring[field][slot] for field in _KEPT}
            fields |= {"value": ring["predicted"][slot], "fingerprint": nothing}
            slab = Trajectory(**fields)
            yield from assembler.add(lost, slab)
            lost, slot = lost + length, int(ring["following"][slot])


_KEPT = (  # of a trajectory, in replay
    *("state", "to_play", "actions", "policy", "action", "opinion", "searched", "random"),
    *("ended", "settled", "truncated", "points"),
)
CHUNK = 128  # positions judged at a time


@functools.cache
def _losses(game: Chess, model: Model) -> Callable[..., Array]:
    """Of a chunk of positions, compiled."""

    def of(
        weights: Weights, packed: Array, to_play: Array, actions: Array, policy: Array, searched: Array, result: Array
    ) -> Array:
        states = jax.vmap(game.unpack)(packed)
        output = model.apply(weights, jax.vmap(game.observe)(states))
        opinion = model.opinion_of(output)
        points = jnp.broadcast_to(jnp.nan_to_num(result), to_play.shape)
        target = seen_by_seat(game.spec, certain(game.spec, points, opinion.shape[-1]), to_play)
        by_result = -(target * jnp.log(jnp.maximum(opinion, 1e-9))).sum(-1)
        assert output.logits is not None
        legal = jax.vmap(game.legal_list)(states)
        known = jnp.take_along_axis(output.logits, jnp.maximum(legal, 0).astype(jnp.int32), -1)
        total = jax.nn.logsumexp(jnp.where(legal >= 0, known, -jnp.inf), -1, keepdims=True)
        chosen = jnp.take_along_axis(output.logits, jnp.maximum(actions, 0).astype(jnp.int32), -1) - total
        by_policy = -(jnp.where(actions >= 0, policy.astype(jnp.float32) * chosen, 0.0)).sum(-1)
        return jnp.where(jnp.isnan(result), 0.0, by_result) + jnp.where(searched, by_policy, 0.0)

    return jax.jit(of)


def losses(game: Chess, model: Model, weights: Weights, episode: Episode) -> np.ndarray:
    """`[L]`: how far off the network is at each move of a game: by its result, and by the search's policy.

    NaN where a random move was played: what followed says nothing of the position. Games we stopped have no result.
    """
    moves = episode.moves
    result = float(moves.points[-1]) if moves.ended[-1] else np.nan
    fields = (moves.state, moves.to_play, moves.actions, moves.policy, moves.searched)
    found = []
    for at in range(0, len(episode), CHUNK):
        places = np.minimum(np.arange(at, at + CHUNK), len(episode) - 1)  # one shape for all
        chunk = [jnp.asarray(field[places]) for field in fields]
        found.append(np.asarray(_losses(game, model)(weights, *chunk, jnp.float32(result))))
    return np.where(moves.random, np.nan, np.concatenate(found)[: len(episode)])
