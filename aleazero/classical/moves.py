"""Every move of a position but for what leaves the mover's king attacked, which `make` says. Compiled."""

from __future__ import annotations

from typing import Any

from aleazero.classical.board import (
    AROUND,
    BISHOP,
    CASTLING,
    KING,
    KNIGHT,
    LEAPS,
    PASSING,
    PAWN,
    QUEEN,
    RAYS,
    ROOK,
    SIDE,
    Position,
    attacked,
)
from aleazero.classical.jit import jit


@jit
def _add(into: Any, count: int, source: int, target: int, promotion: int) -> int:
    into[count] = source | target << 6 | promotion << 12
    return count + 1


@jit
def _pawn(at: Position, into: Any, count: int, source: int, forcing: bool) -> int:
    board, side = at.board, at.facts[SIDE]
    sign = 1 - 2 * side
    ahead, column = source + 8 * sign, source & 7
    last = ahead >= 56 or ahead < 8
    if board[ahead] == 0:
        if last:
            count = _promote(into, count, source, ahead, forcing)
        elif not forcing:
            count = _add(into, count, source, ahead, 0)
            if source // 8 == 1 + 5 * side and board[ahead + 8 * sign] == 0:
                count = _add(into, count, source, ahead + 8 * sign, 0)
    for across in (-1, 1):
        if not 0 <= column + across < 8:
            continue
        target = ahead + across
        if board[target] * sign < 0 or target == at.facts[PASSING]:
            count = _promote(into, count, source, target, forcing) if last else _add(into, count, source, target, 0)
    return count


@jit
def _promote(into: Any, count: int, source: int, target: int, forcing: bool) -> int:
    count = _add(into, count, source, target, QUEEN)
    if not forcing:
        count = _add(into, count, source, target, KNIGHT)
        count = _add(into, count, source, target, BISHOP)
        count = _add(into, count, source, target, ROOK)
    return count


@jit
def _step(board: Any, into: Any, count: int, source: int, table: Any, forcing: bool) -> int:
    piece = board[source]
    for place in range(8):
        target = table[source, place]
        if target < 0:
            break
        there = board[target] * piece
        if there < 0 or (there == 0 and not forcing):
            count = _add(into, count, source, target, 0)
    return count


@jit
def _slide(board: Any, into: Any, count: int, source: int, first: int, last: int, forcing: bool) -> int:
    piece = board[source]
    for way in range(first, last):
        for place in range(7):
            target = RAYS[source, way, place]
            if target < 0:
                break
            there = board[target] * piece
            if there < 0 or (there == 0 and not forcing):
                count = _add(into, count, source, target, 0)
            if there != 0:
                break
    return count


@jit
def _castle(at: Position, into: Any, count: int) -> int:
    board, side, home = at.board, at.facts[SIDE], 56 * at.facts[SIDE]
    rights = at.facts[CASTLING] >> 2 * side
    if rights & 3 == 0 or attacked(board, home + 4, 1 - side):
        return count
    if rights & 1 and board[home + 5] == 0 and board[home + 6] == 0 and not attacked(board, home + 5, 1 - side):
        count = _add(into, count, home + 4, home + 6, 0)
    free = board[home + 3] == 0 and board[home + 2] == 0 and board[home + 1] == 0
    if rights & 2 and free and not attacked(board, home + 3, 1 - side):
        count = _add(into, count, home + 4, home + 2, 0)
    return count


@jit
def list_moves(at: Position, into: Any, forcing: bool) -> int:
    """Writes moves into `[MOST_MOVES]` and says how many; `forcing`: captures and promotions to queens alone."""
    board, sign, count = at.board, 1 - 2 * at.facts[SIDE], 0
    for source in range(64):
        piece = board[source] * sign
        if piece <= 0:
            continue
        if piece == PAWN:
            count = _pawn(at, into, count, source, forcing)
        elif piece == KNIGHT:
            count = _step(board, into, count, source, LEAPS, forcing)
        elif piece == KING:
            count = _step(board, into, count, source, AROUND, forcing)
        else:
            first, last = (0 if piece != BISHOP else 4), (8 if piece != ROOK else 4)
            count = _slide(board, into, count, source, first, last, forcing)
    return count if forcing else _castle(at, into, count)
