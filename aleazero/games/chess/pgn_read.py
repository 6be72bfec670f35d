"""Reads games in PGN: tags and the moves of the main line. Comments, variations and marks are passed over.

Knows the format; not whether moves are legal.
"""

from __future__ import annotations

import dataclasses
import re

from aleazero.core.errors import NotationError
from aleazero.games.chess.fen import STARTPOS

RESULTS = ("1-0", "0-1", "1/2-1/2", "*")
_TAG = re.compile(r'^\s*\[\s*(\w+)\s+"((?:[^"\\]|\\.)*)"\s*\]\s*$')
_WORD = re.compile(r"\{[^}]*\}|;[^\n]*|\$\d+|\(|\)|[^\s(){};]+")
_NUMBER = re.compile(r"^\d+\.+")


@dataclasses.dataclass(frozen=True)
class PgnGame:
    """One game."""

    tags: dict[str, str]
    moves: tuple[str, ...]  # as written
    result: str

    @property
    def start(self) -> str:
        """The FEN it begins at."""
        return self.tags.get("FEN", STARTPOS)


def read_pgn(text: str) -> list[PgnGame]:
    """Every game of a text; NotationError where there is none."""
    games: list[PgnGame] = []
    tags: dict[str, str] = {}
    lines: list[str] = []

    def finish() -> None:
        nonlocal tags, lines
        moves, result = _moves("\n".join(lines))
        if moves or tags:
            games.append(PgnGame(tags, moves, tags.get("Result", result)))
        tags, lines = {}, []

    for line in text.splitlines():
        tag = _TAG.match(line)
        if tag is None:
            lines.append(line)
            continue
        if any(line.strip() for line in lines):
            finish()
        tags[tag[1]] = re.sub(r"\\(.)", r"\1", tag[2])
    finish()
    found = [game for game in games if game.moves]
    if not found:
        raise NotationError("there are no moves in this PGN")
    return found


def _moves(text: str) -> tuple[tuple[str, ...], str]:
    moves: list[str] = []
    depth, result = 0, "*"
    for word in _WORD.findall(text):
        if word == "(":
            depth += 1
        elif word == ")":
            depth = max(depth - 1, 0)
        elif depth or word[0] in "{;$":
            continue
        elif word in RESULTS:
            result = word
        else:
            move = _NUMBER.sub("", word)
            if move and not move.isdecimal():
                moves.append(move)
    return tuple(moves), result
