"""Sets of squares against plain sets of numbers."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.games.chess import bits
from aleazero.games.chess.bits import DIAGONAL, KNIGHT, STRAIGHT, Bits

SETS = st.integers(0, bits.ALL)


def of(mask: int) -> Bits:
    both = bits.squares(mask)
    return Bits(jnp.asarray(both.low), jnp.asarray(both.high))


def number(both: Bits) -> int:
    return int(both.low) | int(both.high) << 32


def members(mask: int) -> list[int]:
    return [square for square in range(64) if mask >> square & 1]


def moved(square: int, by: int) -> int | None:
    """The square a step away, if it is on the board: a step goes at most two rows and two columns."""
    target = square + by
    near = abs(target % 8 - square % 8) <= 2
    return target if 0 <= target < 64 and near else None


@functools.cache
def compiled(name: str, by: int | None = None):
    function = getattr(bits, name)
    return jax.jit(function if by is None else lambda *args: function(*args, by))


@pytest.mark.parametrize("by", STRAIGHT + DIAGONAL + KNIGHT)
@settings(max_examples=25, deadline=None)
@given(mask=SETS)
def test_a_step_stays_on_the_board(by: int, mask: int):
    expected = {moved(square, by) for square in members(mask)} - {None}
    assert set(members(number(compiled("step", by)(of(mask))))) == expected


@functools.cache
def sliding(by: int):
    return jax.jit(lambda pieces, free: bits.slide(pieces, bits.ways(free, by), by))


@pytest.mark.parametrize("by", STRAIGHT + DIAGONAL)
@settings(max_examples=25, deadline=None)
@given(pieces=SETS, free=SETS, also=SETS)
def test_a_slide_ends_on_the_first_square_that_is_not_free(by: int, pieces: int, free: int, also: int):
    free |= also
    expected = set()
    for square in members(pieces):
        at: int | None = square
        while (at := moved(at, by)) is not None:
            expected.add(at)
            if not free >> at & 1:
                break
    assert set(members(number(sliding(by)(of(pieces), of(free))))) == expected


@settings(max_examples=50, deadline=None)
@given(mask=SETS)
def test_squares_of_a_set_are_found_by_their_place(mask: int):
    there = members(mask)
    places = jnp.arange(64, dtype=jnp.uint32)
    both = of(mask)
    found = compiled("number_of")(both.low, both.high, places)
    assert np.asarray(found)[: len(there)].tolist() == there
    assert int(compiled("count")(both)) == len(there)
    assert members(number(compiled("flipped")(both))) == sorted(square ^ 56 for square in there)
    assert np.flatnonzero(np.asarray(compiled("planes")(both)).reshape(-1)).tolist() == there


def test_a_square_by_its_number():
    found = jax.jit(jax.vmap(bits.square))(jnp.arange(64))
    assert [number(Bits(low, high)) for low, high in zip(found.low, found.high, strict=True)] == [
        1 << square for square in range(64)
    ]


def test_computing_once_changes_nothing():
    words = jnp.asarray([0, 1, 0xFFFFFFFF, 0x80000000], jnp.uint32)
    numbers = jnp.asarray([-1, 7, -(2**31)], jnp.int32)
    kept = compiled("once")((words, numbers))
    assert kept[0].dtype == jnp.uint32
    assert kept[1].dtype == jnp.int32
    assert np.array_equal(kept[0], words)
    assert np.array_equal(kept[1], numbers)
