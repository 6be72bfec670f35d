"""What was seen before, for networks that remember: the last observations of every lane, forgotten when a game ends.

Knows arrays; neither games nor networks.
"""

from __future__ import annotations

import numpy as np


class Past:
    """The `length` observations before this one, newest first; zeros where a game had not begun. 0: nothing is kept."""

    def __init__(self, lanes: int, shape: tuple[int, ...], length: int, rows: np.ndarray | None = None) -> None:
        self.length = length
        self.rows = np.zeros((lanes, length, *shape), np.float32) if rows is None else rows  # [B, H, ...]

    def beside(self, seen: np.ndarray) -> np.ndarray:
        """What a network is shown of observations `[B, ...]`: `[B, 1 + H, ...]`, or they alone if nothing is kept."""
        return np.concatenate([seen[:, None], self.rows], 1) if self.length else seen

    def add(self, seen: np.ndarray) -> None:
        """One observation more."""
        if self.length:
            self.rows = self.beside(seen)[:, :-1]

    def forget(self, lanes: np.ndarray) -> None:
        """Other games begin in lanes `[B]` bool."""
        if self.length:
            self.rows = np.where(lanes.reshape(-1, *[1] * (self.rows.ndim - 1)), np.float32(0), self.rows)

    def take(self, lanes: np.ndarray) -> Past:
        """That of lanes `[n]`, to go on apart."""
        return Past(0, (), self.length, self.rows[lanes]) if self.length else Past(len(lanes), (), 0)

    def put(self, lanes: np.ndarray, taken: Past) -> None:
        """What was taken has gone on: it is the past of these lanes."""
        if self.length:
            self.rows[lanes] = taken.rows
