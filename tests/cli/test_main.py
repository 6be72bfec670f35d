"""The command line as a user meets it: what it prints, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from aleazero.cli.main import run


@pytest.mark.speed
def test_help_answers_at_once_and_loads_no_jax() -> None:
    program = "import sys; sys.argv = ['alea', '--help']\nfrom aleazero.cli.main import run\nrun(['--help'])\n"
    program += "sys.exit(3 if 'jax' in sys.modules else 0)"
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        seconds.append(time.perf_counter() - started)
        assert done.returncode == 0, done.stderr
        assert "doctor" in done.stdout
    assert min(seconds) < 0.7


def test_games_lists_the_built_in_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["games", "--json"]) == 0
    listed = {game["name"]: game for game in json.loads(capsys.readouterr().out)["games"]}
    assert {"tictactoe", "connect_four", "pig", "quoridor"} <= set(listed)
    assert listed["pig"]["chance"] == "explicit"
    assert run(["games"]) == 0
    assert "quoridor" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "conect_four"], "did you mean 'connect_four'"),
        (["doctor", "pgg"], "did you mean 'pig'"),
        (["show", "pgx:otello"], "did you mean 'othello'"),
        (["show", "pgx:kuhn_poker"], "unknown Pgx environment"),
        (["show", "connect_four", "1111111"], "column 1 is full"),
        (["show", "tictactoe", "XXX/.../..."], "X has 3 and O has 0"),
        (["show", "pig", "34-1+1 1"], "cannot have brought 1 point"),
        (["doctr"], 'Did you mean "doctor"'),
        (["games", "--jsn"], "--jsn"),
    ],
)
def test_misuse_is_explained_and_exits_with_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert said in printed.err + printed.out
    assert "Traceback" not in printed.err + printed.out


def test_show_draws_a_position_and_its_moves(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "connect_four", "4453"]) == 0
    drawn = capsys.readouterr().out
    assert ". . O X X . ." in drawn
    assert "player 1 to play; moves: 1 2 3 4 5 6 7" in drawn
    assert run(["show", "pig", "34-50+12 1?", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["is_chance"]
    assert report["moves"] == []
    assert run(["show", "tictactoe", "XXX/OO./..."]) == 0
    assert "the game is over" in capsys.readouterr().out


def test_doctor_reports_in_json_and_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a program of its own, on a third-party game that breaks a law."""
    package = tmp_path / "crooked-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: crooked\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[aleazero.games]\ncrooked = crooked:Crooked\n")
    (tmp_path / "crooked.py").write_text(
        "import dataclasses\n"
        "from aleazero.games.tictactoe import TicTacToe\n"
        "class Crooked(TicTacToe):\n"
        "    spec = dataclasses.replace(TicTacToe.spec, name='crooked')\n"
        "    def apply_action(self, state, action):\n"
        "        after = super().apply_action(state, action)\n"
        "        return dataclasses.replace(after, returns=after.returns + 1.0)\n"
    )
    here = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{here}")
    command = [sys.executable, "-m", "aleazero.cli.main", "doctor", "crooked"]
    words = subprocess.run(command, capture_output=True, text=True, check=False)
    assert words.returncode == 1, words.stderr
    assert "failed" in words.stdout
    assert "returns: " in words.stdout
    assert "state: " in words.stdout
    report = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert report.returncode == 1
    assert json.loads(report.stdout)["failed"] == 1
