"""Slabs for tests of what travels: real ones, played, and one that is made by hand in no time."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from aleazero.config import RunConfig
from aleazero.core.game import Game, GameSpec
from aleazero.core.records import Trajectory
from aleazero.games.registry import make_game
from aleazero.runtimes.codec import Envelope, pack_slab
from aleazero.runtimes.slabs import Slab, SlabSchema, count_games
from tests.runtimes.support import checkers, shared_parts, tiny, turns

RUN, WORKER, SECRET, NEWEST = "home", "laptop", b"a secret of thirty-two bytes....", 7
CASES = ("tictactoe", "turns", "checkers", "pig")


def config(case: str) -> RunConfig:
    """Small runs whose slabs differ in every way: a tree's policy, none, kept trees, one network number."""
    if case == "tictactoe":
        return tiny("selfplay.full_search_fraction=0.5")
    if case == "turns":
        return turns()
    if case == "pig":
        long = ("selfplay.moves_per_rollout=64", "replay.capacity_rows=40000")
        return tiny("model.value=scalar", "targets.opinion=network", *long, game="pig")
    return checkers()


@dataclasses.dataclass(frozen=True)
class Played:
    """What a few rollouts of a case brought."""

    game: Game
    schema: SlabSchema
    slabs: list[dict[str, np.ndarray]]


@functools.cache
def played(case: str) -> Played:
    """Rollouts one after another: later ones hold games that ended."""
    parts = shared_parts(config(case))
    play, games, weights = parts.make_play(), parts.start_games(), parts.start_learning().average
    slabs, moves = [], parts.config.selfplay.moves_per_rollout
    for first in range(0, max(4 * moves, 128), moves):
        games, slab = play(weights, games, parts.pace(0), jnp.uint32(first))
        slabs.append({name: np.asarray(array) for name, array in slab.arrays().items()})
    return Played(parts.game, SlabSchema.of(slab, parts.game.spec), slabs)


def hand_made(moves: int = 4, lanes: int = 3, seed: int = 0) -> Trajectory:
    """A slab that passes all checks but the rules': tic-tac-toe in its shapes alone."""
    draw = np.random.default_rng(seed)
    shape = (moves, lanes)
    actions = np.broadcast_to(np.arange(9, dtype=np.int16), (*shape, 9)).copy()
    ended = draw.random(shape) < 0.2
    policy = draw.dirichlet(np.ones(9), shape).astype(np.float16)
    opinion = draw.dirichlet(np.ones(3), shape).astype(np.float16)
    fields: dict[str, Any] = {
        "state": draw.integers(0, 256, (*shape, 12), np.uint8),
        "to_play": draw.integers(0, 2, shape, np.int8),
        "actions": actions,
        "policy": policy,
        "action": draw.integers(0, 9, shape).astype(np.int16),
        "opinion": opinion,
        "value": draw.uniform(-1, 1, shape).astype(np.float32),
        "searched": np.ones(shape, np.bool_),
        "random": np.zeros(shape, np.bool_),
        "ended": ended,
        "settled": np.zeros(shape, np.bool_),
        "truncated": np.zeros(shape, np.bool_),
        "points": np.where(ended, draw.choice([-1.0, 0.0, 1.0], shape), 0.0).astype(np.float32),
        "fingerprint": draw.integers(0, 2**32, shape, np.uint32),
    }
    return Trajectory(**fields)


@functools.cache
def spec() -> GameSpec:
    return make_game("tictactoe").spec


def as_dict(slab: Trajectory) -> dict[str, np.ndarray]:
    return {name: np.array(array) for name, array in slab.arrays().items()}


def envelope(like: SlabSchema, slab: Slab, **changes: Any) -> Envelope:
    plain = Envelope(RUN, WORKER, 1, 0, NEWEST, like.fingerprint, like.rows, count_games(slab))
    return dataclasses.replace(plain, **changes)


def packed(like: SlabSchema, slab: Slab, **changes: Any) -> bytes:
    return pack_slab(envelope(like, slab, **changes), slab, SECRET)


def secret_of(worker: str) -> bytes | None:
    return SECRET if worker == WORKER else None
