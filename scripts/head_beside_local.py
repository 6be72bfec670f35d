"""Backgammon trained by a head with two workers, and trained locally: as many rows, and the two ratings side by side.

    python scripts/head_beside_local.py [--rows 3000000] [--games 600] [--seed 0] [--folder FOLDER] [--out both.json]
Everything is on this machine, each part in a process of its own, by the commands that a user gives. Both runs have the
same settings, the `quick` preset's network and search, and as many games at once; only who plays differs. Each is rated
against the same opponent, luck taken off as its own network sees it, and they meet each other. Exit code 1 where the
intervals of the two ratings do not overlap.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from aleazero import checkpoint
from aleazero.runs import RunFolder

LANES = 128  # games that each of the two workers plays at once; a local run plays as many as both
PATIENCE_SECONDS = 3600.0


def log(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


class Runs:
    """A folder of runs, and the commands that make them."""

    def __init__(self, root: Path, rows: int, seed: int) -> None:
        self.root = root
        sets = (f"total_rows={rows}", f"seed={seed}", "evaluate.every_rows=0")
        self._settings = ["--preset", "quick", "--device", "cpu", *(w for s in sets for w in ("--set", s))]

    def settings(self, lanes: int) -> list[str]:
        """Of a run whose groups have so many games."""
        return [*self._settings, "--set", f"selfplay.num_games={lanes}"]

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "aleazero.cli.main", *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | environment)

    def run(self, *words: str) -> str:
        """What a command prints, once it has ended well."""
        process = self.start(*words, "--runs", str(self.root))
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
        if process.returncode:
            raise SystemExit(f"exit code {process.returncode}: alea {shlex.join(words)}")
        return said

    def facts(self, name: str) -> dict[str, Any]:
        """What a run has come to, by its reports."""
        reports = RunFolder(self.root / name).read_reports()
        played = [report for report in reports if report["kind"] == "selfplay"]
        rows, games = played[-1]["rows"], played[-1]["games"]
        return {"rows": rows, "games": games, "updates": reports[-1]["step"], "seconds": round(reports[-1]["seconds"])}

    # ---- the two ways

    def local(self) -> None:
        self.run("train", "backgammon", "--name", "local", *self.settings(2 * LANES))

    def head(self) -> None:
        """A head, and two workers that join it by the lines that it and `alea worker token` print."""
        words = ["head", "backgammon", "--run", "head", "--no-evaluator", "--runs", str(self.root)]
        head = self.start(*words, *self.settings(LANES))
        assert head.stdout is not None
        lines = [next(line for line in head.stdout if line.startswith("join it:"))]
        lines.append(self.run("worker", "token", "second", "--run", "head"))
        workers = [self._worker(line) for line in lines]
        said, _ = head.communicate(timeout=PATIENCE_SECONDS)
        codes = [process.wait(60) for process in (head, *workers)]
        if any(codes) or "run head: done" not in said:
            raise SystemExit(f"exit codes {codes} of head and workers; the head said: {said}")

    def slabs_by_worker(self) -> dict[str, int]:
        found = checkpoint.newest(RunFolder(self.root / "head").checkpoints, log)
        assert found is not None
        return {who: sum(last + 1 for last in of.values()) for who, of in found.facts["intake"]["seen"].items()}

    def _worker(self, line: str) -> subprocess.Popen[str]:
        words = line[line.index("alea worker game") :].split()[1:]
        return self.start(*words, "--num-games", str(LANES), "--device", "cpu")

    def rated(self, player: str, opponent: str, games: int) -> dict[str, Any]:
        words = ["--player", player, "--opponent", opponent, "--games", str(games), "--luck", "network"]
        found = json.loads(self.run("eval", "backgammon", *words, "--json"))
        return {key: found[key] for key in ("opponent", "games", "value", "low", "high", "luck")}


def opponent() -> str:
    """Pubeval, where it is installed."""
    try:
        import gnubg_nn  # noqa: F401
    except ImportError:
        return "random"
    return "pubeval"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--games", type=int, default=600, help="of each match")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None, help="where the two runs stay; those there are only rated")
    parser.add_argument("--out", type=Path, default=None, help="what came of it, as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="alea-beside-") as name:
        runs = Runs(given.folder or Path(name), given.rows, given.seed)
        found: dict[str, Any] = {}
        for kind, train in (("local", runs.local), ("head", runs.head)):
            if not (runs.root / kind).exists():
                log(f"{kind}: training")
                train()
            found[kind] = runs.facts(kind)
            log(f"{kind}: {found[kind]}")
        for kind in ("local", "head"):
            found[kind]["rating"] = runs.rated(f"run:{kind}", opponent(), given.games)
            log(f"{kind}: {found[kind]['rating']}")
        found["head"]["slabs_by_worker"] = runs.slabs_by_worker()
        found["head_against_local"] = runs.rated("run:head", "run:local", given.games)
    one, two = found["local"]["rating"], found["head"]["rating"]
    found["overlap"] = one["low"] <= two["high"] and two["low"] <= one["high"]
    print(json.dumps(found, indent=2))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0 if found["overlap"] else 1


if __name__ == "__main__":
    sys.exit(main())
