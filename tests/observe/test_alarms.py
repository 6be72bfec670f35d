"""Every alarm is tripped by a run that is really ill in that way, at its very threshold, and by no run that is well."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import pytest
from jax import Array

from aleazero.config import RunConfig
from aleazero.core.records import Weights
from aleazero.core.settings import describe
from aleazero.core.struct import replace
from aleazero.games.registry import BUILT_IN
from aleazero.games.tictactoe import TicTacToe, TicTacToeState
from aleazero.observe import alarms
from aleazero.observe.alarms import Alarm, alarms_of, non_finite, stale_weights
from aleazero.observe.reports import AlarmReport, EvalReport, LearnReport, Report, RunReport, SelfPlayReport
from aleazero.roles.ports import LocalWeights
from aleazero.runtimes.local import LocalRun, TrainingStopped
from tests.observe import examples
from tests.runtimes.support import (  # noqa: F401 - fixtures
    Recorder,
    StopAfter,
    make_run,
    newest,
    programs,
    quick_programs,
    tiny,
)

QUICK = ("search.kind=direct",)  # the network's own policy: the smallest program
STILL = ("learn.learning_rate.start=0", "learn.learning_rate.end=0")  # planted weights stay as they are


class NeverEnds(TicTacToe):
    """Tic-tac-toe whose games are stopped before anybody can have won."""

    spec = dataclasses.replace(TicTacToe.spec, name="never_ends", max_plies=4)


class AlwaysDrawn(TicTacToe):
    """Tic-tac-toe in which a row of three counts for nothing."""

    spec = dataclasses.replace(TicTacToe.spec, name="always_drawn")

    def apply_action(self, state: TicTacToeState, action: Array) -> TicTacToeState:
        after = super().apply_action(state, action)
        return replace(after, rewards=jnp.zeros(2), returns=jnp.zeros(2))


@pytest.fixture
def ill_games(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (NeverEnds, AlwaysDrawn):
        monkeypatch.setitem(BUILT_IN, kind.spec.name, f"{__name__}:{kind.__name__}")


def plant(run: LocalRun) -> None:
    """Weights that are sure of a move everywhere, and of a bad one: squares in the middle of an edge come first."""
    order = jnp.array([1, 3, 5, 7, 0, 2, 6, 8, 4])

    def planted(weights: Weights) -> Weights:
        bias = jnp.zeros(9).at[order].set(jnp.arange(9, 0, -1) * 20.0)
        heads = {**weights["heads"], "policy": {**weights["heads"]["policy"], "bias": bias}}
        return {**weights, "heads": heads}

    state = run.learner.state
    run.learner.state = dataclasses.replace(state, weights=planted(state.weights), average=planted(state.average))


def run_to_the_end(config: RunConfig, root: Path, prepare: Callable[[LocalRun], object] | None = None) -> Recorder:
    sink = Recorder()
    with contextlib.closing(make_run(config, root, sink=sink)) as run:
        if prepare:
            prepare(run)
        run.train(StopAfter())
    return sink


def run_to_its_alarm(config: RunConfig, root: Path) -> tuple[Recorder, str]:
    sink = Recorder()
    with contextlib.closing(make_run(config, root, sink=sink)) as run, pytest.raises(TrainingStopped) as caught:
        run.train(StopAfter())
    last = sink.of(RunReport)[-1]
    (alarm,) = sink.of(AlarmReport)
    assert (alarm.level, last.status, last.message) == ("stop", "failed", alarm.message)
    assert str(caught.value) == f"{alarm.name}: {alarm.message}. Look at: {alarm.setting}"
    return sink, alarm.name


def names(sink: Recorder) -> list[str]:
    return [alarm.name for alarm in sink.of(AlarmReport)]


# Runs that are ill.


@pytest.mark.slow
def test_a_run_that_is_well_gives_no_alarm(tmp_path: Path, quick_programs: None) -> None:  # noqa: F811
    for every_seconds in (0, 1000):
        config = tiny(*QUICK, f"observe.every_seconds={every_seconds}", "evaluate.opponents=random")
        sink = run_to_the_end(config, tmp_path / str(every_seconds))
        assert names(sink) == []
        assert sink.of(SelfPlayReport)
        assert sink.of(LearnReport)
        assert sink.of(EvalReport)


def test_games_that_are_all_stopped_stop_the_run(tmp_path: Path, ill_games: None, quick_programs: None) -> None:  # noqa: F811
    config = tiny(*QUICK, game="never_ends")
    sink, name = run_to_its_alarm(config, tmp_path)
    assert name == "all games truncated"
    (report,) = sink.of(SelfPlayReport)
    assert (report.finished, report.truncated_fraction) == (32, 1.0)
    assert "max_plies" in sink.of(AlarmReport)[0].setting


def test_games_that_all_end_alike_are_warned_of_once(tmp_path: Path, ill_games: None, quick_programs: None) -> None:  # noqa: F811
    sink = run_to_the_end(tiny(*QUICK, game="always_drawn"), tmp_path)
    assert names(sink) == ["value-target variance near zero"]
    assert [report.value_target_variance for report in sink.of(LearnReport)] == [0.0] * 18
    assert sink.of(RunReport)[-1].status == "done"
    (alarm,) = sink.of(AlarmReport)
    assert (alarm.level, alarm.rows) == ("warn", sink.of(LearnReport)[0].rows)


def test_play_that_is_always_the_same_is_warned_of(tmp_path: Path, quick_programs: None) -> None:  # noqa: F811
    config = tiny(*QUICK, *STILL, "observe.every_seconds=1000", "evaluate.opponents=random", "evaluate.games=200")
    sink = run_to_the_end(config, tmp_path, plant)
    assert names(sink) == ["entropy collapse", "duplicate games", "worse than random"]
    (played,) = sink.of(SelfPlayReport)
    assert played.policy_entropy < 0.02 * played.legal_entropy
    assert played.duplicate_fraction > 0.5
    (match,) = sink.of(EvalReport)
    assert match.score_high < 0.5
    assert sink.of(RunReport)[-1].status == "done"


def test_an_alarm_is_given_once_in_the_life_of_a_run(tmp_path: Path, quick_programs: None) -> None:  # noqa: F811
    sink, config = Recorder(), tiny(*QUICK, *STILL)
    with contextlib.closing(make_run(config, tmp_path, sink=sink)) as run:
        plant(run)
        run.train(StopAfter(6))
    with contextlib.closing(make_run(config, tmp_path, sink=sink)) as run:
        run.resume(newest(run.folder), "exact")
        run.train(StopAfter())
    ill = [report for report in sink.of(SelfPlayReport) if any(alarms_of(report))]
    assert len(ill) == 20
    assert names(sink) == ["entropy collapse"]
    # Where the alarm is in the record: right behind the first report that gave rise to it.
    assert isinstance(sink.reports[sink.reports.index(ill[0]) + 1], AlarmReport)


class Frozen(LocalWeights):
    """A weight store that keeps the first version for ever."""

    def publish(self, version: int, weights: Weights) -> None:
        if self._latest is None:
            super().publish(version, weights)


def test_weights_that_do_not_reach_the_actor_stop_the_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    quick_programs: None,  # noqa: F811
) -> None:
    monkeypatch.setattr(alarms, "STALE_UPDATES", 24)
    assert names(run_to_the_end(tiny(*QUICK), tmp_path / "well")) == []
    monkeypatch.setattr("aleazero.runtimes.local.LocalWeights", Frozen)
    sink, name = run_to_its_alarm(tiny(*QUICK), tmp_path / "ill")
    assert name == "stale weights"
    (alarm,) = sink.of(AlarmReport)
    assert alarm.step == 32  # 8 updates an iteration: 24 behind is still well
    assert "32 updates old (version 0, the newest is 32)" in alarm.message


# The thresholds, and what is said.


def found(report: Report) -> list[tuple[str, str]]:
    return [(alarm.level, alarm.name) for alarm in alarms_of(report)]


@pytest.mark.parametrize(
    ("well", "ill", "expected"),
    [
        (
            examples.learn(value_target_variance=1e-4),
            examples.learn(value_target_variance=0.99e-4),
            ("warn", "value-target variance near zero"),
        ),
        (
            examples.selfplay(truncated_fraction=0.99, finished=32),
            examples.selfplay(truncated_fraction=1.0, finished=32),
            ("stop", "all games truncated"),
        ),
        (
            examples.selfplay(truncated_fraction=1.0, finished=31),
            examples.selfplay(truncated_fraction=1.0, finished=32),
            ("stop", "all games truncated"),
        ),
        (
            examples.selfplay(policy_entropy=0.02, legal_entropy=1.0),
            examples.selfplay(policy_entropy=0.0199, legal_entropy=1.0),
            ("warn", "entropy collapse"),
        ),
        (
            examples.selfplay(policy_entropy=0.0, legal_entropy=0.0),  # nobody had a choice
            examples.selfplay(policy_entropy=0.0, legal_entropy=0.1),
            ("warn", "entropy collapse"),
        ),
        (
            examples.selfplay(duplicate_fraction=0.5, finished=32),
            examples.selfplay(duplicate_fraction=0.51, finished=32),
            ("warn", "duplicate games"),
        ),
        (
            examples.selfplay(duplicate_fraction=1.0, finished=31),
            examples.selfplay(duplicate_fraction=1.0, finished=32),
            ("warn", "duplicate games"),
        ),
        (
            examples.match(score=0.4, score_low=0.3, score_high=0.5),
            examples.match(score=0.4, score_low=0.3, score_high=0.499),
            ("warn", "worse than random"),
        ),
        (
            examples.match(score=0.0, score_low=0.0, score_high=0.1, opponent="solver"),
            examples.match(score=0.0, score_low=0.0, score_high=0.1),
            ("warn", "worse than random"),
        ),
    ],
)
def test_each_alarm_has_a_threshold(well: Report, ill: Report, expected: tuple[str, str]) -> None:
    assert found(well) == []
    assert found(ill) == [expected]


def test_weights_are_stale_once_they_lag_too_far_behind() -> None:
    assert stale_weights(5, 5 + alarms.STALE_UPDATES) is None
    alarm = stale_weights(5, 6 + alarms.STALE_UPDATES)
    assert alarm is not None
    assert (alarm.level, alarm.name) == ("stop", "stale weights")


def test_reports_that_say_nothing_of_health_give_no_alarm() -> None:
    for report in (examples.run(), examples.replay(), examples.checkpoint(), examples.alarm()):
        assert found(report) == []


def every_alarm() -> list[Alarm]:
    reports = [
        examples.learn(value_target_variance=0.0),
        examples.selfplay(truncated_fraction=1.0, duplicate_fraction=1.0, policy_entropy=0.0, finished=99),
        examples.match(score=0.1, score_low=0.0, score_high=0.2),
    ]
    stale = stale_weights(0, 10**6)
    assert stale is not None
    return [alarm for report in reports for alarm in alarms_of(report)] + [
        stale,
        non_finite(3, "value loss", 1e99, "x"),
    ]


def test_the_settings_that_alarms_name_are_settings() -> None:
    known = {setting.path for setting in describe(RunConfig)}
    known |= {path.rpartition(".")[0] for path in known}  # schedules
    assert len(every_alarm()) == 7
    for alarm in every_alarm():
        named = re.findall(r"[a-z]+\.[a-z_]+", alarm.setting)
        assert named, alarm
        assert set(named) <= known, alarm


def test_an_alarm_becomes_a_report_of_where_the_run_stood() -> None:
    alarm = non_finite(7, "policy loss", float("nan"), "runs/x/checkpoints/6")
    report = alarm.report(examples.learn(step=7, rows=70, seconds=1.5))
    assert (report.step, report.rows, report.seconds) == (7, 70, 1.5)
    assert (report.level, report.name, report.setting) == ("stop", "non-finite numbers", alarm.setting)
    assert "policy loss is nan at step 7; last good checkpoint: runs/x/checkpoints/6" in report.message
