"""What the operations desk costs a run: the slowest step beside services that work, hang or are dead; 100,000 points.

    python scripts/desk_cost.py --seconds 20

A step is a multiplication of matrices and three reports, every 10 ms: far more reports than a run makes. Cases take
turns, so that a busy machine is as busy for one as for the other; the case `nobody` says what the machine itself costs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import socket
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from aleazero.observe.endpoint import Endpoint
from aleazero.observe.hardware import HardwareSampler
from aleazero.observe.jsonl import JsonlSink
from aleazero.observe.mlflow_client import local_artifacts, local_uri
from aleazero.observe.prometheus import PATH, PrometheusSink
from aleazero.observe.reports import LearnReport, ReplayReport, Report, SelfPlayReport
from aleazero.observe.sink import Fanout
from aleazero.runtimes.sender import Order, Sender

CADENCE_SECONDS = 5.0  # between two rounds of reports of a run, by default
POINTS = 100_000


def round_of_reports(step: int) -> tuple[Report, ...]:
    """What a run says every few seconds."""
    where = (step, 64 * step, 0.01 * step)
    outcomes, surprise = {"win": 0.5, "loss": 0.5}, {"0.5": 0.1, "0.9": 0.5, "0.99": 0.9}
    return (
        SelfPlayReport(*where, 10 * step, 10, 100.0, 900.0, 9000.0, 9.0, 0.0, 0.1, 0.5, 1.5, outcomes),
        LearnReport(*where, 1.5, {"policy": 1.0, "value": 0.5}, 0.3, 0.001, 64 * step, 6400.0, 100.0, 0.5, 0.4),
        ReplayReport(*where, 9000, 8000, 7000, 900, 0.3, surprise),
    )


@contextlib.contextmanager
def hanging() -> Iterator[int]:
    """The port of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield int(server.getsockname()[1])


def dead_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def order(run: Path, service: Any, uri: str = "") -> Order:
    """What a sender is to do."""
    root = run.parent
    mlflow = {
        **{"uri": uri or local_uri(root), "artifacts": None if uri else local_artifacts(root), "experiment": "it"},
        **{"run_name": run.name, "params": {"seed": "1"}, "tags": {}, "checkpoint_steps": 0, "model": "it"},
        **{"first_files": [str(run / "config.toml")], "last_files": [], "judge": ""},
    }
    mode = "online" if uri else "offline"
    wandb: dict[str, Any] = {"project": "it", "run_name": run.name, "mode": mode, "params": {}, "tags": []}
    plan: dict[str, Any] = mlflow if service == "mlflow" else wandb
    return Order(service, str(run), str(root), plan, every_seconds=1.0, patience_seconds=1.0)


@contextlib.contextmanager
def desk(case: str, run: Path) -> Iterator[Fanout]:
    """The sinks of a case."""
    with contextlib.ExitStack() as stack:
        fanout = Fanout([JsonlSink(run / "metrics.jsonl")])
        if case.startswith("prometheus"):
            page = PrometheusSink()
            endpoint = Endpoint({PATH: page.page}, 0)
            stack.callback(endpoint.close)
            fanout.add(page)
            fanout.add(HardwareSampler(fanout, 1.0))
            over = threading.Event()
            stack.callback(over.set)
            threading.Thread(target=_scrape, args=(endpoint, case, over), daemon=True).start()
        elif case != "nobody":
            service, _, how = case.partition(", ")
            uri = ""
            if how == "hangs":
                uri = f"http://127.0.0.1:{stack.enter_context(hanging())}"
            elif how == "is dead":
                uri = f"http://127.0.0.1:{dead_port()}"
            if uri and service == "wandb":
                os.environ |= {"WANDB_BASE_URL": uri, "WANDB_API_KEY": "0" * 40}
            fanout.add(Sender(order(run, service, uri)))
        stack.callback(fanout.close)
        yield fanout


def _scrape(endpoint: Endpoint, case: str, over: threading.Event) -> None:
    if case.endswith("hangs"):  # clients that connect and say nothing
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(socket.create_connection((endpoint.bind, endpoint.port)))
            over.wait()
    while not over.wait(1.0):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{endpoint.address}{PATH}") as answer:
            answer.read()


def steps(fanout: Fanout, seconds: float) -> list[float]:
    """The milliseconds that every step took."""
    taken: list[float] = []
    matrix, end = np.random.rand(200, 200), time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        matrix @ matrix
        for report in round_of_reports(len(taken)):
            fanout.emit(report)
        taken.append(1e3 * (time.perf_counter() - began))
        time.sleep(0.01)
    return taken


def points_cost(root: Path) -> dict[str, float]:
    """CPU seconds that 100,000 points take: of the run's process, and of the one that sends them."""
    run = root / "points"
    run.mkdir()
    (run / "config.toml").write_text("")
    each = sum(len(report.metrics()) for report in round_of_reports(1))
    rounds = POINTS // each
    sender = Sender(order(run, "mlflow"))
    sink, began = JsonlSink(run / "metrics.jsonl"), time.process_time()
    for step in range(rounds):
        for report in round_of_reports(step):
            sink.emit(report)
    sink.close()
    own, before = time.process_time() - began, _children()
    while _sent(run) < (run / "metrics.jsonl").stat().st_size:
        time.sleep(0.2)
    sender.close()
    run_seconds = rounds * CADENCE_SECONDS
    theirs = _children() - before
    return {
        "points": rounds * each,
        "run_seconds": run_seconds,
        "run_process_cpu_seconds": round(own, 2),
        "run_process_percent": round(100 * own / run_seconds, 4),
        "sender_cpu_seconds": round(theirs, 2),
        "sender_percent_of_a_core": round(100 * theirs / run_seconds, 4),
    }


def _sent(run: Path) -> int:
    state = run / "mlflow.json"
    return int(json.loads(state.read_text())["sent"]["metrics.jsonl"]["bytes"]) if state.exists() else 0


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


CASES = (
    *("nobody", "prometheus", "prometheus hangs", "mlflow", "mlflow, hangs", "mlflow, is dead"),
    *("wandb", "wandb, hangs", "wandb, is dead"),
)


def main() -> int:
    """Parses, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each case")
    parser.add_argument("--turns", type=int, default=2)
    given = parser.parse_args()
    found: dict[str, list[float]] = {case: [] for case in CASES}
    with tempfile.TemporaryDirectory() as place:
        for turn in range(given.turns):
            for case in CASES:
                run = Path(place) / f"{case.replace(', ', '-').replace(' ', '-')}-{turn}"
                run.mkdir()
                (run / "config.toml").write_text("")
                with desk(case, run) as fanout:
                    found[case] += steps(fanout, given.seconds / given.turns)
        print(f"{'case':18} {'steps':>6} {'median ms':>10} {'99.9 % ms':>10} {'slowest ms':>10}")
        for case, taken in found.items():
            ordered = sorted(taken)
            late = ordered[min(int(0.999 * len(ordered)), len(ordered) - 1)]
            print(f"{case:18} {len(ordered):6} {ordered[len(ordered) // 2]:10.2f} {late:10.1f} {ordered[-1]:10.1f}")
        print(json.dumps(points_cost(Path(place)), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
