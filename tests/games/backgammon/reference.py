"""Backgammon in plain Python, slow and plain to see: one position at a time, lists of numbers, every order tried.

A side is a list of 26 in its own places: `side[1]` to `side[24]` are its points, `side[25]` its bar; what is missing of
fifteen is off. A point p of one side is the point 25 - p of the other. Shares nothing with the rules it checks but the
numbers of actions and of chance outcomes.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

Side = tuple[int, ...]
Position = tuple[Side, Side]  # the mover's checkers, the other one's
Step = tuple[int, int]  # source, die
BAR = 25
PASS = 150
ROLLS = [(2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3), (5, 1), (5, 2), (5, 3), (5, 4)]
ROLLS += [(6, 1), (6, 2), (6, 3), (6, 4), (6, 5), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6)]
START: Side = tuple({6: 5, 8: 3, 13: 5, 24: 2}.get(place, 0) for place in range(26))


def may_move(position: Position, source: int, die: int) -> bool:
    """Whether one checker may move from a place by a die, whatever the rest of the roll."""
    mine, theirs = position
    if mine[source] == 0:
        return False
    if mine[BAR] > 0 and source != BAR:
        return False
    target = source - die
    if target > 0:
        return theirs[25 - target] < 2
    if sum(mine[7:]) > 0:  # someone is not at home yet
        return False
    return target == 0 or sum(mine[source + 1 :]) == 0


def moved(position: Position, source: int, die: int) -> Position:
    """The position after a move."""
    mine, theirs = list(position[0]), list(position[1])
    mine[source] -= 1
    target = source - die
    if target > 0:
        mine[target] += 1
        if theirs[25 - target] == 1:
            theirs[25 - target] = 0
            theirs[BAR] += 1
    return tuple(mine), tuple(theirs)


def steps(position: Position, dice: tuple[int, ...]) -> list[Step]:
    """Moves of one checker by any of the dice, without a look at what follows."""
    return [(source, die) for die in sorted(set(dice)) for source in range(1, 26) if may_move(position, source, die)]


def without(dice: tuple[int, ...], die: int) -> tuple[int, ...]:
    rest = list(dice)
    rest.remove(die)
    return tuple(rest)


def most(position: Position, dice: tuple[int, ...], known: dict[Any, int]) -> int:
    """How many of the dice can be played."""
    if (position, dice) not in known:
        tries = [1 + most(moved(position, *step), without(dice, step[1]), known) for step in steps(position, dice)]
        known[position, dice] = max(tries, default=0)
    return known[position, dice]


def legal(position: Position, dice: tuple[int, ...], known: dict[Any, int] | None = None) -> list[Step]:
    """The moves of one checker that are allowed: as many dice as possible, the higher one if only one."""
    known = {} if known is None else known
    number = most(position, dice, known)
    lawful = [
        (source, die)
        for source, die in steps(position, dice)
        if 1 + most(moved(position, source, die), without(dice, die), known) == number
    ]
    if number == 1:
        lawful = [step for step in lawful if step[1] == max(die for _, die in lawful)]
    return lawful


def plays(position: Position, dice: tuple[int, ...]) -> set[Position]:
    """The positions that a whole turn can leave, still from the mover's side."""
    known: dict[Any, int] = {}
    ends, waiting, met = set(), [(position, dice)], set()
    while waiting:
        here, left = waiting.pop()
        lawful = legal(here, left, known)
        if not lawful:
            ends.add(here)
        for source, die in lawful:
            following = moved(here, source, die), without(left, die)
            if following not in met:
                met.add(following)
                waiting.append(following)
    return ends


def points(position: Position) -> int:
    """What the mover has won: 0 while the game goes on."""
    mine, theirs = position
    if sum(mine) > 0:
        return 0
    if sum(theirs) < 15:
        return 1
    back = theirs[BAR] + sum(theirs[19:25])  # on the bar or in the winner's home
    return 3 if back else 2


def dice_of(larger: int, smaller: int) -> tuple[int, ...]:
    """The dice of a whole roll."""
    return (larger,) * 4 if larger == smaller else (larger, smaller)


def planes(side: Side) -> list[int]:
    """Numbers of checkers as the bits of four words, place by place."""
    return [sum(((number >> i) & 1) << place for place, number in enumerate(side)) for i in range(4)]


