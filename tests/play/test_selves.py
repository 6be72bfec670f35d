"""Fragments against past selves: who moved, what was paid, and what past selves have to do with it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.records import Prediction
from aleazero.games.pig import Pig
from aleazero.games.tictactoe import TicTacToe
from aleazero.play.selves import SelvesPlay
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")

LANES, MOVES = 6, 24


def judge(weights, seen):
    """Prefers the action that the weights name; what it says of a position is their second number."""
    lanes = seen.shape[0]
    logits = 30.0 * jax.nn.one_hot(jnp.full(lanes, weights[0]).astype(jnp.int32), 9)
    return Prediction(logits, jnp.full(lanes, weights[1]))


def played(game=None, moves=MOVES, calls=1, weights=(4.0, 0.5), selves=((0.0, 0.0), (8.0, 0.0))):
    play = SelvesPlay(game or TicTacToe(), judge, LANES, moves, len(selves))
    bouts = play.start(jnp.uint32(3))
    found = []
    run = jax.jit(play.run)
    for call in range(calls):
        first = jnp.uint32(call * moves)
        bouts, fragment, stats = run(jnp.array(weights), jnp.array(selves), bouts, jnp.uint32(3), first)
        found.append(jax.device_get((fragment, stats)))
    return found


def test_everybody_plays_their_own_moves():
    """The learner begins in the middle; the first three lanes meet a self that begins top left, the others not."""
    fragment, _ = played()[0]
    empty = fragment.legal.all(-1)
    assert empty.sum() > LANES
    for lanes, theirs in ((slice(0, 3), 0), (slice(3, 6), 8)):
        first = empty[:, lanes]
        assert set(fragment.action[:, lanes][first & fragment.mine[:, lanes]]) == {4}
        assert set(fragment.action[:, lanes][first & ~fragment.mine[:, lanes]]) == {theirs}


def test_moves_alternate_and_points_are_the_learners():
    fragment, stats = played()[0]
    going = ~fragment.ended[:-1]
    assert (fragment.mine[1:][going] != fragment.mine[:-1][going]).all()
    assert (fragment.reward[~fragment.ended] == 0).all()
    last = fragment.reward[fragment.ended]
    whose = fragment.mine[fragment.ended]
    assert (last[whose] >= 0).all()  # nobody loses by their own move
    assert (last[~whose] <= 0).all()
    assert stats.points == last.sum()
    assert (stats.ended, stats.truncated, stats.won) == (fragment.ended.sum(), 0, (last > 0).sum())
    assert stats.mine == fragment.mine.sum()
    np.testing.assert_array_equal(np.abs(fragment.last), 0.5)  # the other's turn is worth as much less


def test_calls_do_not_change_what_is_played():
    whole, _ = played()[0]
    parts = [fragment for fragment, _ in played(moves=8, calls=3)]
    for name in ("observation", "legal", "action", "log_prob", "reward", "ended", "mine"):
        np.testing.assert_array_equal(getattr(whole, name), np.concatenate([getattr(p, name) for p in parts]))


def test_chance_and_players_who_move_twice():
    """In Pig whoever rolls may roll again."""

    def hold_late(weights, seen):
        return Prediction(jnp.zeros((seen.shape[0], 2)), jnp.zeros(seen.shape[0]))

    play = SelvesPlay(Pig(), hold_late, LANES, 60, 2)
    _, fragment, _ = jax.jit(play.run)(
        jnp.zeros(2), jnp.zeros((2, 2)), play.start(jnp.uint32(1)), jnp.uint32(1), jnp.uint32(0)
    )
    going = ~np.asarray(fragment.ended)[:-1]
    same = np.asarray(fragment.mine)[1:] == np.asarray(fragment.mine)[:-1]
    assert 0.2 < same[going].mean() < 0.8
