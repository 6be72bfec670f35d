"""A run in MLflow: a real database, read back through MLflow's own client; servers that hang, are dead or come back."""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aleazero.core.errors import ConfigError, UnknownName
from aleazero.observe.follow import Follower
from aleazero.observe.jsonl import JsonlSink
from aleazero.observe.mlflow import MlflowBackend, MlflowPlan
from aleazero.observe.mlflow_client import artifacts_of, connect, local_artifacts, local_uri
from aleazero.registry import RegistryError, registered_folder
from aleazero.shelf import Shelf
from tests.observe import examples

pytest.importorskip("mlflow")
pytest.importorskip("sqlalchemy")
pytest.importorskip("alembic")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*deprecated.*", "ignore::ResourceWarning"
    ),
]

PATIENCE = 60.0


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One database for all tests: making it takes a second."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("MLFLOW_TRACKING_URI", "ALEA_MLFLOW_URL"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def run(root: Path, request: pytest.FixtureRequest) -> Path:
    folder = root / request.node.name.partition("[")[0]
    folder.mkdir()
    (folder / "config.toml").write_text("game = 'pig'\n")
    return folder


def write(step: int, into: Path) -> None:
    (into / "manifest.json").write_text(json.dumps({"step": step}))


def plan(root: Path, run: Path, **changes: Any) -> MlflowPlan:
    fields: dict[str, Any] = {
        "uri": local_uri(root),
        "artifacts": local_artifacts(root),
        "experiment": "pig",
        "run_name": run.name,
        "params": {f"some.setting_{number}": str(number) for number in range(150)},
        "tags": {"game": "pig", "run": run.name},
        "checkpoints": run / "checkpoints",
        "first_files": [run / "config.toml"],
        "last_files": [run / "curves.svg", run / "missing.svg"],
        "checkpoint_steps": 1000,
        "model": run.name,
        "judge": "random",
        "export": write,
    }
    return MlflowPlan(**{**fields, **changes})


def follow(run: Path, made: MlflowPlan, **options: float) -> Follower:
    options = {"every_seconds": 0.05, "patience_seconds": PATIENCE, **options}
    return Follower(run / "metrics.jsonl", run / "mlflow.json", MlflowBackend(made), **options)


def emit(run: Path, *reports: Any) -> None:
    sink = JsonlSink(run / "metrics.jsonl")
    for report in reports:
        sink.emit(report)
    sink.close()


def run_id(run: Path) -> str:
    return json.loads((run / "mlflow.json").read_text())["backend"]["run_id"]


def files(client: Any, run: Path, folder: str | None = None) -> set[str]:
    return {entry.path for entry in client.list_artifacts(run_id(run), folder)}


def checkpoint(run: Path, step: int) -> Any:
    path = run / "checkpoints" / f"{step:012d}"
    path.mkdir(parents=True, exist_ok=True)
    (path / "weights.safetensors").write_bytes(b"%d" % step)
    return examples.checkpoint(step=step, path=str(path))


def test_a_run_and_its_going_on_are_one_run(root: Path, run: Path) -> None:
    (run / "curves.svg").write_text("<svg/>")
    emit(run, examples.run(), examples.learn(step=3, loss=0.25), examples.replay(step=3), examples.match(step=3))
    emit(run, *(checkpoint(run, step) for step in (300, 900, 1100, 1900, 2000)), examples.run(status="stopped"))
    follow(run, plan(root, run)).close()
    client = connect(local_uri(root))
    first = client.get_run(run_id(run))
    assert (first.info.status, first.info.run_name) == ("KILLED", run.name)
    assert first.data.params == {f"some.setting_{number}": str(number) for number in range(150)}
    assert first.data.metrics["learn/loss"] == 0.25
    assert first.data.metrics["learn/losses/policy"] == 1.0
    assert first.data.metrics["learn/weights_version"] == 3
    assert first.data.metrics["eval/random/score"] == 0.75
    assert first.data.metrics["replay/rows_held"] == 90
    assert files(client, run) == {"config.toml", "curves.svg", "checkpoints", "champion"}
    kept = files(client, run, "checkpoints")
    assert kept == {f"checkpoints/{step:012d}" for step in (300, 1100, 2000)}  # the first of every thousand

    emit(run, examples.run(status="resumed", step=3), examples.learn(step=4, loss=0.125), examples.run(status="done"))
    follow(run, plan(root, run, params={"some.setting_1": "7", "new": "8"})).close()
    second = client.get_run(run_id(run))
    assert second.info.run_id == first.info.run_id
    assert second.info.status == "FINISHED"
    assert [(p.step, p.value) for p in client.get_metric_history(run_id(run), "learn/loss")] == [(3, 0.25), (4, 0.125)]
    assert second.data.params["some.setting_1"] == "1"
    assert second.data.tags["resumed.some.setting_1"] == "7"
    assert second.data.params["new"] == "8"
    assert len(client.search_runs([second.info.experiment_id], f"tags.run = '{run.name}'")) == 1


