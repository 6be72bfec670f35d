"""Starting, stopping and resuming runs: real signals, the stop file, locks, damaged files, changed settings."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from aleazero import checkpoint
from aleazero.config import MAY_CHANGE
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.observe.jsonl import read_jsonl
from aleazero.replay.log import ReplayLogError
from aleazero.runs import RunError, RunFolder
from aleazero.runtimes.start import resume, start
from tests.runtimes.support import (  # noqa: F401 - fixtures
    Children,
    change_facts,
    differences,
    last_rows,
    newest,
    programs,
    quick_programs,
    shared_parts,
    statuses,
    tiny,
    write_config,
)

pytestmark = pytest.mark.slow

LONG = tiny("total_rows=1000000", "checkpoint.every_rows=12800", "replay.log=true")


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, quick_programs: None) -> RunFolder:  # noqa: F811
    """The tiny run, trained to its end."""
    return start(tiny(), tmp_path_factory.mktemp("reference"), name="it", quiet=True).folder


@pytest.fixture(autouse=True)
def fast(reference: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the reference is made of programs of its own."""
    monkeypatch.setattr("aleazero.runtimes.start.build_parts", shared_parts)


@pytest.fixture
def copy(reference: RunFolder, tmp_path: Path) -> RunFolder:
    """The tiny run at its end, to be spoilt; its checkpoints are of steps 120 and 160."""
    shutil.copytree(reference.path, tmp_path / "it")
    assert checkpoint.steps(tmp_path / "it" / "checkpoints") == [120, 160]
    return RunFolder(tmp_path / "it")


# Stopping.


def test_signals_the_stop_file_and_the_lock_of_a_real_process(tmp_path: Path, programs: Path) -> None:  # noqa: F811
    children, folder = Children(programs), RunFolder(tmp_path / "runs" / "it")
    where = ("--runs", folder.path.parent)
    config = write_config(LONG, tmp_path / "it.toml")

    # Ctrl-C: a good end, with a checkpoint.
    child = children.start(config, "--preset", "quick", "--name", "it", *where)
    child.wait_for(lambda: last_rows(folder) > 1000, "1000 rows")
    child.send(signal.SIGINT)
    code, printed = child.finish()
    assert code == 0, printed
    assert "stopping after this step, with a checkpoint; once more stops at once" in printed
    assert statuses(folder) == ["started", "stopped"]
    stopped = newest(folder)
    assert stopped.facts["rows"] == last_rows(folder)
    assert folder.owner() is None

    # Somebody else may not train it meanwhile; `alea runs stop` leaves a file.
    child = children.start("--resume", "it", *where)
    child.wait_for(lambda: last_rows(folder) > stopped.facts["rows"], "more rows")
    assert folder.owner() == child.process.pid
    with pytest.raises(RunError, match=f"by process {child.process.pid} already; stop it first: alea runs stop it"):
        resume("it", folder.path.parent)
    with pytest.raises(RunError, match="there is a run 'it'"):
        start(LONG, folder.path.parent, name="it")
    folder.stop_file.touch()
    code, printed = child.finish()
    assert code == 0, printed
    assert statuses(folder) == ["started", "stopped", "resumed", "stopped"]
    again = newest(folder)
    assert again.facts["rows"] == last_rows(folder) > stopped.facts["rows"]

    # A second Ctrl-C does not wait for the checkpoint, which here takes for ever. SIGTERM counts like Ctrl-C.
    slow = "import time\nfrom aleazero import checkpoint\n"
    slow += "checkpoint.sync = lambda path: '.tmp-' in str(path) and time.sleep(60)"
    child = children.start("--resume", "it", *where, before=slow)
    child.wait_for(lambda: last_rows(folder) > again.facts["rows"], "more rows")
    assert not folder.stop_file.exists()
    child.send(signal.SIGTERM)
    child.wait_for(lambda: list(folder.checkpoints.glob(".tmp-*")), "a save")
    child.send(signal.SIGINT)
    began = time.monotonic()
    code, printed = child.finish()
    assert (code, "aleazero.run: stopped" in printed) == (1, True)
    assert time.monotonic() - began < 30
    assert statuses(folder)[-1] == "resumed"
    assert differences(newest(folder), again) == []


