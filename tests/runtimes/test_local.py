"""The local runtime: what a run learns depends on its config and seed, and on nothing that watches it."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import re
import types
from collections.abc import Iterable, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero import checkpoint
from aleazero.assemble import build_parts
from aleazero.chess_games import held_games, selfplay_games
from aleazero.core.errors import UnknownName
from aleazero.observe.reports import (
    AlarmReport,
    CheckpointReport,
    EvalReport,
    LearnReport,
    ReplayReport,
    Report,
    RunReport,
    SelfPlayReport,
)
from aleazero.observe.sink import Fanout
from aleazero.observe.tensorboard import TensorboardSink
from aleazero.play.episodes import Episode
from aleazero.play.match import MatchResult
from aleazero.players import find_checkpoint
from aleazero.replay.log import ReplayLog, ReplayLogError
from aleazero.runs import RunFolder, new_run
from aleazero.runtimes.local import LocalRun, TrainingStopped
from tests.runtimes.support import (  # noqa: F401 - fixtures
    Children,
    Recorder,
    StopAfter,
    differences,
    finite,
    make_run,
    newest,
    programs,
    quick_programs,
    tiny,
    train,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_programs")]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, quick_programs: None) -> tuple[RunFolder, Recorder]:  # noqa: F811
    """The tiny run, trained to its end, and every report of it."""
    sink = Recorder()
    return train(tiny(), tmp_path_factory.mktemp("reference"), sink=sink), sink


@pytest.fixture
def reference(watched: tuple[RunFolder, Recorder]) -> checkpoint.Checkpoint:
    return newest(watched[0])


class Broken:
    """A sink whose every call raises."""

    def emit(self, report: Report) -> None:
        raise OSError("the display is gone")

    flush = close = lambda self: None


# What is learned.


def test_a_run_plays_learns_and_ends_as_its_config_says(watched: tuple[RunFolder, Recorder]) -> None:
    folder, sink = watched
    config, last = tiny(), newest(folder)
    assert [report.status for report in sink.of(RunReport)] == ["started", "done"]
    assert sink.reports[0].rows == 0
    assert sink.reports[-1].rows == last.facts["rows"] == config.total_rows == 2560
    # As many updates as the rows allow, once there are enough rows.
    updates = 4 * (2560 * 4 // 64 // 4)
    assert last.step == updates == 160
    assert [report.step for report in sink.of(LearnReport)] == sorted({report.step for report in sink.of(LearnReport)})
    assert sink.of(LearnReport)[-1].rows_trained == updates * 64
    played = sink.of(SelfPlayReport)
    assert [report.rows for report in played] == list(range(128, 2561, 128))
    assert played[-1].games == sum(report.finished for report in played) == last.facts["games_finished"]
    assert sink.of(ReplayReport)[-1].rows_held == 1024
    saved = sink.of(CheckpointReport)
    assert [report.rows for report in saved] == [640, 1280, 1920, 2560]
    assert all(report.saved and Path(report.path).parent == folder.checkpoints for report in saved)
    assert checkpoint.steps(folder.checkpoints) == [120, 160]
    assert not sink.of(AlarmReport)


@pytest.mark.parametrize(("every", "told"), [(0, range(128, 2561, 128)), (3, [512, 896, 1280, 1664, 2048, 2432, 2560])])
def test_reports_say_rates_of_the_time_that_their_rows_took(
    every: int, told: Sequence[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("aleazero.runtimes.local.time", types.SimpleNamespace(monotonic=lambda: now))
    sink = Recorder()
    with contextlib.closing(make_run(tiny(f"observe.every_seconds={every}"), tmp_path, sink=sink)) as run:
        play = run.producer.step

        def slowly() -> object:
            nonlocal now
            now += 1.0
            return play()

        monkeypatch.setattr(run.producer, "step", slowly)
        run.train(StopAfter())
    reports = sink.of(SelfPlayReport)
    assert [report.rows for report in reports] == list(told)
    assert [report.rows_per_second for report in reports] == [128.0] * len(told)


def test_the_first_updates_wait_for_enough_rows(watched: tuple[RunFolder, Recorder]) -> None:
    sink = watched[1]
    ready = {report.rows: report.rows_ready for report in sink.of(ReplayReport)}
    steps = {report.rows: report.step for report in sink.of(ReplayReport)}
    assert ready[128] < 256
    assert [rows for rows, step in steps.items() if step] == [
        rows for rows in ready if any(ready[earlier] >= 256 for earlier in ready if earlier <= rows)
    ]
    for rows, step in steps.items():
        assert step * 64 <= 4 * rows


def test_the_same_seed_learns_the_same_and_another_does_not(reference: checkpoint.Checkpoint, tmp_path: Path) -> None:
    assert differences(newest(train(tiny(), tmp_path, "same")), reference) == []
    other = newest(train(tiny("seed=1"), tmp_path, "other"))
    changed = differences(other, reference)
    assert any(name.startswith("weights/") for name in changed)
    assert any(name.startswith("games/") for name in changed)


@pytest.mark.parametrize(
    "changes",
    [
        ("evaluate.every_rows=256", "evaluate.opponents=random,solver"),
        ("checkpoint.every_rows=100", "checkpoint.keep_last=1"),
        ("checkpoint.every_rows=100000", "observe.every_seconds=1000"),
        ("replay.log=false",),
    ],
    ids=["evaluation", "many checkpoints", "no checkpoints, no reports", "no log"],
)
def test_nothing_that_watches_a_run_changes_what_it_learns(
    reference: checkpoint.Checkpoint, tmp_path: Path, changes: tuple[str, ...]
) -> None:
    sink = Recorder()
    folder = train(tiny(*changes), tmp_path, sink=sink)
    assert differences(newest(folder), reference) == []
    matches = sink.of(EvalReport)
    if "evaluate.every_rows=256" in changes:
        expected = [rows for rows in range(256, 2561, 256) for _ in range(2)]
        assert [report.rows for report in matches] == expected
        assert {report.opponent for report in matches} == {"random", "solver"}
        assert all(report.games == 16 for report in matches)
        assert all(report.player == f"run:it@{report.step}" for report in matches)
    else:
        assert not matches


def test_versions_stay_when_checkpoints_go_and_games_are_there_without_a_log(
    watched: tuple[RunFolder, Recorder], tmp_path: Path
) -> None:
    folder = train(tiny("replay.log=false", "checkpoint.keep_weights=3"), tmp_path)
    whole, steps = checkpoint.steps(folder.checkpoints), folder.steps()
    assert (len(whole), len(steps)) == (2, 3)
    assert steps[1:] == whole
    found = find_checkpoint(folder, str(steps[0]))
    assert {name.partition("/")[0] for name in found.arrays} == {"average"}
    assert found.facts["game"] == "tictactoe"
    with pytest.raises(UnknownName, match=f", {steps[0]}, best"):
        find_checkpoint(folder, "7")

    def told(games: Iterable[Episode]) -> list[tuple[list[int], float]]:
        return [(one.moves.action.tolist(), float(one.moves.points[-1])) for one in games]

    held = told(held_games(folder))
    assert held == told(selfplay_games(watched[0], 8)), "8 slabs are held: those that a log has last"
    assert len(held) > 50


def test_sinks_do_not_change_what_is_learned_and_a_failing_one_does_not_stop_it(
    reference: checkpoint.Checkpoint, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Recorder()
    with caplog.at_level(logging.WARNING, "aleazero"):
        sink = Fanout([Broken(), kept, TensorboardSink(tmp_path / "board")])
        folder = train(tiny(), tmp_path, sink=sink)
        sink.close()
    assert differences(newest(folder), reference) == []
    assert kept.of(RunReport)[-1].status == "done"
    assert [record.getMessage() for record in caplog.records] == [
        "Broken failed; the run goes on without it: OSError: the display is gone"
    ]
    assert list((tmp_path / "board").iterdir())


def test_a_run_whose_lanes_are_on_several_devices_is_resumed_exactly(
    tmp_path: Path,
    programs: Path,  # noqa: F811
) -> None:
    lines = f"""
