"""Runs with epochs: games first, then updates for each of them; exact when resumed, wherever they were stopped."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import pytest

from aleazero.observe.reports import LearnReport, SelfPlayReport
from aleazero.runtimes.local import LocalRun
from tests.runtimes.support import (  # noqa: F401 - fixtures
    Recorder,
    StopAfter,
    differences,
    make_run,
    newest,
    programs,
    quick_programs,
    tiny,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_programs")]

EPOCHS = (
    *("total_rows=1920", "learn.games_per_epoch=24", "learn.steps_per_game=2", "learn.learning_rate.rows=100000"),
    *("selfplay.temperature.start=1.0", "selfplay.temperature.end=0.1", "selfplay.temperature_epochs=6"),
    *("checkpoint.every_epochs=2", "checkpoint.keep_last=100", "replay.capacity_games=60"),
)


def test_games_come_first_then_their_updates(tmp_path: Path) -> None:
    recorder = Recorder()
    with contextlib.closing(make_run(tiny(*EPOCHS), tmp_path, sink=recorder)) as run:
        run.train(StopAfter())
        played = recorder.of(SelfPlayReport)
        assert run.learner.epoch == run._digest.games // 24 > 4
        assert run.learner.steps == run.learner.epoch * 48
        assert run.producer.epoch == run.learner.epoch
    for report in recorder.of(LearnReport):
        games = max(p.games for p in played if p.rows <= report.rows)
        assert report.step <= games // 24 * 48, "no update without its games"
    saved = {int(path.name) for path in run.folder.checkpoints.iterdir()}
    assert {96, 192} <= saved, "every second epoch"


class _Within:
    """Stops a run when an epoch has begun and is not over."""

    def __init__(self, run: LocalRun) -> None:
        self._run = run

    def stop_requested(self) -> bool:
        return self._run.learner.steps % 48 > 0


@pytest.mark.parametrize("log", ["true", "false"])
def test_a_run_stopped_within_an_epoch_goes_on_exactly(tmp_path: Path, log: str) -> None:
    config = tiny(*EPOCHS, f"replay.log={log}")
    with contextlib.closing(make_run(config, tmp_path, "whole")) as whole:
        whole.train(StopAfter())
    with contextlib.closing(make_run(config, tmp_path, "parts")) as run:
        run.train(_Within(run))
    with contextlib.closing(make_run(config, tmp_path, "parts")) as again:
        again.resume(newest(again.folder), "exact")
        assert again.learner.steps % 48
        again.train(StopAfter())
    assert differences(newest(whole.folder), newest(again.folder)) == []


def test_a_paused_run_waits(tmp_path: Path) -> None:
    with contextlib.closing(make_run(tiny(), tmp_path)) as run:
        run.folder.pause_file.touch()
        thread = threading.Thread(target=run.train, args=(StopAfter(),))
        thread.start()
        time.sleep(0.5)
        assert run.producer.rows == 0
        run.folder.pause_file.unlink()
        thread.join(60)
        assert run.producer.rows == 2560
