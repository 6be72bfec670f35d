"""`alea ray` and `alea train --runtime ray` as people use them: two nodes on this machine, by the page's own lines."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aleazero import checkpoint
from aleazero.cli.main import run
from aleazero.observe.mlflow_client import connect, local_uri
from aleazero.observe.targets import read_targets
from aleazero.runs import RunFolder
from aleazero.runtimes.desk import run_targets
from aleazero.runtimes.ray.cluster import has_page
from aleazero.runtimes.ray.nodes import stop_all
from tests.frozen.shape import check_file, shape_of
from tests.runtimes.support import TINY, newest, programs  # noqa: F401 - fixture

SECONDS = 300.0  # for a command, on a busy machine
QUICKLY = 25.0  # for what is wrong to be said, on a busy machine


class Machine:
    """A user's shell: a home, and the commands that are given there."""

    def __init__(self, home: Path, programs: Path) -> None:  # noqa: F811
        home.mkdir()
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "ALEA_", "XDG_"))}
        self._environment = kept | {
            "HOME": str(home),
            "JAX_PLATFORMS": "cpu",
            "JAX_COMPILATION_CACHE_DIR": str(programs),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }

    def begin(self, *words: object) -> subprocess.Popen[str]:
        """A command, begun."""
        return subprocess.Popen(
            [sys.executable, "-m", "aleazero.cli.main", *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self._environment, cwd=self.home,
        )  # fmt: skip

    def alea(self, *words: object, fails: bool = False) -> Any:
        """What a command says: its JSON, or why it fails."""
        return finish(self.begin(*words), fails)


def finish(process: subprocess.Popen[str], fails: bool = False) -> Any:
    """What a command that was begun says in the end."""
    said, complained = process.communicate(timeout=SECONDS)
    assert bool(process.returncode) == fails, said + complained
    return complained if fails else json.loads(said)


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture
def machines(tmp_path: Path, programs: Path) -> Iterator[list[Machine]]:  # noqa: F811
    found = [Machine(tmp_path / name, programs) for name in ("head", "worker")]
    yield found
    for machine in found:
        stop_all(machine.home / ".local/share/aleazero/ray")


def eventually(happened: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + SECONDS
    while not (found := happened()):
        assert time.monotonic() < end, f"no {what} within {SECONDS} seconds"
        time.sleep(0.05)
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*deprecated.*", "ignore::ResourceWarning")
def test_two_machines_become_a_cluster_that_trains(
    machines: list[Machine], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], regenerate: bool
) -> None:
    head, worker = machines
    port, dashboard = free_ports(2)
    first = 20_000 + 250 * (os.getpid() % 40)  # below the ports that are given to whoever asks for any
    small = ("--ip", "127.0.0.1", "--cores", "1", "--object-store-gb", "0.1", "--json")
    ports = ("--port", port, "--dashboard-port", dashboard, "--worker-ports", f"{first}-{first + 99}")
    started = head.alea("ray", "head", *ports, *small, "--spill-dir", head.home)
    assert started["join"] == f"alea ray worker --address 127.0.0.1:{port}"
    assert started["dashboard"] == (f"http://127.0.0.1:{dashboard}" if has_page() else "")
    join = [*started["join"].split()[1:], "--worker-ports", f"{first + 100}-{first + 199}"]
    token = worker.home / ".ray" / "auth_token"
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))  # for commands that end before they ask anybody
    assert run(["ray", "head", "--port", str(port)]) == 2
    assert "is taken: Redis often has 6379" in capsys.readouterr().err
    assert run(join) == 1
    assert "has no token" in capsys.readouterr().err
    token.parent.mkdir()
    token.write_text("0" * 64)
    began = time.monotonic()
    assert "does not take this machine's token" in worker.alea(*join, fails=True)
    assert time.monotonic() - began < QUICKLY
    token.write_text(Path(started["token_file"]).read_text())
    joined = worker.alea(*join, *small)

    seen = head.alea("ray", "status", "--address", f"127.0.0.1:{port}", "--json")
    assert [node["alive"] for node in seen["nodes"]] == [True, True]
    check_file("json/ray-head.txt", shape_of(started), regenerate)
    check_file("json/ray-worker.txt", shape_of(joined), regenerate)
    check_file("json/ray-status.txt", shape_of(seen, ("all", "free", "nodes[].resources")), regenerate)
    assert seen["all"]["CPU"] == 2
    a_driver_is_killed_and_another_one_finds_the_players(head, port)
    match = head.begin("eval", "quoridor", "--player", "run:it", "--opponent", "shortest", "--games", "2", "--json")
    stopped = worker.alea("ray", "stop", "--json")
    check_file("json/ray-stop.txt", shape_of(stopped), regenerate)
    assert [node["role"] for node in stopped["stopped"]] == ["worker"]
    assert [node["role"] for node in head.alea("ray", "stop", "--json")["stopped"]] == ["head"]
    rated = finish(match)
    assert (rated["player"], rated["opponent"], rated["games"]) == ("run:it", "shortest", 2)
    assert run(join) == 1
    assert "nothing answers at" in capsys.readouterr().err


