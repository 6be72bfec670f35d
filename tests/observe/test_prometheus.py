"""Metrics as Prometheus reads them: over HTTP, through its own client's parser."""

from __future__ import annotations

import dataclasses
import gc
import json
import logging
import math
import socket
import sys
import threading
import time
import tracemalloc
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from aleazero.core.errors import MissingExtra
from aleazero.observe.catalogue import CATALOGUE, MOST_SERIES, metric_of
from aleazero.observe.endpoint import Endpoint, EndpointError
from aleazero.observe.prometheus import PATH, PrometheusSink
from aleazero.observe.reports import (
    EvalReport,
    HardwareReport,
    RayReport,
    RllibReport,
    WorkerReport,
    WorkersReport,
    report_of,
)
from aleazero.observe.targets import Target, TargetServer, write_targets
from tests.observe import examples
from tests.observe.pace import assert_not_held_up

pytest.importorskip("prometheus_client")
parser = pytest.importorskip("prometheus_client.parser")

Labels = tuple[tuple[str, str], ...]


def hardware(**changes: object) -> HardwareReport:
    fields = {"cpu_percent": 12.5, "process_cpu_percent": 150.0, "memory_percent": 40.0}
    sizes = {"memory_used_bytes": 2**33, "process_memory_bytes": 2**30}
    gpus = {"gpu_utilization_percent": 90.0, "gpu_memory_percent": 50.0, "gpu_temperature_celsius": 60.0}
    by_gpu = {name: {"0": value} for name, value in {**gpus, "gpu_power_watts": 300.0}.items()}
    return HardwareReport(**{"step": 1, "rows": 2, "seconds": 3.0, **fields, **sizes, **by_gpu, **changes})  # type: ignore[arg-type]


def workers(**changes: object) -> WorkersReport:
    fields = {"step": 1, "rows": 2, "seconds": 3.0, "active": {"game": 2, "eval": 1}, "queue_rows": 5, "quarantined": 1}
    names = [field.name for field in dataclasses.fields(WorkersReport) if field.name not in fields]
    each = {name: {"laptop": 10.0 + number} for number, name in enumerate(names)}
    return WorkersReport(**{**fields, **each, **changes})  # type: ignore[arg-type]


def worker(**changes: object) -> WorkerReport:
    rates = {"games_per_minute": 6.5, "rows_per_second": 7.5, "blocked_share": 0.25}
    return WorkerReport(
        **{
            "step": 1,
            "rows": 2,
            "seconds": 3.0,
            "games": 4,
            "waiting": 2,
            "chunks": 3,
            "version": 5,
            **rates,
            **changes,
        }
    )  # type: ignore[arg-type]


def on_ray() -> RayReport:
    where = {"step": 1, "rows": 2, "seconds": 3.0}
    rates = {"rows_per_second": 9.0, "taken_per_second": 8.0, "busy_share": 0.9, "lag_updates": 1.5}
    counts = {"players": 4, "restarts": 1, "waiting": 3, "lost": 2}
    return RayReport(**where, **rates, **counts, inference={"batch_fill": 0.5})  # type: ignore[arg-type]


def alone() -> EvalReport:
    """Of games for one, which have more to say."""
    return examples.match(details={"mean_ante": 1.5, "ante1_clear": 0.25})


def by_rllib() -> RllibReport:
    where = {"step": 1, "rows": 2, "seconds": 3.0}
    counts = {"iteration": 7, "env_runners": 2, "restarts": 1, "games": 40}
    times = {"sampling_seconds": 2.0, "learning_seconds": 1.0}
    return RllibReport(**where, **counts, **times, best_reward=0.5)  # type: ignore[arg-type]


def every_report() -> list:
    return [
        *(examples.run(), examples.selfplay(), examples.learn(), examples.replay(), alone()),
        *(examples.producers(), examples.ppo()),
        *(examples.checkpoint(), examples.alarm(), hardware(), workers(), worker(), on_ray(), by_rllib()),
    ]


def test_a_report_that_was_written_down_is_read_again() -> None:
    for report in every_report():
        assert report_of({**report.as_dict(), "time": 4.0}) == report
    assert report_of({"kind": "something else"}) is None


