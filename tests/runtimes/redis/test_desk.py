"""The head's desk with real members on a real Redis: who is listed, what is said of them, and that nothing grows."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from aleazero.observe.catalogue import MOST_SERIES
from aleazero.observe.endpoint import PORTS, Endpoint
from aleazero.observe.jsonl import read_jsonl
from aleazero.runs import new_run
from aleazero.runtimes.desk import head_targets, run_targets
from aleazero.runtimes.redis import desk as desks
from aleazero.runtimes.redis.access import HEAD
from aleazero.runtimes.redis.beats import Beat
from aleazero.runtimes.redis.board import Progress, publish_progress
from aleazero.runtimes.redis.coordinator import Coordinator
from aleazero.runtimes.redis.desk import HeadDesk
from aleazero.runtimes.redis.home import Home
from aleazero.runtimes.redis.link import connect
from aleazero.runtimes.redis.member import Member
from aleazero.runtimes.redis.registry import Registry
from aleazero.runtimes.redis.server import RedisServer
from aleazero.runtimes.redis.users import admit
from tests.observe.test_prometheus import fetch, hardware, parse
from tests.runtimes.support import tiny

pytest.importorskip("prometheus_client")
pytest.importorskip("psutil")

SERVED = ("observe.prometheus=true", "observe.metrics_port=0", "observe.metrics_prefix=bgai")
STATUS = {"games": 40, "rows": 360, "version": 7, "games_per_minute": 12.5, "rows_per_second": 99.5, "waiting": 2}


class Head:
    """A head's desk and coordinator, ticked by the test."""

    def __init__(self, server: RedisServer, root: Path, *settings: str) -> None:
        self.root, self.server = root, server
        self.config = tiny(*SERVED, "observe.hardware_seconds=0.05", *settings)
        self.folder = new_run(root, f"it-{time.monotonic_ns()}", "")
        self.folder.write_config(self.config)
        self.home = Home(self.folder)
        self.stack = contextlib.ExitStack()
        head = self.home.keyring().token(HEAD)
        with contextlib.closing(connect(server.url, server.head)) as owner:
            admit(owner, head)
        self.link = self.stack.enter_context(contextlib.closing(connect(server.url, head)))
        self.desk = self.stack.enter_context(contextlib.closing(HeadDesk(self.home, root, self.config, self.link)))
        self.coordinator = Coordinator(self.home, self.config, self.link, self.desk.evals)
        self.coordinator.open()
        self.tick()

    def tick(self) -> None:
        self.coordinator.tick("running")
        self.desk.tick(self.coordinator.registry)

    def until(self, happened: Callable[[], Any]) -> Any:
        end = time.monotonic() + 120
        while not (found := happened()):
            assert time.monotonic() < end, "it did not happen"
            self.tick()
            time.sleep(0.02)
        return found

    def member(self, name: str, kind: str = "game", status: dict[str, Any] | None = None) -> Member:
        token = self.home.keyring().token(name)
        self.coordinator.admit(token)
        link = self.stack.enter_context(contextlib.closing(connect(self.server.url, token)))
        member = Member(link, token, kind, lambda: dict(STATUS if status is None else status))
        member.page.open(self.config)
        member._thread.start()
        self.stack.callback(member.page.close)
        self.stack.callback(member.leave)
        return member

    def listed(self) -> dict[str, str]:
        """Addresses by who is there, as the page says."""
        found = json.loads(fetch(str(self.desk.url)))
        return {entry["labels"].get("worker", entry["labels"]["role"]): entry["targets"][0] for entry in found}

    def said(self) -> dict[str, Any]:
        return read_jsonl(self.folder.workers_file)[-1]


@pytest.fixture
def make_head(server: RedisServer, tmp_path: Path) -> Iterator[Callable[..., Head]]:
    with contextlib.ExitStack() as stack:

        def make(*settings: str) -> Head:
            head = Head(server, tmp_path, *settings)
            stack.callback(head.stack.close)
            return head

        yield make


def test_workers_are_listed_while_they_take_part(make_head: Callable[..., Head]) -> None:
    head = make_head()
    laptop, judge = head.member("laptop"), head.member("judge", "eval", {"chunks": 3})
    head.until(lambda: set(head.listed()) == {"head", "laptop", "judge"})
    page = parse(fetch(f"http://{head.listed()['laptop']}/metrics"))
    assert page["bgai_own_games_total"] == {(): 40}
    assert page["bgai_own_games_per_minute"] == {(): 12.5}
    assert page["bgai_own_model_version"] == {(): 7}
    assert not any("chunks" in name for name in page), "a game worker plays none"
    page = parse(fetch(f"http://{head.listed()['judge']}/metrics"))
    assert page["bgai_own_chunks_total"] == {(): 3}
    assert "bgai_own_model_version" not in page, "it plays with the versions that it is given"
    file = head_targets(head.root, head.folder.name)
    assert json.loads(file.read_text()) == json.loads(fetch(str(head.desk.url)))
    labels = json.loads(file.read_text())[2]["labels"]
    token = labels.pop("__param_token")
    assert labels == {"run": head.folder.name, "game": "tictactoe", "role": "game", "worker": "laptop"}
    assert "bgai_own_games_total" in fetch(f"http://{head.listed()['laptop']}/metrics?token={token}")
    tokens = {entry["labels"]["__param_token"] for entry in json.loads(fetch(str(head.desk.url)))}
    assert len(tokens) == 3
    laptop.leave()
    head.until(lambda: set(head.listed()) == {"head", "judge"})
    judge.leave()
    head.until(lambda: set(head.listed()) == {"head"})
    head.desk.close()
    assert not file.exists()


