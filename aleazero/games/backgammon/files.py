"""Games as files that backgammon programs read: Jellyfish's match text (.mat) and SGF, as GNU Backgammon writes them.

One money game without the cube. Seat 0 is the player on the left of a .mat and White in SGF.
Knows turns as checkers' steps; not how they were chosen, and not whether they were legal.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

from aleazero import __version__
from aleazero.games.backgammon.game import FACES, PASS
from aleazero.games.backgammon.notation import MY_BAR, OFF, read

NAME = 24  # letters of a name that fit a column
_COLUMN = 28  # where the right half of a .mat begins, after the turn's number


@dataclasses.dataclass(frozen=True)
class Step:
    """One checker's move, from and to points counted by whoever moves; 25 is the bar, 0 is off."""

    source: int
    target: int
    hit: bool = False


@dataclasses.dataclass(frozen=True)
class TurnRecord:
    """A roll and what was done with it; no steps where nothing could move."""

    seat: int
    dice: tuple[int, int]
    steps: tuple[Step, ...]


@dataclasses.dataclass(frozen=True)
class GameRecord:
    """A game, finished or not."""

    names: tuple[str, str]  # by seat
    turns: tuple[TurnRecord, ...] = ()
    winner: int | None = None  # a seat; None where the game did not end
    points: int = 0  # the winner's
    resigned: bool = False  # by the other one


def record_turn(state: Any, actions: Sequence[int]) -> TurnRecord:
    """The turn that these actions make from a state with dice."""
    here = read(state)
    theirs, steps = here.theirs.copy(), []
    for action in actions:
        if action == PASS:
            break
        source = action // FACES + 1
        target = max(source - action % FACES - 1, OFF)
        hit = target > OFF and theirs[target] == 1
        if hit:
            theirs[target] = 0
        steps.append(Step(source, target, bool(hit)))
    return TurnRecord(here.to_play, here.dice, tuple(steps))


def write_mat(game: GameRecord) -> str:
    """The game as match text: a line for every two turns, the left player's first."""
    left, right = map(_name, game.names)
    lines = [" 0 point match", "", " Game 1", f" {left} : 0".ljust(_COLUMN + 4) + f"{right} : 0"]
    for number, cells in enumerate(_lines(game.turns), 1):
        lines.append(f"{number:3}) {cells.get(0, ''):{_COLUMN - 1}} {cells.get(1, '')}".rstrip())
    if game.winner is not None:
        margin = " " * (6 + _COLUMN * game.winner)
        lines.append(f"{margin}Wins {game.points} point{'s' if game.points > 1 else ''}")
    return "\n".join(lines) + "\n"


def write_sgf(game: GameRecord) -> str:
    """The game in SGF: points a to x from White's first, y the bar, z off."""
    white, black = map(_name, game.names)
    facts = [
        "FF[4]GM[6]CA[UTF-8]",
        f"AP[AleaZero:{__version__}]",
        "MI[length:0][game:0][ws:0][bs:0]",
        f"PW[{white}]PB[{black}]",
        "RU[NoCube]",
    ]
    if game.winner is not None:
        facts.append(f"RE[{'WB'[game.winner]}+{game.points}{'R' * game.resigned}]")
    turns = [f"\n;{'WB'[turn.seat]}[{_letters(turn)}]" for turn in game.turns]
    return f"(;{''.join(facts)}{''.join(turns)})\n"


WRITERS: dict[str, Callable[[GameRecord], str]] = {".mat": write_mat, ".sgf": write_sgf}


def _name(name: str) -> str:
    """A name in which no format sees the end of a field."""
    return re.sub(r"[^\w.=+,@-]", "_", name)[:NAME] or "_"


def _cell(turn: TurnRecord) -> str:
    moves = [f"{step.source}/{step.target}{'*' * step.hit}" for step in turn.steps]
    return "{}{}: ".format(*turn.dice) + (" ".join(moves) or "Cannot Move")


def _lines(turns: Sequence[TurnRecord]) -> list[dict[int, str]]:
    """By seat, the turns on each line: one begins wherever the left player's turn does."""
    lines: list[dict[int, str]] = []
    for turn in turns:
        if turn.seat == 0 or not lines:
            lines.append({})
        lines[-1][turn.seat] = _cell(turn)
    return lines


def _letters(turn: TurnRecord) -> str:
    def letter(place: int) -> str:
        if place in (OFF, MY_BAR):
            return "z" if place == OFF else "y"
        return chr(ord("a") + (place - 1 if turn.seat == 0 else 24 - place))

    steps = "".join(letter(step.source) + letter(step.target) for step in turn.steps)
    return "{}{}".format(*turn.dice) + steps
