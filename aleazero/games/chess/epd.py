"""EPD: positions with the moves that are good or bad in them, as suites of tests for engines are written.

A line is the first four fields of a FEN (or all six) and operations, each ended by a semicolon. Read are `bm` (best
moves), `am` (moves to avoid), `c0` with points for moves, as in `c0 "f5=10, Be5+=2, Bg4=2"`, `hmvc`, `fmvn` and `id`;
other operations are passed over. Moves are SAN or UCI. On the host. Knows no player.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING

from aleazero.core.errors import ConfigError, NotationError
from aleazero.games.chess.fen import make_state, parse_fen

if TYPE_CHECKING:
    from aleazero.games.chess.game import Chess, ChessState

_OPERATION = re.compile(r'\s*([A-Za-z]\w*)((?:\s+(?:"[^"]*"|[^;"\s]+))*)\s*;')
_POINTS = re.compile(r"\s*(\S+?)\s*=\s*(\d+(?:\.\d+)?)\s*")
_SHOWN = 20  # problems that an error names


@dataclasses.dataclass(frozen=True)
class Entry:
    """A position and how moves in it are judged."""

    name: str  # its `id`, or the number of its line
    fen: str
    state: ChessState
    best: tuple[int, ...] = ()  # any of these is right; empty: not said
    avoid: tuple[int, ...] = ()  # none of these is
    points: tuple[tuple[int, float], ...] = ()  # of moves that are worth some; others are worth nothing

    def is_right(self, action: int) -> bool:
        """Whether a move is one that was asked for; without `bm` and `am`, one that has the most points."""
        if not self.best and not self.avoid:
            return self.share(action) == 1.0
        return (not self.best or action in self.best) and action not in self.avoid

    def share(self, action: int) -> float:
        """A move's points over the most there are; without points 1 where it is right."""
        if not self.points:
            return float(self.is_right(action))
        return dict(self.points).get(action, 0.0) / max(worth for _, worth in self.points)


def read_epd(path: Path, game: Chess) -> tuple[list[Entry], list[str]]:
    """The positions of a file, and what is wrong with the lines that give none; ConfigError where all are wrong."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"EPD file {path}: {error}") from error
    entries, problems = _parse(text, game)
    problems = [f"EPD file {path}: {problem}" for problem in problems]
    if not entries:
        raise ConfigError("\n".join(_some(problems) or [f"EPD file {path}: it holds no position"]))
    return entries, problems


def parse_epd(text: str, game: Chess) -> list[Entry]:
    """The positions of a text in which nothing may be wrong; one ConfigError with all that is."""
    entries, problems = _parse(text, game)
    if problems or not entries:
        raise ConfigError("\n".join(_some(problems) or ["it holds no position"]))
    return entries


def _parse(text: str, game: Chess) -> tuple[list[Entry], list[str]]:
    """A line each; empty lines and those that begin with `#` are passed over."""
    entries, problems = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            entries.append(_entry(line.strip(), number, game))
        except NotationError as error:
            problems.append(f"line {number}: {error}")
    return entries, problems


def _some(problems: list[str]) -> list[str]:
    more = [f"and {len(problems) - _SHOWN} more lines"] if len(problems) > _SHOWN else []
    return [*problems[:_SHOWN], *more]


def _entry(line: str, number: int, game: Chess) -> Entry:
    words = line.split(maxsplit=4)
    if len(words) < 4:
        raise NotationError(f"{len(words)} fields; a position has pieces, side to move, castling and en passant")
    rest = words[4] if len(words) == 5 else ""
    clocks = re.match(r"(\d+)\s+(\d+)(?:\s+|$)", rest)
    rest = rest[clocks.end() :] if clocks else rest
    operations = _operations(rest)
    counts = clocks.groups() if clocks else (operations.get("hmvc", "0"), operations.get("fmvn", "1"))
    position = parse_fen(" ".join([*words[:4], *counts]))
    state = make_state(game, position)
    if bool(state.terminated):
        raise NotationError("the game is over in this position")
    notation = game.notation
    moves = {
        name: tuple(notation.parse_action(state, word) for word in operations.get(name, "").split())
        for name in ("bm", "am")
    }
    points = _points(operations.get("c0", ""))
    entry = Entry(
        name=operations.get("id", "").strip('"') or f"line {number}",
        fen=notation.format_state(state),
        state=state,
        best=moves["bm"],
        avoid=moves["am"],
        points=tuple((notation.parse_action(state, word), worth) for word, worth in points),
    )
    if not (entry.best or entry.avoid or entry.points):
        raise NotationError("nothing says which moves are right: write bm, am, or c0 with points")
    return entry


def _operations(text: str) -> dict[str, str]:
    found, at = {}, 0
    text = text.strip()
    if text and not text.endswith(";"):
        text += ";"  # often left out at the end of a line
    while at < len(text):
        match = _OPERATION.match(text, at)
        if match is None:
            raise NotationError(f"{text[at : at + 40]!r} is no operation as in bm Nf3;")
        found[match[1]], at = match[2].strip(), match.end()
    return found


def _points(text: str) -> list[tuple[str, float]]:
    """Moves and points of a `c0`; nothing where it is a comment of another kind."""
    parts = [_POINTS.fullmatch(part) for part in text.strip().strip('"').split(",")]
    found = [(part[1], float(part[2])) for part in parts if part is not None]
    return found if len(found) == len(parts) and any(worth > 0 for _, worth in found) else []
