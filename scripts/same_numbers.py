"""Compare the numbers of two commits: short seeded trainings, matches and ratings, bit for bit, on this machine.

    python scripts/same_numbers.py main                    main against the working tree as it is
    python scripts/same_numbers.py main HEAD               two commits
    python scripts/same_numbers.py main --only pig backgammon
    python scripts/same_numbers.py --list                  the cases

Each commit is checked out into a worktree of its own, which is removed at the end, also after Ctrl-C. Both sides are
run by the command line alone, with the Python that runs this script, so that modules may move between the two commits.
Compared are the arrays and counts of every checkpoint, the games in the replay log, the reports in metrics.jsonl
without times and rates, and what commands answer with `--json`. Nothing is stored: only like CPUs give equal bits.

The exit code is 0 if everything is the same, and 1 if anything differs or a command fails. Programs are compiled
without XLA's expensive passes, which is faster; JAX_DISABLE_MOST_OPTIMIZATIONS=0 turns them on.

What is not reproducible from run to run is left out. Producers play while the learner learns, so which weights play
which games depends on the machine: in that case nothing is learned, and the first games of each producer are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy

ROOT = Path(__file__).resolve().parents[1]
RUNS = "runs"  # where the commands of a case keep their runs, below the case's own folder
RECORD = struct.Struct("<8sQQII")  # of a replay log: magic, number, bytes that follow, two checksums

# Keys of reports, of a checkpoint's facts and of answers that are times, rates, places or names of a version.
CHANGING = (
    *("time", "seconds", "command", "package_version", "config", "device", "program", "machine", "memory_cap_bytes"),
    *("_seconds", "_per_second", "_per_hour", "_per_minute", "_share", "_bytes", "_percent"),
)
KINDS_LEFT_OUT = ("hardware", "producers", "ray")  # reports of the machine alone

Values = dict[str, Any]  # "file: key" -> an array, a number or a text


class Step(NamedTuple):
    """One command line; with an `answer`, its JSON is compared under that name."""

    line: str
    answer: str = ""


class Case(NamedTuple):
    """Commands that are run one after the other in one folder."""

    steps: tuple[Step, ...]
    environment: Mapping[str, str] = {}
    equal: tuple[str, str] | None = None  # two runs of the case whose last checkpoints must be the same on each side
    by_producer: bool = False  # compare the first games of each producer, and nothing else


def train(game: str, *settings: str, name: str = "it", preset: str = "quick", seed: int = 3, more: str = "") -> Step:
    """Return the command that trains a run."""
    sets = " ".join(f"--set {each}" for each in settings)
    return Step(f"train {game} --preset {preset} --name {name} --runs {RUNS} --seed {seed} --json {sets} {more}")


# Eight iterations of 128 rows, two checkpoints, two matches.
SEARCH = (
    *("total_rows=1024", "model.width=16", "model.blocks=1", "search.max_simulations=8"),
    *("selfplay.num_games=16", "selfplay.moves_per_rollout=8", "selfplay.fast_simulations=4"),
    *("replay.capacity_rows=2048", "replay.min_rows=256", "learn.batch_size=32", "learn.learning_rate.warmup_rows=0"),
    *("evaluate.opponents=random", "evaluate.games=8", "evaluate.every_rows=512", "evaluate.simulations=4"),
    *("checkpoint.every_rows=512", "observe.every_seconds=0"),
)
PPO = (
    *("total_rows=512", "model.width=16", "model.blocks=1", "selfplay.num_games=8", "selfplay.moves_per_rollout=16"),
    *("learn.batch_size=32", "ppo.epochs=2", "learn.learning_rate.warmup_rows=0", "evaluate.games=4"),
    *("evaluate.every_rows=256", "checkpoint.every_rows=256", "observe.every_seconds=0"),
)
STEADY = (*SEARCH, "learn.learning_rate.start=0.01", "learn.learning_rate.end=0.01")  # the same whenever it ends
PLAIN = {"ALEA_BALATRO_PLAIN": "1"}  # nothing to compile

CASES: dict[str, Case] = {
    "tictactoe-policy": Case((train("tictactoe", *SEARCH, "search.kind=direct"),)),
    "tictactoe-gumbel": Case((train("tictactoe", *SEARCH),)),
    "tictactoe-puct": Case(
        (train("tictactoe", *SEARCH, "search.kind=puct", "search.reuse=true", "selfplay.epsilon=0.1"),)
    ),
    "connect-four-gumbel": Case(
        (train("connect_four", *SEARCH, "learn.ema=0.9", "replay.surprise=0.5", "model.moves_left=true"),)
    ),
    "connect-four-puct": Case((train("connect_four", *SEARCH, "search.kind=puct", "model.kind=mlp"),)),
    "pig": Case((train("pig", *SEARCH, "selfplay.num_games=8", "replay.capacity_rows=16384"),)),
    "backgammon": Case(
        (
            train(
                "backgammon",
                *("total_rows=1024", "model.width=16", "selfplay.num_games=8", "selfplay.moves_per_rollout=16"),
                *("replay.capacity_rows=512", "replay.min_rows=200", "replay.log=true", "learn.batch_size=32"),
                *("evaluate.games=4", "evaluate.every_rows=512", "checkpoint.every_rows=512"),
                *("learn.learning_rate.warmup_rows=0", "observe.every_seconds=0"),
            ),
        )
    ),
    "tictactoe-ppo": Case((train("tictactoe", *PPO, "evaluate.opponents=random", "ppo.opponents=2", preset="ppo"),)),
    "cartpole-ppo": Case((train("gym:CartPole-v1", *PPO, "model.history=2"),)),
    "balatro-ppo": Case(
        (
            train(
                "balatro",
                *(*PPO, "total_rows=128", "selfplay.num_games=4", "selfplay.moves_per_rollout=8"),
                *("evaluate.games=2", "evaluate.every_rows=0", "checkpoint.every_rows=64"),
                *("ppo.teacher=greedy", "ppo.teacher_rows=32"),
            ),
        ),
        environment=PLAIN,
    ),
    "rllib": Case(
        (
            train(
                "balatro",
                *("runtime=rllib", "total_rows=128", "model.kind=balatro", "model.width=16", "ray.workers=1"),
                *("selfplay.num_games=8", "selfplay.moves_per_rollout=16", "learn.batch_size=64", "evaluate.games=2"),
                *("evaluate.every_rows=0", "learn.learning_rate.warmup_rows=0", "observe.every_seconds=0"),
                *("ray.object_store_gb=0.1",),
            ),
        ),
        environment=PLAIN,
    ),
    "producers": Case(
        (
            train(
                "tictactoe",
                *(*SEARCH, "producers.workers=2", "total_rows=32768", "replay.capacity_rows=131072"),
                *("replay.min_rows=131072", "evaluate.opponents=", "checkpoint.every_rows=32768"),
            ),
        ),
        by_producer=True,
    ),
    "resumed": Case(
        (
            train("tictactoe", *STEADY, name="whole"),
            train("tictactoe", *STEADY, "total_rows=512", name="halves"),
            Step(f"runs resume halves --runs {RUNS} --set total_rows=1024 --json"),
        ),
        equal=("whole", "halves"),
    ),
    "matches": Case(
        (
            Step("eval connect_four --player bundled,sims=8 --opponent random --games 8 --seed 5 --json", "search"),
            Step("eval backgammon --player bundled --opponent random --games 8 --seed 5 --json", "turns"),
            Step("eval balatro --player greedy --games 2 --seed 5 --json", "alone"),
        ),
        environment=PLAIN,
    ),
    "ratings": Case(
        (
            Step("rate connect_four --player bundled,sims=4 --positions 8 --seed 5 --json", "connect_four"),
            Step("rate tictactoe --player random --seed 5 --json", "tictactoe"),
        )
    ),
}


# ---- running


class CommandFailed(Exception):  # noqa: N818
    """A command of a case ended with an exit code other than 0."""


def run_case(case: Case, tree: Path, folder: Path, cache: Path) -> Values:
    """Run a case's commands with the package in `tree`; return everything that is compared."""
    folder.mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ALEA_", "RAY_"))}
    environment = {
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        **kept,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(tree),
        "ALEA_DATA": str(folder / "data"),
        **case.environment,
    }
    found: Values = {}
    for step in case.steps:
        done = subprocess.run(
            [sys.executable, "-c", _start(tree), *step.line.split()],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["(no message)"])[-1]
            raise CommandFailed(f"alea {step.line}: exit code {done.returncode}: {said}")
        if step.answer:
            found |= {f"{step.answer}.json: {key}": value for key, value in flatten(json.loads(done.stdout)).items()}
    for run in sorted(path for path in (folder / RUNS).glob("*") if (path / "config.toml").exists()):
        found |= first_games(run) if case.by_producer else read_run(run)
    return found


