"""The action space: 1,858 moves as the side to move sees them, and the list of the legal ones.

Actions 0 to 1,791 are the moves of queens and knights from every square, by source and then by target; a pawn that
goes to the last row by one becomes a queen. The other 66 are promotions to knight, bishop and rook (22 of each: takes
to the left, goes ahead, takes to the right, by column). Castling is the king's move of two squares.
The tables are made from geometry when the module is loaded. Knows no rules beyond that.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.games.chess.bits import Bits, count, number_of, once
from aleazero.games.chess.board import BISHOP, KNIGHT, ROOK
from aleazero.games.chess.moves import PIECES

MAX_LEGAL = 218  # no position has more: R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w
UNDER = (KNIGHT, BISHOP, ROOK)
_WAYS = 22


def _reaches(source: int, target: int) -> bool:
    rows, columns = abs(source // 8 - target // 8), abs(source % 8 - target % 8)
    return source != target and (rows == 0 or columns == 0 or rows == columns or {rows, columns} == {1, 2})


def _plain() -> list[tuple[int, int, int]]:
    return [(source, target, 0) for source in range(64) for target in range(64) if _reaches(source, target)]


def _under() -> list[tuple[int, int, int]]:
    """Promotions to less than a queen, by kind, way and column."""
    return [
        (48 + column, 56 + column + side, kind)
        for kind in UNDER
        for side in (-1, 0, 1)
        for column in range(8)
        if 0 <= column + side < 8
    ]


MOVES = tuple(_plain() + _under())  # source, target, promotion (a code of `board.py`, or 0)
NUM_ACTIONS = len(MOVES)
ON_BOARD = tuple((source, target, (0, *UNDER).index(kind)) for source, target, kind in MOVES)
ACTION_OF = {move: action for action, move in enumerate(MOVES)}

_DECODED = np.array([source | target << 6 | kind << 12 for source, target, kind in MOVES], np.int32)


def _numbers() -> np.ndarray:
    """`[67 * 64]` int16: by source and target; then by kind and place in the word of `_promotions`."""
    numbers = np.full((64 + len(UNDER), 64), -1, np.int16)
    for action, (source, target, kind) in enumerate(MOVES):
        if kind:
            numbers[64 + UNDER.index(kind), 8 * (target - source - 7) + source - 48] = action
        else:
            numbers[source, target] = action
    return numbers.reshape(-1)


_NUMBERS = _numbers()


def decode(action: Array) -> tuple[Array, Array, Array]:
    """Source, target and promotion of an action, int32."""
    word = jnp.asarray(_DECODED)[action]
    return word & 63, (word >> 6) & 63, word >> 12


def listing(squares: Array, targets: Bits, pawns: Array) -> Array:
    """`[218]` int16: every move of pieces on squares `[16]` to their targets, by square; then lesser promotions.

    `pawns` `[16]` says which pieces are pawns on the row before the last.
    The k-th move belongs to the last piece whose first move is not after k. Each place of the list finds its own piece
    and target: nothing is sorted and nothing scattered.
    """
    promotions = once(_promotions(squares, targets, pawns))
    squares, sizes = once((squares, count(targets)))
    ways = jax.lax.population_count(promotions).astype(jnp.int32)
    groups = [(squares[i], targets.low[i], targets.high[i], sizes[i]) for i in range(PIECES)]
    groups += [(jnp.uint32(64 + kind), promotions, jnp.uint32(0), ways) for kind in range(len(UNDER))]
    places = jnp.arange(MAX_LEGAL, dtype=jnp.int32)
    low = high = row = jnp.zeros(MAX_LEGAL, jnp.uint32)
    first, start = jnp.zeros(MAX_LEGAL, jnp.int32), jnp.int32(0)
    for number, its_low, its_high, size in groups:
        here = places >= start
        low, high = jnp.where(here, its_low, low), jnp.where(here, its_high, high)
        row, first = jnp.where(here, number, row), jnp.where(here, start, first)
        start = start + size
    target = number_of(low, high, (places - first).astype(jnp.uint32))
    action = jnp.asarray(_NUMBERS)[(row * 64 + target).astype(jnp.int32)]
    return jnp.where(places < start, action, jnp.int16(-1))


def _promotions(squares: Array, targets: Bits, pawns: Array) -> Array:
    """uint32: the ways pawns go to the last row, by column: left from bit 0, ahead from 8, right from 16."""
    column = squares & 7
    ways = jnp.where(pawns, ((targets.high >> 24) << 1) >> column, 0)  # bits 0 to 2: left, ahead, right
    spread = (ways & 1) | ((ways & 2) << 7) | ((ways & 4) << 14)
    return (spread << column).sum(dtype=jnp.uint32)
