"""What TensorBoard will read: event files taken apart again, record by record."""

from __future__ import annotations

import math
import struct
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from aleazero.observe import tensorboard
from aleazero.observe.tensorboard import TensorboardSink
from tests.observe import examples

pytest.importorskip("tensorboardX")


def _crc(data: bytes) -> int:
    """The masked CRC-32C of the TFRecord format, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _events(path: Path) -> list[Any]:
    protocol = import_module("tensorboardX.proto.event_pb2")
    data, events = path.read_bytes(), []
    while data:  # tensorboardX reads the messages: another's understanding of them, not ours
        (length,) = struct.unpack("<Q", data[:8])
        body = data[12 : 12 + length]
        assert struct.unpack("<I", data[8:12])[0] == _crc(data[:8])
        assert struct.unpack("<I", data[12 + length : 16 + length])[0] == _crc(body)
        event = protocol.Event()
        event.ParseFromString(body)
        events.append(event)
        data = data[16 + length :]
    return events


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("events.out.tfevents.*"))


def test_every_metric_is_a_scalar_at_its_step(tmp_path):
    folder = tmp_path / "run" / "tensorboard"
    sink = TensorboardSink(folder)
    before = time.time()
    reports = [examples.selfplay(step=3), examples.learn(step=2**40), examples.match(step=7)]
    for report in reports:
        sink.emit(report)
    sink.close()
    sink.close()
    (path,) = _files(folder)
    header, *events = _events(path)
    assert header.file_version == "brain.Event:2"
    assert [event.step for event in events] == [3, 2**40, 7]
    for event, report in zip(events, reports, strict=True):
        assert before <= event.wall_time <= time.time()
        found = {value.tag: value.simple_value for value in event.summary.value}
        assert found == pytest.approx(report.metrics(), rel=1e-6)
        assert len(event.summary.value) == len(report.metrics())
    assert "selfplay/outcomes/win" in {value.tag for value in events[0].summary.value}


def test_a_report_without_numbers_writes_nothing_and_nan_is_kept(tmp_path):
    sink = TensorboardSink(tmp_path)
    sink.emit(examples.checkpoint())
    sink.emit(examples.learn(loss=math.nan))
    sink.emit(examples.learn(loss=1e300))
    sink.close()
    _, *events = _events(_files(tmp_path)[0])
    nan, large = (v.simple_value for event in events for v in event.summary.value if v.tag == "learn/loss")
    assert math.isnan(nan)
    assert large == math.inf  # in four bytes


def test_a_resumed_run_adds_a_file_and_takes_back_later_steps(tmp_path):
    for report in (examples.run(), examples.run(status="resumed", step=20)):
        sink = TensorboardSink(tmp_path)  # within the same second
        sink.emit(report)
        sink.close()
    first, second = _files(tmp_path)
    assert not any(event.HasField("session_log") for event in _events(first))
    _, restart, run = _events(second)
    assert restart.session_log.status == restart.session_log.START
    assert restart.step == 21  # TensorBoard drops this step and all after it; 20 itself stays, as in the JSON Lines
    assert run.step == 20


def test_what_was_emitted_is_on_disk_after_a_flush_and_after_a_while(tmp_path, monkeypatch):
    sink = TensorboardSink(tmp_path)
    sink.emit(examples.learn(step=1))
    sink.flush()
    assert [event.step for event in _events(_files(tmp_path)[0])] == [0, 1]
    monkeypatch.setattr(tensorboard, "_FLUSH_SECONDS", 0.0)
    sink.emit(examples.learn(step=2))
    assert [event.step for event in _events(_files(tmp_path)[0])] == [0, 1, 2]
    sink.close()


def test_a_write_that_fails_raises_where_the_fanout_can_see_it(tmp_path):
    sink = TensorboardSink(tmp_path)
    sink.close()
    with pytest.raises(ValueError, match="closed"):
        sink.emit(examples.learn())


def test_it_needs_nothing_that_is_not_installed_with_the_package(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "tensorboardX"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    TensorboardSink(tmp_path).close()
    assert _files(tmp_path)
