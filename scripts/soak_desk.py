"""Half an hour of the operations desk with workers joining and leaving: does anything grow?

    python scripts/soak_desk.py --minutes 30 --out soak.json

A real Redis, a real coordinator, a head's desk and real members, each with its page and its hardware sampler, in one
process; somebody scrapes all that the head lists, and the desk's own threads do the rest. No game is played: what is
watched is the exporter, the sampler and the lists. Exit code 1 where memory, threads, files or series have grown.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import random
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil

from aleazero.config import resolve
from aleazero.observe.catalogue import MOST_SERIES
from aleazero.runs import new_run
from aleazero.runtimes.redis.access import HEAD
from aleazero.runtimes.redis.board import Progress, publish_progress
from aleazero.runtimes.redis.coordinator import Coordinator
from aleazero.runtimes.redis.desk import HeadDesk
from aleazero.runtimes.redis.home import Address, Home
from aleazero.runtimes.redis.link import connect
from aleazero.runtimes.redis.member import Member
from aleazero.runtimes.redis.server import RedisServer

WARM_SHARE = 1 / 6  # of the time, until memory counts
MOST_GROWTH_BYTES = 4 * 2**20
SETTINGS = ("observe.prometheus=true", "observe.metrics_port=0", "observe.hardware_seconds=1")


class Worker:
    """A member that joins, shows itself for a while, and leaves well or is never heard of again."""

    def __init__(self, home: Home, url: str, name: str, kind: str) -> None:
        token = home.keyring().token(name)
        self.name, self._kind, self._games = name, kind, 0
        self._link = connect(url, token)
        self._member = Member(self._link, token, kind, self._status)

    def join(self, config: Any) -> None:
        self._member.page.open(config)
        self._member.join(lambda: False, wait=True)

    def _status(self) -> dict[str, Any]:
        self._games += random.randint(1, 50)
        if self._kind == "eval":
            return {"chunks": self._games}
        numbers = {"games": self._games, "rows": 9 * self._games, "version": self._games // 10, "waiting": 1}
        return numbers | {"games_per_minute": random.uniform(1, 500), "rows_per_second": random.uniform(1, 5000)}

    def leave(self, well: bool) -> None:
        if not well:
            self._link.close()  # its thread ends without a word
        self._member.leave()
        self._member.page.close()
        self._link.close()


def scrape(desk: HeadDesk, seen: dict[str, int]) -> None:
    """Once all that the head lists, as Prometheus does."""
    with urllib.request.urlopen(str(desk.url), timeout=10) as answer:
        targets = json.loads(answer.read())
    seen["targets"] = max(seen["targets"], len(targets))
    for target in targets:
        try:
            with urllib.request.urlopen(f"http://{target['targets'][0]}/metrics", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            seen["dead"] += 1
            continue
        names = [line.partition("{")[0].partition(" ")[0] for line in lines if not line.startswith("#")]
        seen["scrapes"] += 1
        seen["series"] = max(seen["series"], max((names.count(name) for name in set(names)), default=0))


def measure(process: psutil.Process, began: float) -> dict[str, float]:
    gc.collect()
    return {
        "seconds": round(time.monotonic() - began, 1),
        "rss_bytes": process.memory_info().rss,
        "threads": process.num_threads(),
        "files": process.num_fds(),
        "objects": len(gc.get_objects()),
    }


def soak(seconds: float, alive: int, names: int, root: Path, url: str, home: Home) -> dict[str, Any]:
    """Runs it; what was seen."""
    config = home.folder.read_config()
    seen = {"targets": 0, "dead": 0, "scrapes": 0, "series": 0, "joined": 0}
    samples: list[dict[str, float]] = []
    process, began, over = psutil.Process(), time.monotonic(), threading.Event()
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(contextlib.closing(connect(url, home.keyring().token(HEAD))))
        desk = stack.enter_context(contextlib.closing(HeadDesk(home, root, config, link)))
        coordinator = Coordinator(home, config, link, desk.evals)
        coordinator.open()
        for number in range(names):
            coordinator.admit(home.keyring().token(f"worker-{number}"))

        def head() -> None:
            while not over.wait(0.25):
                coordinator.tick("running")
                desk.tick(coordinator.registry)

        ticking = threading.Thread(target=head, daemon=True)
        ticking.start()
        workers: list[Worker] = []
        while (now := time.monotonic() - began) < seconds:
            number = seen["joined"]
            publish_progress(link, home.keys, Progress(rows=1000 * number, step=number, backlog_rows=number % 7))
            worker = Worker(home, url, f"worker-{number % names}", "eval" if number % 5 == 4 else "game")
            worker.join(config)
            workers.append(worker)
            seen["joined"] += 1
            if len(workers) > alive:
                workers.pop(0).leave(well=number % 4 != 3)
            scrape(desk, seen)
            if not samples or now - samples[-1]["seconds"] >= 10:
                samples.append(measure(process, began))
            time.sleep(1.0)
        for worker in workers:
            worker.leave(well=True)
        over.set()
        ticking.join()
    return {"seen": seen, "samples": samples}


def verdict(found: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Growth from the first stretch after warming up to the last one, of the same length."""
    settled = [sample for sample in found["samples"] if sample["seconds"] >= seconds * WARM_SHARE]
    part = max(len(settled) // 5, 1)

    def mean(samples: list[dict[str, float]], field: str) -> float:
        return sum(sample[field] for sample in samples) / len(samples)

    growth = {
        field: mean(settled[-part:], field) - mean(settled[:part], field)
        for field in ("rss_bytes", "threads", "files", "objects")
    }
    flat = growth["rss_bytes"] < MOST_GROWTH_BYTES and growth["threads"] < 5 and growth["files"] < 10
    return {"growth": growth, "flat": flat and found["seen"]["series"] <= MOST_SERIES}


def main() -> int:
    """Parses, runs, says what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--alive", type=int, default=8, help="workers at a time")
    parser.add_argument("--names", type=int, default=48, help="tokens that they use in turn")
    parser.add_argument("--out", type=Path, help="everything measured, as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        root = Path(place)
        folder = new_run(root, "soak", "")
        folder.write_config(resolve("tictactoe", preset="quick", assignments=SETTINGS))
        home = Home(folder)
        server = RedisServer(home.path, home.keyring().token(HEAD))
        server.start()
        stack.callback(server.stop)
        home.write_address(Address(server.url, server.url, None, "here", 1))
        found = soak(given.minutes * 60, given.alive, given.names, root, server.url, home)
    found |= {"minutes": given.minutes, **verdict(found, given.minutes * 60)}
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps({name: found[name] for name in ("minutes", "seen", "growth", "flat")}, indent=1))
    return 0 if found["flat"] else 1


if __name__ == "__main__":
    sys.exit(main())
