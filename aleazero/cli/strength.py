"""The command trees of `alea uci`, `alea runs elo`, `pgn` and `worst`. Imports nothing heavy: `--help` shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from aleazero.cli.options import Device, Json, Runs, Seed, SomeRun, compute_on


def uci(
    *,
    weights: Annotated[
        str | None,
        Parameter(help="A folder of alea export, bundled, run:NAME[@STEP] or untrained; bundled if there is one."),
    ] = None,
    simulations: Annotated[int, Parameter(help="Of a move, at most.")] = 800,
    runs: Runs = None,
    device: Device = "auto",
) -> int:
    """Play chess for chess programs, by the Universal Chess Interface."""
    compute_on(device)
    from aleazero.cli import uci as command

    return command.uci(weights=weights, simulations=simulations, runs=runs)


def runs_elo(
    name: SomeRun = None,
    *,
    versions: Annotated[int, Parameter(help="How many checkpoints, evenly chosen, the oldest and the newest.")] = 6,
    games: Annotated[int, Parameter(help="Of each pairing, half of them from each seat.")] = 100,
    search: Annotated[
        str, Parameter(help="How they look ahead, as in search=mcts,sims=64; as in eval if left out.")
    ] = "",
    opening_plies: Annotated[int, Parameter(help="Random moves at the start, the same in both games of a pair.")] = 4,
    seed: Seed = 0,
    runs: Runs = None,
    device: Device = "auto",
    as_json: Json = False,
) -> int:
    """Play a run's versions against each other, and rate them by Elo above the oldest."""
    compute_on(device)
    from aleazero.cli import versions as command

    return command.elo(
        name,
        versions=versions,
        games=games,
        search=search,
        opening_plies=opening_plies,
        seed=seed,
        runs=runs,
        as_json=as_json,
    )


def runs_pgn(
    name: SomeRun = None,
    *,
    out: Annotated[Path, Parameter(help="The file.")],
    games: Annotated[int | None, Parameter(help="The last so many; all that the log holds if left out.")] = None,
    force: Annotated[bool, Parameter(negative="", help="Write over a file that is there.")] = False,
    runs: Runs = None,
) -> int:
    """Write a chess run's games of self-play, with the search's evaluations, as PGN."""
    from aleazero.cli import versions as command

    return command.pgn(name, out=out, games=games, force=force, runs=runs)


def runs_worst(
    name: SomeRun = None,
    *,
    count: Annotated[int, Parameter(help="How many positions.")] = 20,
    out: Annotated[Path | None, Parameter(help="A file for them, as EPD; printed if left out.")] = None,
    games: Annotated[int | None, Parameter(help="Of the last so many games; of all in the log if left out.")] = None,
    force: Annotated[bool, Parameter(negative="", help="Write over a file that is there.")] = False,
    runs: Runs = None,
    device: Device = "auto",
    as_json: Json = False,
) -> int:
    """Name the positions of a chess run's self-play that its network gets most wrong."""
    compute_on(device)
    from aleazero.cli import versions as command

    return command.worst(name, count=count, out=out, games=games, force=force, runs=runs, as_json=as_json)
