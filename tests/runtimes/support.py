"""A tiny run, in this process or in one of its own, and what tests compare of it.

One tiny config serves almost every test, so that its programs are compiled once and read from a cache afterwards.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import functools
import hashlib
import json
import multiprocessing
import multiprocessing.process
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero import checkpoint
from aleazero.assemble import Parts, build_parts
from aleazero.config import ProducersConfig, RunConfig, resolve
from aleazero.core.schedule import Schedule
from aleazero.core.settings import Layer, build, parse_assignments, to_toml
from aleazero.learn.update import LearnerState, Update
from aleazero.observe.reports import Report
from aleazero.observe.settings import ObserveConfig
from aleazero.observe.sink import Sink
from aleazero.play.rollout import Games
from aleazero.ray_settings import RayConfig
from aleazero.replay.store import Replay
from aleazero.roles.actor import Play
from aleazero.roles.evaluator import EvaluateConfig
from aleazero.runs import RunFolder, new_run
from aleazero.runtimes.local import LocalRun

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120.0  # for another process, on a busy machine
COUNTS = ("rows", "move", "slabs", "learner_started", "base_steps", "games_finished")

TINY = (
    *("total_rows=2560", "model.kind=mlp", "model.width=16", "model.blocks=1"),
    *("search.kind=gumbel", "search.max_simulations=4", "selfplay.fast_simulations=2"),
    *("selfplay.num_games=16", "selfplay.moves_per_rollout=8", "selfplay.random_plies=2"),
    *("replay.capacity_rows=1024", "replay.min_rows=256", "replay.rows_per_new_row=4"),
    *("learn.batch_size=64", "learn.updates_per_call=4", "learn.learning_rate.warmup_rows=0"),
    *("evaluate.opponents=", "evaluate.games=16", "checkpoint.every_rows=640", "observe.every_seconds=0"),
)

# Backgammon by whole turns, and by single checkers with a tree search that keeps its trees.
TURNS = (
    *("search.kind=expectimax", "model.policy=false", "model.coarse_inputs=true", "selfplay.every_roll=false"),
    *("targets.wait=false", "targets.td_lambda=0.7", "targets.opinion=network"),
    *("total_rows=1280", "selfplay.num_games=8", "selfplay.moves_per_rollout=16"),
    *("replay.capacity_rows=512", "replay.min_rows=200"),
)
CHECKERS = (
    *("total_rows=384", "model.width=16", "model.blocks=1", "search.max_simulations=5", "search.max_nodes=64"),
    *("selfplay.num_games=8", "selfplay.moves_per_rollout=8", "selfplay.fast_simulations=2"),
    *("replay.capacity_rows=320", "replay.min_rows=64", "replay.window_start=192"),
    *("learn.batch_size=32", "learn.updates_per_call=4", "learn.learning_rate.warmup_rows=0"),
    *("evaluate.opponents=", "checkpoint.every_rows=128", "observe.every_seconds=0"),
)

R = TypeVar("R", bound=Report)


def tiny(*assignments: str, game: str = "tictactoe") -> RunConfig:
    """The tiny config: 20 iterations of 128 rows; 2 without an update, then 8 updates each."""
    layers = [Layer("tests", {"game": game}), parse_assignments(TINY), parse_assignments(assignments)]
    return build(RunConfig, layers)


def turns() -> RunConfig:
    """A small run by whole turns."""
    return tiny(*TURNS, game="backgammon")


def checkers() -> RunConfig:
    """A small run by single checkers."""
    return resolve("backgammon", preset="alphazero", environ={}, assignments=CHECKERS)


@pytest.fixture(scope="session")
def programs(compiled: Path) -> Path:
    """Where compiled programs are kept, for this session and its processes."""
    return compiled


@pytest.fixture(scope="module")
def quick_programs() -> Iterator[None]:
    """Programs are compiled without the expensive passes."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


class Recorder:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.reports: list[Report] = []

    def emit(self, report: Report) -> None:
        self.reports.append(report)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def of(self, kind: type[R]) -> list[R]:
        """The reports of one kind."""
        return [report for report in self.reports if isinstance(report, kind)]


