"""Sets of squares as bits, and how they are shifted over the board.

    row 7  56 57 ... 63   a square is 8 * row + column, as the side to move sees it: its own pieces start on the two
      ...                 lowest rows and its pawns move up. Bit k of a set is square k: squares 0 to 31 are in `low`,
    row 0   0  1 ...  7   32 to 63 in `high`, for JAX has no 64-bit words by default.

Every function is elementwise, for sets of any shape: one position, its sixteen pieces or a million games. Nothing is
looked up in tables and nothing loops, so a whole move generator fuses into a few kernels. Knows no pieces.
"""

from __future__ import annotations

from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.struct import struct

T = TypeVar("T")
_FULL = 0xFFFFFFFF

UP, DOWN, RIGHT, LEFT = 8, -8, 1, -1
STRAIGHT = (UP, DOWN, RIGHT, LEFT)
DIAGONAL = (UP + RIGHT, UP + LEFT, DOWN + RIGHT, DOWN + LEFT)
KNIGHT = (17, 15, 10, 6, -17, -15, -10, -6)

COLUMN = 0x0101010101010101  # column 0
ROW = 0xFF  # row 0
ALL = (1 << 64) - 1


@struct
class Bits:
    """A set of squares."""

    low: Array  # uint32
    high: Array  # uint32

    def __and__(self, other: Bits) -> Bits:
        return Bits(self.low & other.low, self.high & other.high)

    def __or__(self, other: Bits) -> Bits:
        return Bits(self.low | other.low, self.high | other.high)

    def __xor__(self, other: Bits) -> Bits:
        return Bits(self.low ^ other.low, self.high ^ other.high)

    def __invert__(self) -> Bits:
        return Bits(~self.low, ~self.high)

    @property
    def some(self) -> Array:
        """Whether there is a square in it."""
        return (self.low | self.high) != 0


def squares(mask: int) -> Bits:
    """A constant set."""
    return Bits(np.uint32(mask & _FULL), np.uint32(mask >> 32))  # type: ignore[arg-type]


NONE = squares(0)


def only(condition: Array, bits: Bits) -> Bits:
    """The set where a condition holds, none elsewhere."""
    return where(condition, bits, NONE)


def where(condition: Array, yes: Bits, no: Bits) -> Bits:
    """One of two sets."""
    return Bits(jnp.where(condition, yes.low, no.low), jnp.where(condition, yes.high, no.high))


def count(bits: Bits) -> Array:
    """How many squares, int32."""
    return (jax.lax.population_count(bits.low) + jax.lax.population_count(bits.high)).astype(jnp.int32)


def square(number: Array) -> Bits:
    """The set of one square by its number, 0 to 63."""
    number = number.astype(jnp.uint32)
    bit = jnp.uint32(1) << (number & 31)
    upper = number > 31
    return Bits(jnp.where(upper, jnp.uint32(0), bit), jnp.where(upper, bit, jnp.uint32(0)))


def number_of(low: Array, high: Array, place: Array) -> Array:
    """The number, uint32, of the square in a set that has `place` (uint32) lower ones. Halves the set six times."""
    below = jax.lax.population_count(low)
    upper = place >= below
    word = jnp.where(upper, high, low)
    place = jnp.where(upper, place - below, place)
    number = jnp.where(upper, jnp.uint32(32), jnp.uint32(0))
    for width in (16, 8, 4, 2, 1):
        below = jax.lax.population_count(word & jnp.uint32((1 << width) - 1))
        upper = place >= below
        word = jnp.where(upper, word >> width, word)
        place = jnp.where(upper, place - below, place)
        number = jnp.where(upper, number + jnp.uint32(width), number)
    return number


def shifted(bits: Bits, by: int) -> Bits:
    """The set moved by a fixed difference of numbers; squares that leave it at the top or bottom are lost."""
    if by >= 32:
        return Bits(jnp.zeros_like(bits.low), bits.low << (by - 32))
    if by > 0:
        return Bits(bits.low << by, (bits.high << by) | (bits.low >> (32 - by)))
    if by <= -32:
        return Bits(bits.high >> (-by - 32), jnp.zeros_like(bits.high))
    return Bits((bits.low >> -by) | (bits.high << (32 + by)), bits.high >> -by)


def landing(by: int) -> Bits:
    """The squares a step of `by` can end on: the others are reached only round the edge of the board."""
    columns = (by + 4) % 8 - 4  # to the right: -2 to 2
    over = range(columns) if columns > 0 else range(8 + columns, 8)
    return squares(ALL & ~sum(COLUMN << column for column in over))


def step(bits: Bits, by: int) -> Bits:
    """Every square's step, where it stays on the board."""
    return shifted(bits, by) & landing(by)


@struct
class Ways:
    """Where a slide in one direction may go on, one, two and four steps at a time (see `ways`)."""

    one: Bits
    two: Bits
    four: Bits


def ways(free: Bits, by: int) -> Ways:
    """What a slide in one direction needs to know of the free squares."""
    one = free & landing(by)
    two = one & shifted(one, by)
    return Ways(one, two, two & shifted(two, 2 * by))


def slide(bits: Bits, ways: Ways, by: int) -> Bits:
    """All squares that slides in one direction from a set reach: the free ones, and the first that is not.

    A parallel prefix: after the three lines the squares one, three and seven free steps away are in.
    """
    reached = bits | (ways.one & shifted(bits, by))
    reached = reached | (ways.two & shifted(reached, 2 * by))
    reached = reached | (ways.four & shifted(reached, 4 * by))
    return step(reached, by)


def once(tree: T) -> T:
    """The same arrays, to be computed once and kept, however many use them.

    XLA on a CPU works cheap operations out again for everybody who uses their result, also for each of the hundreds of
    elements it is spread over; a program of bit operations grows tenfold by that. A sum it does not repeat: so this is
    one, of the array and of nothing. (A barrier is taken away before operations are joined.)
    """

    def kept(x: Array) -> Array:
        first = jax.lax.broadcasted_iota(jnp.int32, (2, *x.shape), 0) == 0
        return jnp.where(first, x[None], jnp.zeros_like(x)[None]).sum(0, dtype=x.dtype)

    return jax.tree.map(kept, tree)


def flipped(bits: Bits) -> Bits:
    """The board upside down: row 0 becomes row 7, columns stay."""
    return Bits(_bytes_reversed(bits.high), _bytes_reversed(bits.low))


def _bytes_reversed(word: Array) -> Array:
    word = ((word >> 8) & jnp.uint32(0x00FF00FF)) | ((word & jnp.uint32(0x00FF00FF)) << 8)
    return (word >> 16) | (word << 16)


def planes(bits: Bits) -> Array:
    """`[8, 8]` bool of one set: by row and column."""
    numbers = jnp.arange(32, dtype=jnp.uint32)
    both = jnp.concatenate([(bits.low >> numbers) & 1, (bits.high >> numbers) & 1])
    return (both != 0).reshape(8, 8)
