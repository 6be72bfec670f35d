"""Producers in processes of their own: nothing is lost, whoever dies comes back, nobody is left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from aleazero import checkpoint
from aleazero.config import RunConfig
from aleazero.core.errors import ConfigError
from aleazero.core.records import Trajectory
from aleazero.games.tictactoe import TicTacToe
from aleazero.observe.jsonl import read_jsonl
from aleazero.observe.reports import RunReport
from aleazero.play.episodes import Episode, EpisodeAssembler
from aleazero.runs import RunFolder
from aleazero.runtimes import children
from aleazero.runtimes.local import LocalRun, TrainingStopped
from aleazero.runtimes.milestones import Count, Milestones
from aleazero.runtimes.processes import Place, Producers, ProducersFailed
from aleazero.runtimes.selfplay import SelfPlay
from aleazero.runtimes.start import resume, start
from tests.runtimes.support import (  # noqa: F401 - fixtures
    Recorder,
    StopAfter,
    programs,
    quick_programs,
    shared_parts,
    tiny,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_programs")]
ONE, TWO = (
    tiny(f"producers.workers={workers}", "producers.queue_size=2", "replay.capacity_rows=4096") for workers in (1, 2)
)


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aleazero.runtimes.start.build_parts", shared_parts)


class Sink:
    """Takes its time."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.sources, self.games = seconds, [], 0
        self.episodes: list[list[Episode]] = []
        self._assemblers: dict[int, EpisodeAssembler] = {}

    def add(self, slab: Trajectory, source: int = 0) -> None:
        time.sleep(self.seconds)
        moves, lanes = slab.action.shape
        assembler = self._assemblers.setdefault(source, EpisodeAssembler(0, np.arange(lanes)))
        self.episodes.append(assembler.add(moves * self.sources.count(source), slab))
        self.sources.append(source)
        self.games += int((slab.ended | slab.truncated).sum())


def producers(sink: Any, tmp_path: Path, config: RunConfig = TWO) -> Producers:
    parts = shared_parts(config)
    place = Place(jax.eval_shape(parts.model.init, jax.random.key(0)))
    place.weights.publish(0, jax.jit(parts.model.init)(jax.random.key(0)))
    return Producers(parts, sink, place, logs=tmp_path / "logs", root=tmp_path)


def taken(made: Producers, count: int, seconds: float = 120.0) -> None:
    end, before = time.monotonic() + seconds, made.rows
    while made.rows < before + count * made._schema.rows:
        assert time.monotonic() < end, "no slab came"
        made.step()