def parse(text: str) -> dict[str, dict[Labels, float]]:
    found: dict[str, dict[Labels, float]] = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def test_every_metric_of_the_catalogue_is_served_with_the_number_of_its_report() -> None:
    sink, reports = PrometheusSink(), every_report()
    for report in reports:
        sink.emit(report)
    endpoint = Endpoint({PATH: sink.page}, 0)
    try:
        found = parse(fetch(f"http://{endpoint.address}{PATH}"))
    finally:
        endpoint.close()
    by_kind = {report.kind: report.as_dict() for report in reports}
    assert set(found) == {f"alea_{metric.name}" for metric in CATALOGUE}
    for metric in CATALOGUE:
        series = found[f"alea_{metric.name}"]
        if metric.field == "time":
            assert series[()] == pytest.approx(time.time(), abs=10)
            continue
        expected = {
            tuple(sorted(zip(metric.labels, labels, strict=True))): value
            for labels, value in metric.values(by_kind[metric.report])
        }
        assert series == expected


def test_types_help_and_prefix() -> None:
    sink = PrometheusSink("bgai")
    sink.emit(examples.learn(loss=math.nan))
    text = sink.page()[1].decode()
    assert "# TYPE bgai_training_loss gauge" in text
    assert "# TYPE bgai_training_steps_total counter" in text
    assert "# HELP bgai_training_loss Mean loss" in text
    assert "bgai_training_loss NaN" in text
    assert "alea" not in text
    assert "games_total" not in text  # nothing is said of what was not reported


def test_newest_numbers_replace_older_ones_and_events_are_counted() -> None:
    sink = PrometheusSink()
    for step in (1, 2, 3):
        sink.emit(examples.learn(step=step, loss=1 / step))
        sink.emit(examples.alarm(step=step))
    sink.emit(workers(active={"game": 3, "eval": 1}))
    sink.emit(workers(active={"game": 2}))
    found = parse(sink.page()[1].decode())
    assert found["alea_training_loss"] == {(): 1 / 3}
    assert found["alea_alarms_total"] == {(("level", "warn"), ("name", "duplicate games")): 3}
    assert found["alea_active_workers"] == {(("kind", "game"),): 2}


def test_nothing_grows_however_much_comes_and_goes() -> None:
    sink = PrometheusSink()

    def churn(start: int) -> None:
        for number in range(start, start + 600):
            sink.emit(examples.match(step=number, opponent=f"run:worker-{number}@{number}"))
            sink.emit(examples.match(step=number, opponent="run:best@5000,sims=64"))
            sink.emit(examples.alarm(name=f"alarm {number}"))
            many = {f"worker-{number + place}": 1.0 for place in range(5)}
            sink.emit(workers(active={f"role-{number + place}": 1 for place in range(5)}, cpu_percent=many))
            if number % 100 == 0:
                sink.emit(workers(games_per_minute={f"worker-{number}-{place}": 1.0 for place in range(100)}))
            sink.emit(examples.learn(step=number, losses={f"term {number}": 1.0}))
        sink.page()
        gc.collect()

    tracemalloc.start()
    churn(0)
    before, size = tracemalloc.get_traced_memory()[0], len(sink.page()[1])
    churn(10_000)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    found = parse(sink.page()[1].decode())
    assert max(len(series) for name, series in found.items() if "_worker_" not in name) <= MOST_SERIES
    assert found["alea_evaluation_model_version"][(("opponent", "run:best@5000,sims=64"),)] == 10_599
    assert len(found["alea_training_loss_term"]) == 1
    assert len(sink.page()[1]) < 1.1 * size + 200
    assert grown < 60_000


def test_two_opponents_of_one_run_are_two() -> None:
    sink = PrometheusSink()
    for opponent, score in (("run:old@100", 0.9), ("run:old@5000", 0.4)):
        sink.emit(examples.match(opponent=opponent, score=score))
    assert parse(sink.page()[1].decode())["alea_evaluation_score"] == {
        (("opponent", "run:old@100"),): 0.9,
        (("opponent", "run:old@5000"),): 0.4,
    }


