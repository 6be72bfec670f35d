"""The same settings trained in one process and on Ray, in turns: rows and games a second of each, and their ratio.

    python scripts/ray_beside_local.py [--game connect_four] [--seconds 60] [--turns 3] [--workers 2] [--out FILE]
Everything is on this machine, by the commands that a user gives. A local run has all the games in one process, which
spreads them over the cores; on Ray every worker has its share of them. What is compiled is kept from turn to turn, and
the first part of every run, until it trains, is left out. Exit code 1 where the ratio of the medians is below 0.85.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from aleazero.observe.jsonl import read_jsonl

LEAST = 0.85
SKIPPED = 0.35  # of a run's time: compiling, and filling the replay


def train(root: Path, name: str, given: argparse.Namespace, *words: str) -> dict[str, float]:
    """What a run of so many seconds brings a second, once it trains."""
    sets = ("total_rows=100000000", "evaluate.every_rows=0", "observe.every_seconds=2", *given.set)
    command = [
        *(sys.executable, "-m", "aleazero.cli.main", "train", given.game, "--preset", given.preset),
        *(word for each in sets for word in ("--set", each)),
        *("--seconds", str(given.seconds), "--name", name, "--runs", str(root), "--device", "cpu", "--json", *words),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ)
    played = [report for report in read_jsonl(root / name / "metrics.jsonl") if report["kind"] == "selfplay"]
    last = played[-1]
    first = next(report for report in played if report["seconds"] >= SKIPPED * last["seconds"])
    seconds = last["seconds"] - first["seconds"]
    return {
        "rows_per_second": (last["rows"] - first["rows"]) / seconds,
        "games_per_second": (last["games"] - first["games"]) / seconds,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--seconds", type=float, default=60.0, help="of every run")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--games", type=int, default=128, help="at once, in all")
    parser.add_argument("--set", action="append", default=[], metavar="a.b=c")
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {"local": [], "ray": []}
    with tempfile.TemporaryDirectory(prefix="alea-ray-") as folder:
        for turn in range(given.turns):
            lanes = f"selfplay.num_games={given.games}"
            found["local"].append(train(Path(folder), f"local-{turn}", given, "--set", lanes))
            share = f"selfplay.num_games={given.games // given.workers}"
            on_ray = ("--runtime", "ray", "--ray.workers", str(given.workers), "--set", share)
            found["ray"].append(train(Path(folder), f"ray-{turn}", given, *on_ray))
            print(json.dumps({kind: runs[-1] for kind, runs in found.items()}), file=sys.stderr, flush=True)
    result: dict[str, Any] = {
        kind: {name: statistics.median(run[name] for run in runs) for name in runs[0]} for kind, runs in found.items()
    }
    result["ratio"] = result["ray"]["games_per_second"] / result["local"]["games_per_second"]
    result["runs"] = found
    print(json.dumps(result, indent=2))
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=2) + "\n")
    return 0 if result["ratio"] >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
