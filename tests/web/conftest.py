"""A real server in a process of its own, on a free port, with folders of its own; and a real browser."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

PATIENCE = float(os.environ.get("ALEA_PATIENCE", "180"))  # seconds; a busy machine is slow

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--disable-lcd-text",
    "--hide-scrollbars",
    "--mute-audio",
]
NewPage = Callable[..., Page]


class Server:
    """`alea web`, started and stopped."""

    def __init__(self, folder: Path, *options: str, port: str = "0") -> None:
        self.folder = folder
        env = {**os.environ, "ALEA_WEB_TABLES": str(folder / "tables"), "PYTHONUNBUFFERED": "1", "JAX_PLATFORMS": "cpu"}
        env |= {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # compiling is most of what it does here
        env |= {"ALEA_BALATRO_PLAIN": "1"}  # compiled it does the same, and is compiled in other tests
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


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    """The one browser of a session: where it listens."""
    assert CHROMIUM
    own = ["--headless", "--remote-debugging-port=0", f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"]
    command = [CHROMIUM, *FLAGS, *own]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        try:
            said = next(line for line in process.stderr if line.startswith("DevTools listening on "))
            rest = threading.Thread(target=process.stderr.read, daemon=True)  # or else it would wait to be read
            rest.start()
            yield said.split()[-1]
        finally:
            os.killpg(process.pid, signal.SIGKILL)
        rest.join()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Generator[Browser, None, None]:
    """Playwright's loop keeps tests of other modules from running theirs, so it does not stay."""
    with sync_playwright() as playwright:
        yield playwright.chromium.connect_over_cdp(chromium)


@pytest.fixture
def new_page(browser: Browser, server: Server) -> Generator[NewPage, None, None]:
    """Pages that fail the test if anything is asked of another host, or a script fails."""
    opened, trouble = [], []

    def make(**options: Any) -> Page:
        context = browser.new_context(**options)
        context.set_default_timeout(PATIENCE * 1000)
        page = context.new_page()
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda request: request.url.startswith(server.url) or trouble.append(request.url))
        opened.append(context)
        return page

    yield make
    for context in opened:
        context.close()
    assert trouble == []


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
