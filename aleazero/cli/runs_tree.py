"""The command trees of `alea runs`, and of `alea status`, `plot` and `export`. Imports nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from aleazero.cli import cluster, strength
from aleazero.cli.answer import DONE
from aleazero.cli.desk import Telling
from aleazero.cli.options import Device, Json, Profile, RunName, Runs, Seconds, Sets, SomeRun, compute_on

runs_app = App(name="runs", help="List, start, pause, resume, stop, reset, delete, compare and plot training runs.")
runs_app.command(strength.runs_elo, name="elo")
runs_app.command(strength.runs_pgn, name="pgn")
runs_app.command(strength.runs_worst, name="worst")


def status(
    name: SomeRun = None,
    *,
    memory: Annotated[bool, Parameter(negative="", help="What its process holds in memory, too.")] = False,
    runs: Runs = None,
    as_json: Json = False,
) -> int:
    """Show a run's state, how far it is, and its workers."""
    from aleazero.cli import status as command

    return command.status(name, runs, as_json, memory)


def plot(
    run: SomeRun = None,
    *,
    out: Annotated[
        Path | None, Parameter(help="FILE.png or FILE.svg; curves.svg in the run's folder if left out.")
    ] = None,
    runs: Runs = None,
) -> int:
    """Draw a run's curves: losses, scores, speed, entropy, replay."""
    from aleazero.cli import plot as command

    return command.plot(run, out, runs)


def export(
    run: Annotated[str, Parameter(help="NAME or NAME@STEP; the newest checkpoint if no step is named.")],
    *,
    file_format: Annotated[
        Literal["safetensors", "onnx"], Parameter(name="--format", help="onnx writes network.onnx too.")
    ] = "safetensors",
    out: Annotated[Path | None, Parameter(help="The folder; export/STEP in the run's own if left out.")] = None,
    runs: Runs = None,
    as_json: Json = False,
) -> int:
    """Write a run's network to a folder that is all one needs to play it."""
    from aleazero.cli import export as command

    return command.export_run(run, onnx=file_format == "onnx", out=out, runs=runs, as_json=as_json)


@runs_app.command(name="list")
def runs_list(*, runs: Runs = None, as_json: Json = False) -> int:
    """List the runs and how they stand."""
    from aleazero.cli import runs as command

    return command.list_runs(runs, as_json)


@runs_app.command(name="start")
def runs_start(
    game: Annotated[str | None, Parameter(help="A game's name, for a run that is new.")] = None,
    *,
    run_id: Annotated[str | None, Parameter(name="--run-id", help="The run's name; one that is there goes on.")] = None,
    preset: Annotated[str, Parameter(help="As in train.")] = "standard",
    config: Annotated[Path | None, Parameter(help="Settings, as TOML (or YAML).")] = None,
    sets: Sets = None,
    runs: Runs = None,
    worker: Annotated[bool, Parameter(help="Play games on this machine, too.")] = True,
    device: Device = "auto",
) -> int:
    """Start a run's head in the background, with a game worker on this machine (see: alea head)."""
    return cluster.start_head(
        game, run=run_id, preset=preset, file=config, sets=sets, runs=runs, detach=True, worker=worker, device=device
    )


@runs_app.command(name="pause")
def runs_pause(name: SomeRun = None, *, runs: Runs = None) -> int:
    """Make a run wait, with all its workers, until it is resumed; after a restart, too."""
    from aleazero.cli import runs as command

    return command.pause(name, runs)


@runs_app.command(name="stop")
def runs_stop(
    name: SomeRun = None,
    *,
    wait: Annotated[float, Parameter(help="Seconds until it must have ended; else the exit code is 1.")] = 60.0,
    runs: Runs = None,
) -> int:
    """Stop a run, with a checkpoint. One that nobody trains is stopped already: the exit code is 0."""
    from aleazero.cli import runs as command

    return command.stop(name, wait, runs)


@runs_app.command(name="resume")
def runs_resume(
    name: SomeRun = None,
    *,
    how: Annotated[
        Literal["exact", "weights"],
        Parameter(name="--resume", help="As if never stopped, or from the weights alone with an empty replay."),
    ] = "exact",
    sets: Sets = None,
    runs: Runs = None,
    seconds: Seconds = None,
    profile: Profile = False,
    device: Device = "auto",
    telling: Telling = Telling(),  # noqa: B008 - frozen
    as_json: Json = False,
) -> int:
    """Go on with a run that is paused, or from its newest intact checkpoint."""
    compute_on(device)
    from aleazero.cli import runs as paused

    if paused.unpause(name, runs):
        return DONE
    from aleazero.cli import train as command

    given = [*(sets or []), *telling.assignments()]
    return command.go_on(name, how, given, runs, seconds=seconds, profile=profile, as_json=as_json)


@runs_app.command(name="reset")
def runs_reset(
    name: SomeRun = None,
    *,
    yes: Annotated[bool, Parameter(negative="", help="Do not ask.")] = False,
    runs: Runs = None,
) -> int:
    """Begin a run anew: what it has goes into an archive; its settings and its workers' tokens stay."""
    from aleazero.cli import runs as command

    return command.reset(name, yes, runs)


@runs_app.command(name="delete")
def runs_delete(
    name: SomeRun = None,
    *,
    yes: Annotated[bool, Parameter(negative="", help="Do not ask.")] = False,
    runs: Runs = None,
) -> int:
    """Delete a run for good."""
    from aleazero.cli import runs as command

    return command.delete(name, yes, runs)


@runs_app.command(name="compare")
def runs_compare(
    *names: RunName,
    out: Annotated[Path | None, Parameter(help="The drawing; compare.svg among the runs if left out.")] = None,
    runs: Runs = None,
    as_json: Json = False,
) -> int:
    """Put runs side by side: a table, and curves by rows and by seconds."""
    from aleazero.cli import runs as command

    return command.compare(list(names), out, runs, as_json)


@runs_app.command(name="plot")
def runs_plot(name: SomeRun = None, *, runs: Runs = None) -> int:
    """Draw a run's curves."""
    from aleazero.cli import runs as command

    return command.plot(name, runs)
