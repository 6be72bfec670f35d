"""`alea`: the command tree. Nothing heavy is imported before a command needs it, so that `--help` answers at once.

Exit codes: 0 done, 1 failed, 2 misuse. With `--json` a command prints one object on standard output and nothing else.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter

from aleazero import __version__
from aleazero.core.errors import AleaError, ConfigError, NotationError, UnknownName

DONE, FAILED, MISUSE = 0, 1, 2

Json = Annotated[bool, Parameter(name="--json", negative="", help="One JSON object on standard output.")]

Runs = Annotated[Path | None, Parameter(name="--runs", help="Where runs are kept (ALEA_RUNS; else ./runs).")]
Sets = Annotated[
    list[str] | None, Parameter(name="--set", negative="", help="A setting, as in learn.batch_size=256; repeatable.")
]
Seconds = Annotated[float | None, Parameter(name="--seconds", help="Stop after so many, with a checkpoint.")]

app = App(
    name="alea",
    help="Trains game-playing agents from nothing but the rules, and proves that it does it right.",
    version=__version__,
    result_action="return_value",
)


@app.command
def games(*, as_json: Json = False) -> int:
    """List the games."""
    from aleazero.cli import show

    return show.games(as_json)


@app.command
def doctor(
    *names: Annotated[str, Parameter(help="Games to examine; all built-in ones if none is named.")],
    as_json: Json = False,
) -> int:
    """Prove a game's rules against the contract, and the searches on it against exact answers."""
    from aleazero.cli import doctor as command

    return command.doctor(list(names), as_json)


@app.command
def show(
    game: Annotated[str, Parameter(help="A game's name.")],
    position: Annotated[
        str | None, Parameter(help="A position in the game's notation; the first one if left out.")
    ] = None,
    *,
    as_json: Json = False,
) -> int:
    """Draw a position and list its legal moves."""
    from aleazero.cli import show as command

    return command.show(game, position, as_json)


@app.command
def train(
    game: Annotated[str | None, Parameter(help="A game's name; a settings file may name it instead.")] = None,
    *,
    preset: Annotated[str, Parameter(help="quick, standard or strong.")] = "standard",
    config: Annotated[Path | None, Parameter(help="Settings, as TOML (or YAML).")] = None,
    sets: Sets = None,
    name: Annotated[str | None, Parameter(help="The run's name.")] = None,
    runs: Runs = None,
    seconds: Seconds = None,
    print_config: Annotated[bool, Parameter(negative="", help="Show the settings that would run, and stop.")] = False,
    as_json: Json = False,
) -> int:
    """Train an agent by self-play, from nothing but the rules."""
    from aleazero.cli import train as command

    return command.train(
        game,
        preset=preset,
        file=config,
        assignments=sets or [],
        name=name,
        runs=runs,
        seconds=seconds,
        print_config=print_config,
        as_json=as_json,
    )


def main(arguments: list[str] | None = None) -> None:
    """Runs a command line and exits with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Runs a command line; returns its exit code. Mistakes are explained in a line or two, without a traceback."""
    try:
        code: Any = app(arguments, exit_on_error=False, print_error=True)
    except CycloptsError:
        return MISUSE
    except (UnknownName, NotationError, ConfigError) as mistake:
        print(f"alea: {mistake}", file=sys.stderr)
        return MISUSE
    except AleaError as problem:
        print(f"alea: {problem}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("alea: stopped", file=sys.stderr)
        return FAILED
    return code if isinstance(code, int) else DONE


def print_json(report: dict[str, Any]) -> None:
    """The one object of `--json`."""
    print(json.dumps(report))


if __name__ == "__main__":
    main()