def test_the_learner_is_on_the_page_and_in_a_file_of_its_own(make_head: Callable[..., Head]) -> None:
    head = make_head()
    head.tick()
    file = run_targets(head.root, head.folder.name)
    file.write_text(json.dumps([{"targets": ["127.0.0.1:9200"], "labels": {"role": "train"}}]))
    assert head.listed()["train"] == "127.0.0.1:9200"
    file.write_text("[{")
    assert set(head.listed()) == {"head"}


def test_the_report_says_who_is_there_and_what_they_say(make_head: Callable[..., Head]) -> None:
    head = make_head()
    laptop = head.member("laptop")
    head.member("judge", "eval", {"chunks": 3})
    laptop.page.emit(hardware(cpu_percent=33.0, gpu_power_watts={"0": 300.0, "1": 200.0}))
    laptop.page._sampler.close()  # so that nothing else is said
    time.sleep(0.1)
    laptop.page.emit(
        hardware(
            cpu_percent=33.0,
            gpu_power_watts={"0": 300.0, "1": 200.0},
            gpu_temperature_celsius={"0": 50.0, "1": 70.0},
            gpu_memory_percent={"0": 10.0, "1": 20.0},
        )
    )
    laptop.speak()
    publish_progress(head.link, head.home.keys, Progress(rows=900, step=30, seconds=5.0, backlog_rows=128))
    private = msgpack.packb({"refused": {"": 2, "laptop": 1}, "reasons": {"signature": 2, "shape": 1}})
    head.link.client.set(head.home.keys.learner, private)
    head.until(lambda: head.said()["active"] == {"game": 1.0, "eval": 1.0} and head.said()["gpu_power_watts"])
    head.until(lambda: "judge" in head.said()["memory_percent"])
    said = head.said()
    assert (said["step"], said["rows"], said["queue_rows"], said["quarantined"]) == (30, 900, 128, 3)
    assert said["refused"] == {"signature": 2.0, "shape": 1.0}
    assert (said["games_per_minute"], said["rows_per_second"]) == ({"laptop": 12.5}, {"laptop": 99.5})
    assert said["cpu_percent"]["laptop"] == 33.0
    assert said["gpu_power_watts"] == {"laptop": 500.0}
    assert said["gpu_temperature_celsius"] == {"laptop": 70.0}
    assert said["gpu_memory_percent"] == {"laptop": 15.0}
    page = parse(fetch(f"http://{head.listed()['head']}/metrics"))
    assert page["bgai_queue_depth"] == {(): 128}
    assert page["bgai_quarantined_by_reason_total"][(("reason", "shape"),)] == 1
    assert page["bgai_worker_gpu_power_watts"] == {(("worker", "laptop"),): 500.0}


BAD: dict[str, Any] = {
    "kind": "game",
    "host": socket.gethostname(),
    "metrics": "127.0.0.1:9100/../x",
    "games_per_minute": "many",
    "rows_per_second": float("nan"),
    "hardware": {"cpu_percent": [1], "memory_percent": True, "gpu_power_watts": {"0": None, "1": 5.0}},
}


@pytest.mark.parametrize(
    ("changes", "listed"),
    [
        ({}, False),
        ({"metrics": 7}, False),
        ({"metrics": "127.0.0.1:9100"}, True),
        ({"metrics": "127.0.0.1:9100", "metrics_token": ["x"]}, True),
        ({"metrics": "127.0.0.1:9100", "host": "elsewhere"}, False),  # it serves its own machine alone
        ({"metrics": "10.0.0.7:9100", "host": "elsewhere"}, True),
        ({"metrics": "a b:9100"}, False),
        ({"metrics": "10.0.0.7:9100", "kind": "boss"}, False),
    ],
)
def test_what_a_worker_says_of_itself_is_not_believed(
    make_head: Callable[..., Head], changes: dict[str, Any], listed: bool
) -> None:
    head, registry = make_head(), Registry()
    head.home.keyring().token("laptop")
    registry.see("laptop", Beat(0.0, {**BAD, **changes, "instance": "one"}), time.monotonic())
    head.desk._next = 0.0
    head.desk.tick(registry)
    assert ("laptop" in head.listed()) == listed
    said = head.said()
    assert (said["games_per_minute"], said["rows_per_second"], said["cpu_percent"]) == ({}, {}, {})
    assert (said["memory_percent"], said["gpu_power_watts"]) == ({}, {"laptop": 5.0})


