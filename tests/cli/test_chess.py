"""Chess on the command line: judging by suites, games in the terminal and as files, versions of a run."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import chess
import chess.pgn
import jax
import pytest

from aleazero import export
from aleazero.cli.main import run
from aleazero.engines.stockfish import DEBIAN_PLACE
from aleazero.games.chess.game import Chess
from aleazero.models.build import ModelConfig, build_model
from aleazero.result_record import read_record
from tests.cli.conftest import Alea
from tests.frozen.shape import check_file, shape_of
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")
needs_stockfish = pytest.mark.skipif(not DEBIAN_PLACE.exists(), reason="Debian's stockfish is not installed")
SUITE = (
    'r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - bm Qxf7#; id "mate";\n'
    '4k3/8/8/8/8/8/3R4/4K3 w - - am Rd8+; id "hangs"; c0 "Ke2=10, Kf2=4";\n'
)


@needs_stockfish
def test_a_suite(alea: Alea, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "suite.epd"
    file.write_text(SUITE)
    arguments = ["rate", "chess", "--player", "stockfish:depth=4", "--epd", file]
    report = alea(*arguments, "--record", tmp_path / "record.json")
    assert (report["suite"], report["metric"], report["decisions"]) == ("suite.epd", "solved", 2)
    assert report["value"] == 1.0
    assert 0.0 <= report["points"] <= 1.0
    assert report["missed"] == []
    record = read_record(tmp_path / "record.json")
    assert record["players"]["player"]["engine"].startswith("Stockfish")
    assert alea(*shlex.split(report["command"])[1:]) == report
    assert run([*map(str, arguments), "--nodes", "1"]) == 0
    said = capsys.readouterr().out
    assert "stockfish:depth=4,nodes=1 in 2 positions of chess (suite.epd)" in said
    assert "\nsolved  " in said
    assert "\npoints  " in said


def test_lines_of_a_suite_that_are_none_are_counted_and_named(
    alea: Alea, tmp_path: Path, capsys: pytest.CaptureFixture[str], regenerate: bool
) -> None:
    file = tmp_path / "suite.epd"
    file.write_text(SUITE + "4k3/8 w\n8/8/8/8/8/8/8/8 w - - bm e4;\n")
    report = alea("rate", "chess", "--player", "random", "--epd", file)
    check_file("json/rate-chess.txt", shape_of(report), regenerate)
    assert report["decisions"] == 2
    assert [line.partition(": ")[2][:6] for line in report["refused"]] == ["line 3", "line 4"]
    assert run(["rate", "chess", "--player", "random", "--epd", str(file)]) == 0
    assert "refused 2 lines" in capsys.readouterr().out


@needs_stockfish
def test_what_is_missed_is_named(alea: Alea, capsys: pytest.CaptureFixture[str]) -> None:
    report = alea("rate", "chess", "--player", "eps100", "--positions", "6")
    assert report["suite"] == "shipped tactics"
    assert report["decisions"] == 6
    assert len(report["missed"]) == round(6 * (1 - report["value"]))
    for one in report["missed"]:
        board = chess.Board(one["fen"])
        assert board.is_legal(board.parse_san(one["played"]))


@needs_stockfish
def test_moves_judged_by_stockfish(
    alea: Alea, tmp_path: Path, capsys: pytest.CaptureFixture[str], regenerate: bool
) -> None:
    arguments = ["rate", "chess", "--player", "random", "--judge", "stockfish:nodes=500", "--positions", "6"]
    report = alea(*arguments, "--record", tmp_path / "record.json")
    check_file("json/rate-chess-judge.txt", shape_of(report), regenerate)
    assert (report["metric"], report["decisions"], report["judge"]) == ("score_lost", 6, "stockfish:nodes=500")
    assert report["low"] <= report["value"] <= report["high"]
    assert report["value"] == pytest.approx(sum(one["lost"] for one in report["positions"]) / 6)
    worst = report["positions"][0]
    board = chess.Board(worst["fen"])
    assert board.is_legal(board.parse_san(worst["played"]))
    assert read_record(tmp_path / "record.json")["players"]["judge"]["engine"].startswith("Stockfish")
    assert run(arguments) == 0
    assert "open positions of chess, judged by stockfish:nodes=500\nlost " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chess", "--judge", "gnubg"], "moves of chess are judged by Stockfish"),
        (["chess", "--judge", ""], "moves of chess are judged by Stockfish"),
        (["chess", "--judge", "gnubg", "--positions", "1"], "judge two or more"),
        (["tictactoe", "--judge", "stockfish:nodes=1"], "tictactoe is judged by its exact solution"),
        (["chess", "--judge", "stockfish:nodes=1", "--mates", "1"], "the good moves of a suite are known"),
        (["chess", "--epd", "nowhere.epd"], "No such file"),
        (["chess", "--mates", "3"], "mates is 3; mates in 1 and in 2"),
        (["chess", "--mates", "1", "--epd", "x"], "leave one of the two out"),
        (["chess", "--nodes", "0"], "nodes is 0"),
        (["tictactoe", "--mates", "1"], "mates: for chess, not for tictactoe"),
        (["chess", "--save", "x"], "chess is judged by suites of positions"),
    ],
)
def test_wrong_options(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rate", *arguments, "--player", "random"]) == 2
    assert words in capsys.readouterr().err


def test_a_missing_network_and_a_missing_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["uci", "--weights", str(tmp_path / "none")]) != 0
    assert "none" in capsys.readouterr().err
    assert run(["uci", "--simulations", "0"]) == 2
    assert "simulations is 0" in capsys.readouterr().err
    monkeypatch.setattr("aleazero.engines.stockfish.DEBIAN_PLACE", tmp_path / "stockfish")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["rate", "chess", "--player", "stockfish:nodes=77"]) == 1
    assert "apt-get install stockfish" in capsys.readouterr().err


# ---- in the terminal


def played(monkeypatch: pytest.MonkeyPatch, lines: list[str], *options: str) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    return run(["play", "chess", "--player", "human", "--seed", "0", *options])


def test_two_people_play_and_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mate.pgn"
    lines = ["e5", "Ke2", "f3", "e7e5", "g4", "undo", "g2g4", "Qh4#"]
    assert played(monkeypatch, lines, "--save", str(file)) == 0
    said = capsys.readouterr().out
    assert "move 'e5' is not legal here" in said
    assert "move 'Ke2' is not legal here" in said
    assert "player 2 wins" in said
    assert "8 r n b q k b n r\n" in said  # the board from White's side
    read = chess.pgn.read_game(io.StringIO(file.read_text()))
    assert read is not None
    assert [move.uci() for move in read.mainline_moves()] == ["f2f3", "e7e5", "g2g4", "d8h4"]
    assert read.headers["Result"] == "0-1"
    assert played(monkeypatch, [], "--save", str(tmp_path / "a.mat")) == 2
    assert "must end in .pgn" in capsys.readouterr().err


def test_a_position_to_begin_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "left.pgn"
    fen = "4k3/8/8/8/8/8/3R4/4K3 b - - 12 34"
    assert played(monkeypatch, ["Kf7", "resign"], "--position", fen, "--save", str(file)) == 0
    assert "Black to move" in capsys.readouterr().out
    read = chess.pgn.read_game(io.StringIO(file.read_text()))
    assert read is not None
    assert (read.headers["FEN"], read.headers["Result"]) == (fen, "0-1")
    for wrong, words in (
        ("8/8/8/8/8/8/8/4K3 w - - 0 1", "Black has no king"),
        ("4k3/8/8/8/8/P7/PPPPPPPP/4K3 w - - 0 1", "White has 9 pawns"),
        ("4k3/4R3/8/8/8/8/8/4K3 w - - 0 1", "the king could be taken"),
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "the game is over there"),
    ):
        assert played(monkeypatch, [], "--position", wrong) == 2
        assert words in capsys.readouterr().err


# ---- matches and versions


def test_pgn_is_of_chess(tmp_path: Path, capsys: pytest.CaptureFixture[str], runs: Path) -> None:
    assert run(["eval", "tictactoe", "--player", "random", "--pgn", str(tmp_path / "a.pgn")]) == 2
    assert "games of chess are written so, not of tictactoe" in capsys.readouterr().err
    assert run(["runs", "pgn", "tiny", "--runs", str(runs), "--out", str(tmp_path / "a.pgn")]) == 2
    assert "tiny is a run of tictactoe" in capsys.readouterr().err
    assert not (tmp_path / "a.pgn").exists()


def test_versions_of_a_run_are_rated(alea: Alea, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["runs", "elo", "tiny", "--runs", trained, "--games", 40, "--search", "search=none"]
    report = alea(*arguments, "--opening-plies", 2)
    steps = [version["step"] for version in report["versions"]]
    assert steps == sorted(steps)
    assert len(steps) >= 2
    assert (report["versions"][0]["elo"], report["versions"][0]["error"]) == (0.0, 0.0)
    assert all(version["error"] > 0 for version in report["versions"][1:])
    assert alea(*shlex.split(report["command"])[1:]) == report
    assert run([*map(str, arguments), "--opening-plies", "2"]) == 0
    said = capsys.readouterr().out
    assert f"tiny: {len(steps)} versions" in said
    assert run([*map(str, arguments[:5]), "--games", "3", "--versions", "1"]) == 2
    wrong = capsys.readouterr().err
    assert "games is 3" in wrong
    assert "versions is 1" in wrong


@pytest.mark.long  # python -m pytest tests/cli/test_chess.py -m long
@needs_stockfish
def test_a_match_with_a_network_is_written(alea: Alea, tmp_path: Path) -> None:
    game = Chess()
    model = build_model(ModelConfig(width=16, blocks=1, head_width=8), game.spec)
    export.write(tmp_path / "net", model, jax.jit(model.init)(jax.random.key(0)), {})
    arguments = ["eval", "chess", "--player", f"path:{tmp_path / 'net'},search=mcts,sims=8", "--opponent", "eps50"]
    report = alea(*arguments, "--games", 4, "--opening-plies", 4, "--pgn", tmp_path / "games.pgn")
    assert report["games"] + report["truncated"] == 4
    found = []
    with (tmp_path / "games.pgn").open() as opened:
        while (one := chess.pgn.read_game(opened)) is not None:
            assert one.errors == []
            found.append(one)
    assert len(found) == 4
    scores = {"1-0": 1.0, "0-1": 0.0, "1/2-1/2": 0.5}
    ours = ["path" in one.headers["White"] for one in found]
    assert ours == [True, False] * 2
    won = [scores[one.headers["Result"]] for one in found if one.headers["Result"] != "*"]
    assert len(won) == report["games"]
    for one, white in zip(found, ours, strict=True):
        for node in one.mainline():
            assert (node.eval() is not None) == (node.turn() != white)  # the network's moves have its opinion


@pytest.mark.long
def test_mates_that_are_made_now(alea: Alea) -> None:
    report = alea("rate", "chess", "--player", "random", "--mates", 1, "--positions", 20)
    assert (report["suite"], report["decisions"]) == ("mate in 1", 20)
    assert report["value"] < 0.5
