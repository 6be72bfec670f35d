"""`alea runs`: on a real run, with real locks."""

from __future__ import annotations

import io
import json
import os
import shutil
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from aleazero.cli.main import run
from aleazero.observe.jsonl import read_jsonl
from aleazero.runs import RunFolder
from tests.cli.conftest import Alea
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")


def metrics(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [record for record in read_jsonl(folder / "metrics.jsonl") if record["kind"] == kind]


@contextmanager
def alive(folder: Path, obeys: bool = True) -> Iterator[None]:
    """Holds the run's lock as a training does, until it is told to stop if it obeys, and in any case until the end."""
    held, leave = threading.Event(), threading.Event()

    def train() -> None:
        with RunFolder(folder).held():
            held.set()
            while not leave.is_set() and not (obeys and (folder / "stop").exists()):
                time.sleep(0.01)

    thread = threading.Thread(target=train)
    thread.start()
    try:
        assert held.wait(60)
        yield
    finally:
        leave.set()
        thread.join()


# ---- list


def test_list_says_how_a_run_stands(alea: Alea, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (listed,) = alea("runs", "list", "--runs", trained)["runs"]
    assert (listed["name"], listed["game"], listed["status"], listed["pid"]) == ("tiny", "tictactoe", "done", None)
    assert (listed["step"], listed["rows"], listed["total_rows"]) == (128, 2048, 2048)
    last = metrics(trained / "tiny", "eval")[-1]
    (rating,) = listed["ratings"]
    assert rating == {key: last[key] for key in rating}
    assert (rating["opponent"], rating["step"]) == ("random", 128)
    assert 0 <= listed["age_seconds"] < 3600
    assert run(["runs", "list", "--runs", str(trained)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["name", "game", "status"]
    assert lines[1].split()[:3] == ["tiny", "tictactoe", "done"]
    assert f"{last['score']:.3f} against random" in lines[1]


def test_list_tells_living_killed_and_failed_runs_apart(alea: Alea, runs: Path) -> None:
    for name in ("killed", "failed", "fresh", "living"):
        shutil.copytree(runs / "tiny", runs / name)
    told = (runs / "tiny" / "metrics.jsonl").read_text().splitlines(keepends=True)
    lines = [line for line in told if json.loads(line)["kind"] != "hardware"]  # which may come after the end
    assert json.loads(lines[-1])["status"] == "done"
    for name in ("killed", "living"):
        (runs / name / "metrics.jsonl").write_text("".join(lines[:-1]) + '{"kind": "run", "broken')
    ending = {**json.loads(lines[-1]), "status": "failed", "message": "the loss is not finite"}
    (runs / "failed" / "metrics.jsonl").write_text("".join(lines[:-1]) + json.dumps(ending) + "\n")
    (runs / "fresh" / "metrics.jsonl").unlink()
    with alive(runs / "living"):
        listed = {entry["name"]: entry for entry in alea("runs", "list", "--runs", runs)["runs"]}
    assert {name: entry["status"] for name, entry in listed.items()} == {
        "tiny": "done",
        "killed": "killed",
        "failed": "failed",
        "fresh": "killed",
        "living": "training",
    }
    assert listed["living"]["pid"] == os.getpid()
    assert listed["failed"]["message"] == "the loss is not finite"
    assert (listed["fresh"]["rows"], listed["fresh"]["age_seconds"], listed["fresh"]["ratings"]) == (0, None, [])


def test_list_goes_on_past_a_damaged_run(alea: Alea, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(runs / "tiny", runs / "odd")
    (runs / "odd" / "config.toml").write_text("game = 3\n")
    listed = {entry["name"]: entry for entry in alea("runs", "list", "--runs", runs)["runs"]}
    assert listed["odd"]["status"] == "damaged"
    assert "game" in listed["odd"]["message"]
    assert listed["tiny"]["status"] == "done"
    assert run(["runs", "list", "--runs", str(runs)]) == 0
    assert "odd" in capsys.readouterr().out


def test_no_runs(alea: Alea, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert alea("runs", "list", "--runs", tmp_path / "none")["runs"] == []
    assert run(["runs", "list", "--runs", str(tmp_path)]) == 0
    assert "no runs in" in capsys.readouterr().out


# ---- stop and resume


def test_stop_waits_until_the_run_has_ended(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with alive(runs / "tiny"):
        assert run(["runs", "stop", "tiny", "--runs", str(runs)]) == 0
        assert RunFolder(runs / "tiny").owner() is None
    assert "alea runs resume tiny" in capsys.readouterr().out
    assert not (runs / "tiny" / "stop").exists()


def test_stop_fails_if_the_run_does_not_end_in_time(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with alive(runs / "tiny", obeys=False):
        assert run(["runs", "stop", "tiny", "--runs", str(runs), "--wait", "0.3"]) == 1
        assert (runs / "tiny" / "stop").exists()  # it may still come to it
    assert f"process {os.getpid()}) has not ended within 0.3 s" in capsys.readouterr().err


def test_nothing_to_stop_is_no_failure(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "stop", "tiny", "--runs", str(trained)]) == 0
    assert "is not being trained (done)" in capsys.readouterr().out
    assert not (trained / "tiny" / "stop").exists()


def test_a_run_resumes_and_stops_with_a_checkpoint(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The real thing: `runs resume` trains here while a thread tells it to stop."""
    folder = runs / "tiny"
    codes = []

    def stop_when_it_trains() -> None:
        end = time.monotonic() + 150
        while time.monotonic() < end and not any(record["step"] > 128 for record in metrics(folder, "learn")):
            time.sleep(0.1)
        codes.append(run(["runs", "stop", "tiny", "--runs", str(runs)]))

    thread = threading.Thread(target=stop_when_it_trains)
    thread.start()
    sets = ["--set", "total_rows=1_000_000_000", "--set", "observe.every_seconds=0.2"]
    code = run(["runs", "resume", "tiny", "--runs", str(runs), "--json", *sets])
    thread.join()
    assert (code, codes) == (0, [0])
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [report["status"] for report in printed] == ["stopped"]
    last = metrics(folder, "run")[-1]
    assert last["status"] == "stopped"
    assert last["rows"] > 2048
    assert (folder / "checkpoints" / f"{last['step']:012d}" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["stop", "tinny"], 2, "did you mean 'tiny'"),
        (["plot", "tinny"], 2, "did you mean 'tiny'"),
        (["resume", "tinny"], 2, "did you mean 'tiny'"),
        (["delete", "tinny", "--yes"], 2, "did you mean 'tiny'"),
        (["resume", "tiny", "--resume", "half"], 2, "exact"),
        (["resume", "tiny", "--set", "total_row=5", "--set", "observe.evry_seconds=1"], 2, "total_rows"),
        (["resume", "tiny", "--set", "total_row=5", "--set", "observe.evry_seconds=1"], 2, "every_seconds"),
        (["resume", "tiny", "--set", "model.width=8", "--set", "seed=3"], 2, "a resumed run may change only"),
        (["lst"], 2, "list"),
    ],
)
def test_misuse(arguments: list[str], code: int, said: str, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", *arguments, "--runs", str(trained)]) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert "Traceback" not in printed.err


# ---- delete


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_delete_asks_where_somebody_can_answer(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["runs", "delete", "tiny", "--runs", str(runs)]
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run(command) == 2
    assert "--yes" in capsys.readouterr().err
    for answer in ("n\n", "\n", ""):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        assert run(command) == 0
        assert (runs / "tiny" / "config.toml").exists()
    assert "2.05k rows" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert run(command) == 0
    assert [path.name for path in runs.iterdir() if path.name != ".desk"] == ["said"]


def test_delete_does_not_touch_a_living_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with alive(runs / "tiny"):
        assert run(["runs", "delete", "tiny", "--yes", "--runs", str(runs)]) == 1
    assert "stop it first" in capsys.readouterr().err
    assert (runs / "tiny" / "config.toml").exists()
    assert run(["runs", "delete", "tiny", "--yes", "--runs", str(runs)]) == 0
    assert not (runs / "tiny").exists()


# ---- compare and plot


def texts(drawing: Path) -> list[str]:
    root = ElementTree.parse(drawing).getroot()
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def second_run(runs: Path) -> dict[str, Any]:
    """`other`: the same run with another opponent and another end; returns its last match."""
    shutil.copytree(runs / "tiny", runs / "other")
    path = runs / "other" / "metrics.jsonl"
    records = read_jsonl(path)
    for record in records:
        if record["kind"] == "eval":
            record |= {"opponent": "solver", "score": 0.25, "score_low": 0.1, "score_high": 0.5}
        if record["kind"] == "learn":
            record["loss"] = None  # not finite
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return next(record for record in reversed(records) if record["kind"] == "eval")


def test_compare_puts_runs_side_by_side(alea: Alea, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    second_run(runs)
    report = alea("runs", "compare", "tiny", "other", "--runs", runs)
    tiny, other = report["runs"]
    last = metrics(runs / "tiny", "learn")[-1]
    assert tiny["losses"] == {"total": last["loss"], **last["losses"]}
    assert tiny["rows"] == other["rows"] == 2048
    assert tiny["seconds"] == read_jsonl(runs / "tiny" / "metrics.jsonl")[-1]["seconds"]
    assert (other["ratings"][0]["opponent"], other["ratings"][0]["score"]) == ("solver", 0.25)
    assert other["losses"]["total"] is None
    assert report["plot"] == str(runs / "compare.svg")
    drawn = texts(runs / "compare.svg")
    for text in ("Score by rows", "Score by seconds", "Loss by rows", "Loss by seconds"):
        assert text in drawn
    assert drawn.count("tiny against random") == 2
    assert drawn.count("other against solver") == 2
    assert run(["runs", "compare", "tiny", "other", "--runs", str(runs), "--out", str(runs / "mine.svg")]) == 0
    table = capsys.readouterr().out
    assert "0.250 (0.100 to 0.500) against solver" in table
    assert f"{last['loss']:.4f}" in table
    assert (runs / "mine.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["tiny"], 2, ["two runs or more"]),
        (["tinny", "tny"], 2, ["'tinny': did you mean 'tiny'", "'tny': did you mean 'tiny'"]),
        (["tiny", "tiny", "--out", "/proc/none/x.svg"], 1, ["could not write /proc/none/x.svg"]),
    ],
)
def test_compare_says_all_that_is_wrong(
    arguments: list[str], code: int, said: list[str], trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["runs", "compare", *arguments, "--runs", str(trained)]) == code
    printed = capsys.readouterr().err
    for text in said:
        assert text in printed


def test_plot_draws_the_curves_again(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawing = runs / "tiny" / "curves.svg"
    drawing.unlink()
    assert run(["runs", "plot", "tiny", "--runs", str(runs)]) == 0
    assert capsys.readouterr().out == f"{drawing}\n"
    assert "Losses" in texts(drawing)
