from __future__ import annotations

import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest

from aleazero.cli.main import run
from tests.web.conftest import make_run

POSITIONS = {
    "backgammon": "4HPwATDgc/ABMA:31",
    "chess": "startpos",
    "connect_four": "4453",
    "pig": None,
    "quoridor": "e2 e8 9 9 a3h,e5v 1",
    "tictactoe": "X.O/.X./..O",
}


@pytest.mark.parametrize("game", POSITIONS)
def test_a_board_is_drawn(game: str, tmp_path: Path) -> None:
    file = tmp_path / "board.svg"
    position = POSITIONS[game]
    assert run(["show", game, *([position] if position else []), "--svg", str(file)]) == 0
    drawn = Xml.parse(file).getroot()
    circles = len(drawn.findall(".//{*}circle"))
    expected = {"backgammon": 30, "chess": 0, "connect_four": 42, "pig": 0, "quoridor": 2, "tictactoe": 2}
    assert circles == expected[game]


def test_a_picture_needs_a_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "tictactoe", "--svg", str(tmp_path / "board.jpg")]) == 2
    assert "ends in .svg" in capsys.readouterr().err


def test_a_runs_curves_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "runs" / "first")
    out = tmp_path / "curves.png"
    assert run(["plot", "first", "--runs", str(tmp_path / "runs"), "--out", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    assert run(["plot", "first", "--runs", str(tmp_path / "runs")]) == 0
    assert "<svg" in (tmp_path / "runs" / "first" / "curves.svg").read_text()
    assert run(["plot", "first", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "curves.gif")]) == 2
    assert ".png or .svg" in capsys.readouterr().err
