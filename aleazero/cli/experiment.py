"""`alea experiment`: variants times seeds from one file, and what they show."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aleazero.cli.answer import print_json
from aleazero.cli.common import command_line
from aleazero.core.compilation import set_up_compiling
from aleazero.core.devices import use_every_core
from aleazero.experiment.plan import read_plan
from aleazero.experiment.run import run_experiment


def experiment(file: Path, *, out: Path | None, runs: Path | None, as_json: bool) -> int:
    """Runs what is not done yet and reports everything."""
    set_up_compiling()
    use_every_core()
    plan = read_plan(file, runs)
    folder = out or Path("experiments") / plan.name
    command = command_line("experiment", str(file), out=out, runs=runs)
    tell: Callable[[str], None] = (lambda line: None) if as_json else functools.partial(print, flush=True)
    result = run_experiment(plan, folder, command, tell)
    if as_json:
        print_json(result)
        return 0
    print("\n".join(report(result)))
    print(f"\nresult: {folder / 'result.json'}\nplot:   {folder / 'curves.svg'}")
    return 0


def report(result: Mapping[str, Any]) -> list[str]:
    """The result in lines: for every measure a table of the variants, and what it allows to be said."""
    seeds, variants = result["seeds"], result["variants"]
    source = "over seeds" if len(seeds) > 1 else "of the measurements, as there is one seed"
    lines = ["", f"{result['name']}: {result['game']}, seeds {', '.join(map(str, seeds))}; 95 % intervals {source}"]
    for measure in result["measures"]:
        rows = [["variant", measure, f"difference to {result['baseline']}", "rows", "seconds"]]
        claims = []
        for name, variant in variants.items():
            found = variant["measures"][measure]
            difference = found.get("difference")
            shown = _interval(difference, sign="+") if difference else "-"
            rows.append(
                [name, _interval(found["final"]), shown, f"{variant['rows']:,.0f}", f"{variant['seconds']:.1f}"]
            )
            claims += _claims(name, result["baseline"], found)
        lines += ["", *_table(rows), *claims]
    lines += ["", "Seconds are those of training, without compiling."]
    if len(variants) > 2 or len(result["measures"]) > 1:
        lines.append("Every interval is 95 % for itself: where nothing differs, one in twenty seems to.")
    return lines


def _claims(name: str, baseline: str, found: Mapping[str, Any]) -> list[str]:
    """`NAME helps` only where the interval of the difference excludes 0."""
    lines = []
    for key in ("difference", "difference_in_time"):
        if key in found:
            difference = found[key]
            said = difference["verdict"]
            claim = f"{name} {said}" if said != "no difference shown" else f"{name}: {said}"
            when = f"after {difference['seconds']:.1f} s" if "seconds" in difference else "at the end"
            lines.append(f"{claim}, compared with {baseline} {when}: {_interval(difference, sign='+')}")
    return lines


def _interval(numbers: Mapping[str, Any], sign: str = "") -> str:
    value, low, high = (numbers[key] for key in ("value", "low", "high"))
    if low is None or high is None:
        return f"{value:{sign}.3f} (no interval)"
    return f"{value:{sign}.3f} ({low:{sign}.3f} to {high:{sign}.3f})"


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
