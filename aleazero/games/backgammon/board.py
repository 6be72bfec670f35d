"""The backgammon board as bits: where checkers stand, and one checker's move.

A side's checkers are four planes, uint32: bit k of plane i is bit i of the number of checkers on place k. Places are
seen by the side that moves: bits 1 to 24 are its points, bit 25 its bar, bit 0 the other side's bar. It moves down;
a checker that leaves past bit 1 is off. `turned` shows the same board to the other side.
Every function is elementwise, for planes of any shape: one position or a million. Knows no dice and no turns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.struct import struct

CHECKERS = 15
PLACES = 26  # the other side's bar, points 1 to 24, the own bar
BAR = 1 << 25
THEIR_BAR = 1
POINTS = (1 << 25) - 2
HOME = (1 << 7) - 2  # points 1 to 6

Planes = tuple[Array, Array, Array, Array]


@struct
class Board:
    """Both sides' checkers, in the places of the side that moves."""

    mine: Planes
    theirs: Planes


def four(planes: Iterable[Any]) -> Planes:
    """Planes that come one by one."""
    first, second, third, fourth = planes
    return first, second, third, fourth


def some(planes: Planes) -> Array:
    """The places with at least one checker."""
    return planes[0] | planes[1] | planes[2] | planes[3]


def several(planes: Planes) -> Array:
    """The places with at least two."""
    return planes[1] | planes[2] | planes[3]


def total(planes: Planes) -> Array:
    """How many checkers are on the board and the bar, int32."""
    counts = [jax.lax.population_count(plane).astype(jnp.int32) << i for i, plane in enumerate(planes)]
    return counts[0] + counts[1] + counts[2] + counts[3]


def each_place(word: Array) -> Array:
    """`[15, ...]`: the bits of a word, each alone, ascending; 0 where there are no more."""
    found = []
    for _ in range(CHECKERS):
        bit = word & (~word + 1)
        found.append(bit)
        word = word ^ bit
    return jnp.stack(found)


def add(planes: Planes, bit: Array) -> Planes:
    """One checker more on a place; none if `bit` is 0."""
    out = []
    for plane in planes:
        out.append(plane ^ bit)
        bit = bit & plane
    return four(out)


def take(planes: Planes, bit: Array) -> Planes:
    """One checker fewer on a place that has one; none if `bit` is 0."""
    out = []
    for plane in planes:
        out.append(plane ^ bit)
        bit = bit & ~plane
    return four(out)


def move(board: Board, source: Array, die: Array) -> Board:
    """One checker from a place down by a die, hitting what stands there alone; nothing if `source` is 0.

    The move must be legal: more than one checker of the other side on the target is not looked for.
    """
    target = landing(source, die)
    mine = add(take(board.mine, source), target)
    hit = target & some(board.theirs)
    theirs = take(board.theirs, hit)
    return Board(mine, add(theirs, (hit != 0).astype(jnp.uint32)))


def landing(source: Array, die: Array) -> Array:
    """The bit of the point where a checker lands; 0 if it leaves the board."""
    target: Array = (source >> die) & jnp.uint32(POINTS)
    return target


def sources(mine: Array, blocked: Array, die: Array) -> Array:
    """The places from which one checker may move by a die, as bits.

    `mine` are the places with own checkers, `blocked` those with several of the other side's.
    """
    bar = jnp.uint32(BAR)
    candidates = jnp.where(mine & bar, bar, mine)
    onto_points = candidates & ((~blocked & jnp.uint32(POINTS)) << die)
    exact = mine & (jnp.uint32(1) << die)
    beyond = jnp.where((mine >> die) == 0, _highest(mine), jnp.uint32(0))
    off = jnp.where((mine & ~jnp.uint32(HOME)) == 0, exact | beyond, jnp.uint32(0))
    return onto_points | off


def _highest(places: Array) -> Array:
    """The highest of places 1 to 6; only those may be set."""
    filled = places | (places >> 1)
    filled = filled | (filled >> 2)
    filled = filled | (filled >> 4)
    return filled & ~(filled >> 1)


def turned(board: Board) -> Board:
    """The board as the other side sees it."""
    mine, theirs = (four(_reversed(plane) for plane in side) for side in (board.mine, board.theirs))
    return Board(theirs, mine)


def _reversed(x: Array) -> Array:
    """Bits 0 to 25 in the opposite order."""
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
        x = ((x >> shift) & jnp.uint32(mask)) | ((x & jnp.uint32(mask)) << shift)
    x = (x >> 16) | (x << 16)
    return x >> (32 - PLACES)


def counts(planes: Planes) -> Array:
    """`[..., 26]` int32: checkers on each place."""
    places = jax.lax.broadcasted_iota(jnp.uint32, (*planes[0].shape, PLACES), planes[0].ndim)
    numbers = [(((plane[..., None] >> places) & 1) << i).astype(jnp.int32) for i, plane in enumerate(planes)]
    return numbers[0] + numbers[1] + numbers[2] + numbers[3]


def planes(counts: np.ndarray) -> Planes:
    """Planes of numbers of checkers `[..., 26]`, each 0 to 15; on the host."""
    numbers = np.asarray(counts).astype(np.uint32)
    weights = np.uint32(1) << np.arange(PLACES, dtype=np.uint32)
    return four((((numbers >> i) & 1) * weights).sum(-1, dtype=np.uint32) for i in range(4))


def points_won(board: Board) -> Array:
    """int32: what the game brings the side that moved last: 0 while it goes on, else 1, 2 (gammon) or 3 (backgammon).

    A loser with nothing off and a checker on the bar or in the winner's home loses a backgammon.
    """
    nothing_off = total(board.theirs) == CHECKERS
    back = (some(board.theirs) & jnp.uint32(HOME | THEIR_BAR)) != 0
    won = some(board.mine) == 0
    return jnp.where(won, 1 + nothing_off.astype(jnp.int32) + (nothing_off & back).astype(jnp.int32), 0)