def test_a_run_stops_when_its_time_is_over_and_goes_on_from_there(
    reference: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = start(tiny(), tmp_path, name="it", seconds=0.0, quiet=True)
    assert (finished.status, newest(finished.folder).facts["rows"]) == ("stopped", 0)
    assert finished.ratings == []
    folder = finished.folder

    class Clock:
        """An hour passes with the first rows."""

        @staticmethod
        def monotonic() -> float:
            return time.monotonic() + (3600.0 if last_rows(folder) > 0 else 0.0)

    with monkeypatch.context() as patch:
        patch.setattr("aleazero.runtimes.start.time", Clock)
        finished = resume("it", tmp_path, seconds=1800.0, quiet=True)
    assert (finished.status, 0 < newest(finished.folder).facts["rows"] < 2560) == ("stopped", True)
    finished = resume("it", tmp_path, seconds=1000.0, quiet=True)
    assert differences(newest(finished.folder), newest(reference)) == []
    assert statuses(finished.folder) == ["started", "stopped", "resumed", "stopped", "resumed", "done"]


def test_signals_are_given_back(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    start(tiny("total_rows=128"), tmp_path, quiet=True)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_stop_asked_for_before_the_run_was_resumed_is_forgotten(copy: RunFolder) -> None:
    copy.stop_file.touch()
    finished = resume("it", copy.path.parent, assignments=["total_rows=2816"], quiet=True)
    assert (finished.status, newest(copy).facts["rows"]) == ("done", 2816)


# Starting.


def test_a_new_run_is_named_after_its_game_and_preset(tmp_path: Path) -> None:
    short = tiny("total_rows=128")
    names = [start(short, tmp_path, preset="quick", quiet=True).folder.name for _ in range(2)]
    assert names == ["tictactoe-quick-1", "tictactoe-quick-2"]


def test_everything_wrong_is_said_before_anything_is_made(tmp_path: Path) -> None:
    config = tiny("evaluate.opponents=randm,run:nobody,solver", "total_rows=128")
    with pytest.raises(ConfigError) as caught:
        start(config, tmp_path / "runs", quiet=True)
    assert "evaluate.opponents: unknown player 'randm': did you mean 'random'?" in str(caught.value)
    assert "'nobody'" in str(caught.value)
    with pytest.raises(ConfigError, match=r"replay\.capacity_rows is 1024; 2000 games"):
        start(tiny("selfplay.num_games=2000"), tmp_path / "runs", quiet=True)
    assert not (tmp_path / "runs").exists()


def test_a_run_shows_itself_on_the_console_unless_it_is_to_be_quiet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(tiny("total_rows=128"), tmp_path, name="loud")
    assert "loud" in capsys.readouterr().out
    start(tiny("total_rows=128"), tmp_path, name="quiet", quiet=True)
    assert capsys.readouterr().out == ""


def test_a_plot_that_cannot_be_drawn_does_not_fail_the_run(
    copy: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy.path / "curves.svg").unlink()
    (copy.path / "curves.svg").mkdir()
    finished = resume("it", copy.path.parent, quiet=True)
    assert (finished.status, finished.plot) == ("done", None)
    assert "the curves could not be drawn" in copy.log_file.read_text()
    assert "the curves could not be drawn" in capsys.readouterr().err


# Resuming.


def spoil(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "truncated":
        del data[len(data) // 2 :]
    else:
        data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["changed", "truncated"])
@pytest.mark.parametrize("file", ["arrays-000.safetensors", "manifest.json"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_is_used(
    copy: RunFolder, reference: RunFolder, how: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = copy.checkpoints / f"{160:012d}"
    spoil(damaged / file, how)
    finished = resume("it", copy.path.parent, quiet=True)
    assert finished.status == "done"
    assert differences(newest(copy), newest(reference)) == []
    for told in (capsys.readouterr().err, copy.log_file.read_text()):
        assert f"checkpoint {damaged} is damaged: {file}" in told
    resumed = [report for report in read_jsonl(copy.metrics_file) if report.get("status") == "resumed"]
    assert [report["step"] for report in resumed] == [120]


def test_where_every_checkpoint_is_damaged_nothing_is_resumed(copy: RunFolder) -> None:
    for path in copy.checkpoints.glob("*/manifest.json"):
        spoil(path, "truncated")
    with pytest.raises(RunError, match=r"run 'it' has no usable checkpoint to resume from; start it anew"):
        resume("it", copy.path.parent, quiet=True)
    assert copy.owner() is None


def test_a_damaged_replay_log_is_named_and_weights_alone_still_serve(copy: RunFolder) -> None:
    (segment,) = copy.replay.rglob("segment-*.log")
    data = bytearray(segment.read_bytes())
    data[-10] ^= 1
    segment.write_bytes(data)
    with pytest.raises(
        ReplayLogError, match=rf"record 19 is damaged: {segment} has changed .* resume from weights alone"
    ):
        resume("it", copy.path.parent, quiet=True)
    finished = resume("it", copy.path.parent, "weights", ["total_rows=3072"], quiet=True)
    assert finished.status == "done"
    assert newest(copy).facts["rows"] == 3072


@pytest.mark.parametrize(
    ("facts", "name"),
    [({"game": "connect_four"}, "connect_four version 1"), ({"game_version": 2}, "tictactoe version 2")],
)
def test_a_checkpoint_of_other_rules_is_refused_naming_both(copy: RunFolder, facts: dict[str, Any], name: str) -> None:
    change_facts(copy.checkpoints / f"{160:012d}", **facts)
    with pytest.raises(checkpoint.CheckpointError) as caught:
        resume("it", copy.path.parent, quiet=True)
    assert f"is of {name}, not of tictactoe version 1" in str(caught.value)


def test_a_checkpoint_of_a_later_format_is_refused_by_name(copy: RunFolder) -> None:
    path = copy.checkpoints / f"{160:012d}"
    text = (path / "manifest.json").read_text().replace('"format": 1', '"format": 2', 1)
    (path / "manifest.json").write_text(text)
    change_facts(path)
    with pytest.raises(
        checkpoint.CheckpointError, match="has format 2, and this version of aleazero reads formats up to 1"
    ):
        resume("it", copy.path.parent, quiet=True)


def test_what_would_make_it_another_run_may_not_change(copy: RunFolder) -> None:
    before = copy.config_file.read_text()
    with pytest.raises(ConfigError) as caught:
        resume("it", copy.path.parent, assignments=["learn.batch_size=32", "seed=3", "total_rows=5120"], quiet=True)
    assert str(caught.value).splitlines() == [
        "seed was 0 and is now 3",
        "learn.batch_size was 64 and is now 32",
        f"a resumed run may change only {', '.join(MAY_CHANGE)}; start a new run",
    ]
    assert copy.config_file.read_text() == before


def test_what_only_watches_it_may_change_and_is_kept(copy: RunFolder) -> None:
    changes = ["total_rows=2816", "evaluate.opponents=random", "checkpoint.keep_last=1", "observe.json_logs=true"]
    finished = resume("it", copy.path.parent, assignments=changes, quiet=True)
    assert [rating.opponent for rating in finished.ratings] == ["random"]
    assert checkpoint.steps(copy.checkpoints) == [176]
    assert copy.read_config() == tiny(*changes)


def test_a_run_that_is_over_is_over(copy: RunFolder, reference: RunFolder) -> None:
    assert resume("it", copy.path.parent, quiet=True).status == "done"
    assert differences(newest(copy), newest(reference)) == []


def test_an_unknown_run_is_named_with_the_nearest(copy: RunFolder) -> None:
    with pytest.raises(UnknownName, match=r"'itt': did you mean 'it'\?"):
        resume("itt", copy.path.parent, quiet=True)


def test_the_logger_is_left_as_it_was(copy: RunFolder) -> None:
    logger = logging.getLogger("aleazero")
    before = (list(logger.handlers), logger.level, logger.propagate)
    resume("it", copy.path.parent, quiet=True)
    assert (list(logger.handlers), logger.level, logger.propagate) == before
    assert str(os.getpid()) in (copy.path / "run.pid").read_text()
