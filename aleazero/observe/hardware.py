"""How busy the machine is: CPU, memory and GPUs, sampled by a thread of its own and reported like anything else.

CPU and memory are read through psutil, GPUs through NVML; without psutil nothing is sampled, without NVML no GPU is.
Knows neither roles nor what a GPU is used for.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from aleazero.observe.reports import HardwareReport, Report
from aleazero.observe.sink import Sink

_log = logging.getLogger(__name__)


class HardwareSampler:
    """A sink that learns from reports where the run stands, and a thread that emits a `HardwareReport` at a cadence.

    It emits to `out`, and may be one of `out`'s own sinks.
    """

    def __init__(self, out: Sink, every_seconds: float) -> None:
        self._out, self._every = out, every_seconds
        self._where = (0, 0, 0.0)  # step, rows, seconds
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        try:
            probe = Probe()
        except ImportError:
            _log.info("CPU and memory are not sampled: psutil is not installed (pip install 'aleazero[track]')")
            return
        self._thread = threading.Thread(target=self._sample, args=(probe,), name="hardware", daemon=True)
        self._thread.start()

    def emit(self, report: Report) -> None:
        """Remembers where the run stands."""
        self._where = (report.step, report.rows, report.seconds)

    def flush(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """No sample is taken from now on. Does not wait: the thread may be waiting for whoever closes this."""
        self._over.set()

    def _sample(self, probe: Probe) -> None:
        probe.begin()
        while not self._over.wait(self._every):
            try:
                report = probe.report(*self._where)
            except Exception as error:  # a machine that cannot be read is no reason to stop a run
                _log.warning("hardware is not sampled any more: %s: %s", type(error).__name__, error)
                break
            if not self._over.is_set():
                self._out.emit(report)
        probe.close()


class Probe:
    """Reads the machine. Percentages of CPU time are since the reading before; ImportError without psutil."""

    def __init__(self) -> None:
        self._psutil = import_module("psutil")
        self._process = self._psutil.Process()
        self._nvml, self._gpus = _find_gpus()
        self.begin()

    def begin(self) -> None:
        """The first reading has nothing to be compared with. psutil keeps one for each thread: call it in yours."""
        self._psutil.cpu_percent()
        self._process.cpu_percent()

    def report(self, step: int, rows: int, seconds: float) -> HardwareReport:
        """How things are now."""
        memory = self._psutil.virtual_memory()
        with self._process.oneshot():
            process_cpu, process_memory = self._process.cpu_percent(), self._process.memory_info().rss
        return HardwareReport(
            step=step,
            rows=rows,
            seconds=seconds,
            cpu_percent=self._psutil.cpu_percent(),
            process_cpu_percent=process_cpu,
            memory_percent=memory.percent,
            memory_used_bytes=memory.total - memory.available,
            process_memory_bytes=process_memory,
            gpu_utilization_percent=self._each(lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu),
            gpu_memory_percent=self._each(_memory_percent),
            gpu_temperature_celsius=self._each(
                lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)
            ),
            gpu_power_watts=self._each(lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000),
        )

    def close(self) -> None:
        """Lets go of the driver."""
        if self._nvml is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
            self._nvml, self._gpus = None, []

    def _each(self, read: Callable[[Any, Any], float]) -> dict[str, float]:
        """One number of every GPU that gives it: some have no power meter, or no memory of their own."""
        found: dict[str, float] = {}
        for number, gpu in enumerate(self._gpus):
            with contextlib.suppress(self._nvml.NVMLError):
                found[str(number)] = float(read(self._nvml, gpu))
        return found


def _memory_percent(nvml: Any, gpu: Any) -> float:
    memory = nvml.nvmlDeviceGetMemoryInfo(gpu)
    return 100 * float(memory.used) / float(memory.total)


def _find_gpus() -> tuple[Any, list[Any]]:
    """The NVML module and a handle of each GPU; None and none where there is no driver, or no module for it."""
    try:
        nvml = import_module("pynvml")
    except ImportError:
        return None, []
    try:
        nvml.nvmlInit()
        return nvml, [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError as error:
        _log.debug("no GPU is sampled: %s", error)
        return None, []


def resident_bytes() -> int:
    """What this process holds in memory now; the most it ever held, where the system does not say more."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def most_resident_bytes() -> int:
    """The most that this process held since this was asked last; what it holds now, where the system does not say."""
    process = Path("/proc/self")
    try:
        lines = (process / "status").read_text().splitlines()
        (process / "clear_refs").write_text("5\n")  # the count begins anew
    except OSError:
        return resident_bytes()
    return max((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), default=resident_bytes())