def _start(tree: Path) -> str:
    """Return the program that is the command `alea` of a tree, and refuses a package from elsewhere."""
    scripts = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    module, _, function = scripts["alea"].partition(":")
    return (
        f"import aleazero, pathlib; assert pathlib.Path(aleazero.__file__).is_relative_to({str(tree)!r}); "
        f"from {module} import {function} as main; main()"
    )


# ---- reading what a run has left


def read_run(run: Path) -> Values:
    """Return all numbers of a run's folder."""
    found: Values = {}
    for number, record in enumerate(read_log(run / "replay")):
        found |= {f"{run.name}/replay: record {number}, {key}": value for key, value in record.items()}
    for path in sorted((run / "checkpoints").glob("[0-9]*")):
        found |= {f"{run.name}/checkpoints/{path.name}: {key}": value for key, value in read_checkpoint(path).items()}
    counts: dict[str, int] = {}
    for line in (run / "metrics.jsonl").read_text().splitlines():
        report = json.loads(line)
        kind = report["kind"]
        if kind in KINDS_LEFT_OUT:
            continue
        counts[kind] = counts.get(kind, -1) + 1
        place = f"{run.name}/metrics.jsonl: {kind} {counts[kind]}"
        found |= {f"{place}, {key}": value for key, value in flatten(report).items()}
    return found


