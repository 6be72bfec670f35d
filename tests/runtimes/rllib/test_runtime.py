"""Runs by RLlib on a real Ray: they go on whoever dies, are resumed, keep their best weights, and are players."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aleazero.assemble_ppo import build_ppo_parts
from aleazero.cli.export import export_run
from aleazero.config import RunConfig, resolve
from aleazero.core.errors import ConfigError, MissingExtra
from aleazero.host_players import player_of
from aleazero.observe.reports import PpoReport, RllibReport
from aleazero.play.fragments import Played
from aleazero.runs import RunFolder, new_run
from aleazero.runtimes import desk
from aleazero.runtimes.profile import operations_in_words
from aleazero.runtimes.rllib import roles
from aleazero.runtimes.rllib.runtime import RllibParts, RllibRun
from aleazero.runtimes.rllib.trainer import RunnersFailed, Trained
from aleazero.runtimes.rllib_memory import need_memory, tree_bytes
from aleazero.runtimes.start import start
from tests.runtimes.support import PATIENCE_SECONDS, Recorder, StopAfter, newest

TINY = (
    *("runtime=rllib", "total_rows=1000000", "model.kind=balatro", "model.width=16", "ray.workers=2"),
    *("selfplay.num_games=8", "selfplay.moves_per_rollout=16", "learn.batch_size=64", "evaluate.games=4"),
    *("observe.every_seconds=0", "ray.object_store_gb=0.1", "learn.learning_rate.warmup_rows=0"),
)
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"


def tiny(*assignments: str) -> RunConfig:
    """Iterations of 256 rows, 8 updates each."""
    return resolve("balatro", preset="quick", assignments=[*TINY, *assignments], environ={})


def run_of(folder: RunFolder, sink: Recorder, config: RunConfig) -> RllibRun:
    folder.write_config(config)
    parts = build_ppo_parts(config)
    return RllibRun(RllibParts(config, parts.game, parts.model, parts.rollout), folder, sink, root=folder.path.parent)


class KillsRunner:
    """A stop signal that kills a runner after the first iteration, and stops once both play again."""

    def __init__(self, run: RllibRun) -> None:
        self._run, self._killed, self._end = run, 0, 0.0
        self._games: set[tuple[int, ...]] = set()
        self.after = 0  # iterations in which nobody had started the runner again

    def stop_requested(self) -> bool:
        play: Any = self._run.producer
        trainer = play._learner.trainer
        if not trainer.is_open:
            return False
        if not self._killed:
            group = trainer._algorithm.env_runner_group
            self._games = self._games_of(group)
            assert len(self._games) == 2  # or else both would play the same games
            told = group.foreach_env_runner(lambda _: os.environ.get(PREALLOCATE), local_env_runner=False)
            assert [os.environ.get(PREALLOCATE), *told] == ["false"] * 3
            self._killed = group.foreach_env_runner(lambda _: os.getpid(), local_env_runner=False)[0]
            os.kill(self._killed, signal.SIGKILL)
            self._end = time.monotonic() + 2 * PATIENCE_SECONDS
            return False
        assert time.monotonic() < self._end, "the runner was not started again"
        self.after += 1
        if trainer.restarts < 1 or trainer.alive < 2 or self.after < 3:
            return False
        assert len(self._games_of(trainer._algorithm.env_runner_group) - self._games) == 1  # it plays other games
        return True

    @staticmethod
    def _games_of(group: Any) -> set[tuple[int, ...]]:
        """The seeds of the runners, by which they play."""
        return set(group.foreach_env_runner(lambda one: tuple(one.env.unwrapped.seed), local_env_runner=False))


@pytest.mark.usefixtures("quick_programs", "small_cluster")
def test_it_goes_on_without_a_runner_and_from_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roles, "BEST_GAMES", 20)
    folder, sink = new_run(tmp_path, "it", "x"), Recorder()
    with contextlib.closing(run_of(folder, sink, tiny())) as run:
        kills = KillsRunner(run)
        assert run.train(kills) == "stopped"
        weights, moments = run.learner.state.average, run.learner.state.optimiser["exp_avg_sq"]
    said = sink.of(RllibReport)
    assert [report.iteration for report in said] == sorted({report.iteration for report in said})
    assert (said[-1].env_runners, said[-1].restarts) == (2, 1)
    assert said[-1].rows >= 200 * said[-1].iteration / 2  # the other one played meanwhile
    first, *_, followed = sink.of(PpoReport)
    assert followed.value_loss < first.value_loss - 0.1
    assert first.kl < 0.1  # the runners play what the learner was given
    assert followed.games_per_hour > 0
    assert 1 <= followed.mean_ante < 3
    assert set(followed.rewards) == {"points", "ante_growth", "win", "progress"}
    assert followed.memory_bytes > 2**28

    best = json.loads((folder.checkpoints / "best.meta").read_text())
    assert (folder.checkpoints / best["checkpoint"]).is_dir()
    assert set(best) == {"checkpoint", "player", "reward", "timesteps", "games", "iteration", "time"}
    assert best["games"] >= 20

    found, again = newest(folder), Recorder()
    with contextlib.closing(run_of(folder, again, tiny("ray.workers=1"))) as run:
        run.resume(found, "exact")
        for one, other in ((run.learner.state.average, weights), (run.learner.state.optimiser["exp_avg_sq"], moments)):
            np.testing.assert_array_equal(one["trunk_0"]["kernel"], other["trunk_0"]["kernel"])
        assert run.train(StopAfter(2), profile_only=True) == "stopped"
        taken_up = run.learner.state.optimiser["exp_avg_sq"]["trunk_0"]["kernel"]
        steps, profile = run.learner.steps, run.profile
    assert np.abs(taken_up - moments["trunk_0"]["kernel"]).max() > 0
    assert steps > found.step
    assert again.of(PpoReport)[0].kl < 0.1
    assert again.of(RllibReport)[0].iteration > found.facts["iteration"] >= 3
    assert profile is not None
    assert len(profile.kernels) == 10
    assert "aten::" in "\n".join(operations_in_words(profile))
    assert Path(profile.trace).is_file()

    assert export_run("it", onnx=False, out=tmp_path / "out", runs=tmp_path, as_json=False) == 0
    states = run.parts.game.init_batch(np.arange(8, dtype=np.uint64))
    chosen = [player_of(player, "balatro", tmp_path)(0)(states, 0) for player in ("run:it", f"path:{tmp_path / 'out'}")]
    np.testing.assert_array_equal(*chosen)
    assert run.parts.game.legal_actions(states)[np.arange(8), chosen[0]].all()


CARTPOLE = (
    *("runtime=rllib", "total_rows=6144", "model.width=32", "ray.workers=2", "ray.object_store_gb=0.1"),
    *("selfplay.num_games=8", "selfplay.moves_per_rollout=32", "learn.batch_size=64", "evaluate.games=4"),
    *("learn.learning_rate.start=3e-3", "learn.learning_rate.end=3e-3", "learn.learning_rate.warmup_rows=0"),
)


@pytest.mark.long
@pytest.mark.usefixtures("quick_programs", "small_cluster")
def test_a_policy_is_learned(tmp_path: Path) -> None:
    """In twelve iterations of 512 rows: from the 20 points of random play to more than 100."""
    config = resolve("gym:CartPole-v1", preset="quick", assignments=[*CARTPOLE, "observe.every_seconds=0"], environ={})
    sink = Recorder()
    with contextlib.closing(run_of(new_run(tmp_path, "it", "x"), sink, config)) as run:
        assert run.train(StopAfter()) == "done"
    points = [report.mean_points for report in sink.of(PpoReport) if report.games_per_hour]  # of games that have ended
    assert np.mean(points[-3:]) > 2 * np.mean(points[:2])


class Alone:
    """A learner whose runners are all gone."""

    class trainer:  # noqa: N801 - an attribute
        iteration = 3

    def iterate(self, rows: int, iteration: int) -> Trained:
        return Trained(Played(0, 0, 0, float("nan"), 0.0, 0.0, {}, np.zeros(13, int), 0, 8), None, 0.0, 0.0)


def test_it_waits_for_runners_and_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roles, "NOBODY_SECONDS", 0.0)
    play = roles.RllibPlay("it", tmp_path, Recorder(), Alone())  # type: ignore[arg-type]
    assert [play.step() for _ in range(roles.NOBODY_TRIES)] == [None] * roles.NOBODY_TRIES
    with pytest.raises(RunnersFailed, match="died more often"):
        play.step()


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = desk.find_spec
    monkeypatch.setattr(desk, "find_spec", lambda name: None if name in ("torch", "lz4") else there(name))
    with pytest.raises(
        MissingExtra, match=r"needs torch, lz4, which is not installed: pip install 'aleazero\[rllib\]'"
    ):
        start(tiny(), tmp_path, name="it", quiet=True)
    assert not list(tmp_path.iterdir())


def test_more_than_the_memory_it_may_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ppo.memory_gb is 3; 2 runners, an object store of 2 GB and 256 rows"):
        start(tiny("ppo.memory_gb=3", "ray.object_store_gb=2"), tmp_path, name="it", quiet=True)
    need_memory(tiny("ray.object_store_gb=0", "selfplay.num_games=256"), build_ppo_parts(tiny()).game.spec)  # 8 GB


def test_memory_is_that_of_all_processes() -> None:
    before = tree_bytes()
    held = "import sys; held = b'x' * 2**26; sys.stdout.write('.'); sys.stdout.flush(); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read(1)
        assert tree_bytes() - before > 2**25
        child.communicate()


FIRST = f"""
import os, sys
from pathlib import Path
from aleazero.config import resolve
from aleazero.runtimes import start