@pytest.mark.speed
def test_a_client_that_says_nothing_delays_neither_scrapes_nor_reports() -> None:
    sink = PrometheusSink()
    endpoint = Endpoint({PATH: sink.page}, 0)
    silent = [socket.create_connection((endpoint.bind, endpoint.port)) for _ in range(5)]
    try:
        taken = []
        for step in range(200):
            began = time.perf_counter()
            sink.emit(examples.learn(step=step))
            taken.append(time.perf_counter() - began)
        assert_not_held_up(taken)
        assert parse(fetch(f"http://{endpoint.address}{PATH}"))["alea_model_version"] == {(): 199}
    finally:
        began = time.perf_counter()
        endpoint.close()
        endpoint.close()
        assert time.perf_counter() - began < 1.0
        for client in silent:
            client.close()


def test_a_port_that_is_taken_is_said_and_the_next_one_serves(caplog: pytest.LogCaptureFixture) -> None:
    first = Endpoint({"/a": lambda: ("text/plain", b"one")}, 0)
    second = Endpoint({"/a": lambda: ("text/plain", b"two")}, first.port)
    try:
        assert second.port > first.port
        assert f"port {first.port} is taken; /a is served on port {second.port}" in caplog.text
        assert [fetch(f"http://{endpoint.address}/a") for endpoint in (first, second)] == ["one", "two"]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetch(f"http://{first.address}/b")
    finally:
        first.close()
        second.close()
    assert not any(thread.name == "endpoint" for thread in threading.enumerate())
    with pytest.raises(OSError, match="refused"):
        fetch(f"http://{first.address}/a")


def test_a_page_is_not_shown_in_the_name_of_another_that_served_there() -> None:
    first = Endpoint({"/a": lambda: ("text/plain", b"one")}, 0)
    first.close()
    second = Endpoint({"/a": lambda: ("text/plain", b"two")}, first.port)
    try:
        assert second.port == first.port
        assert fetch(f"http://{second.address}/a?token={second.token}") == fetch(f"http://{second.address}/a") == "two"
        for query in (f"token={first.token}", f"token={second.token}&token={first.token}", "token=x"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                fetch(f"http://{second.address}/a?{query}")
    finally:
        second.close()


def test_an_address_that_is_not_ours_is_refused() -> None:
    with pytest.raises(EndpointError, match=r"cannot listen on 192\.0\.2\.1"):
        Endpoint({}, 9200, "192.0.2.1")


def test_targets_as_a_page_and_as_a_file(tmp_path: Path) -> None:
    targets = [Target("127.0.0.1:9200", {"run": "it", "role": "train"})]
    expected = [{"targets": ["127.0.0.1:9200"], "labels": {"run": "it", "role": "train"}}]
    write_targets(tmp_path / "deep" / "it.json", targets)
    assert json.loads((tmp_path / "deep" / "it.json").read_text()) == expected
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["it.json"]
    server = TargetServer(lambda: targets, 0)
    try:
        assert json.loads(fetch(server.url)) == expected
        targets.append(Target("127.0.0.1:9101", {"role": "game"}))
        with urllib.request.urlopen(server.url) as answer:  # Prometheus insists on the type
            assert answer.headers["Content-Type"] == "application/json"
            assert len(json.loads(answer.read())) == 2
    finally:
        server.close()


def test_without_the_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtra, match=r"needs prometheus-client.*aleazero\[track\]"):
        PrometheusSink()


def test_a_scrape_logs_nothing(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    caplog.set_level(logging.INFO)
    endpoint = Endpoint({PATH: PrometheusSink().page}, 0)
    fetch(f"http://{endpoint.address}{PATH}")
    endpoint.close()
    assert caplog.text == ""
    assert capfd.readouterr().err == ""


def test_the_scale_is_that_of_the_catalogue() -> None:
    sink = PrometheusSink()
    sink.emit(examples.selfplay(games_per_second=0.5))
    assert parse(sink.page()[1].decode())["alea_games_per_minute"] == {(): 30.0}
    assert metric_of("games_per_minute").scale == 60.0