def first_games(run: Path) -> Values:
    """Return the first record of each producer in a run's replay log."""
    found: Values = {}
    for record in read_log(run / "replay"):
        place = f"{run.name}/replay: producer {record['source']}, first record"
        if not any(key.startswith(place) for key in found):
            found |= {f"{place}, {key}": value for key, value in record.items()}
    return found


def read_log(folder: Path) -> list[dict[str, np.ndarray]]:
    """Return the records of a replay log, in the order in which they were written."""
    records = []
    for path in sorted(folder.rglob("segment-*.log")):
        content, at = path.read_bytes(), 0
        while at < len(content):
            _, _, size, _, _ = RECORD.unpack_from(content, at)
            at += RECORD.size
            records.append(dict(sorted(safetensors.numpy.load(content[at : at + size]).items())))
            at += size
    return records


def read_checkpoint(path: Path) -> Values:
    """Return a checkpoint's arrays by name, and its facts."""
    found: Values = {}
    for piece in sorted(path.glob("*.safetensors")):
        found |= dict(sorted(safetensors.numpy.load_file(piece).items()))
    facts = json.loads((path / "manifest.json").read_text())["facts"]
    return found | {f"facts.{key}": value for key, value in flatten(facts).items()}


def flatten(value: Any, place: str = "") -> Values:
    """Return the leaves of nested JSON by their place, as in `ratings[0].score`, without those that always change."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if not key.endswith(CHANGING)}
        inner = [(f"{place}.{key}" if place else key, each) for key, each in kept.items()]
    elif isinstance(value, list):
        inner = [(f"{place}[{number}]", each) for number, each in enumerate(value)]
    else:
        return {place: value}
    return {key: leaf for name, each in inner for key, leaf in flatten(each, name).items()}


# ---- comparing


def differences(old: Values, new: Values) -> list[str]:
    """Return what differs, one text for each key, in the order of the keys."""
    found = []
    for key in [*old, *(key for key in new if key not in old)]:
        if key not in new:
            found.append(f"{key} is only in the old one")
        elif key not in old:
            found.append(f"{key} is only in the new one")
        elif said := difference(old[key], new[key]):
            found.append(f"{key} {said}")
    return found


def difference(old: Any, new: Any) -> str:
    """Return how two values differ; an empty text if every bit is the same."""
    one, other = np.asarray(old), np.asarray(new)
    if type(old) is not type(new) or one.dtype.kind != other.dtype.kind or one.dtype.kind not in "biufcV":
        same = type(old) is type(new) and np.array_equal(one, other)
        return "" if same else f"is {old!r}, and now {new!r}"
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return f"is {one.dtype}{list(one.shape)}, and now {other.dtype}{list(other.shape)}"
    if one.tobytes() == other.tobytes():
        return ""
    if one.dtype.kind not in "biuf":
        return "differs"
    with np.errstate(invalid="ignore"):
        apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return f"differs by up to {np.nanmax(apart, initial=0.0):.3g}"


def last_checkpoint(found: Values, run: str) -> Values:
    """Return a run's last checkpoint among the values of a case, without the run's name."""
    steps = {key.partition(": ")[0] for key in found if key.startswith(f"{run}/checkpoints/")}
    place = max(steps)
    return {key.partition(": ")[2]: value for key, value in found.items() if key.startswith(f"{place}: ")}


def judge(case: Case, sides: Sequence[Values]) -> list[str]:
    """Return everything that is wrong with a case, by the values of its two sides."""
    old, new = sides
    if not old and not new:
        return ["there is nothing to compare"]
    found = differences(old, new)
    if case.equal is not None:
        for side, values in (("old", old), ("new", new)):
            one, other = (last_checkpoint(values, run) for run in case.equal)
            found += [f"{side}: {' and '.join(case.equal)}: {text}" for text in differences(one, other)]
    return found


# ---- the whole


@contextlib.contextmanager
def checked_out(commit: str | None, folder: Path) -> Iterator[Path]:
    """Give a worktree of a commit, which is removed afterwards; the working tree itself if there is no commit."""
    if commit is None:
        yield ROOT
        return
    git = ["git", "-C", str(ROOT), "worktree"]
    try:
        subprocess.run([*git, "add", "--quiet", "--detach", str(folder), commit], check=True)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([*git, "prune"], check=False)


def compare(old: str, new: str | None, names: Sequence[str]) -> bool:
    """Run the cases on both sides, print a line for each; return whether everything is the same."""
    same = True
    with contextlib.ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="same-numbers-", ignore_cleanup_errors=True)
        scratch = Path(stack.enter_context(folder))
        trees = [
            stack.enter_context(checked_out(commit, scratch / side)) for side, commit in (("old", old), ("new", new))
        ]
        for name in names:
            began = time.monotonic()
            try:
                sides = [
                    run_case(CASES[name], tree, scratch / "work" / name / str(number), scratch / "programs")
                    for number, tree in enumerate(trees)
                ]
                wrong = judge(CASES[name], sides)
                said = f"same, {len(sides[0])} values" if not wrong else f"{len(wrong)} differ; first: {wrong[0]}"
            except CommandFailed as error:
                wrong, said = [str(error)], f"failed: {error}"
            same = same and not wrong
            print(f"{name:<{max(map(len, names))}}  {time.monotonic() - began:4.0f} s  {said}", flush=True)
    return same


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old", nargs="?", help="a commit")
    parser.add_argument("new", nargs="?", help="a commit; the working tree as it is if left out")
    parser.add_argument("--only", nargs="+", choices=CASES, metavar="CASE", help="run these cases alone")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    given = parser.parse_args(arguments)
    if given.list:
        print("\n".join(CASES))
        return 0
    if given.old is None:
        parser.error("name the commit to compare with, as in: same_numbers.py main")
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that worktrees are removed
    try:
        return 0 if compare(given.old, given.new, given.only or list(CASES)) else 1
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main())
