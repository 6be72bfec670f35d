"""Other starts: boards that games can reach, of the kind their names say, and not always the same."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.games.backgammon.boards import to_boards
from aleazero.games.backgammon.encode import in_contact
from aleazero.games.backgammon.game import Backgammon, _board

pytestmark = pytest.mark.usefixtures("quick_compile")
GAME = Backgammon()
DRAWN = ("race", "bearoff", "midgame")


@functools.cache
def drawn(name: str) -> tuple[Any, np.ndarray]:
    """States of a start, and their boards `[n, 2, 25]`: the other's checkers, then those of who moved last."""
    keys = jax.vmap(jax.random.key)(jnp.arange(512))
    states = jax.tree.map(np.asarray, jax.jit(jax.vmap(GAME.starts[name]))(keys))
    return states, np.asarray(to_boards(states))


@functools.cache
def contact(name: str) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(lambda state: in_contact(_board(state))))(drawn(name)[0]))


@pytest.mark.parametrize("name", ["short", *DRAWN])
def test_nobody_shares_a_point_and_nature_is_next(name: str) -> None:
    states, boards = drawn(name)
    mine, theirs = boards[:, 1, :24], boards[:, 0, :24][:, ::-1]
    assert not ((mine > 0) & (theirs > 0)).any()
    assert (boards >= 0).all()
    assert states.is_chance.all()
    assert not states.terminated.any()
    assert not states.returns.any()
    assert (boards.sum(-1) == 15).all() == (name != "bearoff")


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_starts_differ_and_either_side_is_on_roll(name: str) -> None:
    states, boards = drawn(name)
    assert 0.4 < states.to_play.mean() < 0.6
    assert not states.opening.any()
    assert len({board.tobytes() for board in boards}) > 500


def test_the_short_game_is_the_same_for_both_and_opens_with_a_roll_for_the_start() -> None:
    states, boards = drawn("short")
    np.testing.assert_array_equal(boards[:, 0], boards[:, 1])
    assert (boards == boards[:1]).all()
    assert (boards[0, 1, :24] * np.arange(1, 25)).sum() == 112
    assert states.opening.all()
    assert contact("short").all()


def test_races_have_no_contact_and_bearoffs_are_all_at_home() -> None:
    assert not contact("race").any()
    boards = drawn("race")[1]
    assert not boards[:, :, 12:].any()
    farthest = (24 - (boards[:, 1, :24] > 0)[:, ::-1].argmax(-1)).tolist()
    assert set(farthest) == set(range(1, 13))
    home = drawn("bearoff")[1]
    assert not home[:, :, 6:].any()
    assert set(home.sum(-1).reshape(-1).tolist()) == set(range(1, 16))


def test_midgames_are_in_contact_and_some_checkers_are_on_the_bar() -> None:
    assert contact("midgame").mean() > 0.95
    bars = drawn("midgame")[1][:, :, 24]
    assert set(bars.reshape(-1).tolist()) == {0, 1}
    assert 0.1 < bars.mean() < 0.2
    points = (drawn("midgame")[1][:, 1, :24] > 0).mean(0)
    assert (np.delete(points, 18) > 0.05).all()  # checkers are met anywhere but on the other's six point
    assert points[:6].mean() > 2 * points[-6:].mean()  # and at home most often
