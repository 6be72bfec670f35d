"""A run's reports as they come: files are read on from where they were left. Knows files and curves; nothing of HTTP.

A run that goes back to a checkpoint cuts its reports back. A feed then begins anew, under another epoch, so that who
has drawn the old ones can tell. So it does where there are too many: the oldest are dropped.
"""

from __future__ import annotations

import json
import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aleazero.core.errors import ConfigError, UnknownName
from aleazero.observe.curves import run_panels
from aleazero.observe.plot import Curve, Panel
from aleazero.observe.reports import HardwareReport, WorkersReport
from aleazero.runs import RunFolder, all_runs

MOST_FEEDS = 16  # whose reports are kept in memory
MOST_RECORDS = 400_000  # of one run, and of all runs but the one that was asked for last


class Feed:
    """The reports of one run, in the order in which they were read."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self.epoch = 0
        self.records: list[dict[str, Any]] = []
        self._ends = dict.fromkeys((run.metrics_file, run.evals_file, run.workers_file), 0)
        self._first: dict[Path, bytes] = {}
        self._lock = threading.Lock()

    def read_on(self) -> None:
        """Takes what has been written since the last time."""
        with self._lock:
            if any(self._was_cut(path) for path in self._ends):
                self.epoch += 1
                self.records = []
                self._ends = dict.fromkeys(self._ends, 0)
                self._first = {}
            for path in self._ends:
                self._take(path)

    def _was_cut(self, path: Path) -> bool:
        end = self._ends[path]
        try:
            with path.open("rb") as file:
                return path.stat().st_size < end or (end > 0 and file.readline() != self._first[path])
        except FileNotFoundError:
            return end > 0

    def _take(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                file.seek(self._ends[path])
                fresh = file.read()
        except FileNotFoundError:
            return
        whole = fresh[: fresh.rfind(b"\n") + 1]  # a line that is being written is left for the next time
        for line in whole.splitlines(keepends=True):
            if self._ends[path] == 0:
                self._first[path] = line
            self._ends[path] += len(line)
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                self.records.append(record)
        if len(self.records) > MOST_RECORDS:
            self.epoch += 1
            self.records = self.records[-(MOST_RECORDS * 3 // 4) :]  # not at every report


class Watch:
    """The runs that are watched."""

    def __init__(self, roots: Sequence[Path]) -> None:
        """Runs, or folders that hold runs."""
        self._roots = tuple(roots)
        self._feeds: OrderedDict[Path, Feed] = OrderedDict()
        self._lock = threading.Lock()

    def runs(self) -> list[RunFolder]:
        """Every run there is now, by name."""
        found: dict[str, RunFolder] = {}
        for root in self._roots:
            here = [RunFolder(root)] if (root / "config.toml").is_file() else all_runs(root)
            for run in here:
                found.setdefault(run.name, run)
        return [found[name] for name in sorted(found)]

    def find(self, name: str) -> RunFolder:
        """The run of a name."""
        runs = {run.name: run for run in self.runs()}
        if name not in runs:
            raise UnknownName("run", name[:80], runs)
        return runs[name]

    def feed(self, run: RunFolder) -> Feed:
        """A run's reports, up to now."""
        with self._lock:
            feed = self._feeds.setdefault(run.path, Feed(run))
            self._feeds.move_to_end(run.path)
        feed.read_on()
        with self._lock:
            kept = sum(len(one.records) for one in self._feeds.values())
            for path in list(self._feeds):
                if len(self._feeds) <= MOST_FEEDS and kept - len(feed.records) <= MOST_RECORDS:
                    break
                if path != run.path:
                    kept -= len(self._feeds.pop(path).records)
        return feed


def order(run: RunFolder, what: str) -> str:
    """Pauses, resumes or stops a run; says what happens then."""
    if what == "pause":
        run.pause_file.touch()
        return "the run waits after the step it is at"
    if what == "resume":
        if run.owner() is None:
            raise ConfigError(
                f"nobody trains run {run.name!r} now; start it where it should run: alea runs resume {run.name}"
            )
        run.pause_file.unlink(missing_ok=True)
        return "the run goes on"
    if run.owner() is None:
        raise ConfigError(f"run {run.name!r} is not being trained")
    run.stop_file.touch()
    return "the run stops, with a checkpoint, after the step it is at"


# ---- curves as plain data


def panels(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The standard panels of some records, and those of machines and workers."""
    return [_plain(panel) for panel in [*run_panels(records), *_machines(records)]]


def _machines(records: Sequence[dict[str, Any]]) -> list[Panel]:
    hardware = [record for record in records if record.get("kind") == HardwareReport.kind]
    workers = [record for record in records if record.get("kind") == WorkersReport.kind]
    found = []
    if hardware:
        seconds = [float(record.get("seconds") or 0) for record in hardware]
        curves = [
            Curve(name, seconds, [_number(record.get(field)) for record in hardware])
            for name, field in (("CPU", "cpu_percent"), ("memory", "memory_percent"))
        ]
        gpus = sorted({gpu for record in hardware for gpu in record.get("gpu_utilization_percent") or {}})
        for gpu in gpus:
            values = [_number((record.get("gpu_utilization_percent") or {}).get(gpu)) for record in hardware]
            curves.append(Curve(f"GPU {gpu}", seconds, values))
        found.append(Panel("Machine", "seconds", "percent", curves, y_range=(0.0, 100.0)))
    if workers:
        seconds = [float(record.get("seconds") or 0) for record in workers]
        names = sorted({name for record in workers for name in record.get("rows_per_second") or {}})
        rows = [
            Curve(name, seconds, [_number((record.get("rows_per_second") or {}).get(name)) for record in workers])
            for name in names
        ]
        if rows:
            found.append(Panel("Workers", "seconds", "rows per second", rows))
    return found


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _plain(panel: Panel) -> dict[str, Any]:
    curves = []
    for curve in panel.curves:
        bounds = {"low": curve.low, "high": curve.high}
        plain = {name: None if side is None else _finite(side) for name, side in bounds.items()}
        curves.append({"label": curve.label, "x": _finite(curve.x), "y": _finite(curve.y), **plain})
    return {
        "title": panel.title,
        "x": panel.x_label,
        "y": panel.y_label,
        "log": panel.log_y,
        "range": None if panel.y_range is None else list(panel.y_range),
        "curves": curves,
    }


def _finite(values: Sequence[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]
