"""What moves are worth, by looking ahead: alpha-beta, and captures to their end. Compiled.

Values are log odds of winning, for the side to move. A mate is worth `MATE` less the moves until it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.classical.board import (
    MOST_HEIGHT,
    NO_SQUARE,
    PIECES,
    SIDE,
    Position,
    attacked,
    drawn,
    in_check,
    make,
    pass_by,
    take_back,
    take_pass_back,
)
from aleazero.classical.jit import jit
from aleazero.classical.moves import list_moves

MATE = 1000.0
_DEEPEST = MOST_HEIGHT - 24  # extensions stop here, so that captures have room
_LEAST = 1e-6  # by which moves are told apart
_SLACK = 0.3  # log odds that a capture may bring besides what it takes
_FEW = 8  # pieces: with so few, having to move may be bad
_LATE = 4  # moves after which quiet ones are looked at less deeply, unless they turn out better
CAPTURES = 4  # in a row, anywhere
_CAPTURES_FIRST, _KILLER = 1e6, 1e5  # what is tried first, before what history says


@jit
def static(at: Position, tempo: float) -> float:
    """What the values say of a position, for the side to move."""
    early = (at.facts[PIECES] - 2) / 30
    score = early * at.sums[0] + (1.0 - early) * at.sums[1]
    return (score if at.facts[SIDE] == 0 else -score) + tempo


@jit
def _rank(at: Position, worth: Any, height: int, count: int) -> None:
    """Gives every move of a height its place: captures by what they take, refutations of siblings, history."""
    board = at.board
    for i in range(count):
        move = at.moves[height, i]
        source, target = move & 63, (move >> 6) & 63
        piece, taken = board[source], abs(board[target])
        if taken or move >> 12:
            at.order[height, i] = _CAPTURES_FIRST + 100.0 * (worth[taken] + worth[move >> 12]) - worth[abs(piece)]
        elif move == at.killers[height, 0] or move == at.killers[height, 1]:
            at.order[height, i] = _KILLER
        else:
            at.order[height, i] = at.history[piece + 6, target]


@jit
def _next(at: Position, height: int, first: int, count: int) -> int:
    """The best-ranked move from place `first` on, which it is put into."""
    moves, order, best = at.moves[height], at.order[height], first
    for i in range(first + 1, count):
        if order[i] > order[best]:
            best = i
    moves[first], moves[best] = moves[best], moves[first]
    order[first], order[best] = order[best], order[first]
    return moves[first]


@jit
def _gives_away(at: Position, worth: Any, move: int, taken: float) -> bool:
    """Whether a capture gives a piece for one that is worth less and guarded."""
    given = worth[abs(at.board[move & 63])]
    return taken + _SLACK < given and attacked(at.board, (move >> 6) & 63, 1 - at.facts[SIDE])


@jit
def quiesce(
    at: Position, values: Any, worth: Any, tempo: float, alpha: float, beta: float, height: int, last: int, left: int
) -> float:
    """What it is worth once nobody wants to take any more; who is to move may leave it as it is.

    After `left` captures only those on the square of the `last` one are looked at: where much hangs, there is no end.
    """
    at.nodes[0] += 1
    stand = best = static(at, tempo)
    if best >= beta or height >= MOST_HEIGHT - 1:
        return best
    alpha = max(alpha, best)
    count = list_moves(at, at.moves[height], True)
    _rank(at, worth, height, count)
    for i in range(count):
        move = _next(at, height, i, count)
        target = (move >> 6) & 63
        taken = worth[abs(at.board[target])] + worth[move >> 12]
        if (left <= 0 and target != last) or _gives_away(at, worth, move, taken):
            continue
        promise = stand + taken + _SLACK
        if promise <= alpha:  # what it takes would not be enough
            best = max(best, promise)
            continue
        if make(at, values, move):
            best = max(best, -quiesce(at, values, worth, tempo, -beta, -alpha, height + 1, target, left - 1))
        take_back(at, move)
        if best >= beta:
            break
        alpha = max(alpha, best)
    return best


@jit
def search(
    at: Position, values: Any, worth: Any, tempo: float, alpha: float, beta: float, depth: int, height: int,
    passed: bool,
) -> float:  # fmt: skip
    """What it is worth, at most `beta` or at least `alpha` where it lies beyond them. `passed`: nobody moved before."""
    at.nodes[0] += 1
    if drawn(at):
        return 0.0
    check = in_check(at)
    if check and height < _DEEPEST:
        depth += 1
    if depth <= 0:
        return quiesce(at, values, worth, tempo, alpha, beta, height, NO_SQUARE, CAPTURES)
    if depth > 1 and not check and not passed and at.facts[PIECES] > _FEW and static(at, tempo) >= beta:
        # Whoever could even leave the move out and still be too good for the other side is.
        pass_by(at)
        value = -search(at, values, worth, tempo, -beta, _LEAST - beta, depth - 3, height + 1, True)
        take_pass_back(at)
        if value >= beta:
            return beta
    count = list_moves(at, at.moves[height], False)
    _rank(at, worth, height, count)
    best, legal = -MATE + height, 0
    for i in range(count):
        move = _next(at, height, i, count)
        quiet = at.order[height, i] < _CAPTURES_FIRST / 2
        if make(at, values, move):
            legal += 1
            # Later moves are first asked whether they are better at all, which is soon answered where they are not.
            most = beta if legal == 1 else min(alpha + _LEAST, beta)
            less = 1 if legal > _LATE and quiet and depth > 1 and not check else 0
            value = -search(at, values, worth, tempo, -most, -alpha, depth - 1 - less, height + 1, False)
            if value > alpha and (less or value < beta) and legal > 1:
                value = -search(at, values, worth, tempo, -beta, -alpha, depth - 1, height + 1, False)
            best = max(best, value)
        take_back(at, move)
        if legal and best >= beta:
            if quiet:
                at.history[at.board[move & 63] + 6, (move >> 6) & 63] += depth * depth
                if at.killers[height, 0] != move:
                    at.killers[height, 1], at.killers[height, 0] = at.killers[height, 0], move
            break
        alpha = max(alpha, best)
    if legal == 0:
        return -MATE + height if check else 0.0
    return best


@jit
def look(at: Position, values: Any, worth: Any, tempo: float, depth: int, margin: float, found: Any, say: Any) -> int:
    """Every legal move into `found` `[MOST_MOVES]`, the best first, and its value into `say`; says how many.

    Values within `margin` of the best are right; others are at most what is said.
    """
    count = list_moves(at, at.moves[0], False)
    legal = 0
    for i in range(count):
        move = at.moves[0, i]
        if make(at, values, move):
            found[legal], say[legal] = move, 0.0
            legal += 1
        take_back(at, move)
    at.killers[:] = 0
    at.history[:] = 0.0
    for deep in range(1, depth + 1):
        best = -2 * MATE
        for i in range(legal):
            move = found[i]
            make(at, values, move)
            most = 2 * MATE if i == 0 else best + _LEAST
            say[i] = -search(at, values, worth, tempo, -most, margin - best, deep - 1, 1, False)
            if say[i] >= most:
                say[i] = -search(at, values, worth, tempo, -2 * MATE, margin - best, deep - 1, 1, False)
            take_back(at, move)
            best = max(best, say[i])
        _sort(found, say, legal)
    return legal


@jit
def _sort(found: Any, say: Any, count: int) -> None:
    """By what is said, the best first; equal ones stay in order."""
    for i in range(1, count):
        move, value, j = found[i], say[i], i
        while j > 0 and say[j - 1] < value:
            found[j], say[j] = found[j - 1], say[j - 1]
            j -= 1
        found[j], say[j] = move, value


def worth_of(values: np.ndarray) -> np.ndarray:
    """`[7]`: what pieces are worth on the mean, by kind, to try captures of the best first."""
    return np.concatenate([[0.0], values[:, 7:].mean((0, 2))])
