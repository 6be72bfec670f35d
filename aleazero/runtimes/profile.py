"""Where a run's time goes: a trace of a few iterations, kept to be looked at, and read back.

Tracing slows the host, not an accelerator's kernels: so the kernels are summed in a traced stretch, and set against the
wall time of an equal stretch without a trace. On the CPU host and device are the same cores, and both are slowed: there
the traced stretch is set against its own wall time.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from aleazero.core.errors import AleaError
from aleazero.core.scopes import PARTS
from aleazero.observe.reports import ProfileReport
from aleazero.runtimes import trace

TOP = 10
SECONDS, MOST_CALLS = 2.0, 8  # a trace is about so long, and of at most so many calls
HOST = "host"  # nothing ran on the device
SHARES = (*PARTS, HOST, trace.OTHER)


@dataclasses.dataclass(frozen=True)
class Profile:
    """What a trace says."""

    seconds: float  # of wall time, without a trace; on the CPU, with one
    device_seconds: float  # in which something ran, overlaps counted once
    shares: dict[str, float]  # of wall time, by `SHARES`; they sum to one
    top: dict[str, float]  # the kernels that took longest, in seconds
    file: Path  # the trace, as TensorBoard reads it

    def report(self, **where: Any) -> ProfileReport:
        """For the run's reports; `where` is what every one of them says."""
        return ProfileReport(
            **where,
            device_share=self.device_seconds / max(self.seconds, self.device_seconds),
            wall_seconds=self.seconds,
            device_seconds=self.device_seconds,
            shares=self.shares,
            kernels=self.top,
            trace=str(self.file),
        )


def profile(iterate: Callable[[], None], finish: Callable[[], None], folder: Path) -> Profile:
    """Times some calls of `iterate`, then traces as many; `finish` waits for what they leave running."""
    count = 1

    def stretch() -> float:
        began = time.perf_counter()
        for _ in range(count):
            iterate()
        finish()
        return time.perf_counter() - began

    finish()
    count = min(max(int(SECONDS / stretch()), 1), MOST_CALLS)
    seconds = stretch()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # millions of events, and a host many times slower
    with jax.profiler.trace(str(folder), profiler_options=options):
        traced = stretch()
    files = sorted(folder.rglob("*.xplane.pb"), key=lambda file: file.stat().st_mtime)
    if not files:
        raise AleaError(f"the profiler wrote no trace into {folder}")
    return summary(trace.read(files[-1]), traced if jax.default_backend() == "cpu" else seconds, files[-1])


def summary(busy: trace.Busy, seconds: float, file: Path) -> Profile:
    """The device's work as shares of so much wall time."""
    wall = max(seconds, busy.seconds)  # kernels may take a little longer in one stretch than in the other
    shares = {name: busy.parts.get(name, 0.0) / wall for name in SHARES}
    shares[HOST] = 1.0 - busy.seconds / wall
    return Profile(seconds, busy.seconds, shares, dict(list(busy.top.items())[:TOP]), file)


def in_words(shares: dict[str, float], file: Path) -> list[str]:
    """Lines for whoever asked where the time goes, and how to look at the trace."""
    said = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    events = file.with_name(file.name.removesuffix(".xplane.pb") + ".trace.json.gz")
    root = file.parents[3]  # jax writes plugins/profile/TIME/HOST.xplane.pb
    unseen = ["       no update fell into this stretch: they come in bursts, and the rows for one take many iterations"]
    return [
        f"time:  {said}",
        *(unseen if not shares["update"] else []),
        f"trace: {events} (open it in https://ui.perfetto.dev)",
        f"       or: tensorboard --logdir {root} (pip install tensorboard xprof)",
    ]


def operations_in_words(report: ProfileReport) -> list[str]:
    """The same of PyTorch's profile: the operations that took longest."""
    top = [f"       {seconds:8.3f} s  {name}" for name, seconds in report.kernels.items()]
    return [
        f"time:  {report.device_share:.1%} of {report.wall_seconds:.2f} s in PyTorch; what took longest:",
        *top,
        f"trace: {report.trace} (open it in https://ui.perfetto.dev)",
    ]