class Game:
    """One game as it goes on, for `tests.games.follow`."""

    def __init__(self) -> None:
        self.sides: list[Side] = [START, START]
        self.mover, self.rolling, self.opening = 0, True, True
        self.dice: tuple[int, ...] = ()
        self.double = False

    @property
    def position(self) -> Position:
        return self.sides[self.mover], self.sides[1 - self.mover]

    def legal(self) -> set[int]:
        if self.rolling or self.points() is not None:
            return set()
        return {(source - 1) * 6 + die - 1 for source, die in legal(self.position, self.dice)} or {PASS}

    def act(self, action: int) -> None:
        if action == PASS:
            self.dice = ()
        else:
            source, die = action // 6 + 1, action % 6 + 1
            self.sides[self.mover], self.sides[1 - self.mover] = moved(self.position, source, die)
            self.dice = without(self.dice, die)
            if not legal(self.position, self.dice):
                self.dice = ()
        self.rolling = not self.dice and self.points() is None

    def roll(self, outcome: int) -> None:
        if self.opening:
            self.mover, self.dice = outcome // 15, ROLLS[outcome % 15]
        else:
            self.mover, self.dice = 1 - self.mover, dice_of(*ROLLS[outcome])
        self.double = self.dice[0] == self.dice[1]
        self.rolling = self.opening = False

    def points(self) -> list[float] | None:
        won = float(points(self.position))
        if not won:
            return None
        return [won, -won] if self.mover == 0 else [-won, won]

    def fields(self) -> dict[str, Any]:
        mine, theirs = self.position
        shown = self.dice[:1] * 2 if self.double else self.dice
        return {
            "mine": planes(mine),
            "theirs": planes(theirs[::-1]),
            "dice": [*shown, 0, 0][:2],
            "left": len(self.dice),
            "opening": self.opening,
        }


# ---- positions to look at

KINDS = ("anywhere", "blocked", "bar", "home", "nearly home", "few", "blots")


def drawn(rng: random.Random, kind: str) -> Position:
    """A position of a kind: possible on a board, though not always in a game."""
    everywhere, home = range(1, 25), range(1, 7)
    mine = {
        "anywhere": lambda: scattered(rng, everywhere, 15),
        "blocked": lambda: scattered(rng, everywhere, 12),
        "bar": lambda: plus(scattered(rng, everywhere, 11), [BAR] * rng.randint(1, 4)),
        "home": lambda: scattered(rng, home, 15),
        "nearly home": lambda: plus(scattered(rng, home, 13), rng.choices([7, 8, 9, 10, 12, 18, 24, BAR], k=2)),
        "few": lambda: scattered(rng, range(1, 26), 3),
        "blots": lambda: plus((0,) * 26, rng.sample(everywhere, rng.randint(8, 15))),
    }[kind]()
    free = [place for place in everywhere if not mine[25 - place]]
    theirs: Side = (0,) * 26
    if kind == "blocked":
        theirs = plus(theirs, 2 * rng.sample(free, min(len(free), rng.randint(3, 7))))
    return mine, plus(theirs, rng.choices([*free, BAR], k=rng.randint(1, 15 - sum(theirs))))


def scattered(rng: random.Random, places: Sequence[int], number: int) -> Side:
    """At most so many checkers, on a few of the places or on all of them."""
    few = rng.sample(places, rng.randint(1, len(places)))
    return plus((0,) * 26, rng.choices(few, k=rng.randint(1, number)))


def plus(side: Side, places: Sequence[int]) -> Side:
    return tuple(number + places.count(place) for place, number in enumerate(side))


def rolls(rng: random.Random, number: int) -> list[tuple[int, int]]:
    """Every roll equally often, in any order: doubles, which are the hard ones, are more frequent than by dice."""
    listed = [ROLLS[i % len(ROLLS)] for i in range(number)]
    rng.shuffle(listed)
    return listed


def states(positions: Sequence[Position], dice: Sequence[tuple[int, int]], left: Sequence[int] | None = None) -> Any:
    """The rules' states `[n]` of positions with dice to play, larger first; seat 0 and seat 1 in turn are to play."""
    numbers = np.array(positions, np.uint32)  # [n, 2, 26]
    bits = (numbers[..., None, :] >> np.arange(4, dtype=np.uint32)[:, None]) & 1  # [n, 2, 4, 26]
    sides = bits[:, 0], bits[:, 1, :, ::-1]
    mine, theirs = ((side << np.arange(26, dtype=np.uint32)).sum(-1, dtype=np.uint32) for side in sides)
    left = [len(dice_of(*roll)) for roll in dice] if left is None else left
    seats = np.arange(len(positions)) % 2
    shown = np.array(dice, np.int8), np.array(left, np.int8)
    return _states()(mine, theirs, seats.astype(np.int8), *shown)


@functools.cache
def _states() -> Any:
    from aleazero.games.backgammon.game import state_of

    return jax.jit(jax.vmap(state_of))


def positions(states: Any) -> list[Position]:
    """The positions of states `[n]`."""
    words = np.stack([np.asarray(states.mine), np.asarray(states.theirs)], 1)  # [n, 2, 4]
    bits = (words[..., None] >> np.arange(26, dtype=np.uint32)) & 1
    numbers = (bits << np.arange(4, dtype=np.uint32)[:, None]).sum(-2)  # [n, 2, 26]
    return [(tuple(mine), tuple(theirs[::-1])) for mine, theirs in numbers.tolist()]
