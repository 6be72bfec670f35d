"""Runs an experiment: each variant with each seed, one after the other, and what came of them as one record.

Runs that are there already are taken as they are if they are done, and resumed if they are not: a stopped experiment
goes on where it was, and one with more seeds or variants plays only those. Knows runs by their folders and reports.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aleazero import checkpoint as checkpoints
from aleazero.config import RunConfig
from aleazero.core.errors import AleaError, ConfigError
from aleazero.core.game import Game
from aleazero.core.settings import fingerprint, flatten
from aleazero.experiment.clock import Clock, compiling_noted, read_clock
from aleazero.experiment.plan import Measure, Plan
from aleazero.experiment.result import Done, panels, summarise
from aleazero.experiment.statistics import Series
from aleazero.observe.jsonl import read_jsonl, replace_file
from aleazero.observe.plot import write_svg
from aleazero.observe.reports import EvalReport, RunReport
from aleazero.play.match import TurnPlayer
from aleazero.players import make_player
from aleazero.rate import Positions, rate, solved_positions
from aleazero.runs import RunFolder, delete_run
from aleazero.runtimes.start import resume, start

logger = logging.getLogger(__name__)

_FIELDS = {
    "score": ("score", "score_low", "score_high"),
    "points": ("points_per_game", "points_low", "points_high"),
}  # of an EvalReport

_COMPILED = "compiled"


class ExperimentError(AleaError):
    """An experiment cannot begin or go on; the runs that are done stay."""


def run_experiment(plan: Plan, out: Path, command: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """Runs what is not done yet; writes `result.json` and `curves.svg` in `out` and returns the result.

    `command` is what a reader types to repeat it; `tell` hears what is being done.
    """
    root = out / "runs"
    # Seeds are the outer loop: whenever it is stopped, variants have been run equally often.
    pairs = [(variant, seed) for seed in plan.seeds for variant in plan.configs]
    _refuse_others(plan, root, pairs)
    try:
        for folder in (root, root.parent / _COMPILED):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExperimentError(f"could not make {folder}: {error}; choose another folder with --out") from error
    for number, (variant, seed) in enumerate(pairs, 1):
        tell(f"run {number} of {len(pairs)}: {variant}, seed {seed}")
        with compiling_noted(_noted(root, variant, seed)):
            tell("    " + _bring_to_end(RunFolder(root / run_name(variant, seed)), plan.config(variant, seed)))
    rated = any(measure.kind == "wrong_moves" for measure in plan.measures)
    positions = solved_positions(plan.game) if rated and isinstance(plan.game, Game) else None
    done = [_read(plan, root, variant, seed, positions) for variant, seed in pairs]
    result = summarise(plan, done, command)
    try:
        replace_file(out / "result.json", (json.dumps(result, indent=1, allow_nan=False) + "\n").encode())
        write_svg(out / "curves.svg", panels(plan, done), plan.name)
    except OSError as error:
        raise ExperimentError(f"could not write to {out}: {error}; the runs are done, so try again") from error
    return result


def run_name(variant: str, seed: int) -> str:
    """What the run of a variant and a seed is called."""
    return f"{variant}-s{seed}"


def _noted(root: Path, variant: str, seed: int) -> Path:
    """Where it stands what a run compiled: beside the runs, because it begins before there is a folder."""
    return root.parent / _COMPILED / f"{run_name(variant, seed)}.jsonl"


# ---- running


def _refuse_others(plan: Plan, root: Path, pairs: Sequence[tuple[str, int]]) -> None:
    """Runs of other settings under the names of ours would be compared as if they were ours."""
    problems = []
    for variant, seed in pairs:
        folder = RunFolder(root / run_name(variant, seed))
        if folder.config_file.is_file():
            old, new = flatten(folder.read_config()), flatten(plan.config(variant, seed))
            problems += [
                f"{folder.path}: {name} is {old.get(name)!r}, the file says {value!r}"
                for name, value in new.items()
                if old.get(name) != value
            ]
    if problems:
        advice = "runs of other settings are there: choose another folder with --out, or delete these runs"
        raise ConfigError("\n".join([*problems, advice]))


def _bring_to_end(folder: RunFolder, config: RunConfig) -> str:
    """Starts or resumes a run, unless it is done; says which."""
    if _is_done(folder):
        return "was done before"
    root = folder.path.parent
    try:
        found = checkpoints.newest(folder.checkpoints, logger.warning)
        if found is not None and (found.facts.get("replay_logged") or found.facts.get("replay_saved")):
            how, finished = "resumed and done", resume(folder.name, root, quiet=True)
        else:
            _clear(folder)  # it was killed before its first checkpoint, or cannot be resumed exactly
            how, finished = "done", start(config, root, name=folder.name, quiet=True)
    except AleaError as error:
        raise ExperimentError(f"run {folder.name}: {error}") from error
    if finished.status == "stopped":
        raise ExperimentError(f"stopped in run {folder.name}; the same command goes on from there")
    return how


def _clear(folder: RunFolder) -> None:
    if folder.config_file.is_file():
        delete_run(folder)
    elif folder.path.is_dir():
        for leftover in folder.path.glob(".config.*"):
            leftover.unlink()
        with contextlib.suppress(OSError):  # not empty: not ours, and `start` will say that it is in the way
            folder.path.rmdir()


def _is_done(folder: RunFolder) -> bool:
    return folder.metrics_file.exists() and _told(read_jsonl(folder.metrics_file)).get("status") == "done"


def _told(records: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The last that a run said of itself."""
    return next((record for record in reversed(records) if record.get("kind") == RunReport.kind), {})


def _read(plan: Plan, root: Path, variant: str, seed: int, positions: Positions | None) -> Done:
    """What a finished run measured."""
    folder = RunFolder(root / run_name(variant, seed))
    records = read_jsonl(folder.metrics_file)
    told, clock = _told(records), read_clock(records, _noted(root, variant, seed))
    rows, seconds = told["rows"], clock.seconds(told)
    series = {}
    for measure in plan.measures:
        if measure.kind != "wrong_moves":
            series[measure.name] = measurements(records, measure, clock)
        elif positions is not None and isinstance(plan.game, Game):
            player = make_player(f"run:{folder.name},search=none", plan.game, root)
            assert not isinstance(player, TurnPlayer)  # no solved game has whole turns
            wrong = rate(plan.game, player, positions).overall
            numbers = (rows, seconds, wrong.value, wrong.low, wrong.high)
            series[measure.name] = Series(*(np.array([number], np.float64) for number in numbers))
    return Done(
        variant=variant,
        seed=seed,
        run=folder.name,
        config=fingerprint(plan.config(variant, seed)),
        rows=rows,
        seconds=seconds,
        compile_seconds=told["seconds"] - seconds,
        series=series,
    )


def measurements(records: Sequence[Mapping[str, Any]], measure: Measure, clock: Clock) -> Series:
    """A run's matches by one measure.

    A run that was killed may have measured the same rows twice (the later one counts), and its clock went back to that
    of its checkpoint (it is held until the time that was reached before is reached again).
    """
    by_rows: dict[int, tuple[float, ...]] = {}
    for record in records:
        if record.get("kind") == EvalReport.kind and record["opponent"] == measure.opponent:
            value, low, high = (record[field] for field in _FIELDS[measure.kind])
            ends = (-math.inf if low is None else low, math.inf if high is None else high)
            by_rows[record["rows"]] = (clock.seconds(record), value, *ends)
    rows = sorted(by_rows)
    seconds, value, low, high = np.array([by_rows[row] for row in rows], np.float64).T
    return Series(np.array(rows, np.float64), np.maximum.accumulate(seconds), value, low, high)
