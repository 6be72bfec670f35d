"""Pig solved by value iteration (Neller and Presser 2004, "Optimal play of the dice game Pig").

The table is the chance to win of the player to play, by own score, other's score and the points of this turn.
"""

from __future__ import annotations

import functools

import numpy as np

GOAL = 100
_TURNS = GOAL + 6  # points a turn can hold: 99 and a six


@functools.lru_cache(maxsize=1)
def win_table() -> np.ndarray:
    """`[100, 100, 106]` float64: chance to win with `mine`, `yours`, `turn`; exact to about 1e-12."""
    table = np.full((GOAL, GOAL, _TURNS), 0.5)
    table[_total() >= GOAL] = 1.0  # holding wins
    while True:
        before = table[:, :, 0].copy()
        for turn in range(GOAL - 1, -1, -1):
            rows = slice(0, GOAL - turn)  # where the turn does not win yet
            roll = ((1 - before.T[rows]) + table[rows, :, turn + 2 : turn + 7].sum(-1)) / 6
            # A turn begins with a roll; later the player may keep `mine + turn` and let the other play.
            table[rows, :, turn] = np.maximum(roll, 1 - before[:, turn:].T) if turn else roll
        if np.abs(table[:, :, 0] - before).max() < 1e-12:
            return table


def solve(mine: np.ndarray, yours: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """`[n]`: the value in points (-1 to 1) of decision states, for the player to play."""
    return 2 * win_table()[mine, yours, turn] - 1


def solve_moves(mine: np.ndarray, yours: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """`[n, 2]`: the value of rolling and of holding; NaN where the rules do not allow it."""
    table = win_table()
    wins = mine + turn >= GOAL
    last = np.minimum(turn[:, None] + np.arange(2, 7), _TURNS - 1)
    roll = ((1 - table[yours, mine, 0]) + table[mine[:, None], yours[:, None], last].sum(-1)) / 6
    hold = np.where(wins, 1.0, 1 - table[yours, np.minimum(mine + turn, GOAL - 1), 0])
    values = 2 * np.stack([roll, hold], -1) - 1
    return np.where(np.stack([~wins, turn > 0], -1), values, np.nan)


def _total() -> np.ndarray:
    return np.arange(GOAL)[:, None, None] + np.zeros(GOAL, int)[None, :, None] + np.arange(_TURNS)[None, None, :]
