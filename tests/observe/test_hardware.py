"""The hardware sampler on this machine, and on a driver that answers as NVML does."""

from __future__ import annotations

import sys
import threading
import time
import types
from typing import Any

import pytest

from aleazero.observe import hardware
from aleazero.observe.hardware import HardwareSampler, Probe
from aleazero.observe.reports import HardwareReport, Report
from aleazero.observe.sink import Fanout
from tests.observe import examples

psutil = pytest.importorskip("psutil")


class Recorder:
    def __init__(self) -> None:
        self.reports: list[Report] = []

    def emit(self, report: Report) -> None:
        self.reports.append(report)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def _wait(happened: Any) -> None:
    end = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def _sampled(recorder: Recorder) -> list[HardwareReport]:
    return [report for report in recorder.reports if isinstance(report, HardwareReport)]


def test_it_reports_at_a_cadence_where_the_run_stands_and_stops_when_closed() -> None:
    recorder = Recorder()
    fanout = Fanout([recorder])
    fanout.add(HardwareSampler(fanout, 0.05))
    fanout.emit(examples.learn(step=7, rows=70, seconds=1.5))
    _wait(lambda: len(_sampled(recorder)) >= 3)
    fanout.close()
    seen = _sampled(recorder)
    assert (seen[-1].step, seen[-1].rows, seen[-1].seconds) == (7, 70, 1.5)
    _wait(lambda: not any(thread.name == "hardware" for thread in threading.enumerate()))
    assert _sampled(recorder) == seen


def test_the_first_sample_is_of_the_time_since_the_sampler_began() -> None:
    recorder = Recorder()
    sampler = HardwareSampler(recorder, 0.3)
    while not recorder.reports:  # busy: a core, or what others leave of it
        pass
    sampler.close()
    assert _sampled(recorder)[0].cpu_percent > 0


def test_numbers_are_those_of_this_machine_and_this_process() -> None:
    probe = Probe()
    began, used = time.monotonic(), time.process_time()
    while time.process_time() - used < 0.3:
        pass
    share = 100 * (time.process_time() - used) / (time.monotonic() - began)
    report = probe.report(1, 2, 3.0)
    probe.close()
    assert report.process_cpu_percent == pytest.approx(share, rel=0.4)
    assert 0 < report.cpu_percent <= 100
    assert report.memory_percent == pytest.approx(psutil.virtual_memory().percent, abs=10)
    assert report.process_memory_bytes == pytest.approx(psutil.Process().memory_info().rss, rel=0.1)
    assert report.process_memory_bytes < report.memory_used_bytes < psutil.virtual_memory().total


def test_a_sample_costs_less_than_a_hundredth_of_a_core_at_the_default_cadence() -> None:
    probe = Probe()
    used = time.process_time()
    for _ in range(50):
        probe.report(0, 0, 0.0)
    each = (time.process_time() - used) / 50
    probe.close()
    assert each / 10.0 < 0.001  # a sample every ten seconds: ten times better than allowed


class NoMeterError(Exception):
    pass


def _driver(calls: list[str]) -> types.SimpleNamespace:
    def power(gpu: int) -> int:
        if gpu == 1:
            raise NoMeterError
        return 71_500

    return types.SimpleNamespace(
        NVMLError=NoMeterError,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: calls.append("init"),
        nvmlShutdown=lambda: calls.append("shutdown"),
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetUtilizationRates=lambda gpu: types.SimpleNamespace(gpu=40 + gpu, memory=3),
        nvmlDeviceGetMemoryInfo=lambda gpu: types.SimpleNamespace(used=2**30, total=2 ** (32 + gpu)),
        nvmlDeviceGetTemperature=lambda gpu, sensor: 50 + gpu,
        nvmlDeviceGetPowerUsage=power,
    )


def test_every_gpu_gives_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setitem(sys.modules, "pynvml", _driver(calls))
    probe = Probe()
    report = probe.report(0, 0, 0.0)
    probe.close()
    probe.close()
    assert report.gpu_utilization_percent == {"0": 40.0, "1": 41.0}
    assert report.gpu_memory_percent == {"0": 25.0, "1": 12.5}
    assert report.gpu_temperature_celsius == {"0": 50.0, "1": 51.0}
    assert report.gpu_power_watts == {"0": 71.5}
    assert calls == ["init", "shutdown"]
    assert report.metrics()["hardware/gpu_power_watts/0"] == 71.5


@pytest.mark.parametrize("how", ["no module", "no driver"])
def test_no_gpu_is_no_error(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_driver() -> None:
        raise NoMeterError("driver not loaded")

    driver = _driver([])
    driver.nvmlInit = no_driver
    monkeypatch.setitem(sys.modules, "pynvml", None if how == "no module" else driver)
    report = Probe().report(0, 0, 0.0)
    assert report.gpu_utilization_percent == report.gpu_power_watts == {}
    assert report.cpu_percent >= 0


def test_without_psutil_nothing_is_sampled_and_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    sampler = HardwareSampler(Recorder(), 0.01)
    sampler.emit(examples.learn())
    sampler.close()
    assert not any(thread.name == "hardware" for thread in threading.enumerate())


def test_a_machine_that_cannot_be_read_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise PermissionError("no /proc here")

    monkeypatch.setattr(hardware.Probe, "report", broken)
    HardwareSampler(Recorder(), 0.01)
    _wait(lambda: "no /proc here" in caplog.text)
    _wait(lambda: not any(thread.name == "hardware" for thread in threading.enumerate()))
    assert caplog.text.count("not sampled any more") == 1
