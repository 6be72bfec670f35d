"""Several runs' records side by side: the panels of `alea runs compare`. Knows no file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from aleazero.observe.plot import Curve, Panel
from aleazero.observe.reports import EvalReport, LearnReport

Record = Mapping[str, Any]


def compare_panels(runs: Mapping[str, Sequence[Record]]) -> list[Panel]:
    """Score and loss, against rows and against seconds: what was learned from as much, and in as long."""
    panels = []
    for axis, label in (("rows", "rows played"), ("seconds", "seconds")):
        panels += [
            Panel(f"Score by {axis}", label, "score, with 95 % interval", _scores(runs, axis), y_range=(0.0, 1.0)),
            Panel(f"Loss by {axis}", label, "loss", _losses(runs, axis)),
        ]
    return panels


def _scores(runs: Mapping[str, Sequence[Record]], axis: str) -> list[Curve]:
    """A curve for each run and opponent; opponents are named only where there are several."""
    matches: dict[tuple[str, str], list[Record]] = {}
    for name, records in runs.items():
        for record in records:
            if record.get("kind") == EvalReport.kind:
                matches.setdefault((name, record["opponent"]), []).append(record)
    several = len({opponent for _, opponent in matches}) > 1
    return [
        Curve(
            f"{name} against {opponent}" if several else name,
            *(_column(played, field) for field in (axis, "score", "score_low", "score_high")),
        )
        for (name, opponent), played in matches.items()
    ]


def _losses(runs: Mapping[str, Sequence[Record]], axis: str) -> list[Curve]:
    curves = []
    for name, records in runs.items():
        learned = [record for record in records if record.get("kind") == LearnReport.kind]
        curves.append(Curve(name, _column(learned, axis), _column(learned, "loss")))
    return curves


def _column(records: Sequence[Record], name: str) -> list[float]:
    """A field of every record; NaN where it was not finite."""
    return [math.nan if record[name] is None else float(record[name]) for record in records]
