"""Which squares the pieces of each side attack, kind by kind: all that they could take on if it were not their own.

A pinned piece attacks all the same. Elementwise but for the kinds, which are stacked. Knows no turns, no legal moves.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable

import jax
import jax.numpy as jnp

from aleazero.games.chess.bits import DIAGONAL, DOWN, KNIGHT, LEFT, RIGHT, STRAIGHT, UP, Bits, slide, step, ways
from aleazero.games.chess.board import Board


def join(sets: Iterable[Bits]) -> Bits:
    """All squares of some sets."""
    return functools.reduce(operator.or_, sets)


def leaps(bits: Bits) -> Bits:
    """Where knights go."""
    return join(step(bits, by) for by in KNIGHT)


def around(bits: Bits) -> Bits:
    """Where kings go."""
    return join(step(bits, by) for by in STRAIGHT + DIAGONAL)


def attacks(board: Board) -> Bits:
    """`[12]` sets of one board: the squares that own pieces of every kind attack, as in `KINDS`; the other side's."""
    sides, free = (board.own, board.theirs), ~board.occupied
    queens = board.straight_sliders & board.diagonal_sliders
    rooks, bishops = board.straight_sliders & ~queens, board.diagonal_sliders & ~queens
    # Each of them, for both sides: [2, 2].
    straight = _stack([_stack([kind & side for side in sides]) for kind in (rooks, queens)])
    diagonal = _stack([_stack([kind & side for side in sides]) for kind in (bishops, queens)])
    along = join(slide(straight, ways(free, by), by) for by in STRAIGHT)
    across = join(slide(diagonal, ways(free, by), by) for by in DIAGONAL)
    found = []
    for side, ahead in enumerate((UP, DOWN)):
        pawns = sides[side] & board.pawns
        found += [
            step(pawns, ahead + LEFT) | step(pawns, ahead + RIGHT),
            leaps(sides[side] & board.knights),
            _at(across, 0, side),
            _at(along, 0, side),
            _at(along, 1, side) | _at(across, 1, side),
            around(sides[side] & board.kings),
        ]
    return _stack(found)


def _stack(sets: list[Bits]) -> Bits:
    return jax.tree.map(lambda *words: jnp.stack(words), *sets)


def _at(sets: Bits, *place: int) -> Bits:
    return Bits(sets.low[place], sets.high[place])