def test_the_dead_stay_listed_for_an_alert_and_the_revoked_do_not(
    make_head: Callable[..., Head], monkeypatch: pytest.MonkeyPatch
) -> None:
    head, registry = make_head(), Registry()
    for name in ("dead", "gone"):
        head.home.keyring().token(name)
        status = {**BAD, "metrics": "127.0.0.1:9100", "instance": name}
        registry.see(name, Beat(100.0, status), time.monotonic())
    head.desk._next = 0.0
    head.desk.tick(registry)
    assert set(head.listed()) == {"head", "dead", "gone"}
    assert head.said()["active"] == {"game": 0.0, "eval": 0.0}
    head.home.keyring().drop("gone")
    head.desk.tick(registry)
    assert set(head.listed()) == {"head", "dead"}
    monkeypatch.setattr(desks, "FORGET_SECONDS", 60.0)
    head.desk.tick(registry)
    assert set(head.listed()) == {"head"}


def test_labels_do_not_grow_however_many_join_and_leave(make_head: Callable[..., Head]) -> None:
    head, registry = make_head(), Registry()
    ring = head.home.keyring()
    sizes = []
    for number in range(150):
        name = f"worker-{number}"
        ring.token(name)
        beat = {**STATUS, "kind": "game", "host": "x", "instance": name, "metrics": f"10.0.0.{number}:9100"}
        registry.see(name, Beat(0.0, beat | {"hardware": {"cpu_percent": float(number)}}), time.monotonic())
        if number >= 5:
            registry.free(f"worker-{number - 5}")
        head.desk._next = 0.0
        head.desk.tick(registry)
        if number in (10, 149):
            page = fetch(f"http://{head.listed()['head']}/metrics")
            sizes.append((len(page.splitlines()), len(head.listed())))
            found = parse(page)
            assert max(len(series) for series in found.values()) <= MOST_SERIES
            assert len(found["bgai_worker_cpu_percent"]) == 5
    assert sizes[0] == sizes[1]


def test_a_worker_of_another_machine_names_the_address_it_is_reached_at(make_head: Callable[..., Head]) -> None:
    head = make_head("observe.metrics_bind=0.0.0.0")
    head.member("laptop")
    address = head.until(lambda: head.listed().get("laptop"))
    host, _, port = address.rpartition(":")
    assert host not in ("0.0.0.0", "")
    assert "bgai_own_games_total" in fetch(f"http://{address}/metrics")
    with socket.create_connection((host, int(port)), timeout=60):
        pass


def test_a_worker_that_cannot_serve_works_all_the_same(
    make_head: Callable[..., Head], caplog: pytest.LogCaptureFixture
) -> None:
    head = make_head()
    config = dataclasses.replace(
        head.config, observe=dataclasses.replace(head.config.observe, metrics_bind="192.0.2.1")
    )
    token = head.home.keyring().token("laptop")
    head.coordinator.admit(token)
    with contextlib.closing(connect(head.server.url, token)) as link, caplog.at_level(logging.WARNING):
        member = Member(link, token, "game", lambda: dict(STATUS))
        member.page.open(config)
        assert member.page.said(dict(STATUS)) == STATUS
        member.page.close()
    assert "this worker serves no metrics: cannot listen on 192.0.2.1" in caplog.text


def test_each_role_has_its_port_or_the_next_free_one(make_head: Callable[..., Head]) -> None:
    head = make_head("observe.metrics_port=9200")
    member = head.member("laptop")
    judge = head.member("judge", "eval", {})
    second = head.member("desktop")
    ports = {name: found.page._endpoint.port for name, found in (("game", member), ("eval", judge))}
    for kind, port in ports.items():
        assert PORTS[kind] <= port < PORTS[kind] + 100
    assert PORTS["game"] <= member.page._endpoint.port < second.page._endpoint.port
    assert isinstance(head.desk._endpoint, Endpoint)
    assert PORTS["head"] <= head.desk._endpoint.port < PORTS["head"] + 100


def test_a_list_that_cannot_be_written_is_said_once_and_written_later(
    make_head: Callable[..., Head], caplog: pytest.LogCaptureFixture
) -> None:
    head = make_head()
    folder = head_targets(head.root, head.folder.name).parent
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.write_text("in the way")
    head.member("laptop")
    head.until(lambda: "laptop" in head.listed())
    head.tick()
    assert caplog.text.count("Prometheus is not told") == 1
    folder.unlink()
    aside.rename(folder)
    head.tick()
    assert "laptop" in head_targets(head.root, head.folder.name).read_text()


def test_without_metrics_nothing_is_served_and_the_report_is_still_written(make_head: Callable[..., Head]) -> None:
    head = make_head("observe.prometheus=false")
    head.member("laptop")
    head.until(lambda: head.said()["active"]["game"] == 1.0)
    assert head.desk.url is None
    assert not head_targets(head.root, head.folder.name).exists()
    with pytest.raises(ValueError, match="unknown url type"):
        urllib.request.urlopen(str(head.desk.url))