def build_ppo_parts(*_):  # the first that asks JAX for its devices
    sys.exit(os.environ["{PREALLOCATE}"])

start.build_ppo_parts = build_ppo_parts
start.start(resolve("balatro", preset="quick", assignments=["runtime=rllib"], environ={{}}), Path(sys.argv[1]))
"""


def test_jax_leaves_the_gpu_to_pytorch_from_the_first(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != PREALLOCATE}
    command = [sys.executable, "-c", FIRST, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.stderr.strip() == "false"


@pytest.mark.long
def test_balatro_is_learned_a_little(tmp_path: Path) -> None:
    """The local runtime comes as far with the same rows: from 0.01 points a game to 0.05."""
    sizes = ["selfplay.num_games=32", "selfplay.moves_per_rollout=32", "learn.batch_size=256", "total_rows=60000"]
    given = ["runtime=rllib", "ray.workers=2", "evaluate.games=100", "observe.every_seconds=1", *sizes]
    config = resolve("balatro", preset="quick", assignments=given, environ={})
    finished = start(config, tmp_path, name="it", quiet=True)
    said = [record for record in finished.folder.read_reports() if record["kind"] == "ppo"]
    early = [record["mean_points"] for record in said if record["rows"] < 15_000]
    late = [record["mean_points"] for record in said if record["rows"] > 45_000]
    assert np.mean(late) > 2 * np.mean(early)
    assert max(record["memory_bytes"] for record in said) < 8 * 2**30
