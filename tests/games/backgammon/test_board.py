"""The board's bits against lists of numbers: every function on one position and on many at once."""

from __future__ import annotations

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.games.backgammon import board
from aleazero.games.backgammon.board import BAR, CHECKERS, HOME, PLACES, POINTS, THEIR_BAR, Board
from tests.games.backgammon import reference
from tests.games.backgammon.reference import KINDS, Position, drawn, plus

pytestmark = pytest.mark.usefixtures("quick_compile")
NUMBER = 40 * len(KINDS)  # positions compared at once
NOBODY = (0,) * PLACES

sides = st.lists(st.integers(0, PLACES - 1), max_size=CHECKERS).map(lambda places: plus(NOBODY, places))
any_numbers = st.lists(st.integers(0, 15), min_size=PLACES, max_size=PLACES)


def planes_of(side: Any) -> board.Planes:
    return tuple(jnp.asarray(plane) for plane in board.planes(np.array(side)))  # type: ignore[return-value]


def numbers_of(planes: board.Planes) -> Any:
    return np.asarray(board.counts(planes)).tolist()


def some_positions() -> list[Position]:
    rng = random.Random(1)
    return [drawn(rng, kind) for kind in KINDS for _ in range(NUMBER // len(KINDS))]


def board_of(positions: list[Position]) -> Board:
    return Board(planes_of([mine for mine, _ in positions]), planes_of([theirs[::-1] for _, theirs in positions]))


def positions_of(boards: Board) -> list[Position]:
    mine, theirs = numbers_of(boards.mine), numbers_of(boards.theirs)
    return [(tuple(one), tuple(two[::-1])) for one, two in zip(mine, theirs, strict=True)]


def places_of(word: Any) -> list[int]:
    return [place for place in range(32) if int(word) >> place & 1]


def test_places_have_names() -> None:
    assert places_of(THEIR_BAR) == [0]
    assert places_of(POINTS) == list(range(1, 25))
    assert places_of(BAR) == [25]
    assert places_of(HOME) == [1, 2, 3, 4, 5, 6]


@settings(deadline=None, max_examples=60)
@given(any_numbers)
def test_numbers_of_checkers_become_planes_and_numbers_again(numbers: list[int]) -> None:
    planes = planes_of(numbers)
    assert numbers_of(planes) == numbers
    assert [plane.dtype for plane in planes] == [jnp.uint32] * 4
    assert [int(plane) for plane in planes] == reference.planes(tuple(numbers))


@settings(deadline=None, max_examples=60)
@given(any_numbers)
def test_what_stands_on_a_board_is_counted(numbers: list[int]) -> None:
    planes = planes_of(numbers)
    assert int(board.total(planes)) == sum(numbers)
    assert places_of(board.some(planes)) == [place for place in range(PLACES) if numbers[place] >= 1]
    assert places_of(board.several(planes)) == [place for place in range(PLACES) if numbers[place] >= 2]


@settings(deadline=None, max_examples=60)
@given(st.sets(st.integers(0, PLACES - 1), max_size=CHECKERS))
def test_each_place_comes_alone_and_in_order(places: set[int]) -> None:
    words = np.asarray(board.each_place(jnp.uint32(sum(1 << place for place in places))))
    assert words.shape == (CHECKERS,)
    expected = [1 << place for place in sorted(places)]
    assert words.tolist() == expected + [0] * (CHECKERS - len(expected))


@settings(deadline=None, max_examples=60)
@given(sides, st.integers(0, PLACES - 1))
def test_what_is_added_can_be_taken_away(side: reference.Side, place: int) -> None:
    planes, bit = planes_of(side), jnp.uint32(1 << place)
    more = board.add(planes, bit)
    if side[place] < 15:  # more than fifteen have no room
        assert numbers_of(more) == list(plus(side, [place]))
    assert numbers_of(board.take(more, bit)) == list(side)
    assert numbers_of(board.add(planes, jnp.uint32(0))) == list(side)
    assert numbers_of(board.take(planes, jnp.uint32(0))) == list(side)


@settings(deadline=None, max_examples=60)
@given(sides, sides)
def test_turned_twice_is_the_same_board(one: reference.Side, two: reference.Side) -> None:
    here = Board(planes_of(one), planes_of(two))
    there = board.turned(here)
    assert numbers_of(there.mine) == list(two[::-1])
    assert numbers_of(there.theirs) == list(one[::-1])
    back = board.turned(there)
    assert [int(x) for x in jax.tree.leaves(back)] == [int(x) for x in jax.tree.leaves(here)]


@pytest.mark.parametrize("die", range(1, 7))
def test_moves_are_those_of_the_reference(die: int) -> None:
    positions = some_positions()
    boards, by = board_of(positions), jnp.full(NUMBER, die, jnp.uint32)
    words = np.asarray(board.sources(board.some(boards.mine), board.several(boards.theirs), by))
    expected = [[source for source in range(PLACES) if reference.may_move(p, source, die)] for p in positions]
    assert [places_of(word) for word in words] == expected
    for source in range(1, PLACES):
        may = np.array([source in found for found in expected])
        bits = jnp.asarray(np.where(may, 1 << source, 0).astype(np.uint32))
        after = positions_of(board.move(boards, bits, by))
        stays = [reference.moved(p, source, die) if may[i] else p for i, p in enumerate(positions)]
        assert after == stays


@pytest.mark.parametrize(
    ("source", "die", "target"), [(25, 1, 24), (25, 6, 19), (7, 6, 1), (24, 3, 21), (6, 6, None), (2, 5, None)]
)
def test_landing(source: int, die: int, target: int | None) -> None:
    word = board.landing(jnp.uint32(1 << source), jnp.uint32(die))
    assert places_of(word) == ([] if target is None else [target])


def test_points_are_those_of_the_reference() -> None:
    going_on = some_positions()
    over = [(NOBODY, theirs) for _, theirs in going_on]
    rng = random.Random(2)
    over += [(NOBODY, plus(NOBODY, rng.choices(range(1, 26), k=15))) for _ in range(NUMBER)]
    over += [(NOBODY, plus(NOBODY, rng.choices(range(1, 19), k=15))) for _ in range(NUMBER)]
    positions = going_on + over
    won = np.asarray(board.points_won(board_of(positions))).tolist()
    assert won == [reference.points(position) for position in positions]
    assert [won.count(points) > 20 for points in range(4)] == [True] * 4