import contextlib
from pathlib import Path
from aleazero.core import devices
from tests.runtimes.support import StopAfter, make_run, newest, tiny, train
devices.LEAST_LANES = 4
config, root = tiny("total_rows=1280"), Path({str(tmp_path)!r})
train(config, root, "whole")
train(config, root, "parts", stop=4)
with contextlib.closing(make_run(config, root, "parts")) as run:
    assert run.parts.mesh.size == 4
    run.resume(newest(run.folder), "exact")
    run.train(StopAfter())
"""
    code, printed = Children(programs).python(lines, XLA_FLAGS="--xla_force_host_platform_device_count=4").finish()
    assert code == 0, printed
    whole, parts = (newest(RunFolder(tmp_path / name)) for name in ("whole", "parts"))
    assert whole.facts["rows"] == 1280
    assert differences(whole, parts) == []


def test_the_best_checkpoint_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Recorder()
    config = tiny("evaluate.every_rows=512", "evaluate.opponents=random", "checkpoint.every_rows=256")
    scores = iter([0.5, 0.75, 0.25, 0.0, 0.5])

    def play(self: object, weights: object, opponent: str, root: object) -> object:
        wins = next(scores) * 16
        points = np.where(np.arange(16) < wins, 1.0, -1.0).reshape(8, 2)
        return MatchResult("self", opponent, points, np.ones_like(points))

    monkeypatch.setattr("aleazero.assemble.Parts.play_match", play)
    folder = train(config, tmp_path, sink=sink)
    matches = sink.of(EvalReport)
    assert [report.score for report in matches] == [0.5, 0.75, 0.25, 0.0, 0.5]
    best = matches[1].step
    assert checkpoint.steps(folder.checkpoints) == [best, 144, 160]
    assert newest(folder).facts["best"] == [0.75, best]
    told = [report.rows for report in sink.of(CheckpointReport)]
    assert told == list(range(256, 2561, 256)), "once each, also where it is the best and due besides"


def test_a_match_in_which_no_game_ends_is_said_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def play(self: object, weights: object, opponent: str, root: object) -> object:
        return MatchResult("self", opponent, np.full((8, 2), np.nan), np.ones((8, 2)))

    monkeypatch.setattr("aleazero.assemble.Parts.play_match", play)
    sink = Recorder()
    with caplog.at_level(logging.WARNING, "aleazero"):
        train(tiny("total_rows=256", "evaluate.opponents=random"), tmp_path, sink=sink)
    assert not sink.of(EvalReport)
    assert sink.of(RunReport)[-1].status == "done"
    assert "every game was stopped" in caplog.text


def test_a_run_that_never_had_enough_rows_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "aleazero"):
        folder = train(tiny("total_rows=256"), tmp_path)
    assert newest(folder).step == 0
    assert re.search(r"nothing was learned: \d+ rows were ready, and replay.min_rows is 256", caplog.text)


def test_nothing_large_is_compiled_twice(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = tiny("total_rows=768", "evaluate.opponents=random")
    with jax.log_compiles(), caplog.at_level(logging.WARNING, "jax"):
        run = LocalRun(build_parts(config), new_run(tmp_path, "it", ""), Recorder(), root=tmp_path)
        with contextlib.closing(run):
            run.train(StopAfter())
    compiled = re.findall(r"Compiling jit\((.*?)\) with global shapes and types \((.*?)\)\. Argument", caplog.text)
    large = [(name, shapes) for name, shapes in compiled if shapes.count("ShapedArray") > 8]
    assert {"insert", "draw", "updates"} <= {name for name, _ in large}
    assert len(large) == len(set(large))


# Going on.


@pytest.mark.parametrize("iterations", [0, 1, 7])
def test_a_run_that_was_stopped_and_resumed_equals_one_that_was_not(
    reference: checkpoint.Checkpoint, tmp_path: Path, iterations: int
) -> None:
    sink = Recorder()
    folder = train(tiny(), tmp_path, sink=sink, stop=iterations)
    assert sink.of(RunReport)[-1].status == "stopped"
    before = newest(folder)
    assert before.facts["rows"] == 128 * iterations
    with contextlib.closing(make_run(tiny(), tmp_path, sink=sink)) as run:
        run.resume(before, "exact")
        assert run.train(StopAfter()) == "done"
    assert differences(newest(folder), reference) == []
    assert [report.status for report in sink.of(RunReport)] == ["started", "stopped", "resumed", "done"]
    told = {report.status: report.seconds for report in sink.of(RunReport)}
    assert before.facts["seconds"] <= told["resumed"] < told["done"]


def test_every_way_to_draw_rows_survives_a_stop(tmp_path: Path) -> None:
    rich = tiny(
        *("replay.surprise=0.5", "replay.importance=0.5", "replay.window=power", "replay.window_start=256"),
        *("targets.td_lambda=0.7", "targets.search_mix=0.25", "selfplay.full_search_fraction=0.5"),
        *("selfplay.temperature.end=0.1", "selfplay.temperature_plies=6", "learn.learning_rate.warmup_rows=4096"),
    )
    whole = newest(train(rich, tmp_path, "whole"))
    folder = train(rich, tmp_path, "parts", stop=13)
    with contextlib.closing(make_run(rich, tmp_path, "parts")) as run:
        run.resume(newest(folder), "exact")
        run.train(StopAfter())
    assert differences(newest(folder), whole) == []


def test_without_a_log_checkpoints_hold_the_replay(reference: checkpoint.Checkpoint, tmp_path: Path) -> None:
    logless = tiny("replay.log=false")
    folder = train(logless, tmp_path, stop=9)
    assert not list(folder.replay.glob("*"))
    with contextlib.closing(make_run(logless, tmp_path)) as run:
        run.resume(newest(folder), "exact")
        assert run.replay.num_slabs == 9
        run.train(StopAfter())
    ended = newest(folder)
    assert any(name.startswith("replay/") for name in ended.arrays)
    assert not any(name.startswith("replay/") for name in reference.arrays)  # where there is a log
    assert differences(ended, reference) == []
    assert differences(ended, newest(train(logless, tmp_path, "whole"))) == []


def test_a_replay_log_of_an_earlier_version_is_named(tmp_path: Path) -> None:
    folder = train(tiny(), tmp_path, stop=3)
    log = ReplayLog(folder.replay / f"{0:012d}")
    records = [dict(arrays) for _, arrays in log.read(0, 3)]
    log.truncate(0)
    for number, arrays in enumerate(records):
        del arrays["settled"]
        log.append(number, arrays)
    log.close()
    with contextlib.closing(make_run(tiny(), tmp_path)) as run:  # noqa: SIM117 - what raises is the line below
        with pytest.raises(ReplayLogError, match=r"record 0 of the replay log .* has no settled: an earlier version"):
            run.resume(newest(folder), "exact")


def resume_from_weights(config_changes: tuple[str, ...], root: Path, stop: int) -> tuple[LocalRun, Recorder]:
    sink = Recorder()
    with contextlib.closing(make_run(tiny(*config_changes), root, sink=sink)) as run:
        run.resume(newest(run.folder), "weights")
        run.train(StopAfter(stop))
    return run, sink


def test_from_weights_alone_replay_is_filled_before_the_first_update(tmp_path: Path) -> None:
    folder = train(tiny(), tmp_path, stop=10)
    before = newest(folder)
    assert before.step == 80
    run, sink = resume_from_weights((), tmp_path, 2**30)
    reports = sink.of(ReplayReport)
    assert [report.rows for report in reports] == list(range(1280 + 128, 2561, 128))  # rows go on counting
    assert reports[0].rows_held == 128
    first = next(report for report in reports if report.step > 80)
    for report in reports:
        enough = any(earlier.rows_ready >= 256 for earlier in reports if earlier.rows <= report.rows)
        assert (report.step > 80) == enough
        assert (report.step - 80) * 64 <= 4 * (report.rows - 1280)  # only rows played since then count
    assert first.rows_ready >= 256
    assert first.rows > 1280 + 128
    last = newest(folder)
    assert (last.step, last.facts["base_steps"], last.facts["slabs"]) == (80 + 80, 80, 10)
    assert run.learner.rows_trained == 160 * 64
    assert run.replay.rows_before == 1280  # schedules by rows go on too


def test_weights_the_average_and_the_optimiser_are_kept_from_weights_alone(tmp_path: Path) -> None:
    folder = train(tiny(), tmp_path, stop=10)
    before = newest(folder)
    resume_from_weights((), tmp_path, 1)
    after = newest(folder)
    assert after.step == before.step
    learned = [name for name in before.arrays if not name.startswith("games/")]
    assert all(np.array_equal(before.arrays[name], after.arrays[name]) for name in learned)
    assert (before.facts["slabs"], after.facts["slabs"]) == (10, 1)


def test_a_run_from_weights_alone_is_resumed_exactly(tmp_path: Path) -> None:
    falling = ("targets.td_lambda=0.9", "targets.td_lambda_end=0.3")
    train(tiny(*falling), tmp_path / "whole", stop=10)
    train(tiny(*falling), tmp_path / "parts", stop=10)
    whole, _ = resume_from_weights(falling, tmp_path / "whole", 2**30)
    parts, _ = resume_from_weights(falling, tmp_path / "parts", 4)
    with contextlib.closing(make_run(tiny(*falling), tmp_path / "parts")) as run:
        run.resume(newest(parts.folder), "exact")
        run.train(StopAfter())
    assert differences(newest(parts.folder), newest(whole.folder)) == []


def test_from_weights_alone_twice_never_plays_back_the_replay_of_the_first_time(tmp_path: Path) -> None:
    folder = train(tiny(), tmp_path, stop=10)
    resume_from_weights((), tmp_path, 1)  # a checkpoint of step 80 whose replay has one slab
    with contextlib.closing(make_run(tiny("checkpoint.every_rows=100000"), tmp_path)) as run:
        run.resume(newest(folder), "weights")
        with contextlib.suppress(KeyboardInterrupt):  # as if killed: nothing is saved in the end
            run.train(Interrupt())
    found = newest(folder)
    with contextlib.closing(make_run(tiny(), tmp_path)) as again:
        again.resume(found, "exact")
        assert (found.facts["slabs"], again.replay.num_slabs) == (0, 0)


class Interrupt:
    """Lets two iterations pass, and then stops at once."""

    calls = 0

    def stop_requested(self) -> bool:
        self.calls += 1
        if self.calls > 2:
            raise KeyboardInterrupt
        return False


# What must not go on.


def stopped(run: LocalRun) -> str:
    with contextlib.closing(run), pytest.raises(TrainingStopped) as caught:
        run.train(StopAfter())
    return str(caught.value)


def test_numbers_that_are_none_stop_the_run_with_step_term_and_the_last_good_checkpoint(tmp_path: Path) -> None:
    train(tiny(), tmp_path, stop=10)
    sink = Recorder()
    config = tiny("learn.learning_rate.start=1e30", "learn.learning_rate.end=1e30", "checkpoint.every_rows=128")
    run = make_run(config, tmp_path, sink=sink)
    run.resume(newest(run.folder), "exact")
    message = stopped(run)
    good = run.folder.checkpoints / f"{80:012d}"
    found = re.search(r"^non-finite numbers: (\w+ loss|gradient norm) is (nan|inf) at step (\d+);", message)
    assert found, message
    assert 80 < int(found[3]) <= 88
    assert f"last good checkpoint: {good}." in message
    assert "learn.learning_rate" in message
    assert newest(run.folder).step == 80
    alarms = sink.of(AlarmReport)
    assert [(alarm.level, alarm.name) for alarm in alarms] == [("stop", "non-finite numbers")]
    last = sink.of(RunReport)[-1]
    assert (last.status, last.message) == ("failed", alarms[0].message)


@pytest.mark.parametrize("tree", ["weights", "average", "optimiser"])
def test_what_is_not_finite_is_never_saved(tmp_path: Path, tree: str) -> None:
    """The last update's loss is finite: only what it led to is not."""
    run = make_run(tiny(), tmp_path)
    with contextlib.closing(run):
        run.train(StopAfter(5))
        good = newest(run.folder)
        run.learner.steps += 4
        run.learner.state = dataclasses.replace(
            run.learner.state, **{tree: jax.tree.map(_spoilt, getattr(run.learner.state, tree))}
        )
        with pytest.raises(TrainingStopped, match=f"a weight is nan at step {good.step + 4}; last good .*{good.path}"):
            run.save()
    assert checkpoint.steps(run.folder.checkpoints)[-1] == good.step
    assert finite(newest(run.folder))


