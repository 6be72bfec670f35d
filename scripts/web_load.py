"""Visitors at `alea web`: how fast moves are answered when many play at once, and whether memory stays flat.

python scripts/web_load.py --visitors 50 --seconds 60 [--game backgammon] [--player bundled,ply=1] [--out FILE.json]

Starts a server of its own. Every visitor plays game after game with random moves, thinks for a second between turns,
and waits for each answer. Prints one JSON object.

A soak: --visitors 8 --think 0.4 --seconds 600; `memory_mb_per_minute` is a line through the later half.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

import numpy as np
import psutil


class Line:
    """One visitor's connection. As little as HTTP needs: visitors share the machine with the server."""

    def __init__(self, address: urllib.parse.SplitResult) -> None:
        self._address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: object = None) -> dict:
        """The answer; RuntimeError where it is a refusal."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._address.hostname, self._address.port)
        reader, writer = self._streams
        sent = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._address.netloc}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
        told = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(told.partition("content-length:")[2].split("\r\n")[0])
        answer = await reader.readexactly(length)
        if told.split()[1][0] != "2":
            raise RuntimeError(f"{method} {path}: {answer[:500]!r}")
        return json.loads(answer)


async def visit(line: Line, options: argparse.Namespace, number: int, end: float) -> list[float]:
    """Seconds from the end of each of a visitor's turns to the answer."""
    lots, took = random.Random(number), []
    while time.monotonic() < end:
        asked = {"game": options.game, "seats": ["human", options.player], "seed": number}
        view = await settled(line, await line.ask("POST", "/api/tables", asked))
        while time.monotonic() < end and not view["over"]:
            while not (view["thinking"] or view["over"]):
                started = time.perf_counter()
                what, body = "end", None
                if not view["waits"]:
                    what, body = "move", {"actions": [lots.choice(view["moves"])["action"]]}
                view = await line.ask("POST", f"/api/tables/{view['id']}/{what}", body)
            view = await settled(line, view)
            took.append(time.perf_counter() - started)
            await asyncio.sleep(lots.uniform(0.5, 1.5) * options.think)
    return took


def growth(memory: list[float], seconds: float) -> float:
    """By how much memory grew in the later half: what is kept of games is full by then."""
    late = memory[len(memory) // 2 :]
    minutes = np.linspace(0, seconds / 120, len(late))
    return round(float(np.polyfit(minutes, late, 1)[0]), 3) if len(late) > 2 else float("nan")


def cpu(process: psutil.Process) -> float:
    """Seconds of processors that a process has used."""
    times = process.cpu_times()
    return times.user + times.system


async def settled(line: Line, view: dict) -> dict:
    while view["thinking"]:
        view = await line.ask("GET", f"/api/tables/{view['id']}?after={view['version']}")
    return view


async def load(url: str, options: argparse.Namespace, server: psutil.Process) -> dict:
    memory: list[float] = []
    lines = [Line(urllib.parse.urlsplit(url)) for _ in range(options.visitors + 1)]
    await visit(lines[0], options, 0, time.monotonic() + options.warm)
    everybody = range(1, options.visitors + 1)
    await asyncio.gather(*(visit(lines[n], options, n, time.monotonic() + options.warm) for n in everybody))
    end = time.monotonic() + options.seconds
    spent = [cpu(process) for process in (server, psutil.Process())]

    async def weigh() -> None:
        while time.monotonic() < end:
            memory.append(server.memory_info().rss / 2**20)
            await asyncio.sleep(max(options.seconds / 60, 1))

    _, *seconds = await asyncio.gather(weigh(), *(visit(lines[n], options, n, end) for n in everybody))
    spent = [cpu(process) - before for process, before in zip((server, psutil.Process()), spent, strict=True)]
    took = [one for visitor in seconds for one in visitor]
    quantiles = np.quantile(took, [0.5, 0.95, 0.99])
    return {
        "game": options.game,
        "player": options.player,
        "visitors": options.visitors,
        "seconds": options.seconds,
        "answers": len(took),
        "answer_seconds": dict(zip(("p50", "p95", "p99"), quantiles.round(4).tolist(), strict=True)),
        "cpu_ms_per_answer": {
            "server": round(1000 * spent[0] / len(took), 1),
            "visitors": round(1000 * spent[1] / len(took), 1),
        },
        "memory_mb": {"first": round(memory[0], 1), "last": round(memory[-1], 1), "most": round(max(memory), 1)},
        "memory_mb_per_minute": growth(memory, options.seconds),
        "cores": os.cpu_count(),
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--warm", type=float, default=20, help="seconds before anything is counted")
    parser.add_argument("--think", type=float, default=1.0, help="seconds a visitor thinks, on average")
    parser.add_argument("--game", default="backgammon")
    parser.add_argument("--player", default="bundled,ply=1")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "ALEA_WEB_TABLES": folder, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "aleazero.cli.main", "web", "--port", "0", "--no-warm"]
        server = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            url = next(line.split()[2] for line in server.stdout if line.startswith("alea web: "))
            report = asyncio.run(load(url, options, psutil.Process(server.pid)))
        finally:
            server.terminate()
            server.wait(30)
    print(json.dumps(report))
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
