"""The actor: whose weights it plays with, which moves it counts, and what is said of a slab in few numbers."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aleazero.core.records import Trajectory
from aleazero.doctor.evaluators import IGNORANT, OPINIONATED
from aleazero.games.tictactoe import TicTacToe
from aleazero.play.rollout import Games, Pace
from aleazero.roles.actor import Actor, compiled_summary
from aleazero.roles.ports import LocalWeights
from tests.games.conftest import quick_compile  # noqa: F401
from tests.play.test_rollout import PUCT, machine, pace

pytestmark = pytest.mark.usefixtures("quick_compile")

MOVES, LANES = 10, 16
SEED = jnp.uint32(9)
NUMBERS = jnp.arange(LANES, dtype=jnp.uint32)


class Sink:
    def __init__(self) -> None:
        self.slabs: list[Trajectory] = []

    def add(self, slab: Trajectory) -> None:
        self.slabs.append(slab)


def start() -> Games:
    games: Games = machine(TicTacToe, PUCT, MOVES).start(SEED, NUMBERS)
    return games


def play(weights: Any, games: Games, how: Pace, first: Array) -> tuple[Games, Trajectory]:
    played: tuple[Games, Trajectory] = machine(TicTacToe, PUCT, MOVES).run(weights, games, how, SEED, first, NUMBERS)
    return played


def make(sink: Sink, weights: LocalWeights, how: Any = lambda rows: pace()) -> Actor:
    return Actor(play, how, start(), sink, weights, num_games=LANES, moves=MOVES)


def with_weights(version: int, values: np.ndarray = OPINIONATED) -> LocalWeights:
    store = LocalWeights()
    store.publish(version, jnp.asarray(values))
    return store


def assert_equal(one: Any, two: Any) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(a, b)


def test_it_counts_its_moves_and_passes_on_what_it_played() -> None:
    sink = Sink()
    actor = make(sink, with_weights(0))
    assert (actor.move, actor.rows, actor.version) == (0, 0, -1)
    for step in range(1, 4):
        slab = actor.step()
        assert (actor.move, actor.rows) == (step * MOVES, step * MOVES * LANES)
        assert len(sink.slabs) == step
        assert sink.slabs[-1] is slab
    # Games go on from step to step, and moves are numbered through.
    games = start()
    for first, slab in zip((0, MOVES, 2 * MOVES), sink.slabs, strict=True):
        games, wanted = play(jnp.asarray(OPINIONATED), games, pace(), jnp.uint32(first))
        assert_equal(slab, wanted)
    assert_equal(actor.games, games)


def test_it_plays_with_the_newest_weights() -> None:
    weights = with_weights(3)
    actor = make(Sink(), weights)
    first = actor.step()
    assert actor.version == 3
    assert np.abs(np.asarray(first.opinion)).max() > 0
    weights.publish(8, jnp.asarray(IGNORANT))
    second = actor.step()
    assert actor.version == 8
    assert not np.asarray(second.opinion).any()


def test_its_pace_is_that_of_the_rows_played() -> None:
    asked: list[int] = []

    def watched(rows: int) -> Pace:
        asked.append(rows)
        return pace()

    actor = make(Sink(), with_weights(0), watched)
    actor.step()
    actor.step()
    actor.step()
    assert asked == [0, MOVES * LANES, 2 * MOVES * LANES]


def test_moves_beyond_32_bits_are_counted_and_named_round() -> None:
    far, near = make(Sink(), with_weights(0)), make(Sink(), with_weights(0))
    far.move, near.move = 2**40 + 8, 8
    assert_equal(far.step(), near.step())
    assert far.move == 2**40 + 8 + MOVES
    assert far.rows == (2**40 + 8 + MOVES) * LANES


def test_without_weights_it_does_not_play() -> None:
    with pytest.raises(LookupError, match="no weights have been published"):
        make(Sink(), LocalWeights()).step()


def some_slab(seed: int = 0, moves: int = 6, lanes: int = 7) -> Trajectory:
    """A slab with everything in it: two budgets, policies with holes, games that end and games that are stopped."""
    rng = np.random.default_rng(seed)
    shape = (moves, lanes)
    legal = rng.random((*shape, 5)) < 0.7
    legal[..., 0] = True
    policy = np.where(legal & (rng.random((*shape, 5)) < 0.8), rng.random((*shape, 5)), 0)
    policy[..., 0] += 0.1
    over = rng.random(shape)
    full = np.array([True, False, True, False, False, True])
    fields: dict[str, Any] = {
        "state": np.zeros((*shape, 2), np.uint8),
        "to_play": np.zeros(shape, np.int8),
        "actions": np.where(legal, np.arange(5), -1).astype(np.int16),
        "policy": (policy / policy.sum(-1, keepdims=True)).astype(np.float16),
        "action": np.zeros(shape, np.int16),
        "opinion": np.zeros((*shape, 1), np.float16),
        "value": np.zeros(shape, np.float32),
        "searched": np.broadcast_to(full[:, None], shape),
        "random": rng.random(shape) < 0.2,
        "ended": over < 0.2,
        "settled": np.zeros(shape, bool),
        "truncated": over > 0.9,
        "points": np.where(over < 0.2, rng.integers(-1, 2, shape), 0).astype(np.float32),
        "fingerprint": rng.integers(1, 2**32, shape).astype(np.uint32),
    }
    return Trajectory(**fields)


def test_a_slab_in_few_numbers() -> None:
    slab = some_slab()
    stats = compiled_summary(slab, jnp.int32(32), jnp.int32(8))
    entropies, uniform = [], []
    for t, lane in np.argwhere(slab.searched):
        shares = np.asarray(slab.policy[t, lane], np.float64)
        entropies.append(-sum(p * math.log(p) for p in shares if p > 0))
        uniform.append(math.log((slab.actions[t, lane] >= 0).sum()))
    assert len(entropies) > 10
    assert float(stats.entropy) == pytest.approx(np.mean(entropies), rel=1e-4)
    assert float(stats.legal_entropy) == pytest.approx(np.mean(uniform), rel=1e-5)
    assert int(stats.ended) == slab.ended.sum() > 0
    assert int(stats.truncated) == slab.truncated.sum() > 0
    assert float(stats.simulations) == (3 * 32 + 3 * 8) * 7
    np.testing.assert_array_equal(stats.outcome_points, np.where(slab.ended, slab.points, np.nan))
    np.testing.assert_array_equal(stats.fingerprints, np.where(slab.ended | slab.truncated, slab.fingerprint, 0))


def test_a_slab_without_any_full_search() -> None:
    slab = some_slab()
    nothing: Array = jnp.zeros(slab.searched.shape, bool)
    none = Trajectory(**{**vars(slab), "searched": nothing})
    stats = compiled_summary(none, jnp.int32(32), jnp.int32(8))
    assert (float(stats.entropy), float(stats.legal_entropy)) == (0.0, 0.0)
    assert float(stats.simulations) == 6 * 7 * 8
