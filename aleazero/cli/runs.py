"""`alea runs list | pause | stop | reset | delete | compare | plot`: the runs in a folder, seen from outside.

(`start` is `head`'s, and most of `resume` is `train`'s.)

What a run is doing is read from its lock and its reports; nothing here looks into checkpoints.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path

from aleazero.cli.answer import DONE, FAILED, print_json
from aleazero.cli.common import active_run, duration, gather, has_head, head_of, table
from aleazero.cli.compare import compare_panels
from aleazero.cli.options import need_redis
from aleazero.core.errors import AleaError, ConfigError
from aleazero.observe.plot import short_number, write_svg
from aleazero.runs import RunError, RunFolder, all_runs, delete_run, find_run, reset_run, runs_root
from aleazero.standing import Standing, standing

POLL_SECONDS = 0.2


def list_runs(runs: Path | None, as_json: bool) -> int:
    """Every run and how it stands."""
    root = runs_root(runs)
    found = [standing(folder) for folder in all_runs(root)]
    if as_json:
        print_json({"folder": str(root), "runs": [dataclasses.asdict(run) for run in found]})
        return DONE
    if not found:
        print(f"no runs in {root}; start one: alea train GAME")
        return DONE
    head = ["name", "game", "status", "step", "rows", "rating", "last report"]
    table([head, *(_row(run) for run in found)])
    return DONE


def pause(name: str | None, runs: Path | None) -> int:
    """Makes a run wait; one that nobody trains will, once somebody does."""
    folder = active_run(runs_root(runs), name)
    folder.pause_file.touch()
    print(f"run {folder.name!r} is paused; go on with: alea runs resume {folder.name}")
    return DONE


def unpause(name: str | None, runs: Path | None) -> bool:
    """Lets a run go on that is paused; whether that is all there was to do: somebody trains it."""
    folder = active_run(runs_root(runs), name)
    paused = folder.pause_file.exists()
    folder.pause_file.unlink(missing_ok=True)
    if folder.owner() is None and head_of(folder) is None:
        if has_head(folder):
            raise ConfigError(f"run {folder.name!r} is one for many machines: alea head --run {folder.name}")
        return False
    print(f"run {folder.name!r} {'goes on' if paused else 'is being trained already'}")
    return True


def stop(name: str | None, wait: float, runs: Path | None) -> int:
    """Asks a run to stop and waits until it has; one that nobody trains is stopped already, which is no failure."""
    folder = active_run(runs_root(runs), name)
    if head_of(folder) is not None:
        from aleazero.cli.head import stop as stop_head

        return stop_head(folder.name, wait, folder.path.parent)
    pid = folder.owner()
    if pid is None:
        print(f"run {folder.name!r} is not being trained ({standing(folder).status})")
        return DONE
    folder.stop_file.touch()
    end = time.monotonic() + wait
    while folder.owner() is not None:
        if time.monotonic() >= end:
            print(
                f"alea: run {folder.name!r} (process {pid}) has not ended within {wait:g} s; it stops, with a "
                "checkpoint, after the step it is at. Wait longer with --wait",
                file=sys.stderr,
            )
            return FAILED
        time.sleep(POLL_SECONDS)
    folder.stop_file.unlink(missing_ok=True)
    print(f"run {folder.name!r}: {standing(folder).status}; go on with: alea runs resume {folder.name}")
    return DONE


def reset(name: str | None, yes: bool, runs: Path | None) -> int:
    """Begins a run anew; what it has is kept in an archive beside the runs."""
    root = runs_root(runs)
    folder = active_run(root, name)
    _refuse_while_trained(folder)
    if not _sure(folder, "reset", yes):
        return DONE
    number = 1
    while (archive := folder.path.parent / "archive" / f"{folder.name}-{number}").exists():
        number += 1
    reset_run(folder, archive)
    print(f"run {folder.name!r} can begin anew; what it had is in {archive}")
    return DONE


def delete(name: str | None, yes: bool, runs: Path | None) -> int:
    """Deletes a run for good; asks first, unless told not to."""
    folder = active_run(runs_root(runs), name)
    _refuse_while_trained(folder)
    if not _sure(folder, "delete", yes):
        return DONE
    if has_head(folder):
        need_redis()
        from aleazero.runtimes.redis.home import Home

        if trouble := Home(folder).forget():
            print(f"alea: {trouble}", file=sys.stderr)
    delete_run(folder)
    print(f"deleted {folder.path}")
    return DONE


def _refuse_while_trained(folder: RunFolder) -> None:
    pid = head_of(folder) or folder.owner()
    if pid is not None:
        raise RunError(f"run {folder.name!r} is active (process {pid}); stop it first: alea runs stop {folder.name}")


def _sure(folder: RunFolder, what: str, yes: bool) -> bool:
    """Asks, unless told not to."""
    if yes:
        return True
    if not sys.stdin.isatty():
        doing = {"delete": "deleting", "reset": "resetting"}[what]
        raise ConfigError(f"{doing} run {folder.name!r} needs --yes where nobody can be asked")
    rows = short_number(standing(folder).rows)
    print(f"{what} run {folder.name!r} in {folder.path}, with its {rows} rows of training? [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    print(f"nothing was {what}{'d' if what == 'delete' else ''}")
    return False


def compare(names: list[str], out: Path | None, runs: Path | None, as_json: bool) -> int:
    """Puts runs side by side, as a table and as curves."""
    root = runs_root(runs)
    few = [] if len(names) > 1 else [f"compare needs two runs or more; {len(names)} named"]
    folders = gather([lambda name=name: find_run(root, name) for name in names], few)  # type: ignore[misc]
    path = out or root / "compare.svg"
    panels = compare_panels({folder.name: folder.read_reports() for folder in folders})
    try:
        write_svg(path, panels, " and ".join(names) if len(names) == 2 else f"{len(names)} runs")
    except OSError as error:
        raise AleaError(f"could not write {path}: {error}; name another file with --out") from error
    found = [standing(folder) for folder in folders]
    if as_json:
        print_json({"runs": [dataclasses.asdict(run) for run in found], "plot": str(path)})
        return DONE
    terms = list(dict.fromkeys(term for run in found for term in run.losses))
    head = ["name", "game", "status", "rows", "seconds", *(f"loss: {term}" for term in terms), "rating (95 %)"]
    rows = [
        [run.name, run.game, run.status, f"{run.rows:,}", f"{run.seconds:.0f}"]
        + ["-" if run.losses.get(term) is None else f"{run.losses[term]:.4f}" for term in terms]
        + [_ratings(run, intervals=True)]
        for run in found
    ]
    table([head, *rows])
    print(f"plot: {path}")
    return DONE


def plot(name: str | None, runs: Path | None) -> int:
    """Draws a run's curves."""
    from aleazero.runtimes.start import plot_run  # here, because it brings everything that trains

    print(plot_run(active_run(runs_root(runs), name)))
    return DONE


def _row(run: Standing) -> list[str]:
    status = f"{run.status} ({run.pid})" if run.pid else run.status
    rows = f"{run.rows:,}" + (f" of {run.total_rows:,}" if run.total_rows else "")
    age = "-" if run.age_seconds is None else f"{duration(run.age_seconds)} ago"
    return [run.name, run.game, status, f"{run.step:,}", rows, _ratings(run), age]


def _ratings(run: Standing, intervals: bool = False) -> str:
    texts = []
    for rating in run.ratings:
        spread = f" ({rating['score_low']:.3f} to {rating['score_high']:.3f})" if intervals else ""
        texts.append(f"{rating['score']:.3f}{spread} against {rating['opponent']}")
    return ", ".join(texts) or "-"
