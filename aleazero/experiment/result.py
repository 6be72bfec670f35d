"""What an experiment's finished runs show, as one record and as curves. Knows no folder."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from aleazero import __version__
from aleazero.experiment import statistics
from aleazero.experiment.plan import Measure, Plan
from aleazero.experiment.statistics import Band, Series
from aleazero.observe.plot import Curve, Panel
from aleazero.play.ratings import Interval


@dataclasses.dataclass(frozen=True)
class Done:
    """One run of an experiment, finished."""

    variant: str
    seed: int
    run: str  # its name in the experiment's folder of runs
    config: str  # the settings' fingerprint
    rows: int
    seconds: float  # of training, without compiling
    compile_seconds: float  # of the run's, beside those
    series: dict[str, Series]  # by measure


def summarise(plan: Plan, done: Sequence[Done], command: str) -> dict[str, Any]:
    """Everything as one record of what JSON has; what is not finite is None."""
    by_variant = {name: [run for run in done if run.variant == name] for name in plan.configs}
    device = jax.local_devices()[0]
    return {
        "name": plan.name,
        "game": plan.game.spec.name,
        "game_version": plan.game.spec.version,
        "preset": plan.preset,
        "seeds": list(plan.seeds),
        "measures": [measure.name for measure in plan.measures],
        "baseline": next(iter(plan.configs)),
        "version": __version__,
        "device": f"{len(jax.local_devices())} x {device.device_kind}",
        "command": command,
        "settings": _plain(plan.settings),
        "runs": [_run_record(run) for run in done],
        "variants": {name: _variant_record(plan, by_variant, name) for name in plan.configs},
    }


def _run_record(run: Done) -> dict[str, Any]:
    fields = [field.name for field in dataclasses.fields(Series)]
    return {
        **{
            name: getattr(run, name)
            for name in ("variant", "seed", "run", "config", "rows", "seconds", "compile_seconds")
        },
        "measures": {
            name: {field: _finite(getattr(series, field)) for field in fields} for name, series in run.series.items()
        },
    }


def _variant_record(plan: Plan, by_variant: Mapping[str, Sequence[Done]], name: str) -> dict[str, Any]:
    runs, baseline = by_variant[name], next(iter(by_variant.values()))
    measures = {}
    for measure in plan.measures:
        mine, theirs = ([run.series[measure.name] for run in side] for side in (runs, baseline))
        entry: dict[str, Any] = {"final": _numbers(statistics.final(mine, measure.bounds))}
        if runs is not baseline:
            entry |= _differences(measure, mine, theirs)
        entry["curves"] = {
            axis: {key: _finite(array) for key, array in dataclasses.asdict(band).items()}
            for axis, band in _bands(measure, mine).items()
        }
        measures[measure.name] = entry
    return {
        "rows": float(np.mean([run.rows for run in runs])),
        "seconds": float(np.mean([run.seconds for run in runs])),
        "measures": measures,
    }


def _differences(measure: Measure, mine: Sequence[Series], theirs: Sequence[Series]) -> dict[str, Any]:
    """To the first variant: of what the runs ended with, and of what they had when the quicker ones ended."""
    difference = statistics.final_difference(mine, theirs)
    found: dict[str, Any] = {
        "difference": {**_numbers(difference), "verdict": statistics.verdict(difference, measure.more_is_better)}
    }
    in_time = None if measure.kind == "wrong_moves" else statistics.difference_in_time(mine, theirs)
    if in_time is not None:
        verdict = statistics.verdict(in_time[1], measure.more_is_better)
        found["difference_in_time"] = {"seconds": in_time[0], **_numbers(in_time[1]), "verdict": verdict}
    return found


def _bands(measure: Measure, series: Sequence[Series]) -> dict[str, Band]:
    return {
        "rows": statistics.mean_curve(series, "rows", measure.bounds),
        "seconds": statistics.mean_curve(series, "seconds", measure.bounds),
    }


def _plain(value: Any) -> Any:
    """A table of the file as JSON has it; infinite numbers as settings write them, "inf"."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _numbers(interval: Interval) -> dict[str, float | None]:
    return {name: number if math.isfinite(number) else None for name, number in dataclasses.asdict(interval).items()}


def _finite(array: np.ndarray) -> list[float | None]:
    return [number if math.isfinite(number) else None for number in array.tolist()]


def panels(plan: Plan, done: Sequence[Done]) -> list[Panel]:
    """Every measure that has a curve, against rows and against seconds; a band is the interval."""
    drawn = []
    for measure in plan.measures:
        if measure.kind == "wrong_moves":
            continue
        bands = {
            name: _bands(measure, [run.series[measure.name] for run in done if run.variant == name])
            for name in plan.configs
        }
        for axis, label in (("rows", "rows played"), ("seconds", "seconds")):
            curves = []
            for name, by_axis in bands.items():
                band = by_axis[axis]
                curves.append(Curve(name, *(array.tolist() for array in (band.x, band.mean, band.low, band.high))))
            bounds = measure.bounds if all(math.isfinite(bound) for bound in measure.bounds) else None
            drawn.append(Panel(measure.name, label, f"{measure.kind}, 95 %", curves, y_range=bounds))
    return drawn
