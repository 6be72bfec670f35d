"""A run's record survives what happens to runs: kills, NaN, going back to a checkpoint."""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.core.errors import AleaError
from aleazero.observe import jsonl
from aleazero.observe.jsonl import JsonlSink, read_jsonl, truncate_jsonl
from aleazero.observe.sink import Fanout
from tests.observe import examples


def _write(path: Path, steps: list[int]) -> None:
    sink = JsonlSink(path)
    for step in steps:
        sink.emit(examples.learn(step=step))
    sink.close()


def _steps(path: Path) -> list[int]:
    return [record["step"] for record in read_jsonl(path)]


def test_a_line_is_the_report_and_the_time(tmp_path):
    path = tmp_path / "metrics.jsonl"
    sink = JsonlSink(path)
    reports = [examples.run(), examples.selfplay(), examples.alarm(message="two\nlines, 95 %, é")]
    before = time.time()
    for report in reports:
        sink.emit(report)
    assert [json.loads(line)["kind"] for line in path.read_text().splitlines()] == ["run", "selfplay", "alarm"], (
        "each line must be in the file before the sink is flushed or closed"
    )
    sink.close()
    sink.close()
    records = read_jsonl(path)
    times = [record.pop("time") for record in records]
    assert records == [report.as_dict() for report in reports]
    assert before <= times[0] <= times[1] <= times[2] <= time.time()


def test_what_json_cannot_write_is_null(tmp_path):
    path = tmp_path / "metrics.jsonl"
    sink = JsonlSink(path)
    sink.emit(examples.learn(loss=math.nan, losses={"policy": math.inf, "value": -math.inf, "other": 0.5}))
    sink.close()

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    record = json.loads(path.read_text(), parse_constant=refuse)
    assert record["loss"] is None
    assert record["losses"] == {"policy": None, "value": None, "other": 0.5}


def test_a_killed_process_leaves_at_most_one_broken_line(tmp_path):
    path = tmp_path / "metrics.jsonl"
    program = (
        "import sys, pathlib\n"
        "from aleazero.observe.jsonl import JsonlSink\n"
        "from tests.observe import examples\n"
        "sink = JsonlSink(pathlib.Path(sys.argv[1]))\n"
        "step = 0\n"
        "while True:\n"
        "    sink.emit(examples.alarm(step=step, message='x' * 20000))\n"
        "    step += 1\n"
    )
    root = Path(__file__).parents[2]
    child = subprocess.Popen([sys.executable, "-c", program, str(path)], cwd=root)
    try:
        deadline = time.monotonic() + 120
        while not path.exists() or path.stat().st_size < 200_000:
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    steps = _steps(path)
    assert len(steps) >= 9
    assert steps == list(range(len(steps)))


@settings(deadline=None)  # disks have moods
@given(share=st.floats(0, 1))
def test_a_file_cut_anywhere_loses_only_the_line_that_was_cut(tmp_path_factory, share):
    path = tmp_path_factory.mktemp("cut") / "metrics.jsonl"
    _write(path, [1, 2, 3])
    content = path.read_bytes()
    cut = round(share * len(content))
    path.write_bytes(content[:cut])
    whole = sum(cut >= end for end, byte in enumerate(content) if byte == ord("\n"))
    assert _steps(path) == [1, 2, 3][:whole]
    _write(path, [9])
    assert _steps(path) == [*[1, 2, 3][:whole], 9]


@pytest.mark.parametrize("tail", ['{"kind": "learn", "st', '{"step": 4}\0\0\0', '{"step": 4}}\n', "\n", "7", "é\n"])
def test_a_broken_tail_is_skipped_dropped_and_written_past(tmp_path, tail):
    path = tmp_path / "metrics.jsonl"
    _write(path, [1, 2])
    with path.open("ab") as file:
        file.write(tail.encode("latin-1"))
    assert _steps(path) == [1, 2]
    _write(path, [3])
    assert _steps(path) == [1, 2, 3]
    with path.open("ab") as file:
        file.write(tail.encode("latin-1"))
    truncate_jsonl(path, 2)
    assert _steps(path) == [1, 2]
    assert path.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("line", ["{", "", "[1]", "\0"])
def test_a_broken_line_in_the_middle_stops_with_its_number(tmp_path, line):
    path = tmp_path / "metrics.jsonl"
    _write(path, [1, 2, 3])
    lines = path.read_text().splitlines()
    lines[1] = line
    path.write_text("\n".join(lines) + "\n")
    for use in (read_jsonl, lambda path: truncate_jsonl(path, 1)):
        with pytest.raises(AleaError, match=r"metrics\.jsonl, line 2 of 3: ") as caught:
            use(path)
        assert str(path) in str(caught.value)
    assert path.read_text().splitlines() == lines


def test_no_reports_are_an_empty_list_and_no_file_is_a_mistake(tmp_path):
    (tmp_path / "empty").touch()
    assert read_jsonl(tmp_path / "empty") == []
    with pytest.raises(AleaError, match=r"no reports at .*absent"):
        read_jsonl(tmp_path / "absent")


def test_going_back_keeps_the_step_itself_and_every_byte_before(tmp_path):
    path = tmp_path / "metrics.jsonl"
    _write(path, [1, 2, 2, 3, 2, 4])
    lines = path.read_text().splitlines(keepends=True)
    truncate_jsonl(path, 2)
    assert path.read_text() == lines[0] + lines[1] + lines[2] + lines[4]
    truncate_jsonl(path, 0)
    assert path.read_bytes() == b""
    assert [entry.name for entry in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_going_back_needs_steps_and_no_file(tmp_path):
    truncate_jsonl(tmp_path / "absent", 3)
    assert not (tmp_path / "absent").exists()
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": null}\n')
    with pytest.raises(AleaError, match=r"line 2: .*None.*integer"):
        truncate_jsonl(path, 3)


@contextlib.contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """The kernel refuses to write beyond it, as on a full disk: the last write that fits in part is cut."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_was_full_for_a_moment_costs_nothing(tmp_path, caplog):
    path = tmp_path / "metrics.jsonl"
    fanout = Fanout([JsonlSink(path)])
    fanout.emit(examples.learn(step=1))
    with no_file_longer_than(path.stat().st_size + 50):
        for step in (2, 3, 4):
            fanout.emit(examples.learn(step=step))
            fanout.flush()
            assert _steps(path) == [1]
            assert path.read_bytes().endswith(b"}\n"), "no half of a line"
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [f"{path} cannot be written to"]
    fanout.emit(examples.learn(step=5))
    assert _steps(path) == [1, 2, 3, 4, 5]
    assert caplog.records[-1].getMessage() == f"{path} can be written to again"
    with no_file_longer_than(path.stat().st_size + 50):
        fanout.emit(examples.learn(step=6))
    fanout.close()  # now there is room
    assert _steps(path) == [1, 2, 3, 4, 5, 6]


def test_what_never_finds_room_is_counted_and_bounded(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(jsonl, "MOST_WAITING", 3)
    path = tmp_path / "metrics.jsonl"
    sink = JsonlSink(path)
    with no_file_longer_than(0):
        for step in range(5):
            sink.emit(examples.learn(step=step))
        sink.close()
        sink.close()
    assert caplog.records[-1].getMessage() == f"{path} lacks 5 reports: there was no room for them"
    sink = JsonlSink(path)
    with no_file_longer_than(0):
        for step in range(5):
            sink.emit(examples.learn(step=step))
    sink.close()
    assert _steps(path) == [2, 3, 4]
