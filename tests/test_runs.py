"""Run folders: names, locks held by real processes, deletion, the settings they keep."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from aleazero.config import RunConfig
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.runs import RunError, RunFolder, all_runs, delete_run, find_run, new_run, runs_root

CONFIG = RunConfig(game="tictactoe", seed=7)


def make(root: Path, name: str) -> RunFolder:
    run = new_run(root, name, "")
    run.write_config(CONFIG)
    return run


# Where runs are, and what they are called.


def test_where_runs_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ALEA_RUNS", raising=False)
    assert runs_root() == Path("runs")
    monkeypatch.setenv("ALEA_RUNS", "")
    assert runs_root() == Path("runs")
    monkeypatch.setenv("ALEA_RUNS", str(tmp_path))
    assert runs_root() == tmp_path
    assert runs_root(Path("here")) == Path("here")


def test_a_run_without_a_name_takes_the_first_that_is_free(tmp_path: Path) -> None:
    assert [new_run(tmp_path / "runs", None, "pig-quick").name for _ in range(3)] == [
        "pig-quick-1",
        "pig-quick-2",
        "pig-quick-3",
    ]
    (tmp_path / "runs" / "pig-quick-2").rmdir()
    assert new_run(tmp_path / "runs", None, "pig-quick").name == "pig-quick-2"


def test_a_name_that_is_taken_is_refused_with_what_to_do(tmp_path: Path) -> None:
    make(tmp_path, "mine")
    with pytest.raises(RunError) as caught:
        new_run(tmp_path, "mine", "")
    for advice in ("there is a run 'mine'", "alea runs resume mine", "alea runs delete mine", "another name"):
        assert advice in str(caught.value)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/tmp/x", "-x", ".hidden", "a b", "ä", "a\n"])
def test_what_cannot_be_a_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunError, match="is no name for a run"):
        new_run(tmp_path, name, "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("x", None):
        with pytest.raises(RunError, match="could not make"):
            new_run(tmp_path / "file", name, "stem")


def test_runs_are_found_by_name_or_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "alpha")
    make(tmp_path, "beta")
    (tmp_path / "not-a-run").mkdir()
    assert [run.name for run in all_runs(tmp_path)] == ["alpha", "beta"]
    assert find_run(tmp_path, "alpha").path == tmp_path / "alpha"
    assert find_run(tmp_path / "elsewhere", str(tmp_path / "beta")).name == "beta"
    with pytest.raises(UnknownName, match=r"'alpa': did you mean 'alpha'\? known: alpha, beta"):
        find_run(tmp_path, "alpa")
    with pytest.raises(UnknownName):
        find_run(tmp_path, "not-a-run")
    assert all_runs(tmp_path / "nowhere") == []


# What it keeps.


def test_settings_come_back_as_they_were(tmp_path: Path) -> None:
    run = make(tmp_path, "it")
    assert run.read_config() == CONFIG
    assert [path.name for path in run.path.iterdir()] == ["config.toml"]
    run.config_file.write_text("game = 'pig'\nsede = 3\n")
    with pytest.raises(ConfigError, match=r"unknown key sede \(.*config\.toml\): did you mean seed\?"):
        run.read_config()


def test_every_part_has_its_place(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "it")
    places = [run.config_file, run.metrics_file, run.checkpoints, run.replay, run.log_file, run.stop_file]
    assert [path.relative_to(run.path).as_posix() for path in places] == [
        "config.toml",
        "metrics.jsonl",
        "checkpoints",
        "replay",
        "alea.log",
        "stop",
    ]


# Who trains it.


def hold(path: Path, ready: multiprocessing.synchronize.Event) -> None:
    with RunFolder(path).held():
        ready.set()
        time.sleep(600)


def test_a_lock_ends_with_its_process_however_that_ends(tmp_path: Path) -> None:
    run = make(tmp_path, "it")
    assert run.owner() is None
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=hold, args=(run.path, ready), daemon=True)
    holder.start()
    assert ready.wait(60)
    assert holder.pid is not None
    assert run.owner() == holder.pid
    with (
        pytest.raises(RunError, match=rf"by process {holder.pid} already; stop it first: alea runs stop it"),
        run.held(),
    ):
        pass
    with pytest.raises(RunError, match=f"by process {holder.pid}; stop it first"):
        delete_run(run)
    assert run.path.exists()
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    assert run.owner() is None
    with run.held():
        assert run.owner() == os.getpid()
    assert run.owner() is None


def test_holding_forgets_an_old_request_to_stop(tmp_path: Path) -> None:
    run = make(tmp_path, "it")
    run.stop_file.touch()
    with run.held():
        assert not run.stop_file.exists()
        run.stop_file.touch()
    assert run.stop_file.exists()


def test_the_lock_is_let_go_after_an_error(tmp_path: Path) -> None:
    run = make(tmp_path, "it")
    with pytest.raises(ZeroDivisionError), run.held():
        raise ZeroDivisionError
    assert run.owner() is None


def test_asking_for_the_owner_keeps_nobody_from_training(tmp_path: Path) -> None:
    """`alea runs list` takes the lock for a moment to see whether anybody has it."""
    run = make(tmp_path, "it")
    (run.path / "run.lock").touch()
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            run.owner()
            time.sleep(0.0002)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(500):
            with run.held():
                pass
    finally:
        stop.set()
        asking.join()


def test_a_deleted_run_leaves_nothing(tmp_path: Path) -> None:
    run = make(tmp_path, "it")
    (run.checkpoints / "000000000001").mkdir(parents=True)
    delete_run(run)
    assert list(tmp_path.iterdir()) == []
    assert new_run(tmp_path, "it", "").name == "it"
