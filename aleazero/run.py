"""`python -m aleazero.run`: trains with the core dependencies alone, for hosts where nothing can be installed.

    python -m aleazero.run config.toml [--preset quick] [--runs DIR] [--name NAME] [--seconds N] [--set a.b=c ...]
    python -m aleazero.run --resume NAME [--how exact|weights]
With --profile it stops once it can say where the time goes.
The same run as `alea train`; `alea` only parses more comfortably.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from aleazero.core.compilation import set_up_compiling
from aleazero.core.devices import use_every_core
from aleazero.core.errors import ConfigError, explained


def main(arguments: list[str] | None = None) -> int:
    """Runs a command line; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m aleazero.run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("config", nargs="?", type=Path, help="settings; they must name a game")
    parser.add_argument("--preset", default="standard")
    parser.add_argument("--runs", type=Path, default=None)
    parser.add_argument("--name", default=None)
    parser.add_argument("--seconds", type=float, default=None, help="stop after so many, with a checkpoint")
    parser.add_argument(
        "--profile", action="store_true", help="say where the time goes, write a trace, and stop with a checkpoint"
    )
    parser.add_argument("--resume", default=None, metavar="NAME")
    parser.add_argument("--how", choices=("exact", "weights"), default="exact")
    parser.add_argument("--set", action="append", default=[], metavar="a.b=c", dest="assignments")
    given = parser.parse_args(arguments)
    set_up_compiling()
    use_every_core()
    return explained("aleazero.run", lambda: _run(given))


def _run(given: argparse.Namespace) -> int:
    from aleazero.bench.profiles import with_num_games
    from aleazero.config import resolve
    from aleazero.runs import runs_root
    from aleazero.runtimes.start import resume, start, where_time_went

    root = runs_root(given.runs)
    until = {"seconds": given.seconds, "profile": given.profile}
    if given.resume:
        finished = resume(given.resume, root, given.how, given.assignments, **until)
    else:
        if given.config is None and not given.assignments:
            raise ConfigError("name a settings file, or --resume a run")
        game = next((a.partition("=")[2] for a in given.assignments if a.startswith("game=")), None)
        config = resolve(game, preset=given.preset, file=given.config, assignments=given.assignments)
        config, told = with_num_games(config, given.preset, given.config, given.assignments)
        if told:
            print(f"aleazero.run: {told}", file=sys.stderr)
        finished = start(config, root, name=given.name, preset=given.preset, **until)
    if given.profile:
        print("\n".join(where_time_went(finished)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
