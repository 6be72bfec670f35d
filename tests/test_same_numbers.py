"""`scripts/same_numbers.py`: what it finds between two commits, and what it leaves behind."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from aleazero.replay.log import ReplayLog
from scripts import same_numbers
from scripts.same_numbers import Case, Values, differences, judge, main, read_run

pytestmark = pytest.mark.slow

in_checkout = pytest.mark.skipif(not (same_numbers.ROOT / ".git").exists(), reason="not a git checkout")


def some_run(folder: Path, games: int = 2, loss: float = 0.5, seconds: float = 1.0) -> Path:
    """Write what is compared of a run: two records of games, a checkpoint and reports."""
    with contextlib.closing(ReplayLog(folder / "replay" / "0")) as log:
        for number in range(games):
            log.append(number, {"source": np.array(number % 2), "action": np.arange(4, dtype=np.int16) + number})
    step = folder / "checkpoints" / "000000000008"
    step.mkdir(parents=True)
    weights = {"weights/kernel": np.linspace(0, 1, 5, dtype=np.float32), "weights/nan": np.array([np.nan])}
    safetensors.numpy.save_file(weights, step / "arrays-000.safetensors")
    (step / "manifest.json").write_text(json.dumps({"facts": {"rows": 16, "seconds": seconds, "best": [0.5, 8]}}))
    reports = [
        {"kind": "hardware", "cpu_percent": 100 * seconds},
        {"kind": "learn", "loss": loss, "losses": {"value": 0.25}, "rows_per_second": 1 / seconds, "time": seconds},
    ]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(report)}\n" for report in reports))
    return folder


def test_a_run_that_took_longer_is_the_same(tmp_path: Path) -> None:
    one, other = read_run(some_run(tmp_path / "a" / "it")), read_run(some_run(tmp_path / "b" / "it", seconds=2.0))
    assert differences(one, other) == []
    assert {key.partition(": ")[0] for key in one} == {
        "it/replay",
        "it/checkpoints/000000000008",
        "it/metrics.jsonl",
    }
    assert len(one) == 4 + 5 + 3


def test_what_differs_is_named_by_file_and_key_and_how_much(tmp_path: Path) -> None:
    one, other = read_run(some_run(tmp_path / "a" / "it")), read_run(some_run(tmp_path / "b" / "it", 1, 0.75))
    other["it/checkpoints/000000000008: weights/kernel"] = np.linspace(0, 1.5, 5, dtype=np.float32)
    assert differences(one, other) == [
        "it/replay: record 1, action is only in the old one",
        "it/replay: record 1, source is only in the old one",
        "it/checkpoints/000000000008: weights/kernel differs by up to 0.5",
        "it/metrics.jsonl: learn 0, loss differs by up to 0.25",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (1.0, 1.0 + 2**-52, "differs by up to 2.22e-16"),
        (1, 1.0, "is 1, and now 1.0"),
        ("won", "lost", "is 'won', and now 'lost'"),
        (True, False, "differs by up to 1"),
        (None, 0.0, "is None, and now 0.0"),
        (np.zeros(2, np.float32), np.zeros(2, np.float16), "is float32[2], and now float16[2]"),
        (np.zeros(2), np.zeros(3), "is float64[2], and now float64[3]"),
        (np.array([0.0]), np.array([-0.0]), "differs by up to 0"),
        (np.array([0], np.uint8), np.array([255], np.uint8), "differs by up to 255"),
    ],
)
def test_one_bit_is_a_difference(old: Any, new: Any, said: str) -> None:
    assert differences({"file: key": old}, {"file: key": new}) == [f"file: key {said}"]
    assert differences({"file: key": old}, {"file: key": old}) == []


def test_a_resumed_run_must_equal_a_whole_one() -> None:
    def values(last: float) -> Values:
        first = {f"{run}/checkpoints/04: weights": np.array([float(len(run))]) for run in ("whole", "halves")}
        ends = {"whole/checkpoints/08: weights": np.array([1.0]), "halves/checkpoints/08: weights": np.array([last])}
        return first | ends

    case = Case((), equal=("whole", "halves"))
    assert judge(case, (values(1.0), values(1.0))) == []
    assert judge(case, (values(1.5), values(1.5))) == [
        f"{side}: whole and halves: weights differs by up to 0.5" for side in ("old", "new")
    ]
    assert judge(Case(()), ({}, {})) == ["there is nothing to compare"]


def worktrees() -> str:
    command = ["git", "-C", str(same_numbers.ROOT), "worktree", "list"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@in_checkout
def test_the_smallest_training_is_the_same_at_one_commit(compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = worktrees()
    assert main(["HEAD", "HEAD", "--only", "tictactoe-policy"]) == 0
    words = capsys.readouterr().out.split()
    assert words[0] == "tictactoe-policy"
    assert words[3:4] == ["same,"]
    assert int(words[4]) > 300
    assert worktrees() == before


@in_checkout
def test_a_difference_and_a_failure_are_told_by_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = iter([1.0, 1.5])
    monkeypatch.setattr(same_numbers, "run_case", lambda *_: {"it/metrics.jsonl: learn 0, loss": next(found)})
    assert main(["HEAD", "--only", "pig"]) == 1
    assert "1 differ; first: it/metrics.jsonl: learn 0, loss differs by up to 0.5" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setitem(same_numbers.CASES, "pig", Case((same_numbers.Step("show pgi"),)))
    assert main(["HEAD", "--only", "pig"]) == 1
    assert "failed: alea show pgi: exit code 2: " in capsys.readouterr().out


@in_checkout
def test_ctrl_c_leaves_no_worktree(monkeypatch: pytest.MonkeyPatch) -> None:
    before, during = worktrees(), []

    def interrupted(*_: Any) -> Values:
        during.append(worktrees())
        raise KeyboardInterrupt

    monkeypatch.setattr(same_numbers, "run_case", interrupted)
    with pytest.raises(KeyboardInterrupt):
        main(["HEAD", "HEAD", "--only", "pig"])
    assert [len(text.splitlines()) for text in during] == [len(before.splitlines()) + 2]
    assert worktrees() == before
