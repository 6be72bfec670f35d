"""Games of `alea play` as files: backgammon as .mat or .sgf, chess as .pgn."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aleazero.core.errors import AleaError
from aleazero.core.game import Game
from aleazero.games.backgammon.files import WRITERS, GameRecord, record_turn
from aleazero.games.chess.game import Chess
from aleazero.games.chess.pgn import pgn_of

SUFFIXES = {"backgammon": tuple(WRITERS), "chess": (".pgn",)}


@dataclasses.dataclass(frozen=True)
class Turn:
    """What a player has done since it was its turn."""

    state: Any  # where it began
    actions: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Written:
    """A game, finished or not."""

    names: tuple[str, str]
    turns: Sequence[Turn]
    winner: int | None  # a seat, also where the other one resigned
    points: float  # the winner's
    resigned: bool


def place_problems(path: Path, game: str) -> list[str]:
    """Why a game cannot be written there, as far as can be known before it is played."""
    problems = []
    if game not in SUFFIXES:
        problems.append(f"save is {str(path)!r}; games of {' and '.join(SUFFIXES)} can be written, of {game} not")
    elif path.suffix.lower() not in SUFFIXES[game]:
        problems.append(f"save is {str(path)!r}; its name must end in {' or '.join(SUFFIXES[game])}")
    if path.exists():
        problems.append(f"save is {str(path)!r}, which exists; name another file")
    if not path.parent.is_dir():
        problems.append(f"save is {str(path)!r}, but {str(path.parent)!r} is no folder")
    return problems


def write_game(path: Path, game: Game, written: Written) -> None:
    """Writes the file."""
    text = _pgn(game, written) if isinstance(game, Chess) else _turns(path.suffix.lower(), written)
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise AleaError(f"could not write the game to {path}: {error}") from error


def _turns(suffix: str, written: Written) -> str:
    turns = tuple(record_turn(turn.state, turn.actions) for turn in written.turns)
    return WRITERS[suffix](GameRecord(written.names, turns, written.winner, int(written.points), written.resigned))


def _pgn(game: Chess, written: Written) -> str:
    if not written.turns:
        return ""
    actions = [action for turn in written.turns for action in turn.actions]
    result = None if written.winner is None else ("1-0", "0-1")[written.winner]
    tags = {"Event": "alea play", "White": written.names[0], "Black": written.names[1]}
    return pgn_of(game, written.turns[0].state, actions, headers=tags, result=result)