def a_driver_is_killed_and_another_one_finds_the_players(head: Machine, port: int) -> None:
    """With an inference server, every sink of this machine, and the verbs of `alea runs`."""
    folder = RunFolder(head.home / "runs/it")
    name = ("it", "--runs", str(head.home / "runs"))
    sets = (
        *(*TINY, "total_rows=1e8", "replay.capacity_rows=8192", "checkpoint.every_rows=1280"),
        "search.kind=direct",  # it compiles faster
        *("observe.tensorboard=true", "observe.prometheus=true", "observe.metrics_port=0", "observe.mlflow=local"),
    )
    driver = head.begin(
        *("train", "quoridor", "--preset", "quick", *(word for each in sets for word in ("--set", each))),
        *("--runtime", "ray", "--ray.address", f"127.0.0.1:{port}", "--ray.inference", "server"),
        *("--ray.workers", "2", "--name", "it", "--json"),
    )

    def sources() -> set[int]:
        found = checkpoint.newest(folder.checkpoints, lambda _: None)
        return set() if found is None else {source for source, _, _ in found.facts["ray"]["taken"]}

    try:
        before = eventually(lambda: driver.poll() is not None or (len(sources()) == 2 and sources()), "slabs of both")
        assert driver.poll() is None, driver.communicate()
        assert run(["runs", "pause", *name]) == 0
        eventually(lambda: quiet(folder), "pause")
        assert run(["runs", "resume", *name]) == 0
        page = f"http://{read_targets(run_targets(head.home / 'runs', 'it'))[0].address}/metrics"
        with urllib.request.urlopen(page, timeout=60) as answer:
            assert b"alea_ray_players 2.0" in answer.read()
    finally:
        driver.kill()
        driver.communicate()
    second = head.begin("runs", "resume", "it", "--json")
    try:
        resumed = eventually(lambda: second.poll() is not None or statuses(folder).count("resumed"), "resumed run")
        assert second.poll() is None, second.communicate()
        step = checkpoint.newest(folder.checkpoints, lambda _: None).step  # type: ignore[union-attr]
        eventually(lambda: folder.read_reports()[-1]["step"] > step, "training")
        assert resumed
        assert run(["runs", "stop", *name]) == 0
        assert finish(second)["status"] == "stopped"
    finally:
        second.kill()
    assert sources() == before  # the same players, with their games
    assert statuses(folder)[-1] == "stopped"
    assert "3 actors of a driver before are still there" in (folder.path / "driver.log").read_text()
    assert list((folder.path / "tensorboard").glob("events*"))
    client = connect(local_uri(head.home / "runs"))
    (kept,) = client.search_runs([each.experiment_id for each in client.search_experiments()])  # of both drivers
    assert (kept.data.tags["run"], kept.data.metrics["ray/players"]) == ("it", 2.0)


