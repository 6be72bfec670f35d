"""`alea train`: what it shows and refuses before it trains, and what it says afterwards."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jax
import pytest

from aleazero.cli.main import run
from aleazero.cli.train import tell
from aleazero.observe.jsonl import read_jsonl
from aleazero.observe.reports import EvalReport
from aleazero.runs import RunFolder
from aleazero.runtimes.start import Finished
from tests.cli.conftest import TINY, Alea


def test_one_object_says_what_came_of_it(trained: Path) -> None:
    (line,) = (trained / "said").read_text().splitlines()
    report = json.loads(line)
    assert (report["run"], report["status"], report["folder"]) == ("tiny", "done", str(trained / "tiny"))
    matches = [record for record in read_jsonl(trained / "tiny" / "metrics.jsonl") if record["kind"] == "eval"]
    (rating,) = report["ratings"]
    assert rating == {key: matches[-1][key] for key in rating}
    assert Path(report["plot"]).is_file()


def test_a_profile_is_in_the_report_and_the_run_can_go_on(
    alea: Alea, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("aleazero.runtimes.profile.SECONDS", 0.0)
    settings = [text for key, value in TINY.items() for text in ("--set", f"{key}={value}")]
    where = ["--runs", str(tmp_path)]
    try:
        report = alea("train", "tictactoe", "--preset", "quick", "--name", "it", "--profile", *where, *settings)
    finally:
        jax.config.update("jax_compilation_cache_include_metadata_in_key", False)
    assert report["status"] == "stopped"
    assert sum(report["profile"]["shares"].values()) == pytest.approx(1.0)
    assert Path(report["profile"]["trace"]).is_file()
    assert "profile = true" not in (tmp_path / "it" / "config.toml").read_text()
    assert run(["runs", "resume", "nothing", "--profile", *where]) == 2
    assert "nothing" in capsys.readouterr().err
    assert alea("runs", "resume", "it", *where)["profile"] is None


def test_words_say_how_to_go_on_and_to_play(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rating = EvalReport(5, 6, 7.0, "run:mine@5", "random", 16, 0.75, 0.5, 0.9, 0.5, 0.0, 1.0)
    finished = Finished(RunFolder(tmp_path / "mine"), "stopped", [rating], tmp_path / "curves.svg")
    tell(finished, "pig", tmp_path, as_json=False)
    said = capsys.readouterr().out
    assert "against random: 75.0% of the points in 16 games (95 %: 50.0% to 90.0%)" in said
    assert f"alea runs resume mine --runs {tmp_path}" in said
    assert f"alea play pig --player run:mine --runs {tmp_path}" in said


def test_infinities_of_a_rating_are_null(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unbounded = (float("-inf"), float("inf"))
    rating = EvalReport(5, 6, 7.0, "run:mine@5", "random", 2, 1.0, 0.2, 1.0, 1.0, *unbounded)
    tell(Finished(RunFolder(tmp_path / "mine"), "done", [rating], None), "pig", None, as_json=True)
    report = json.loads(capsys.readouterr().out)
    assert (report["ratings"][0]["points_low"], report["ratings"][0]["points_high"]) == (None, None)


def test_print_config_shows_what_would_run_and_starts_nothing(
    alea: Alea, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALEA_LEARN__BATCH_SIZE", "128")
    command = ["train", "pig", "--preset", "quick", "--set", "seed=7", "--print-config", "--runs", str(tmp_path)]
    shown = alea(*command)
    assert (shown["game"], shown["seed"], shown["learn"]["batch_size"]) == ("pig", 7, 128)
    assert run(command) == 0
    written = capsys.readouterr().out
    assert tomllib.loads(written)["learn"]["batch_size"] == 128
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine.toml").write_text(written)
    assert alea("train", "--config", tmp_path / "mine.toml", "--print-config") == shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "tictactoe", "--preset", "quik"], ["did you mean 'quick'"]),
        (["train", "tictactoe", "--presett", "quick"], ["Did you mean --preset"]),
        (["train", "tictacto"], ["did you mean 'tictactoe'"]),
        (["train"], ["no game is named"]),
        (
            ["train", "tictactoe", "--set", "lern.batch_size=3", "--set", "model.widht=3", "--set", "seed=x"],
            ["learn", "width", "seed"],
        ),
        (
            ["train", "tictactoe", "--set", "replay.capacity_rows=3000", "--set", "total_rows=5"],
            ["replay.capacity_rows is 3000", "total_rows is 5"],
        ),
        (["train", "tictactoe", "--config", "nowhere.toml"], ["nowhere.toml"]),
    ],
)
def test_misuse_exits_with_2(
    arguments: list[str], said: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "--runs", str(tmp_path), "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    for text in said:
        assert text in " ".join(printed.err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "tictactoe", "--preset", "quick", "--name", "tiny", "--runs", str(trained)]
    assert run(command) == 1
    assert "alea runs resume tiny" in capsys.readouterr().err
