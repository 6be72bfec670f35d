"""Alpha-beta asked about many positions at once: their moves, the best first, and what these are worth."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from aleazero.classical.alphabeta import look, worth_of
from aleazero.classical.board import MOST_MOVES, Position, empty, set_up
from aleazero.classical.jit import jit
from aleazero.classical.values import Values

NO_MOVE = -1


@dataclasses.dataclass(frozen=True)
class Boards:
    """Positions `[B]` as plain arrays: squares and pieces as in `board.py`."""

    pieces: np.ndarray  # [B, 64] int8
    sides: np.ndarray  # [B]: to move, 0 White
    castling: np.ndarray  # [B]: rights as bits: White's short and long, Black's
    passing: np.ndarray  # [B]: the square a pawn can be taken on in passing; -1: none
    clock: np.ndarray  # [B]: plies since a capture or a pawn's move


class AlphaBeta:
    """Looks so many moves ahead, and then captures to their end."""

    def __init__(self, values: Values, depth: int, margin: float) -> None:
        """What moves are worth is right within `margin` of the best; of others it is said that they are no better."""
        self.depth, self._margin, self._tempo = depth, margin, values.tempo
        self._table = values.table()
        self._worth = worth_of(self._table)

    def look(self, boards: Boards, most: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Moves `[B, most]` int32, `NO_MOVE` behind the last, and their values as log odds `[B, most]` float32."""
        lanes = len(boards.sides)
        moves, values = np.full((lanes, most), NO_MOVE, np.int32), np.zeros((lanes, most), np.float32)
        sides, castling, passing, clock = (
            np.ascontiguousarray(x, np.int64) for x in (boards.sides, boards.castling, boards.passing, boards.clock)
        )
        pieces = np.ascontiguousarray(boards.pieces, np.int8)

        def some(first: int) -> None:
            _look(empty(), self._table, self._worth, self._tempo, self.depth, self._margin, pieces, sides,
                  castling, passing, clock, first, threads, moves, values)  # fmt: skip

        if threads == 1:
            some(0)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(some, range(threads)))
        return moves, values


@jit
def _look(
    at: Position, table: Any, worth: Any, tempo: float, depth: int, margin: float, pieces: Any, sides: Any,
    castling: Any, passing: Any, clock: Any, first: int, step: int, moves: Any, values: Any,
) -> None:  # fmt: skip
    """Lanes `first`, `first + step`, ..."""
    found, say = np.empty(MOST_MOVES, np.int32), np.empty(MOST_MOVES)
    for lane in range(first, len(sides), step):
        set_up(at, table, pieces[lane], sides[lane], castling[lane], passing[lane], clock[lane])
        count = min(look(at, table, worth, tempo, depth, margin, found, say), moves.shape[1])
        for i in range(count):
            moves[lane, i], values[lane, i] = found[i], say[i]
