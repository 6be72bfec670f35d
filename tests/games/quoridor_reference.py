"""Quoridor in plain Python, written for clarity and apart from the package, to compare it with.

Everything is absolute: squares are (column, row) with a1 = (0, 0), walls are (column, row, "h" or "v") of the
lower left of the four squares they touch. Moves are told by name.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import deque

Square = tuple[int, int]
Wall = tuple[int, int, str]
WAYS = ((0, 1), (1, 0), (0, -1), (-1, 0))
ALL_WALLS = [(column, row, kind) for kind in "hv" for row in range(8) for column in range(8)]


def name(place: Square | Wall) -> str:
    return f"{'abcdefghi'[place[0]]}{place[1] + 1}{''.join(place[2:])}"


def parts(wall: Wall) -> list[frozenset[Square]]:
    """The two pairs of squares that a wall parts."""
    c, r, kind = wall
    if kind == "h":
        return [frozenset({(c, r), (c, r + 1)}), frozenset({(c + 1, r), (c + 1, r + 1)})]
    return [frozenset({(c, r), (c + 1, r)}), frozenset({(c, r + 1), (c + 1, r + 1)})]


def corners(wall: Wall) -> set[Square]:
    """The three corners of squares that a wall touches, by the square they are the lower left of."""
    c, r, kind = wall
    return {(c + 1, r + 1), *([(c, r + 1), (c + 2, r + 1)] if kind == "h" else [(c + 1, r), (c + 1, r + 2)])}


@dataclasses.dataclass
class Reference:
    """A game in progress."""

    pawns: list[Square] = dataclasses.field(default_factory=lambda: [(4, 0), (4, 8)])
    walls: list[Wall] = dataclasses.field(default_factory=list)
    left: list[int] = dataclasses.field(default_factory=lambda: [10, 10])
    mover: int = 0

    def winner(self) -> int | None:
        if self.pawns[0][1] == 8:
            return 0
        return 1 if self.pawns[1][1] == 0 else None

    def describe(self) -> str:
        """The position on one line."""
        walls = ",".join(name(wall) for wall in ALL_WALLS if wall in self.walls) or "-"
        pawns = f"{name(self.pawns[0])} {name(self.pawns[1])}"
        return f"{pawns} {self.left[0]} {self.left[1]} {walls} {self.mover + 1}"

    def legal(self) -> dict[str, Square | Wall]:
        """Every legal move by its name."""
        if self.winner() is not None:
            return {}
        return {name(move): move for move in [*self.steps(), *self.placeable()]}

    def play(self, move: Square | Wall) -> None:
        if len(move) == 2:
            self.pawns[self.mover] = move
        else:
            self.walls.append(move)
            self.left[self.mover] -= 1
        self.mover = 1 - self.mover

    def steps(self) -> list[Square]:
        """Where the mover's pawn can go."""
        barred = self.barred()
        me, you = self.pawns[self.mover], self.pawns[1 - self.mover]
        out = []
        for dc, dr in WAYS:
            near = (me[0] + dc, me[1] + dr)
            if not passable(me, near, barred):
                continue
            if near != you:
                out.append(near)
                continue
            far = (you[0] + dc, you[1] + dr)
            if passable(you, far, barred):
                out.append(far)
            else:
                sides = [(you[0] + dr, you[1] + dc), (you[0] - dr, you[1] - dc)]
                out += [side for side in sides if passable(you, side, barred)]
        return out

    def placeable(self) -> list[Wall]:
        """Where the mover can place a wall."""
        if self.left[self.mover] == 0:
            return []
        barred = self.barred()
        ways = [path(pawn, goal, barred) for pawn, goal in zip(self.pawns, (8, 0), strict=True)]
        out = []
        for wall in self.fitting():
            new = set(parts(wall))
            # A wall that leaves a known path alone leaves a path; only else is a new search needed.
            if all(
                not new & way or path(pawn, goal, barred | new) is not None
                for pawn, goal, way in zip(self.pawns, (8, 0), ways, strict=True)
            ):
                out.append(wall)
        return out

    def fitting(self) -> list[Wall]:
        """Where a wall would neither overlap nor cross another; it may still cut somebody off."""
        return [wall for wall in ALL_WALLS if not any(conflict(wall, other) for other in self.walls)]

    def barred(self) -> set[frozenset[Square]]:
        return {pair for wall in self.walls for pair in parts(wall)}


@functools.cache
def conflict(one: Wall, two: Wall) -> bool:
    """Whether two walls overlap or cross."""
    if one[2] != two[2]:
        return one[:2] == two[:2]
    return bool(set(parts(one)) & set(parts(two)))


def passable(here: Square, there: Square, barred: set[frozenset[Square]]) -> bool:
    on_board = 0 <= there[0] <= 8 and 0 <= there[1] <= 8
    return on_board and frozenset({here, there}) not in barred


def path(start: Square, goal_row: int, barred: set[frozenset[Square]]) -> set[frozenset[Square]] | None:
    """The steps of a shortest path to a row, or None if there is no path."""
    came_from: dict[Square, Square | None] = {start: None}
    queue = deque([start])
    while queue:
        square = queue.popleft()
        if square[1] == goal_row:
            steps = set()
            while (before := came_from[square]) is not None:
                steps.add(frozenset({before, square}))
                square = before
            return steps
        for dc, dr in WAYS:
            there = (square[0] + dc, square[1] + dr)
            if there not in came_from and passable(square, there, barred):
                came_from[there] = square
                queue.append(there)
    return None
