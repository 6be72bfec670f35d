"""A run's clock without the time spent on compiling.

The first run that needs a program traces and compiles it; later ones find it in a cache. Were that counted, variants
compared by seconds would differ by who came first. Knows the reports of a run by their times; not what they report.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from aleazero.observe.jsonl import read_jsonl
from aleazero.observe.reports import RunReport

# What JAX reports when it has traced, translated and compiled a function, or found what was compiled before. Functions
# call one another, so these times lie within one another too.
_COMPILING = tuple(
    f"/jax/core/compile/{part}_duration" for part in ("jaxpr_trace", "jaxpr_to_mlir_module", "backend_compile")
)


@contextlib.contextmanager
def compiling_noted(file: Path) -> Iterator[None]:
    """Appends everything compiled in the meantime to a file: when it was ready, and how long it took."""
    with file.open("ab", buffering=0) as lines:  # each line at once: a killed run keeps its own

        def note(event: str, duration_secs: float, **kwargs: str | int) -> None:
            if event in _COMPILING:
                line = json.dumps({"time": time.time(), "seconds": duration_secs}) + "\n"
                with contextlib.suppress(OSError):  # a full disk: no reason to end a run in the middle of its work
                    lines.write(line.encode())

        jax.monitoring.register_event_duration_secs_listener(note)
        try:
            yield
        finally:
            jax.monitoring.unregister_event_duration_listener(note)


@dataclasses.dataclass(frozen=True)
class Clock:
    """When a run trained and when it compiled, in unix seconds."""

    stretches: tuple[tuple[float, float], ...]  # when each began, and the run's seconds then
    compiling: tuple[tuple[float, float], ...]  # from, to; apart from one another, in order

    def seconds(self, record: Mapping[str, Any]) -> float:
        """A report's `seconds` without compiling."""
        now, left_out = record["time"], 0.0
        for (began, before), following in zip(self.stretches, [*self.stretches[1:], None], strict=True):
            if began > now:
                break
            # Of a stretch that was killed only what lies before the checkpoint counts: the run went on from there.
            ended = now if following is None or following[0] > now else began + following[1] - before
            left_out += sum(max(min(stop, ended) - max(start, began), 0.0) for start, stop in self.compiling)
        return float(record["seconds"]) - left_out


def read_clock(records: Sequence[Mapping[str, Any]], file: Path) -> Clock:
    """The clock of a run, from its reports and from what `compiling_noted` left."""
    began = [r for r in records if r.get("kind") == RunReport.kind and r["status"] in ("started", "resumed")]
    noted = read_jsonl(file) if file.exists() else []
    spans = sorted((line["time"] - line["seconds"], line["time"]) for line in noted)
    return Clock(tuple((record["time"], record["seconds"]) for record in began), tuple(_joined(spans)))


def _joined(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Sorted spans of time with those that overlap made one."""
    found: list[tuple[float, float]] = []
    for start, stop in spans:
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], stop))
        else:
            found.append((start, stop))
    return found