def test_a_run_that_somebody_deleted_goes_on_and_one_of_another_server_begins_anew(root: Path, run: Path) -> None:
    emit(run, examples.learn(step=1))
    follow(run, plan(root, run)).close()
    first, client = run_id(run), connect(local_uri(root))
    client.delete_run(first)
    follow(run, plan(root, run)).close()
    assert run_id(run) == first
    assert client.get_run(first).info.lifecycle_stage == "active"
    state = json.loads((run / "mlflow.json").read_text())
    state["backend"]["run_id"] = "0" * 32
    (run / "mlflow.json").write_text(json.dumps(state))
    emit(run, examples.learn(step=2))
    follow(run, plan(root, run)).close()
    assert client.get_run(run_id(run)).data.metrics["learn/loss"] == 1.5
    assert run_id(run) not in (first, "0" * 32)


def test_the_best_weights_become_the_champion_and_lesser_ones_do_not(root: Path, run: Path) -> None:
    matches = [(100, 0.5), (200, 0.75), (300, 0.6)]
    emit(run, *(examples.match(step=step, score=score) for step, score in matches))
    emit(run, examples.match(step=300, score=1.0, opponent="pubeval"))  # not the judge
    follow(run, plan(root, run, model="mine")).close()
    client = connect(local_uri(root))
    champion = client.get_model_version_by_alias("mine", "champion")
    assert (champion.tags["step"], champion.tags["score"], champion.run_id) == ("200", "0.75", run_id(run))
    assert json.loads((registered_folder("mine@champion", root) / "manifest.json").read_text()) == {"step": 200}
    assert registered_folder("mine", root) == registered_folder("mine@champion", root)

    worse, better = root / "worse", root / "better"
    for folder, score in ((worse, 0.7), (better, 0.8)):
        folder.mkdir()
        (folder / "config.toml").write_text("")
        emit(folder, examples.match(step=50, score=score))
        follow(folder, plan(root, folder, model="mine")).close()
        champion = client.get_model_version_by_alias("mine", "champion")
        assert (champion.tags["run"] == folder.name) == (folder is better)
    assert len(client.search_model_versions("name = 'mine'")) == 3
    follow(better, plan(root, better, model="mine")).close()  # nothing new: no new version
    assert len(client.search_model_versions("name = 'mine'")) == 3

    with pytest.raises(UnknownName, match=r"'champoin'.*did you mean 'champion'"):
        registered_folder("mine@champoin", root)
    with pytest.raises(UnknownName, match=r"'mien'.*did you mean 'mine'"):
        registered_folder("mien", root)
    with pytest.raises(ConfigError, match="names no model"):
        registered_folder("@champion", root)