def heard(made: Producers, sink: Sink, sources: set[int], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not sources <= set(sink.sources):
        assert time.monotonic() < end, f"nothing came of {sources - set(sink.sources)}"
        made.step()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_no_game_of_a_thousand_is_lost_with_a_queue_of_two_a_slow_learner_and_a_producer_killed(tmp_path: Path) -> None:
    """One that is killed comes back with other games."""
    sink = Sink(0.02)
    made = producers(sink, tmp_path)
    try:
        heard(made, sink, {1, 2})
        first = made._children[0].pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        heard(made, sink, {1, 2, 3})
        assert made._restarts == 1
        while sink.games < 1000:
            taken(made, 1)
        pids = [child.pid for child in made._children]
        assert len(set(sink.sources)) == 3
        assert sum(made._taken.values()) == len(sink.sources), "every number came, in order"
        assert made._queue.qsize() <= 2
        report = made.report({"step": 0, "rows": made.rows, "seconds": 1.0})
        assert (report.processes, report.restarts) == (2, 1)
        assert report.waiting_share > 0
        assert report.rows_per_second > report.taken_per_second > 0
    finally:
        made.close()
    assert not any(pid and alive(pid) for pid in pids)
    games = [episode.moves for episodes in sink.episodes for episode in episodes]
    assert len(games) == sink.games
    rules = TicTacToe()
    follow = jax.jit(jax.vmap(lambda packed, action: rules.pack(rules.apply_action(rules.unpack(packed), action))))
    befores = np.concatenate([moves.state[:-1] for moves in games])
    actions = np.concatenate([moves.action[:-1] for moves in games]).astype(np.int32)
    afters = np.concatenate([moves.state[1:] for moves in games])
    np.testing.assert_array_equal(follow(befores, actions), afters, "every game is whole: it goes on where it stopped")


def test_a_producer_that_fails_slowly_again_and_again_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that takes more than a minute to fail: here, no time at all is a quick end."""
    monkeypatch.setattr(children, "STEADY_SECONDS", -1.0)
    made = producers(Sink(), tmp_path, ONE)
    monkeypatch.setattr(made._children[0], "_command", [sys.executable, "-c", "raise SystemExit(3)"])
    try:
        with pytest.raises(ProducersFailed, match="producer 1 has failed 4 times"):
            taken(made, 1)
        assert made._children[0].failures < 4
    finally:
        made.close()


@pytest.mark.parametrize(("workers", "share"), [(1, "0.200"), (4, "0.050")])
def test_producers_on_a_gpu_share_what_the_learner_leaves(tmp_path: Path, workers: int, share: str) -> None:
    given = (f"producers.workers={workers}", "producers.device=auto", "replay.capacity_rows=4096")
    made = producers(Sink(), tmp_path, tiny(*given))
    try:
        found = [child._environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] for child in made._children]
        assert found == [share] * workers
    finally:
        made.close()


def test_a_slab_that_is_missing_is_seen(tmp_path: Path) -> None:
    made = producers(Sink(), tmp_path, ONE)
    try:
        taken(made, 2)
        source = next(iter(made._taken))
        made._taken[source] += 1
        with pytest.raises(ProducersFailed, match="is missing"):
            taken(made, 20)
    finally:
        made.close()


def test_a_run_ends_after_so_many_games_and_goes_on(tmp_path: Path) -> None:
    config = tiny(
        *("producers.workers=1", "producers.queue_size=2", "replay.capacity_rows=4096"),
        *("selfplay.resign=0.05", "selfplay.resign_moves=1", "selfplay.resign_check=0.5"),
        *("total_rows=1000000", "total_games=300", "checkpoint.every_games=100"),
    )
    finished = start(config, tmp_path, name="it", quiet=True)
    assert finished.status == "done"
    reports = read_jsonl(finished.folder.metrics_file)
    games = [report["games"] for report in reports if report["kind"] == "selfplay"][-1]
    assert 300 <= games < 400
    played = [report for report in reports if report["kind"] == "selfplay"]
    assert any(report["resigned_fraction"] > 0 for report in played)
    assert sum(report["resign_checked"] for report in played) >= sum(report["resign_wrong"] for report in played) > 0
    told = [report for report in reports if report["kind"] == "producers"]
    assert told
    assert told[-1]["queue_size"] == 2
    assert sum(report["kind"] == "checkpoint" for report in reports) >= 3
    again = resume("it", tmp_path, assignments=["total_games=400"], quiet=True)
    assert again.status == "done"
    reports = read_jsonl(finished.folder.metrics_file)
    assert [report["games"] for report in reports if report["kind"] == "selfplay"][-1] >= 400


def test_who_plays_may_change(tmp_path: Path) -> None:
    """The run itself, producers, itself again: counts go on, and games that began anew are not joined to old ones."""
    games = ("replay.capacity_rows=4096", "evaluate.opponents=")
    start(tiny("total_rows=640", *games), tmp_path, name="it", quiet=True)
    resume("it", tmp_path, assignments=["total_rows=1280", "producers.workers=1"], quiet=True)
    again = resume("it", tmp_path, assignments=["total_rows=1920", "producers.workers=0"], quiet=True)
    assert again.status == "done"
    kept = checkpoint.newest(again.folder.checkpoints, pytest.fail)
    assert kept is not None
    assert (kept.facts["rows"], kept.facts["slabs"], kept.facts["move"]) == (1920, 15, 120)
    slabs = {source: len(numbers) for source, numbers in kept.facts["sources"]}
    assert slabs.keys() == {0, 1, kept.facts["source"]}


class Failing(SelfPlay):
    """Plays five slabs."""

    def step(self) -> Trajectory:
        if self.move == 5 * 8:
            raise ProducersFailed("producer 1 has failed")
        return super().step()


def test_a_run_that_nobody_plays_for_any_more_keeps_what_it_learned(tmp_path: Path) -> None:
    folder, kept = RunFolder(tmp_path / "it"), Recorder()
    folder.path.mkdir()
    config = tiny("checkpoint.every_rows=100000")
    run = LocalRun(shared_parts(config), folder, kept, make_producer=Failing)
    with pytest.raises(TrainingStopped, match="producer 1 has failed"):
        run.train(StopAfter())
    run.close()
    found = checkpoint.newest(folder.checkpoints, pytest.fail)
    assert found is not None
    assert found.facts["rows"] == 5 * 128
    last = kept.of(RunReport)[-1]
    assert (last.status, last.message) == ("failed", "producer 1 has failed")


def test_milestones_go_by_rows_games_or_epochs() -> None:
    by_games = Milestones(tiny("total_games=10", "checkpoint.every_games=4", "evaluate.every_rows=100"))
    assert by_games.count_games
    assert not by_games.over(Count(0, 9, 0))
    assert by_games.over(Count(0, 10, 0))
    assert by_games.over(Count(2560, 0, 0))
    assert by_games.save(Count(0, 3, 0), Count(1, 4, 0))
    assert not by_games.save(Count(0, 4, 0), Count(640, 7, 0))
    assert by_games.measure(Count(99, 0, 0), Count(100, 0, 0))
    assert not by_games.measure(Count(99, 0, 0), Count(100, 10, 0)), "the last match comes by itself"
    by_rows = Milestones(tiny())
    assert not by_rows.count_games
    assert by_rows.save(Count(639, 0, 0), Count(640, 0, 0))
    assert not by_rows.save(Count(2559, 0, 0), Count(2560, 0, 0)), "the last checkpoint comes by itself"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("producers.workers=-1", "producers.workers is -1; it must be at least 0"),
        ("producers.queue_size=0", "producers.queue_size is 0; it must be at least 1"),
        ("total_games=-1", "total_games is -1; it must not be negative"),
        ("selfplay.epsilon=1", "selfplay.epsilon is 1.0; it must be in [0, 1)"),
    ],
)
def test_bad_settings_are_said(given: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tiny(given)
    assert said in str(caught.value)
