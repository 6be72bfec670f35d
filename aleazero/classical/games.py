"""Games of alpha-beta against itself, and the quiet positions in them. Compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.classical.alphabeta import CAPTURES, MATE, look, quiesce, static
from aleazero.classical.board import (
    ALL_RIGHTS,
    FIRST,
    MOST_MOVES,
    NO_SQUARE,
    SIDE,
    Position,
    drawn,
    in_check,
    make,
    set_up,
    take_back,
)
from aleazero.classical.jit import jit
from aleazero.classical.moves import list_moves

MOST_PLIES = 300  # then a game is stopped, and has no end
WON, DRAWN, LOST, STOPPED = 1.0, 0.5, 0.0, -1.0  # for White


@jit
def _any_move(at: Position, values: Any) -> int:
    """A legal move at random; -1 where there is none."""
    count = list_moves(at, at.moves[0], False)
    while count:
        place = np.random.randint(count)
        move = at.moves[0, place]
        legal = make(at, values, move)
        take_back(at, move)
        if legal:
            return move
        count -= 1
        at.moves[0, place] = at.moves[0, count]
    return -1


@jit
def play_game(
    at: Position, values: Any, worth: Any, tempo: float, depth: int, noise: float, opening: int, seed: int,
    boards: Any, sides: Any,
) -> tuple[float, int]:  # fmt: skip
    """One game: how it ended for White, and how many quiet positions of it are in `boards` `[MOST_PLIES, 64]`.

    It begins with up to `opening` random moves; later ones are the best but for `noise` on what they are worth. Quiet
    is where nobody would take anything: there the values alone say what a position is worth.
    """
    np.random.seed(seed)
    found, say = np.empty(MOST_MOVES, np.int32), np.empty(MOST_MOVES)
    set_up(at, values, FIRST, 0, ALL_RIGHTS, NO_SQUARE, 0)
    random, kept = np.random.randint(opening + 1), 0
    for ply in range(MOST_PLIES):
        if drawn(at):
            return DRAWN, kept
        if ply < random:
            move = _any_move(at, values)
            if move < 0:
                return STOPPED, 0
            make(at, values, move)
            continue
        check = in_check(at)
        if not check and quiesce(at, values, worth, tempo, -MATE, MATE, 1, NO_SQUARE, CAPTURES) == static(at, tempo):
            boards[kept] = at.board
            sides[kept] = at.facts[SIDE]
            kept += 1
        count = look(at, values, worth, tempo, depth, noise, found, say)
        if count == 0:
            if not check:
                return DRAWN, kept
            return (LOST if at.facts[SIDE] == 0 else WON), kept
        for i in range(count):
            say[i] += noise * np.random.random()
        make(at, values, found[np.argmax(say[:count])])
    return STOPPED, 0