def _spoilt(leaf: jax.Array) -> jax.Array:
    return leaf.at[(0,) * leaf.ndim].set(jnp.inf) if leaf.ndim > 1 else leaf


def test_one_weight_that_is_none_is_enough(tmp_path: Path) -> None:
    run = make_run(tiny(), tmp_path)
    state = run.learner.state
    run.learner.state = dataclasses.replace(
        state, weights={**state.weights, "norm": jax.tree.map(lambda w: w * jnp.nan, state.weights["norm"])}
    )
    message = stopped(run)
    assert re.match(r"non-finite numbers: policy loss is nan at step 1;", message)
    assert checkpoint.steps(run.folder.checkpoints) == []


def test_a_checkpoint_of_another_game_or_version_is_refused_naming_both(tmp_path: Path) -> None:
    folder = train(tiny("total_rows=128"), tmp_path)
    found = newest(folder)
    for facts, name in (({"game": "pig"}, "pig version 1"), ({"game_version": 7}, "tictactoe version 7")):
        other = dataclasses.replace(found, facts={**found.facts, **facts})
        with contextlib.closing(make_run(tiny(), tmp_path)) as run, pytest.raises(checkpoint.CheckpointError) as caught:
            run.resume(other, "weights")
        assert f"is of {name}, not of tictactoe version 1" in str(caught.value)


def test_a_checkpoint_of_another_shape_is_refused_naming_what_does_not_fit(tmp_path: Path) -> None:
    folder = train(tiny("total_rows=128"), tmp_path)
    with (
        contextlib.closing(make_run(tiny("model.width=8"), tmp_path)) as run,
        pytest.raises(checkpoint.CheckpointError, match=r"weights/stem/kernel is float32\[18, 16\] and should be"),
    ):
        run.resume(newest(folder), "exact")
