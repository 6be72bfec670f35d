"""Every legal move of a position, as the squares that each of at most sixteen own pieces can go to.

Checks and pins are known before a piece is moved: what may not leave its king in check is masked out, and no move is
tried and taken back. The one exception is a capture in passing, which takes two pawns off a row at once and is looked
at whole. Elementwise over the sixteen pieces. Knows positions only: no history and no end by repetition.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.struct import struct
from aleazero.games.chess.attacks import around, join, leaps
from aleazero.games.chess.bits import (
    ALL,
    DIAGONAL,
    DOWN,
    LEFT,
    RIGHT,
    ROW,
    STRAIGHT,
    UP,
    Bits,
    Ways,
    count,
    number_of,
    only,
    slide,
    square,
    squares,
    step,
    ways,
    where,
)
from aleazero.games.chess.board import LONG, SHORT, Board

PIECES = 16
_THIRD_ROW = squares(ROW << 16)
# Squares by castling: between king and rook, free; where the king is, passes and goes, not attacked; where it goes.
_CASTLES = ((SHORT, 0b01100000, 0b01110000, 0b01000000), (LONG, 0b00001110, 0b00011100, 0b00000100))


@struct
class Legal:
    """What the side to move can do."""

    targets: Bits  # [16]: where the k-th own piece, by square, can go; none where there are fewer
    ep: Array  # int32: the column of a pawn that can really be taken in passing, or -1
    check: Array  # bool: the side to move is in check


@dataclasses.dataclass(frozen=True)
class _Lines:
    """What stands in the way of the other side's sliders."""

    checks: Bits  # the squares that stop a slider's check: between it and the king, and its own
    attackers: dict[int, Bits]  # by direction from the king: the slider that gives check, if any
    pins: list[tuple[Bits, Bits]]  # by direction: the own piece that is pinned there, if any, and where it may go


def legal(board: Board, castling: Array, ep: Array) -> Legal:
    """The legal moves; `ep` is the column of a pawn that has just gone two squares, or -1."""
    occupied, theirs = board.occupied, board.theirs
    king = board.kings & board.own
    free = {by: ways(~occupied, by) for by in STRAIGHT + DIAGONAL}
    lines = _lines(board, king, theirs, free)
    leapers = _leapers(board, king, theirs)
    number = count(leapers | join(lines.attackers.values()))
    stops = where(number == 0, squares(ALL), only(number == 1, leapers | lines.checks))
    passing, passers = _passing(board, king, theirs, leapers, ep)

    mine = square_of_each(board.own)
    each = only(_real(board.own), square(mine))
    targets = _goes(board, each, occupied, theirs, free) & stops
    for pinned, line in lines.pins:
        targets = where((each & pinned).some, targets & line, targets)
    targets = targets | only((each & passers).some, passing)
    home = _king_goes(board, king, theirs, castling, free, lines)
    targets = where((each & king).some, home, targets)
    return Legal(targets, jnp.where(passers.some, ep, -1), number > 0)


def square_of_each(own: Bits) -> Array:
    """`[16]` uint32: the squares of own pieces, ascending; any number where there are fewer."""
    return number_of(own.low, own.high, jnp.arange(PIECES, dtype=jnp.uint32))


def _real(own: Bits) -> Array:
    """`[16]` bool: which of the sixteen there are."""
    return jnp.arange(PIECES) < count(own)


def _leapers(board: Board, king: Bits, theirs: Bits) -> Bits:
    """Knights and pawns that give check."""
    pawns = step(king, UP + LEFT) | step(king, UP + RIGHT)
    return theirs & ((leaps(king) & board.knights) | (pawns & board.pawns))


def _sliders(board: Board, theirs: Bits, by: int) -> Bits:
    """The other side's pieces that slide in a direction (and so in the opposite one)."""
    return theirs & (board.straight_sliders if by in STRAIGHT else board.diagonal_sliders)


def _lines(board: Board, king: Bits, theirs: Bits, free: dict[int, Ways]) -> _Lines:
    """Looks out from the king in eight directions, to the first piece and, past an own one, to the second."""
    checks, attackers, pins = [], {}, []
    for by in STRAIGHT + DIAGONAL:
        sliders = _sliders(board, theirs, by)
        seen = slide(king, free[by], by)
        attackers[by] = seen & sliders
        checks.append(only(attackers[by].some, seen))
        blocker = seen & board.own
        behind = slide(blocker, free[by], by)
        pins.append((only((behind & sliders).some, blocker), seen | behind))
    return _Lines(join(checks), attackers, pins)


def _passing(board: Board, king: Bits, theirs: Bits, leapers: Bits, ep: Array) -> tuple[Bits, Bits]:
    """The square behind a pawn that can be taken in passing, and the own pawns that can take it there.

    Both captures are played out and the king looks round: two pawns leave a row at once, and the pawn taken may be
    what gives check.
    """
    target = only(ep >= 0, square(jnp.maximum(40 + ep, 0)))
    victim = step(target, DOWN)
    others = (leapers & ~victim).some  # another check remains
    beside = [step(target, DOWN + side) & board.pawns & board.own for side in (LEFT, RIGHT)]
    takers = jax.tree.map(lambda *words: jnp.stack(words), *beside)  # [2]
    free = ~(board.occupied ^ takers ^ victim ^ target)
    attacked = join(slide(king, ways(free, by), by) & _sliders(board, theirs, by) for by in STRAIGHT + DIAGONAL)
    able = only(takers.some & ~attacked.some & ~others, takers)
    return target, Bits(able.low[0] | able.low[1], able.high[0] | able.high[1])


def _king_goes(board: Board, king: Bits, theirs: Bits, castling: Array, free: dict[int, Ways], lines: _Lines) -> Bits:
    """Where the king goes: next to it, not into an attack, or to castle."""
    pawns = theirs & board.pawns
    attacked = step(pawns, DOWN + LEFT) | step(pawns, DOWN + RIGHT)
    attacked = attacked | leaps(theirs & board.knights) | around(theirs & board.kings)
    for by in STRAIGHT + DIAGONAL:
        attacked = attacked | slide(_sliders(board, theirs, by), free[by], by)
        # A slider that gives check attacks the square behind the king too.
        attacked = attacked | only(lines.attackers[-by].some, step(king, by))
    goes = around(king) & ~board.own & ~attacked
    for right, between, passes, to in _CASTLES:
        hindered = (board.occupied & squares(between)) | (attacked & squares(passes))
        goes = goes | only(((castling & right) > 0) & ~hindered.some, squares(to))
    return goes


def _goes(board: Board, each: Bits, occupied: Bits, theirs: Bits, free: dict[int, Ways]) -> Bits:
    """Where each piece `[16]`, a set of one square, goes if nothing is pinned and no king in check; not kings."""
    straight = each & board.straight_sliders
    diagonal = each & board.diagonal_sliders
    knights = each & board.knights
    pawns = each & board.pawns
    slides = [slide(straight, free[by], by) for by in STRAIGHT] + [slide(diagonal, free[by], by) for by in DIAGONAL]
    pieces = (join(slides) | leaps(knights)) & ~board.own
    ahead = step(pawns, UP) & ~occupied
    two = step(ahead & _THIRD_ROW, UP) & ~occupied
    takes = (step(pawns, UP + LEFT) | step(pawns, UP + RIGHT)) & theirs
    return pieces | ahead | two | takes