class StopAfter:
    """Asks a run to stop after so many iterations."""

    def __init__(self, iterations: int = 2**30) -> None:
        self._left = iterations

    def stop_requested(self) -> bool:
        self._left -= 1
        return self._left < 0


class SharedParts(Parts):
    """Parts whose programs are compiled once for all runs of this process that need the same ones."""

    def start_games(self, lanes: jax.Array | None = None) -> Games:
        return _copied(_programs(self)[0]) if lanes is None else super().start_games(lanes)

    def make_play(self, lanes: jax.Array | None = None) -> Play:
        return _programs(self)[1] if lanes is None else super().make_play(lanes)

    def start_learning(self) -> LearnerState:
        return _copied(_programs(self)[2])

    def make_update(self) -> Update:
        return _programs(self)[3]

    def make_replay(self) -> Replay:
        empty = _programs(self)[4]
        replay = copy.copy(empty)
        replay.config, replay.ring, replay.sources = self.config.replay, _copied(empty.ring), {}
        replay._games = collections.deque(maxlen=replay.slabs)
        return replay


def _copied(tree: Any) -> Any:
    """Arrays of its own, because a run donates them."""
    return jax.tree.map(jnp.copy, tree)


def _programs(parts: Parts) -> tuple[Games, Play, LearnerState, Update, Replay]:
    """Compiled with the settings that shape programs; the others are numbers to them, or nothing at all."""
    config = parts.config
    shape = dataclasses.replace(
        config,
        total_rows=2**20,
        total_games=0,
        producers=ProducersConfig(),
        runtime="local",
        ray=RayConfig(),
        selfplay=dataclasses.replace(config.selfplay, temperature=Schedule(1.0), gumbel_scale=1.0),
        replay=dataclasses.replace(config.replay, rows_per_new_row=1.0, min_rows=1, log=True),
        learn=dataclasses.replace(config.learn, learning_rate=Schedule(1.0)),
        evaluate=EvaluateConfig(),
        checkpoint=checkpoint.CheckpointConfig(),
        observe=ObserveConfig(),
    )
    return _compiled(shape)


@functools.cache
def _compiled(config: RunConfig) -> tuple[Games, Play, LearnerState, Update, Replay]:
    parts = build_parts(config)
    return (
        parts.start_games(),
        parts.make_play(),
        parts.start_learning(),
        parts.make_update(),
        parts.make_replay(),
    )


def shared_parts(config: RunConfig, root: Path | None = None) -> SharedParts:
    """As `build_parts`, faster the second time."""
    parts = build_parts(config, root=root)
    return SharedParts(**{field.name: getattr(parts, field.name) for field in dataclasses.fields(Parts)})


def make_run(config: RunConfig, root: Path, name: str = "it", sink: Sink | None = None) -> LocalRun:
    """A run in a folder of its own, which is made where it is not there."""
    folder = RunFolder(root / name)
    if not folder.path.exists():
        folder = new_run(root, name, "")
        folder.write_config(config)
    return LocalRun(shared_parts(config), folder, sink or Recorder(), root=root)


def train(config: RunConfig, root: Path, name: str = "it", sink: Sink | None = None, stop: int = 2**30) -> RunFolder:
    """Trains a new run in this process."""
    with contextlib.closing(make_run(config, root, name, sink)) as run:
        run.train(StopAfter(stop))
    return run.folder


def newest(folder: RunFolder) -> checkpoint.Checkpoint:
    """The newest checkpoint; none may be damaged."""
    found = checkpoint.newest(folder.checkpoints, pytest.fail)
    assert found is not None
    return found


def differences(left: checkpoint.Checkpoint, right: checkpoint.Checkpoint) -> list[str]:
    """What is not equal bit for bit; where only one of them holds its replay, the replay is not compared."""
    trees = [{name.partition("/")[0] for name in found.arrays} for found in (left, right)]
    assert trees[0] - {"replay", "selves"} == {"weights", "average", "optimiser", "games"}
    found = [f"step: {left.step}, {right.step}"] if left.step != right.step else []
    for name in COUNTS:
        if left.facts[name] != right.facts[name]:
            found.append(f"{name}: {left.facts[name]}, {right.facts[name]}")
    for name in sorted(left.arrays.keys() | right.arrays.keys()):
        if name.startswith("replay/") and trees[0] != trees[1]:
            continue
        one, two = left.arrays.get(name), right.arrays.get(name)
        if one is None or two is None or (one.dtype, one.shape, one.tobytes()) != (two.dtype, two.shape, two.tobytes()):
            found.append(name)
    return found


