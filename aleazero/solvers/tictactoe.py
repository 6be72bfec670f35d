"""Tic-tac-toe solved by looking at everything."""

from __future__ import annotations

import functools

import numpy as np

_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
_EMPTY = -1


def solve_moves(boards: np.ndarray) -> np.ndarray:
    """`[n, 9]` float32: the value of each move on boards `[n, 9]` (-1 empty, 0 and 1 marks); NaN where taken."""
    values = np.full(boards.shape, np.nan, np.float32)
    for row, board in enumerate(np.asarray(boards)):
        cells = tuple(int(c) for c in board)
        seat = _to_play(cells)
        for square in range(9):
            if cells[square] == _EMPTY and not _won(cells, 1 - seat):
                values[row, square] = -_value(_put(cells, square, seat), 1 - seat)
    return values


def solve(boards: np.ndarray) -> np.ndarray:
    """`[n]` float32: the value of boards `[n, 9]` for the player to play."""
    return np.array([_value(cells, _to_play(cells)) for cells in map(tuple, np.asarray(boards).tolist())], np.float32)


def reachable() -> np.ndarray:
    """`[5478, 9]` int8: every position that play from the start can reach, finished ones included."""
    start: tuple[int, ...] = (_EMPTY,) * 9
    seen, stack = {start}, [start]
    while stack:
        cells = stack.pop()
        seat = _to_play(cells)
        if _won(cells, 0) or _won(cells, 1):
            continue
        for square in range(9):
            if cells[square] == _EMPTY and (after := _put(cells, square, seat)) not in seen:
                seen.add(after)
                stack.append(after)
    return np.array(sorted(seen), np.int8)


@functools.cache
def _value(cells: tuple[int, ...], seat: int) -> int:
    if _won(cells, 1 - seat):
        return -1
    free = [square for square in range(9) if cells[square] == _EMPTY]
    return max((-_value(_put(cells, square, seat), 1 - seat) for square in free), default=0)


def _to_play(cells: tuple[int, ...]) -> int:
    return int(cells.count(0) > cells.count(1))


def _won(cells: tuple[int, ...], seat: int) -> bool:
    return any(all(cells[square] == seat for square in line) for line in _LINES)


def _put(cells: tuple[int, ...], square: int, seat: int) -> tuple[int, ...]:
    return (*cells[:square], seat, *cells[square + 1 :])
