"""The process that sends: real ones, with a database, a server that hangs, and a run that is killed."""

from __future__ import annotations

import dataclasses
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from aleazero.observe.jsonl import JsonlSink
from aleazero.observe.mlflow_client import connect, local_artifacts, local_uri
from aleazero.runtimes import sender
from aleazero.runtimes.sender import Order, Sender, send_rest
from tests.observe import examples
from tests.observe.pace import assert_not_held_up

pytest.importorskip("mlflow")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*deprecated.*", "ignore::ResourceWarning"),
]

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


def order(root: Path, uri: str, **changes: Any) -> Order:
    run = root / "it"
    run.mkdir(exist_ok=True)
    (run / "config.toml").write_text("game = 'pig'\n")
    plan = {
        **{"uri": uri, "artifacts": local_artifacts(root), "experiment": "pig", "run_name": "it"},
        **{"params": {"seed": "1"}, "tags": {"run": "it"}, "checkpoint_steps": 0, "model": "pig", "judge": ""},
        **{"first_files": [str(run / "config.toml")], "last_files": []},
    }
    return Order("mlflow", str(run), str(root), plan, every_seconds=0.2, **changes)


def the_run(root: Path) -> Any:
    client = connect(local_uri(root))
    experiment = client.get_experiment_by_name("pig")
    (run,) = client.search_runs([experiment.experiment_id])
    return run


def train(run: Path, sink: Sender, seconds: float) -> list[float]:
    """Reports for a while: the seconds that each has taken."""
    journal, taken, end = JsonlSink(run / "metrics.jsonl"), [], time.monotonic() + seconds
    while time.monotonic() < end:
        step = len(taken) + 1
        began = time.perf_counter()
        report = examples.learn(step=step)
        journal.emit(report)
        sink.emit(report)
        taken.append(time.perf_counter() - began)
        time.sleep(0.005)
    journal.emit(examples.run(status="done", step=len(taken)))
    journal.close()
    return taken


@pytest.mark.speed
def test_everything_arrives_and_no_report_waits(tmp_path: Path) -> None:
    given = order(tmp_path, local_uri(tmp_path), patience_seconds=60.0)
    sink = Sender(given)
    taken = train(tmp_path / "it", sink, 4.0)  # while it imports, makes a database and sends
    sink.close()
    sink.close()
    assert_not_held_up(taken)
    run = the_run(tmp_path)
    assert (run.info.status, run.data.params) == ("FINISHED", {"seed": "1"})
    points = connect(local_uri(tmp_path)).get_metric_history(run.info.run_id, "learn/weights_version")
    assert [point.step for point in points] == list(range(1, len(taken) + 1))


@pytest.mark.speed
def test_a_server_that_never_answers_delays_neither_reports_nor_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sender, "GRACE_SECONDS", 2.0)
    with socket.create_server(("127.0.0.1", 0), backlog=50) as silent:
        given = order(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}", patience_seconds=0.5)
        sink = Sender(given)
        taken = train(tmp_path / "it", sink, 2.0)
        began = time.monotonic()
        sink.close()
        assert time.monotonic() - began < 5
    assert_not_held_up(taken)
    assert "alea monitor send it" in caplog.text
    later = dataclasses.replace(given, plan={**given.plan, "uri": local_uri(tmp_path)})
    assert send_rest(later, 60.0)  # the server's place is taken by one that answers
    assert the_run(tmp_path).data.metrics["learn/weights_version"] == len(taken)


def test_a_run_that_is_killed_has_everything_sent_and_leaves_no_process(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    given = order(tmp_path, local_uri(tmp_path), patience_seconds=60.0)
    code = f"""
import json, os, signal
from pathlib import Path
from aleazero.observe.jsonl import JsonlSink
from aleazero.runtimes.sender import Order, Sender
from tests.observe import examples
sink = Sender(Order(**json.loads({json.dumps(dataclasses.asdict(given))!r})))
journal = JsonlSink(Path({str(tmp_path / "it" / "metrics.jsonl")!r}))
for step in range(1, 4):
    journal.emit(examples.learn(step=step))
Path({str(tmp_path / "pid")!r}).write_text(str(sink._process.pid))
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert done.returncode == -9
    number = int((tmp_path / "pid").read_text())
    end = time.monotonic() + 60
    while psutil.pid_exists(number) and psutil.Process(number).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end
        time.sleep(0.05)
    run = the_run(tmp_path)
    assert run.data.metrics["learn/weights_version"] == 3
    assert run.info.status == "KILLED"


def test_one_that_cannot_begin_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = dataclasses.replace(order(tmp_path, "nonsense://"), patience_seconds=5.0)
    sink = Sender(broken)
    train(tmp_path / "it", sink, 0.1)
    sink.close()
    assert "did not take everything" in caplog.text
