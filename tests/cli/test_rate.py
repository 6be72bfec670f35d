"""`alea rate`: what it prints; how it judges is tests/test_rate.py's."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from aleazero.cli.main import run
from aleazero.result_record import read_record
from tests.cli.conftest import Alea

KEYS = {
    *("game", "player", "metric", "value", "low", "high", "decisions", "points_lost", "value_error", "phases"),
    *("games", "luck", "seed", "command"),
}


def test_json_of_a_network(alea: Alea, trained: Path) -> None:
    report = alea("rate", "tictactoe", "--player", "run:tiny,search=none", "--runs", trained)
    assert set(report) == KEYS
    assert (report["metric"], report["decisions"], report["phases"]) == ("wrong_moves", 4520, {})
    assert 0 < report["low"] < report["value"] < report["high"] < 1
    assert 0 < report["value_error"] < 2
    assert alea(*shlex.split(report["command"])[1:]) == report
    older = alea("rate", "tictactoe", "--player", "run:tiny@64,search=none", "--runs", trained)
    assert older["value_error"] != report["value_error"]  # other weights


def test_a_record_is_the_report_with_who_was_judged(alea: Alea, trained: Path, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    arguments = ["rate", "tictactoe", "--player", "run:tiny,search=none", "--positions", 50, "--runs", trained]
    report = alea(*arguments, "--record", file)
    record = read_record(file)
    assert {key: record[key] for key in report} == report
    assert (record["kind"], record["games"], record["luck"]) == ("rate", None, None)
    assert record["players"].keys() == {"player"}
    assert record["players"]["player"]["config"] is not None
    assert run([*map(str, arguments), "--record", str(file)]) == 2
    assert alea(*arguments, "--record", file, "--force") == report


def test_phases_of_connect_four(alea: Alea, capsys: pytest.CaptureFixture[str]) -> None:
    report = alea("rate", "connect_four", "--player", "random", "--positions", 30)
    assert list(report["phases"]) == ["late", "middle", "early"]
    for phase in report["phases"].values():
        assert phase["decisions"] == 30
        assert phase["low"] <= phase["value"] <= phase["high"]
        assert phase["value_error"] is None
    assert (report["decisions"], report["value_error"]) == (90, None)
    assert run(["rate", "connect_four", "--player", "random", "--positions", "30"]) == 0
    said = capsys.readouterr().out
    for phase in ("all", "late", "middle", "early"):
        assert f"\n{phase}" in said


def test_a_game_that_is_not_solved(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rate", "quoridor", "--player", "random", "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "solved are: connect_four, pig, tictactoe" in printed.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--player", "solvr"], "did you mean 'solver'"),
        (["--player", "random,sims=3"], "takes no options"),
        (["--player", "random", "--positions", "0"], "positions is 0"),
        (["--player", "random", "--seed", str(2**32)], "seed is 4294967296"),
        (["--player", "random", "--judge", "rollout"], "decisions and their judges are of backgammon; pig"),
        (["--player", "random", "--save", "file"], "decisions and their judges are of backgammon"),
    ],
)
def test_misuse_exits_with_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rate", "pig", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_all_options_of_a_player_are_checked(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    player = "run:tiny,serch=mcts,sims=none"
    assert run(["rate", "tictactoe", "--player", player, "--runs", str(trained)]) == 2
    said = capsys.readouterr().err
    assert "did you mean 'search'" in said
    assert "sims is 'none'" in said
