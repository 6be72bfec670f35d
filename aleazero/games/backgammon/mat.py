"""Reads match text (.mat), as Jellyfish, GNU Backgammon and others write it: who rolled what, and played how.

The cube is passed over: this program plays without one. Knows columns and dice; not whether moves are legal.
"""

from __future__ import annotations

import dataclasses
import re

from aleazero.core.errors import NotationError

LEFT = 16  # a roll that begins before this column, behind the number of the turn, is the left player's
_GAME = re.compile(r"^\s*Game\s+\d+\s*$", re.IGNORECASE | re.MULTILINE)
_NAMES = re.compile(r"^\s*(.+?)\s*:\s*\d+\s{2,}(.+?)\s*:\s*\d+\s*$")
_TURN = re.compile(r"^\s*\d+\)(.*)$")
_ROLL = re.compile(r"(?<!\S)([1-6])([1-6]):")
_NOTHING = re.compile(r"^(cannot\s+move|dances|-+|)$", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class MatTurn:
    """A roll and what was done with it, as written; nothing where nothing could move."""

    seat: int
    dice: tuple[int, int]  # larger first
    text: str
    line: int


@dataclasses.dataclass(frozen=True)
class MatGame:
    """One game of a match."""

    names: tuple[str, str]
    turns: tuple[MatTurn, ...]


def read_mat(text: str) -> list[MatGame]:
    """Every game of a match; NotationError where there is none."""
    games: list[tuple[tuple[str, str], list[MatTurn]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if _GAME.match(line):
            games.append((("left", "right"), []))
        elif games and not games[-1][1] and (named := _NAMES.match(line)):
            games[-1] = ((named[1], named[2]), [])
        elif (turn := _TURN.match(line)) is not None:
            if not games:
                games.append((("left", "right"), []))
            games[-1][1].extend(_turns(turn[1], number))
    found = [MatGame(names, tuple(turns)) for names, turns in games if turns]
    if not found:
        raise NotationError("this is no match text (.mat): there is no line like  1) 31: 8/5 6/5   52: 24/22 13/8")
    return found


def _turns(cells: str, line: int) -> list[MatTurn]:
    rolls = list(_ROLL.finditer(cells))
    if len(rolls) > 2:
        raise NotationError(f"line {line}: more than two rolls in {cells.strip()!r}")
    found = []
    for number, roll in enumerate(rolls):
        end = rolls[number + 1].start() if number + 1 < len(rolls) else len(cells)
        words = re.split(r"\s{3,}|(?i:wins\s)|(?i:doubles)|(?i:takes)|(?i:drops)", cells[roll.end() : end].strip())[0]
        seat = number if len(rolls) == 2 else int(roll.start() >= LEFT)
        one, two = int(roll[1]), int(roll[2])
        text = "" if _NOTHING.match(words.strip()) else words.strip()
        found.append(MatTurn(seat, (max(one, two), min(one, two)), text, line))
    return found
