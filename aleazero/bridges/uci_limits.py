"""How long an engine may think: the words of UCI's `go`, the clock's share of a move, limited strength.

Pure functions of text and numbers; what is wrong with a line is said and the rest of it is used, because a program that
sent `go` waits for a move.
"""

from __future__ import annotations

import dataclasses

_NUMBERS = ("wtime", "btime", "winc", "binc", "movestogo", "depth", "nodes", "mate", "movetime")
_FLAGS = ("infinite", "ponder")
_MOVES = 30  # that a game is expected to go on for, where nobody says
_MOST = 0.5  # of the clock that one move may take
_LEAST_ELO, MOST_ELO = 800, 2400
_HALVING = 160  # points of UCI_Elo that halve the simulations
LEAST_ELO = _LEAST_ELO
_LARGEST = 10**12  # milliseconds or simulations: far beyond any game, far below what a float forgets


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a `go` asks for. Times are milliseconds."""

    wtime: int | None = None
    btime: int | None = None
    winc: int = 0
    binc: int = 0
    movestogo: int | None = None
    depth: int | None = None
    nodes: int | None = None
    mate: int | None = None
    movetime: int | None = None
    infinite: bool = False
    searchmoves: tuple[str, ...] = ()

    def seconds(self, seat: int, overhead: float) -> float | None:
        """How long to think, `overhead` seconds being lost on the way; None: no clock runs."""
        if self.infinite:
            return None
        if self.movetime is not None:
            return max(self.movetime / 1000 - overhead, 0.0)
        left, gained = (self.wtime, self.winc) if seat == 0 else (self.btime, self.binc)
        if left is None:
            return None
        moves = min(max(self.movestogo or _MOVES, 1), _MOVES)
        wanted = left / 1000 / (moves + 1) + 0.75 * max(gained, 0) / 1000
        return max(min(wanted, _MOST * left / 1000) - overhead, 0.0)


def parse_go(words: list[str]) -> tuple[Limits, list[str]]:
    """The limits of the words behind `go`, and what is wrong with them."""
    found: dict[str, object] = {}
    problems: list[str] = []
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        if word in _FLAGS:
            found["infinite"] = True  # there is no pondering: it thinks until it is told to stop
        elif word == "searchmoves":
            end = next((i for i in range(at, len(words)) if words[i] in (*_NUMBERS, *_FLAGS)), len(words))
            found["searchmoves"], at = tuple(words[at:end]), end
        elif word in _NUMBERS:
            value, at = words[at] if at < len(words) else "", at + 1
            number = _number(value)
            if number is None:
                problems.append(f"{word} is {value!r}; it must be a whole number")
            else:
                found[word] = max(number, 0)  # a clock may be below zero already
        else:
            problems.append(f"{word!r} means nothing behind go")
    return Limits(**found), problems  # type: ignore[arg-type]


def limited(simulations: int, rating: int) -> int:
    """The simulations of a move at some UCI_Elo: half as many for every 160 points below 2400; at 800 none."""
    return int(simulations * 2.0 ** ((min(rating, MOST_ELO) - MOST_ELO) / _HALVING)) if rating > _LEAST_ELO else 0


def _number(text: str) -> int | None:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 18:
        return None
    return max(min(int(text), _LARGEST), -_LARGEST)