def test_in_lock_step_the_command_learns_what_it_learns_without_ray(machines: list[Machine]) -> None:
    """On two cores each has 32 games; a product of 64 rows of 256 numbers would not have the same last bits."""
    sets = (*TINY, "selfplay.num_games=64", "model.width=256", "replay.capacity_rows=4096", "ray.lock_step=true")
    words = ("train", "tictactoe", *(word for each in sets for word in ("--set", each)), "--name", "it", "--json")
    ways = ((), ("--runtime", "ray", "--ray.local", "true"))
    begun = [machine.begin(*words, *way) for machine, way in zip(machines, ways, strict=True)]
    assert [finish(process)["status"] for process in begun] == ["done", "done"]
    plain, far = (newest(RunFolder(machine.home / "runs/it")) for machine in machines)
    assert plain.step == far.step > 0
    for name in plain.arrays:
        if not name.startswith("games"):  # which are the player's
            assert plain.arrays[name].tobytes() == far.arrays[name].tobytes(), name


def statuses(folder: RunFolder) -> list[str]:
    return [report["status"] for report in folder.read_reports() if report["kind"] == "run"]


def quiet(folder: RunFolder) -> bool:
    """Whether nothing is reported any more."""
    size = folder.metrics_file.stat().st_size
    time.sleep(1.0)
    return size == folder.metrics_file.stat().st_size


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ray", "head", "--gpus", "9"], "--gpus is 9; this machine has"),
        (["ray", "head", "--object-store-gb", "0.01"], "Ray needs 0.08 at least"),
        (["ray", "head", "--spill-dir", "/nowhere"], "must be a folder that can be written to"),
        (["ray", "head", "--worker-ports", "12"], "write FIRST-LAST"),
        (["ray", "head", "--port", "70000"], "--port is 70000; it must be from 1 to 65535"),
        (["ray", "status", "--address", "127.0.0.1:70000"], "write auto, or HOST:PORT"),
        (["ray", "head", "--cores", "0"], "--cores is 0; it must be at least 1"),
        (["ray", "status", "--address", "127.0.0.1:1"], "nothing answers at 127.0.0.1:1"),
        (["ray", "status", "--address", "there"], "write auto, or HOST:PORT"),
        (["train", "tictactoe", "--runtime", "ray", "--ray.address", "127.0.0.1:1"], "nothing answers at 127.0.0.1:1"),
        (["train", "tictactoe", "--runtime", "ray", "--ray.workers", "-1"], "workers is -1; it must be at least 0"),
        (["train", "tictactoe", "--runtime", "ray", "--set", "ray.object_store_gb=0.01"], "Ray needs 0.08 at least"),
        (["train", "tictactoe", "--runtime", "ray", "--set", "producers.workers=2"], "leave it 0"),
        (["train", "tictactoe", "--set", "ray.lock_step=true", "--set", "ray.workers=2"], "needs one worker"),
        (
            ["train", "backgammon", "--preset", "quick", "--runtime", "ray", "--ray.inference", "server"],
            "use ray.inference = 'local'",
        ),
    ],
)
def test_what_is_wrong_is_said_at_once(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    began = time.monotonic()
    runs = ["--runs", str(tmp_path)] if words[0] == "train" else []
    assert run([*words, *runs]) in (1, 2)
    assert said in capsys.readouterr().err
    assert time.monotonic() - began < QUICKLY
    assert not list(tmp_path.glob("*/checkpoints"))


@pytest.mark.parametrize("role", [["head"], ["worker", "--address", "127.0.0.1:1"]])
def test_ports_of_ray_that_others_have_are_named(role: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("", 0)) as listening:
        port = listening.getsockname()[1]
        first = port - 2
        assert run(["ray", *role, "--worker-ports", f"{first}-{first + 30}"]) == 2
    assert re.search(rf"and of these [\d, ]*\b{port}\b[\d, ]* are taken", capsys.readouterr().err)


def test_without_ray_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("aleazero.runtimes.desk.find_spec", lambda name: None)
    for words in (["ray", "head"], ["train", "tictactoe", "--runtime", "ray", "--runs", str(tmp_path)]):
        assert run(words) == 1
        assert "pip install 'aleazero[cluster]'" in capsys.readouterr().err
