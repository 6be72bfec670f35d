"""Positions as plain numbers and back: beside the notation's reading of them, and round and round in random play."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import pytest

from aleazero.games.backgammon.boards import afterstates, rolled, to_boards, to_dice
from aleazero.games.backgammon.game import Backgammon
from aleazero.games.wander import wander
from tests.games.backgammon import reference
from tests.games.backgammon.reference import START

GAME = Backgammon()
pytestmark = pytest.mark.usefixtures("quick_compile")


@functools.cache
def seen() -> tuple[Any, Any]:
    """States of random games and what followed each, `[n]`."""
    steps = wander(GAME, lanes=24, plies=400, seed=7)
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), steps)
    return flat.state, flat.after


def some(states: Any, rows: Any) -> Any:
    return jax.tree.map(lambda x: np.asarray(x)[rows], states)


def assert_equal(one: Any, two: Any) -> None:
    for (path, a), b in zip(jax.tree_util.tree_flatten_with_path(one)[0], jax.tree.leaves(two), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype, jax.tree_util.keystr(path)
        np.testing.assert_array_equal(a, b, err_msg=jax.tree_util.keystr(path))


def test_a_board_is_the_opponent_s_and_the_mover_s_own_points() -> None:
    states, _ = seen()
    boards = to_boards(states)
    assert boards.shape == (len(states.to_play), 2, 25)
    assert boards.dtype == np.int64
    for board, (mine, theirs) in zip(boards.tolist(), reference.positions(states), strict=True):
        assert board == [list(theirs[1:]), list(mine[1:])]
    assert (boards[:, :, 24] > 0).any(0).all()  # checkers on the bar, of either
    assert (boards.sum((1, 2)) < 30).any()
    (start,) = np.unique(boards[states.opening], axis=0)
    assert start.tolist() == [list(START[1:])] * 2


def test_who_moves_next_sees_the_other_row() -> None:
    """A roll gives the turn away: what was the mover's is now the opponent's."""
    states, after = seen()
    rolls = states.is_chance & ~states.opening
    np.testing.assert_array_equal(to_boards(some(after, rolls)), to_boards(some(states, rolls))[:, ::-1])
    assert rolls.sum() > 500


@pytest.mark.parametrize("kind", ["chance", "over"])
def test_what_a_turn_leaves_comes_back_as_it_was(kind: str) -> None:
    """Its points too, where the game is over."""
    _, after = seen()
    rows = after.terminated if kind == "over" else after.is_chance & ~after.opening
    found = some(after, rows)
    assert len(found.to_play) >= (4 if kind == "over" else 500)
    assert set(found.to_play.tolist()) == {0, 1}
    if kind == "over":
        assert set(np.abs(found.returns).ravel().tolist()) >= {1.0, 2.0}
    assert_equal(afterstates(to_boards(found), found.to_play), found)


def test_rolled_states_come_back_as_they_were() -> None:
    states, _ = seen()
    whole = ~states.is_chance & (states.left == np.where(states.dice[:, 0] == states.dice[:, 1], 4, 2))
    found = some(states, whole)
    assert len(found.to_play) > 500
    assert set(found.to_play.tolist()) == {0, 1}
    dice = to_dice(found)
    assert dice.dtype == np.int64
    assert (dice[:, 0] >= dice[:, 1]).all()
    assert_equal(rolled(to_boards(found), dice, found.to_play), found)
    assert_equal(rolled(to_boards(found), dice[:, ::-1], found.to_play), found)  # in whichever order they fell


def test_arguments_are_left_alone() -> None:
    found = some(seen()[0], slice(5, 9))
    boards, dice = to_boards(found), np.array([(1, 2)] * 4)
    before = boards.copy()
    rolled(boards, dice, found.to_play)
    afterstates(boards, found.to_play)
    np.testing.assert_array_equal(boards, before)
    assert dice.tolist() == [[1, 2]] * 4
    to_boards(found)[:] = 0  # what is handed out is nobody else's
    np.testing.assert_array_equal(to_boards(found), before)
