"""What several commands need: games and players from their names, all problems at once; the command to repeat."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from aleazero.core.errors import ConfigError, UnknownName
from aleazero.core.game import Game
from aleazero.games.registry import make_game
from aleazero.play.match import Player
from aleazero.players import make_player
from aleazero.runs import runs_root

T = TypeVar("T")


def game_of(name: str) -> Game:
    """A game that can be searched and played on the device."""
    game = make_game(name)
    if not isinstance(game, Game):
        raise ConfigError(f"game {name!r} runs on the host: matches and searches do not apply to it")
    return game


def gather(attempts: Sequence[Callable[[], T]], problems: Sequence[str] = ()) -> list[T]:
    """What every attempt makes; if names or settings are wrong anywhere, one ConfigError with all of it."""
    made: list[T] = []
    found = list(problems)
    for attempt in attempts:
        try:
            made.append(attempt())
        except (ConfigError, UnknownName) as mistake:
            found.append(str(mistake))
    if found:
        raise ConfigError("\n".join(found))
    return made


def players_of(game: Game, texts: Sequence[str], runs: Path | None, problems: Sequence[str] = ()) -> list[Player]:
    """Players from their strings; all that is wrong is said at once, together with other `problems`."""
    root = runs_root(runs)
    return gather([lambda text=text: make_player(text, game, root) for text in texts], problems)  # type: ignore[misc]


def seed_problems(seed: int) -> list[str]:
    """What is wrong with a seed."""
    return [] if 0 <= seed < 2**32 else [f"seed is {seed}; it must be in 0..{2**32 - 1}"]


def command_line(*words: str, **options: object) -> str:
    """The command that brings the same report again; options that are None are left out."""
    given = [(f"--{name.replace('_', '-')}", str(value)) for name, value in options.items() if value is not None]
    return shlex.join(["alea", *words, *(text for pair in given for text in pair)])
