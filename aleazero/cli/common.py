"""What several commands need: games, players and runs from their names, all problems at once; tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from aleazero.cli.options import need_redis
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.core.game import Game
from aleazero.games.registry import make_game
from aleazero.play.match import Player
from aleazero.players import make_player
from aleazero.runs import RunFolder, all_runs, find_run, runs_root

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


def active_run(root: Path, name: str | None) -> RunFolder:
    """The run of a name; without one the run that is active: the one that runs, or the last that did."""
    if name is not None:
        return find_run(root, name)
    found = all_runs(root)
    if not found:
        raise ConfigError(f"there are no runs in {root}; start one: alea train GAME, or alea head GAME")
    running = [run for run in found if run.owner() is not None or head_of(run) is not None]
    if len(running) > 1:
        raise ConfigError(f"several runs are active: name one of {', '.join(run.name for run in running)}")
    return running[0] if running else max(found, key=_last_change)


def has_head(run: RunFolder) -> bool:
    """Whether a run is one for many machines."""
    return (run.path / "redis" / "keys.json").exists()


def head_of(run: RunFolder) -> int | None:
    """The process that is a run's head now, on this machine."""
    if not has_head(run):
        return None
    need_redis()
    from aleazero.runtimes.redis.home import Home

    return Home(run).owner()


def _last_change(run: RunFolder) -> float:
    file = run.metrics_file if run.metrics_file.exists() else run.config_file
    return file.stat().st_mtime


def duration(seconds: float) -> str:
    """A time span in its largest unit."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def table(rows: list[list[str]]) -> None:
    """Prints columns, as wide as they need to be."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