def test_where_nothing_is_registered_it_says_how_to(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="train a run that is measured"):
        registered_folder("pig", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_shelf_hides_no_model_of_mlflow_and_has_those_that_mlflow_has_not(
    root: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emit(run, examples.match(step=100, score=1.0))
    follow(run, plan(root, run, model="both")).close()
    connect(local_uri(root)).set_registered_model_alias("both", "mine", "1")
    for name in ("both", "shelved"):
        Shelf(root, name).add(lambda into: write(7, into), {"opponent": "random", "score": 1.0})
    for text, step in (("both@champion", 100), ("both@mine", 100), ("both", 100), ("shelved", 7), ("shelved@1", 7)):
        assert json.loads((registered_folder(text, root) / "manifest.json").read_text()) == {"step": step}
    with pytest.raises(UnknownName, match=r"'shelvd'.*did you mean 'shelved'"):
        registered_folder("shelvd", root)
    monkeypatch.setattr("aleazero.observe.mlflow_client.find_spec", lambda name: None)  # no MLflow: files need none
    assert json.loads((registered_folder("both", root) / "manifest.json").read_text()) == {"step": 7}


def test_a_server_by_a_wrong_address_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALEA_MLFLOW_URL", "garbage://x")
    with pytest.raises(RegistryError, match="garbage"):
        registered_folder("pig", root)


def test_another_server_gets_everything_and_the_first_one_its_own_run_again(root: Path, run: Path) -> None:
    emit(run, examples.learn(step=1, loss=0.5), checkpoint(run, 300), examples.match(step=300, score=0.5))
    follow(run, plan(root, run)).close()
    first, client = run_id(run), connect(local_uri(root))
    emit(run, examples.learn(step=2, loss=0.25))
    elsewhere = f"sqlite:///{root}/elsewhere/other.db"
    follow(run, plan(root, run, uri=elsewhere, artifacts=artifacts_of(elsewhere))).close()
    other, second = connect(elsewhere), run_id(run)
    assert second != first
    assert [point.step for point in other.get_metric_history(second, "learn/loss")] == [1, 2]
    assert files(other, run, "checkpoints") == {f"checkpoints/{300:012d}"}
    assert other.get_run(second).info.artifact_uri.startswith((root / "elsewhere").as_uri())
    assert len(other.search_model_versions(f"name = '{run.name}'")) == 1
    emit(run, examples.learn(step=3, loss=0.125))
    follow(run, plan(root, run)).close()
    assert run_id(run) == first
    assert [point.step for point in client.get_metric_history(first, "learn/loss")] == [1, 2, 3]
    assert len(client.search_model_versions(f"name = '{run.name}'")) == 1


def test_checkpoints_are_found_from_wherever_the_rest_is_sent(
    root: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint(run, 300)
    emit(run, examples.checkpoint(step=300, path=f"runs/{run.name}/checkpoints/{300:012d}"))
    monkeypatch.chdir(tmp_path)
    follow(run, plan(root, run)).close()
    assert files(connect(local_uri(root)), run, "checkpoints") == {f"checkpoints/{300:012d}"}


def test_a_checkpoint_that_was_dropped_and_weights_that_are_gone_are_no_failure(
    root: Path, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def gone(step: int, into: Path) -> None:
        raise FileNotFoundError("checkpoint 10 is gone")

    emit(run, examples.checkpoint(step=10, path=str(run / "nowhere")), examples.match(), examples.run(status="failed"))
    follow(run, plan(root, run, export=gone)).close()
    client = connect(local_uri(root))
    assert client.get_run(run_id(run)).info.status == "FAILED"
    assert "are not registered: checkpoint 10 is gone" in caplog.text
    assert "cannot be reached" not in caplog.text


def test_where_the_best_weights_are_in_no_checkpoint_the_next_best_are_registered(root: Path, run: Path) -> None:
    def some(step: int, into: Path) -> None:
        if step != 200:
            raise FileNotFoundError(f"no checkpoint of step {step}")
        write(step, into)

    emit(run, *(examples.match(step=100 * n, score=score) for n, score in enumerate((0.5, 0.9, 0.7, 0.6))))
    emit(run, *(examples.match(step=1000 + n, score=0.8 + n / 1000) for n in range(8)))
    follow(run, plan(root, run, model="some", export=some)).close()
    champion = connect(local_uri(root)).get_model_version_by_alias("some", "champion")
    assert (champion.tags["step"], champion.tags["score"]) == ("200", "0.7")


def test_names_that_mlflow_does_not_take_are_mended(root: Path, run: Path) -> None:
    emit(run, examples.selfplay(outcomes={"won (by 2)": 0.5}), examples.match(opponent="gnubg:ply=2;noise=0.06"))
    follow(run, plan(root, run)).close()
    metrics = connect(local_uri(root)).get_run(run_id(run)).data.metrics
    assert metrics["selfplay/outcomes/won _by 2_"] == 0.5
    assert metrics["eval/gnubg:ply_2_noise_0.06/score"] == 0.75


def test_a_hundred_thousand_points_cost_far_less_than_a_hundredth_of_the_time_they_take_to_come(
    root: Path, run: Path
) -> None:
    cycle = (examples.selfplay(), examples.learn(), examples.replay())
    points = sum(len(report.metrics()) for report in cycle)
    cycles = 100
    emit(run, *(report for _ in range(cycles) for report in cycle))
    connect(local_uri(root)).search_experiments()  # importing and migrating are not a matter of points
    began = time.process_time()
    follow(run, plan(root, run)).close()
    each = (time.process_time() - began) / (cycles * points)
    run_seconds = 100_000 / points * 5.0  # at the default cadence
    assert 100_000 * each < 0.01 * run_seconds / 3


def test_a_process_that_is_killed_while_it_makes_the_database_leaves_none(tmp_path: Path) -> None:
    uri = local_uri(tmp_path)
    code = f"from aleazero.observe.mlflow_client import connect; connect({uri!r})"
    child = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code])
    folder, end = tmp_path / ".desk", time.monotonic() + 60
    while not any(file.stat().st_size for file in folder.glob(".mlflow.db.*.new")):
        assert time.monotonic() < end
        assert child.poll() is None
        time.sleep(0.005)
    child.kill()
    child.wait()
    assert not (folder / "mlflow.db").exists()
    assert connect(uri).create_experiment("it")
    assert (folder / "mlflow.db").exists()


# Servers.


class Tracking(http.server.BaseHTTPRequestHandler):
    """As much of MLflow's REST interface as a run needs."""

    points: list[tuple[str, int]]
    artifacts: str

    def do_GET(self) -> None:
        if "experiments/get-by-name" in self.path:
            self._say({"experiment": {"experiment_id": "1", "name": "pig", "lifecycle_stage": "active"}})
        else:
            self._say({"run": self._run()})

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("log-batch"):
            self.points += [(metric["key"], metric["step"]) for metric in given.get("metrics", ())]
        self._say({"run": self._run()} if self.path.endswith("create") else {"run_info": self._run()["info"]})

    def _run(self) -> dict[str, Any]:
        names = {"run_id": "abc", "experiment_id": "1", "status": "RUNNING", "lifecycle_stage": "active"}
        return {"info": {**names, "run_uuid": "abc", "artifact_uri": self.artifacts}, "data": {}}

    def _say(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield server


def report(run: Path, count: int) -> None:
    """Steps of a run, at a pace."""
    sink = JsonlSink(run / "metrics.jsonl")
    for step in range(count):
        sink.emit(examples.learn(step=step))
        time.sleep(0.002)
    sink.close()


def test_a_server_that_hangs_and_comes_back(
    run: Path, silent: socket.socket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    port = silent.getsockname()[1]
    follower = follow(run, plan(run, run, uri=f"http://127.0.0.1:{port}", artifacts=None, judge=""))
    report(run, 800)
    _until(lambda: "cannot be reached" in caplog.text)
    silent.close()
    handler = type("Handler", (Tracking,), {"points": [], "artifacts": (run / "artifacts").as_uri()})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        _until(lambda: ("learn/loss", 799) in handler.points)
        follower.close()
    finally:
        server.shutdown()
        server.server_close()
    losses = [step for key, step in handler.points if key == "learn/loss"]
    assert losses == list(range(800))
    assert caplog.text.count("cannot be reached") == 1
    assert "is back" in caplog.text


def test_a_server_that_is_dead_does_not_delay_the_end(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    follower = follow(run, plan(run, run, uri=f"http://127.0.0.1:{port}", artifacts=None), patience_seconds=1.0)
    report(run, 300)
    began = time.monotonic()
    follower.close()
    assert time.monotonic() - began < 5
    assert caplog.text.count("cannot be reached") == 1
    assert "alea monitor send" in caplog.text


def _until(happened: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)