def finite(found: checkpoint.Checkpoint) -> bool:
    """Whether every number of a checkpoint is one."""
    return all(np.isfinite(array).all() for array in found.arrays.values() if array.dtype.kind == "f")


def change_facts(folder: Path, **changes: Any) -> None:
    """Writes other facts into a checkpoint's manifest, and a digest that is right for them."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["facts"] |= changes
    text = json.dumps(manifest | {"sha256": "0" * 64})
    path.write_text(text.replace("0" * 64, hashlib.sha256(text.encode()).hexdigest(), 1))


def last_rows(folder: RunFolder) -> int:
    """The rows of the last whole report, while another process writes."""
    try:
        with folder.metrics_file.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 4096, 0))
            lines = file.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return -1
    return int(json.loads(lines[-1])["rows"]) if lines else -1


def statuses(folder: RunFolder) -> list[str]:
    """What the run said of itself, in order."""
    reports = [json.loads(line) for line in folder.metrics_file.read_text().splitlines()]
    return [report["status"] for report in reports if report["kind"] == "run"]


@dataclasses.dataclass
class Child:
    """A process that trains."""

    process: multiprocessing.process.BaseProcess
    printed: Path  # what it prints

    def wait_for(self, happened: Callable[[], object], what: str) -> None:
        """Returns when it has happened; fails if the process ends before, or takes too long."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not happened():
            if not self.process.is_alive():
                pytest.fail(f"ended with {self.process.exitcode} before {what}:\n{self.finish()[1]}")
            assert time.monotonic() < end, f"no {what} within {PATIENCE_SECONDS} seconds"
            time.sleep(0.003)

    def finish(self) -> tuple[int, str]:
        """Waits for the end: the exit code, and all that was printed."""
        self.process.join(PATIENCE_SECONDS)
        assert self.process.exitcode is not None, f"no end within {PATIENCE_SECONDS} seconds"
        return self.process.exitcode, self.printed.read_text()

    def send(self, number: int) -> None:
        """Sends a signal."""
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """SIGKILL: nothing of it can be caught."""
        self.send(signal.SIGKILL)
        assert self.finish()[0] == -signal.SIGKILL


# Children are forked from a process that has imported everything and started nothing.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.runtimes.support", "aleazero.run", "aleazero.runtimes.start"])


@dataclasses.dataclass(frozen=True)
class Children:
    """Starts processes that share compiled programs."""

    programs: Path
    quick: bool = True  # programs are compiled without the expensive passes

    def start(self, *arguments: str | Path, before: str = "", **environment: str) -> Child:
        """A process that runs a command line of `aleazero.run`, and before it some code."""
        code = f"{before}\nimport sys\nfrom aleazero.run import main\nsys.exit(main(sys.argv[1:]))"
        return self.python(code, *arguments, **environment)

    def python(self, code: str, *arguments: str | Path, **environment: str) -> Child:
        """A process that runs some code."""
        handle, printed = tempfile.mkstemp(dir=self.programs.parent)
        os.close(handle)
        given = (code, list(map(str, arguments)), environment, self.programs, self.quick, printed)
        process = _FORKS.Process(target=_run_child, args=given, daemon=True)
        process.start()
        return Child(process, Path(printed))


def _run_child(
    code: str, arguments: list[str], environment: dict[str, str], folder: Path, quick: bool, printed: str
) -> None:
    with open(printed, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    for name in [name for name in os.environ if name.startswith("ALEA_")]:
        del os.environ[name]
    os.environ |= environment | {"JAX_COMPILATION_CACHE_DIR": str(folder)}
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_disable_most_optimizations", quick)
    sys.argv = ["aleazero.run", *arguments]
    exec(code, {"__name__": "__main__"})


def write_config(config: RunConfig, path: Path) -> Path:
    """A settings file for a process."""
    path.write_text(to_toml(config))
    return path
