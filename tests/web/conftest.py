"""A real server in a process of its own, on a free port, with folders of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import httpx
import pytest

PATIENCE = float(os.environ.get("ALEA_PATIENCE", "180"))  # seconds; a busy machine is slow


class Server:
    """`alea web`, started and stopped."""

    def __init__(self, folder: Path, *options: str, port: str = "0") -> None:
        self.folder = folder
        env = {**os.environ, "ALEA_WEB_TABLES": str(folder / "tables"), "PYTHONUNBUFFERED": "1", "JAX_PLATFORMS": "cpu"}
        env.pop("ALEA_RUNS", None)
        command = [sys.executable, "-m", "aleazero.cli.main", "web", "--port", port, "--no-warm"]
        command += ["--runs", str(folder / "runs"), *options]
        (folder / "runs").mkdir(parents=True, exist_ok=True)
        self.log = folder / f"log-{len(list(folder.glob('log-*')))}"
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.url = self._address()

    def _address(self) -> str:
        found: list[str] = []

        def read() -> None:
            assert self.process.stdout is not None
            for line in self.process.stdout:
                if line.startswith("alea web: "):
                    found.append(line.split()[2])
                    return

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        reader.join(PATIENCE)
        assert found, f"the server did not start: {self.log.read_text()}"
        return found[0]

    def client(self, **more: object) -> httpx.Client:
        return httpx.Client(base_url=self.url.partition("?")[0], timeout=PATIENCE, **more)  # type: ignore[arg-type]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@contextlib.contextmanager
def serving(folder: Path, *options: str, port: str = "0") -> Iterator[Server]:
    server = Server(folder, *options, port=port)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server, None, None]:
    folder = tmp_path_factory.mktemp("web")
    make_run(folder / "runs" / "first")
    with serving(folder) as found:
        yield found


@pytest.fixture(scope="session")
def client(server: Server) -> Generator[httpx.Client, None, None]:
    with server.client() as found:
        yield found


def make_run(folder: Path, reports: int = 6) -> None:
    """A run that has reported some things."""
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('game = "tictactoe"\n')
    with (folder / "metrics.jsonl").open("w") as file:
        for step in range(reports):
            file.write(report(step))


def report(step: int) -> str:
    where = {"step": step, "rows": 100 * step, "seconds": float(step), "time": 1.7e9 + step}
    learned = {"kind": "learn", "loss": 2.0 / (step + 1), "losses": {"policy": 1.0}, "learning_rate": 0.1, **where}
    match = {"kind": "eval", "player": "run:first", "opponent": "random", "games": 10, "score": 0.6, **where}
    match |= {"score_low": 0.4, "score_high": 0.8, "points_per_game": 0.2, "points_low": 0.0, "points_high": 0.4}
    return json.dumps(learned) + "\n" + json.dumps(match) + "\n"
