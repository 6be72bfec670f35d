"""What a follower sends, when and how often: real files, and services that hang, refuse, die and come back."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aleazero.observe import follow
from aleazero.observe.follow import Follower, Refused
from aleazero.observe.jsonl import JsonlSink, truncate_jsonl
from tests.observe import examples
from tests.observe.pace import assert_not_held_up

pytestmark = pytest.mark.slow


class Service:
    """A backend that does as it is told."""

    name = "the service"

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.sent: list[int] = []  # steps
        self.tries = self.opened = self.closed = 0
        self.away = False
        self.refuses: set[int] = set()
        self.hanging = threading.Event()
        self.hanging.set()

    def open(self) -> bool:
        self._answer()
        self.opened += 1
        self.state.setdefault("id", "first")
        return False

    def send(self, records: list[dict[str, Any]]) -> None:
        self._answer()
        if self.refuses & {record["step"] for record in records}:
            raise Refused("bad step")
        self.sent += [record["step"] for record in records]

    def close(self) -> None:
        self._answer()
        self.closed += 1

    def _answer(self) -> None:
        self.tries += 1
        self.hanging.wait(30)
        if self.away:
            raise ConnectionError("nobody there")


def wait(happened: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "metrics.jsonl", tmp_path / "service.json"


def emit(path: Path, *steps: int) -> None:
    sink = JsonlSink(path)
    for step in steps:
        sink.emit(examples.learn(step=step))
    sink.close()


def quick(files: tuple[Path, Path], service: Service, **options: float) -> Follower:
    return Follower(*files, service, **{"every_seconds": 0.01, "patience_seconds": 5.0, **options})


def test_everything_is_sent_once_in_order_while_the_file_grows(files, monkeypatch) -> None:
    monkeypatch.setattr(follow, "BATCH_RECORDS", 3)
    service = Service()
    emit(files[0], 1, 2)
    follower = quick(files, service)
    sink = JsonlSink(files[0])
    for step in range(3, 50):
        sink.emit(examples.learn(step=step))
        follower.emit(examples.learn(step=step))
    wait(lambda: len(service.sent) == 49)
    with files[0].open("ab") as file:  # a line that is still being written
        file.write(b'{"kind": "learn", "st')
        file.flush()
        time.sleep(0.05)
        file.write(b'ep": 50, "time": 1.0}\n')
    follower.close()
    sink.close()
    assert service.sent == list(range(1, 51))
    assert (service.opened, service.closed) == (1, 1)


def test_a_service_that_is_away_is_said_once_and_gets_everything_later(files, caplog) -> None:
    service = Service()
    service.away = True
    follower = quick(files, service)
    emit(files[0], *range(10))
    wait(lambda: service.tries >= 2)
    service.away = False
    wait(lambda: len(service.sent) == 10)
    follower.close()
    assert service.sent == list(range(10))
    assert caplog.text.count("cannot be reached") == 1
    assert "ConnectionError: nobody there" in caplog.text
    assert caplog.text.count("is back") == 1


@pytest.mark.speed
def test_a_hanging_service_delays_nobody_and_the_rest_is_sent_when_the_run_goes_on(files, caplog) -> None:
    service = Service()
    service.hanging.clear()
    follower = quick(files, service, patience_seconds=0.2)
    sink, taken = JsonlSink(files[0]), []
    for step in range(500):
        began = time.perf_counter()
        sink.emit(examples.learn(step=step))
        follower.emit(examples.learn(step=step))
        follower.flush()
        taken.append(time.perf_counter() - began)
    sink.close()
    assert_not_held_up(taken)
    began = time.monotonic()
    follower.close()
    assert time.monotonic() - began < 20  # it hangs for 30
    assert "alea monitor send" in caplog.text
    assert service.sent == []
    again = Service()
    quick(files, again).close()
    assert again.sent == list(range(500))
    service.hanging.set()


def test_a_run_that_goes_on_sends_what_is_new_under_the_same_id(files) -> None:
    first = Service()
    emit(files[0], 1, 2, 3)
    quick(files, first).close()
    assert json.loads(files[1].read_text())["backend"] == {"id": "first"}
    second = Service()
    emit(files[0], 4)
    quick(files, second).close()
    assert (first.sent, second.sent) == ([1, 2, 3], [4])
    assert second.state == {"id": "first"}


@pytest.mark.parametrize("sent_all", [True, False])
def test_a_file_that_was_cut_back_is_followed_from_its_new_end(files, sent_all: bool) -> None:
    emit(files[0], 1, 2, 3, 4, 5)
    quick(files, Service()).close()
    if not sent_all:
        emit(files[0], 3, 6)
    truncate_jsonl(files[0], 3)  # the run goes back to step 3
    emit(files[0], 4, 5)
    service = Service()
    quick(files, service).close()
    assert service.sent == ([4, 5] if sent_all else [3, 4, 5])


def test_a_file_may_be_cut_back_while_it_is_followed(files) -> None:
    emit(files[0], 1, 2, 3, 4, 5)
    service = Service()
    follower = quick(files, service)
    wait(lambda: service.sent == [1, 2, 3, 4, 5])
    truncate_jsonl(files[0], 3)  # a learner that was started again goes back to step 3
    emit(files[0], 4, 5, 6, 7, 8)
    wait(lambda: len(service.sent) >= 10)
    follower.close()
    assert service.sent == [1, 2, 3, 4, 5, 4, 5, 6, 7, 8]


def test_several_files_are_followed_each_from_where_it_was(files) -> None:
    other = files[0].with_name("evals.jsonl")
    emit(files[0], 1, 2)
    first = Service()
    quick(files, first, others=[other]).close()  # the other one is not there yet
    emit(other, 10, 11)
    emit(files[0], 3)
    second = Service()
    quick(files, second, others=[other]).close()
    assert (first.sent, sorted(second.sent)) == ([1, 2], [3, 10, 11])


def test_what_is_refused_is_dropped_and_said(files, caplog, monkeypatch) -> None:
    monkeypatch.setattr(follow, "BATCH_RECORDS", 1)
    service = Service()
    service.refuses = {2}
    emit(files[0], 1, 2, 3)
    quick(files, service).close()
    assert service.sent == [1, 3]
    assert "does not take 1 reports: bad step" in caplog.text


def test_drain_says_whether_everything_was_sent(files, caplog) -> None:
    emit(files[0], 1)
    service = Service()
    service.away = True
    assert not quick(files, service).drain(1.0)
    assert "alea monitor send" in caplog.text
    service.away = False
    assert quick(files, service).drain(5.0)
    assert service.sent == [1]


def test_a_damaged_state_file_begins_anew(files) -> None:
    emit(files[0], 1, 2)
    files[1].write_text('{"sent')
    service = Service()
    quick(files, service).close()
    assert service.sent == [1, 2]


def test_a_damaged_line_is_said_once_and_the_rest_is_sent(files, caplog) -> None:
    emit(files[0], 1)
    with files[0].open("ab") as file:
        file.write(b'{"step": 2, "kin\n')
    emit_after = [json.dumps({"kind": "learn", "step": 3, "time": time.time()}).encode() + b"\n"]
    with files[0].open("ab") as file:
        file.writelines(emit_after)
        file.write(b"[\n")
    service = Service()
    follower = quick(files, service)
    wait(lambda: service.sent == [1, 3])
    assert follower.drain(20)
    assert service.closed == 1
    assert [record.getMessage().count("is damaged") for record in caplog.records].count(1) == 2
    again = Service()
    assert quick(files, again).drain(20)
    assert again.sent == []


def test_who_insists_tries_again_until_the_time_is_over(files) -> None:
    emit(files[0], 1, 2)
    service = Service()
    service.away = True
    threading.Timer(1.5, lambda: setattr(service, "away", False)).start()
    assert quick(files, service).drain(60, insist=True)
    assert (service.sent, service.closed) == ([1, 2], 1)
    service = Service()
    service.away = True
    emit(files[0], 3)
    began = time.monotonic()
    assert not quick(files, service).drain(1.5, insist=True)
    assert time.monotonic() - began < 15
    assert service.tries >= 2
