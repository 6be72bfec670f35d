"""Computes the bear-off tables by retrograde analysis, with numpy alone.

A position of one side is its checkers on its points 1 to 6; the rest is off. Its number, `rank`, orders positions first
by how many checkers are left, so that a table for few checkers is the head of one for many. A move of one checker
lowers the pips, so positions are solved in the order of their pips, all of one count together, and what a roll leads
to is known before it is asked for.
Knows nothing of contact, of checkers outside home, of the cube or of files.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

POINTS = 6
# In the order of the game's chance outcomes: the mixed rolls, then the doubles.
ROLLS = tuple((a, b) for a in range(1, 7) for b in range(1, a)) + tuple((d, d) for d in range(1, 7))
WAYS = np.array([1 if a == b else 2 for a, b in ROLLS])  # of 36
NEGLIGIBLE = 1e-16  # a chance that float64 does not see beside 1

# What a list of positions of one pip count is worth after the move, given what it is worth before the roll.
After = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Solved:
    """The three tables, in float64."""

    all_off: np.ndarray  # [P, N]: chance that the last checker is still on after n rolls
    first_off: np.ndarray  # [1 + F, N]: the same for the first; row 0: one is off, then the positions with C checkers
    two_sided: np.ndarray  # [Q, Q]: chance that the side on roll (row) beats the other (column)


def how_many(checkers: int) -> int:
    """Positions with at most so many checkers on the six points."""
    return math.comb(checkers + POINTS, POINTS)


def rank(counts: Any) -> Any:
    """`[...]` int32: numbers of positions `[..., 6]` int32, 0 for the empty one; numpy or JAX.

    The combinatorial number system: the sum over points j of C(checkers on points 1 to j + j - 1, j).
    """
    number: Any = 0
    up_to: Any = 0
    for point in range(1, POINTS + 1):
        up_to = up_to + counts[..., point - 1]
        rising = up_to
        for i in range(1, point):
            rising = rising * (up_to + i)  # 15 checkers: at most 20! / 14! < 2^31
        number = number + rising // math.factorial(point)
    return number


def positions(checkers: int) -> np.ndarray:
    """`[P, 6]` int32: every position of at most so many checkers, each in the place of its number."""
    chosen = np.array(list(itertools.combinations(range(checkers + POINTS), POINTS)), np.int32)
    counts = np.diff(chosen, axis=1, prepend=-1) - 1
    ordered = np.empty_like(counts)
    ordered[rank(counts)] = counts
    return ordered


def step(counts: np.ndarray, die: int, point: int) -> tuple[np.ndarray, np.ndarray]:
    """`[P]` bool: which of the positions `[P, 6]` may move a checker from a point by a die; and where those lead."""
    may = counts[:, point - 1] > 0
    if point < die:  # more than is needed serves the rearmost checkers only
        may &= counts[:, point:].sum(1) == 0
    after = counts[may]
    after[:, point - 1] -= 1
    if point > die:
        after[:, point - die - 1] += 1
    return may, after


def plays(counts: np.ndarray, dice: tuple[int, int]) -> np.ndarray:
    """`[M, 6]`: the distinct positions that a roll can lead one position `[6]` to."""
    a, b = dice
    found = []
    for order in ((a,) * 4,) if a == b else ((a, b), (b, a)):
        here = counts[None]
        for die in order:  # a checker at home can always move; who has none left is done
            done = here[here.sum(1) == 0]
            here = np.unique(np.concatenate([done, *(step(here, die, p + 1)[1] for p in range(POINTS))]), axis=0)
        found.append(here)
    return np.unique(np.concatenate(found), axis=0)


def steps(counts: np.ndarray) -> np.ndarray:
    """`[6, 6, P]` int32: the number of the position after die d moves a checker from point p; P where it may not."""
    number = len(counts)
    table = np.full((POINTS, POINTS, number), number, np.int32)
    for die, point in itertools.product(range(POINTS), repeat=2):
        may, after = step(counts, die + 1, point + 1)
        table[die, point, may] = rank(after)
    return table


def solve(checkers: int, pair: int) -> Solved:
    """The tables of one side with at most `checkers`, and of two sides with at most `pair` each."""
    counts = positions(checkers)
    table = steps(counts)
    pips = counts @ np.arange(1, POINTS + 1)
    base = how_many(checkers - 1)  # what comes before has something off: it all becomes item 0
    full = np.maximum(table[:, :, base - 1 :] - (base - 1), 0)
    full[:, :, 0] = full.shape[2]
    small = how_many(pair)
    few = np.minimum(table[:, :, :small], small)
    return Solved(
        all_off=_still_on(table, pips),
        first_off=_still_on(full, np.concatenate([[0], pips[base:]])),
        two_sided=_two_sided(few, pips[:small]),
    )


def _still_on(table: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """`[P, N]`: the chance that item 0 is not reached in n rolls, where every roll is played for the least mean.

    There are as many columns as have a chance that is not negligible.
    """
    number = len(levels)
    worth = np.full(number + 1, -np.inf)  # minus the mean number of rolls
    worth[0] = 0.0
    _backward(table, levels, 1, worth, lambda items, before: before - 1.0)
    targets = _targets(table, worth)
    on = (np.arange(number) > 0).astype(np.float64)
    columns = []
    while on.max() > NEGLIGIBLE:
        columns.append(on)
        on = WAYS @ on[targets] / 36
    return np.stack(columns, 1)


def _two_sided(table: np.ndarray, pips: np.ndarray) -> np.ndarray:
    """`[Q, Q]`: the chance of the side on roll (row) against the other (column); who has nothing left has won."""
    number = len(pips)
    levels = pips[:, None] + pips
    levels[0], levels[:, 0] = 0, 0
    worth = np.full((number + 1, number), -np.inf)
    worth[0] = 1.0
    wins = np.zeros((number, number))
    wins[0, 1:] = 1.0

    def after(items: np.ndarray, before: np.ndarray) -> np.ndarray:
        wins.ravel()[items] = before
        at, rest = np.divmod(items, number)
        return 1.0 - wins[rest, at]  # of the same level: as many pips

    _backward(table, levels.ravel(), number, worth.ravel(), after)
    return wins


def _backward(table: np.ndarray, levels: np.ndarray, width: int, worth: np.ndarray, after: After) -> None:
    """Fills `worth`, what items are worth to the side that has just moved there, level by level; level 0 is given.

    An item is `position * width + rest`; a move changes the position and lowers the level. Every roll is played for
    the most. `worth` ends with `width` items of minus infinity, where moves lead that may not be made.
    """
    dice = range(POINTS)
    once = np.full((len(worth), POINTS), -np.inf)  # [item, die]: after the best move with a die
    twice, thrice = np.full((2, POINTS, len(worth)), -np.inf)  # [die, item]: after the best two and three with the same
    order = np.argsort(levels, kind="stable")
    ended, *others = np.split(order, np.searchsorted(levels[order], np.arange(1, levels.max() + 1)))
    once[ended], twice[:, ended], thrice[:, ended] = worth[ended, None], worth[ended], worth[ended]
    for items in others:
        at, rest = np.divmod(items, width)
        to = table[:, :, at].astype(np.int64) * width + rest  # [die, point, item]
        both = [once[to[die]].max(0) for die in dice]  # [item, die]: after a die and then another
        for die in dice:
            once[items, die] = worth[to[die]].max(0)
            twice[die, items] = both[die][:, die]
            thrice[die, items] = twice[die, to[die]].max(0)
        before = np.zeros(len(items))
        for (a, b), ways in zip(ROLLS, WAYS, strict=True):
            if a == b:
                before += ways * thrice[a - 1, to[a - 1]].max(0)
            else:
                before += ways * np.maximum(both[a - 1][:, b - 1], both[b - 1][:, a - 1])
        worth[items] = after(items, before / 36)


def _targets(table: np.ndarray, worth: np.ndarray) -> np.ndarray:
    """`[21, P]`: where the best play of each roll leads; item 0 stays."""
    number = table.shape[2]
    everywhere = np.arange(number)

    def best(choices: np.ndarray) -> np.ndarray:
        chosen = np.append(choices[worth[choices].argmax(0), everywhere], number)
        chosen[0] = 0
        return chosen

    once = [best(table[die]) for die in range(POINTS)]
    rows = []
    for a, b in ROLLS:
        if a == b:
            reached = once[a - 1]
            for _ in range(3):
                reached = best(reached[table[a - 1]])
        else:
            reached = best(np.concatenate([once[b - 1][table[a - 1]], once[a - 1][table[b - 1]]]))
        rows.append(reached[:number])
    return np.stack(rows)
