"""`alea ray` and `alea train --runtime ray` as people use them: two nodes on this machine, by the page's own lines."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aleazero.cli.main import run
from aleazero.observe.jsonl import read_jsonl
from tests.runtimes.support import TINY, programs  # noqa: F401 - fixture

SECONDS = 150.0
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

    def alea(self, *words: object, fails: bool = False) -> Any:
        """What a command says: its JSON, or why it fails."""
        command = [sys.executable, "-m", "aleazero.cli.main", *map(str, words)]
        done = subprocess.run(
            command, capture_output=True, text=True, env=self._environment, timeout=SECONDS, cwd=self.home
        )
        assert bool(done.returncode) == fails, done.stdout + done.stderr
        return done.stderr if fails else json.loads(done.stdout)


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
        machine.alea("ray", "stop", "--json")


def test_two_machines_become_a_cluster_that_trains(machines: list[Machine]) -> None:
    head, worker = machines
    port, dashboard = free_ports(2)
    small = ("--ip", "127.0.0.1", "--cores", "1", "--object-store-gb", "0.1", "--json")
    started = head.alea(
        *("ray", "head", "--port", port, "--dashboard-port", dashboard, "--worker-ports", "21000-21100", *small)
    )
    assert started["join"] == f"alea ray worker --address 127.0.0.1:{port}"
    assert started["dashboard"] == f"http://127.0.0.1:{dashboard}"
    join = started["join"].split()[1:]
    assert "is taken: Redis often has 6379" in head.alea("ray", "head", "--port", port, fails=True)

    assert "has no token" in worker.alea(*join, fails=True)
    token = worker.home / ".ray" / "auth_token"
    token.parent.mkdir()
    token.write_text("0" * 64)
    began = time.monotonic()
    assert "does not take this machine's token" in worker.alea(*join, fails=True)
    assert time.monotonic() - began < QUICKLY
    token.write_text(Path(started["token_file"]).read_text())
    worker.alea(*join, "--worker-ports", "21200-21300", *small)

    seen = head.alea("ray", "status", "--address", f"127.0.0.1:{port}", "--json")
    assert [node["alive"] for node in seen["nodes"]] == [True, True]
    assert seen["all"]["CPU"] == 2
    sets = [word for each in (*TINY, "replay.capacity_rows=4096") for word in ("--set", each)]
    trained = head.alea(
        *("train", "tictactoe", "--preset", "quick", *sets, "--runtime", "ray", "--ray.address", f"127.0.0.1:{port}"),
        *("--ray.workers", "2", "--name", "it", "--json"),
    )
    assert trained["status"] == "done"
    told = [record for record in read_jsonl(head.home / "runs/it/metrics.jsonl") if record["kind"] == "ray"]
    assert told[-1]["players"] == 2
    stopped = worker.alea("ray", "stop", "--json")["stopped"]
    assert [node["role"] for node in stopped] == ["worker"]
    assert [node["role"] for node in head.alea("ray", "stop", "--json")["stopped"]] == ["head"]
    assert "nothing answers at" in worker.alea(*join, fails=True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ray", "head", "--gpus", "9"], "--gpus is 9; this machine has"),
        (["ray", "head", "--object-store-gb", "0.01"], "Ray needs 0.08 at least"),
        (["ray", "head", "--spill-dir", "/nowhere"], "must be a folder that can be written to"),
        (["ray", "head", "--worker-ports", "12"], "write FIRST-LAST"),
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


def test_without_ray_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("aleazero.runtimes.desk.find_spec", lambda name: None)
    for words in (["ray", "head"], ["train", "tictactoe", "--runtime", "ray", "--runs", str(tmp_path)]):
        assert run(words) == 1
        assert "pip install 'aleazero[ray]'" in capsys.readouterr().err
