"""How much of a run's time the device works, and on what: a trace of a few iterations, read back.

Tracing slows the host, not the kernels: so the kernels are summed in a traced stretch, and set against the wall time
of an equal stretch without a trace. Works on accelerators, where work is recorded by stream; on the CPU host and
device are the same cores.
"""

from __future__ import annotations

import collections
import dataclasses
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax

from aleazero.core.errors import AleaError

TOP = 10


@dataclasses.dataclass(frozen=True)
class Profile:
    """What a trace says."""

    seconds: float  # of wall time, without a trace
    device_seconds: float  # in which some kernel ran, overlaps counted once
    top: dict[str, float]  # the kernels that took longest, in seconds


def profile(iterate: Callable[[], None], finish: Callable[[], None], count: int) -> Profile:
    """Times `count` calls of `iterate`, then traces as many; `finish` waits for what they leave running."""
    with tempfile.TemporaryDirectory() as folder:
        finish()
        began = time.perf_counter()
        for _ in range(count):
            iterate()
        finish()
        seconds = time.perf_counter() - began
        with jax.profiler.trace(folder):
            for _ in range(count):
                iterate()
            finish()
        files = sorted(Path(folder).rglob("*.xplane.pb"))
        if not files:
            raise AleaError("the profiler wrote no trace")
        return _read(files[-1], seconds)


def _read(file: Path, seconds: float) -> Profile:
    spans: list[tuple[float, float]] = []
    totals: collections.Counter[str] = collections.Counter()
    for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
        on_device = plane.name.startswith("/device:") and "CUSTOM" not in plane.name.upper()
        for line in plane.lines:
            if not (on_device and "Stream" in line.name) and not line.name.startswith("tf_XLAPjRtCpuClient"):
                continue
            for event in line.events:
                if event.duration_ns > 0:
                    spans.append((event.start_ns, event.start_ns + event.duration_ns))
                    totals[event.name] += event.duration_ns / 1e9
    return Profile(seconds, _union(spans) / 1e9, dict(totals.most_common(TOP)))


def _union(spans: list[tuple[float, float]]) -> float:
    """The length of the union of spans."""
    total, end = 0.0, float("-inf")
    for start, stop in sorted(spans):
        total += max(stop - max(start, end), 0.0)
        end = max(end, stop)
    return total
