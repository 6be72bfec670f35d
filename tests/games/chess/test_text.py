"""Chess as other programs write it: moves of engines, EPD, PGN; python-chess is the referee.

One module, so that the rules are compiled once.
"""

from __future__ import annotations

import io
import random
from pathlib import Path

import chess
import chess.pgn
import numpy as np
import pytest

from aleazero.core.errors import ConfigError, NotationError
from aleazero.games.chess.compiled import after
from aleazero.games.chess.epd import parse_epd, read_epd
from aleazero.games.chess.pgn import pgn_of, result_of, worst_positions
from aleazero.games.chess.uci import action_of as action_in_uci
from aleazero.games.chess.uci import as_open, centipawns, go_on, open_actions
from tests.games.chess.support import GAME, action_of, parse, single

pytestmark = pytest.mark.usefixtures("quick_compile")

# ---- moves as engines write them


BARE = (
    "4k3/8/8/8/8/8/8/4K3 w - - 0 1",
    "8/8/8/3k4/8/3K4/8/8 b - - 0 1",
    "8/8/4k3/8/2b5/3K4/8/8 w - - 0 1",
    "8/8/4k3/5N2/8/3K4/8/8 b - - 0 1",
    "8/8/4k3/8/2b1B3/4K3/8/8 w - - 0 1",
)


@pytest.mark.parametrize("fen", BARE)
def test_bare_kings_can_move_on(fen: str) -> None:
    board, state = chess.Board(fen), parse(fen)
    lots = random.Random(3)
    for _ in range(6):
        assert bool(state.terminated) == board.is_insufficient_material()
        assert sorted(open_actions(GAME, state)) == sorted(action_of(board, move) for move in board.legal_moves)
        move = lots.choice(list(board.legal_moves))
        board.push(move)
        state = go_on(GAME, state, move.uci())


def test_drawn_by_rule_but_not_over() -> None:
    fen = "4k3/8/8/8/8/8/4R3/4K3 b - - 100 90"
    board, state = chess.Board(fen), parse(fen)
    assert bool(state.terminated)
    assert not bool(as_open(GAME, state).terminated)
    assert sorted(open_actions(GAME, state)) == sorted(action_of(board, move) for move in board.legal_moves)
    for over in ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "7k/8/5KQ1/8/8/8/8/8 b - - 0 1"):
        assert open_actions(GAME, parse(over)) == [] == list(chess.Board(over).legal_moves)


def test_every_legal_move_is_read_as_written() -> None:
    for fen in ("n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1", "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"):
        board = chess.Board(fen)
        for move in board.legal_moves:
            assert action_in_uci(move.uci(), 0 if board.turn else 1) == action_of(board, move)
            after = go_on(GAME, parse(fen), move.uci())
            board.push(move)
            assert GAME.notation.format_state(after).split()[0] == board.board_fen()
            board.pop()


@pytest.mark.parametrize("text", ["e2e5", "e7e5", "e2e4q", "e2", "", "e2e9", "0000", "O-O", "e2e4 "])
def test_moves_that_are_none(text: str) -> None:
    with pytest.raises(NotationError, match=r"is no move|is not legal"):
        go_on(GAME, parse("startpos"), text)
    with pytest.raises(NotationError, match="is not legal"):  # a pawn that arrives must say what it becomes
        go_on(GAME, parse("8/P7/8/8/8/8/8/k1K5 w - - 0 1"), "a7a8")


def test_centipawns() -> None:
    assert centipawns(0.0) == 0
    assert centipawns(0.28) == 100
    assert centipawns(-0.28) == -100
    assert 3000 < centipawns(1.0) <= 9999
    assert centipawns(-1.0) == -centipawns(1.0)


# ---- EPD


STS = (
    '1kr5/3n4/q3p2p/p2n2p1/PppB1P2/5BP1/1P2Q2P/3R2K1 w - - bm f5; id "STS(v1.0) Undermine.001"; '
    'c0 "f5=10, Be5+=2, Bf2=3, Bg4=2";'
)


def number(fen: str, san: str) -> int:
    board = chess.Board(fen)
    return action_of(board, board.parse_san(san))


def test_best_moves_moves_to_avoid_and_points() -> None:
    text = f'{STS}\n\n# a comment\n4k3/8/8/8/8/8/3R4/4K3 w - - 12 34 am Rd8+; c1 "x; y"; id "two"\n'
    first, second = parse_epd(text, GAME)
    assert first.name == "STS(v1.0) Undermine.001"
    assert first.best == (number(first.fen, "f5"),)
    shares = {san: first.share(number(first.fen, san)) for san in ("f5", "Be5", "Bf2", "Kg2")}
    assert shares == {"f5": 1.0, "Be5": 0.2, "Bf2": 0.3, "Kg2": 0.0}
    assert first.is_right(number(first.fen, "f5"))
    assert not first.is_right(number(first.fen, "Bf2"))
    assert (second.name, second.fen) == ("two", "4k3/8/8/8/8/8/3R4/4K3 w - - 12 34")
    assert second.is_right(number(second.fen, "Ke2"))
    assert not second.is_right(number(second.fen, "Rd8"))
    assert second.share(number(second.fen, "Ke2")) == 1.0


def test_points_alone_and_clocks_as_operations() -> None:
    (entry,) = parse_epd('4k3/8/8/8/8/8/3R4/4K3 w - - hmvc 7; fmvn 20; c0 "Ke2=5, Kf2=10";', GAME)
    assert entry.fen.endswith("7 20")
    assert entry.is_right(number(entry.fen, "Kf2"))
    assert not entry.is_right(number(entry.fen, "Ke2"))
    assert entry.share(number(entry.fen, "Ke2")) == 0.5


def test_everything_that_is_wrong_is_said_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "suite.epd"
    file.write_text(
        "8/8/8/8/8/8/8/8 w - - bm e4;\n"
        f"{STS}\n"
        "4k3/8/8/8/8/8/3R4/4K3 w - - bm Qh5;\n"
        '4k3/8/8/8/8/8/3R4/4K3 w - - id "nothing to judge by"; c0 "a comment";\n'
        "4k3/8/8/8/8/8/3R4/4K3 w - - bm Ke2; = ;\n"
        "7k/5Q2/6K1/8/8/8/8/8 b - - bm Kg8;\n"
        "4k3/8 w\n"
    )
    (entry,), lines = read_epd(file, GAME)  # the rest is read
    assert entry.fen.startswith(STS.split()[0])
    with pytest.raises(ConfigError, match=r"line 1: (.|\n)*line 7: "):
        parse_epd(file.read_text(), GAME)  # what is ours has no such lines
    assert [line.split(": ")[1] for line in lines] == [f"line {n}" for n in (1, 3, 4, 5, 6, 7)]
    assert all(str(file) in line for line in lines)
    for words, line in zip(
        ("no king", "not legal", "nothing says", "no operation", "is over", "fields"), lines, strict=True
    ):
        assert words in line
    with pytest.raises(ConfigError, match="holds no position"):
        parse_epd("\n# nothing\n", GAME)
    with pytest.raises(ConfigError, match="No such file"):
        read_epd(tmp_path / "none.epd", GAME)
    file.write_text("4k3/8 w\n")
    with pytest.raises(ConfigError, match="line 1: 2 fields"):
        read_epd(file, GAME)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError):
        read_epd(file, GAME)


def mates(board: chess.Board, moves: int) -> set[chess.Move]:
    """Every move that forces mate by move `moves`."""
    found = set()
    for move in list(board.legal_moves):
        board.push(move)
        if board.is_checkmate() or (
            moves > 1 and not board.is_game_over() and all(_answered(board, reply) for reply in list(board.legal_moves))
        ):
            found.add(move)
        board.pop()
    return found


def _answered(board: chess.Board, reply: chess.Move) -> bool:
    board.push(reply)
    good = bool(mates(board, 1))
    board.pop()
    return good


def test_the_shipped_tactics_hold() -> None:
    text = (Path(__file__).parents[3] / "aleazero" / "data" / "chess_tactics.epd").read_text()
    kinds = {"mate in 1": 0, "mate in 2": 0, "defence": 0}
    for line in text.splitlines():
        board, operations = chess.Board.from_epd(line)
        kind = str(operations["id"]).partition(",")[0]
        kinds[kind] += 1
        best = set(operations["bm"])  # type: ignore[arg-type]
        if kind == "defence":
            held = set()
            for move in list(board.legal_moves):
                board.push(move)
                if not mates(board, 1):
                    held.add(move)
                board.pop()
            assert best == held, line
            assert len(held) < board.legal_moves.count()
        elif kind == "mate in 1":
            assert best == mates(board, 1), line
        elif kinds[kind] % 6 == 0:  # a sixth of them: python-chess takes its time
            assert not mates(board, 1), line
            assert best == mates(board, 2), line
    assert kinds == {"mate in 1": 60, "mate in 2": 60, "defence": 60}
    assert len({" ".join(line.split()[:4]) for line in text.splitlines()}) > 170


# ---- PGN


QUEENED = "8/P6k/8/8/8/8/8/K7 b - - 3 40"


@pytest.mark.parametrize("fen", [chess.STARTING_FEN, QUEENED])
def test_a_game_comes_back_with_its_evaluations(fen: str) -> None:
    lots, board, actions = random.Random(5), chess.Board(fen), []
    for _ in range(30):
        if board.is_game_over():
            break
        move = lots.choice(list(board.legal_moves))
        actions.append(action_of(board, move))
        board.push(move)
    values = [None if ply % 3 == 2 else lots.uniform(-0.9, 0.9) for ply in range(len(actions))]
    tags = {"White": 'a "b"', "Black": "path:/x\ny"}
    text = pgn_of(GAME, parse(fen), actions, values, headers=tags, result="1/2-1/2")
    assert max(map(len, text.splitlines())) <= 80
    read = chess.pgn.read_game(io.StringIO(text))
    assert read is not None
    assert read.errors == []
    assert (read.headers["Black"], read.headers["Result"]) == ("path:/x?y", "1/2-1/2")
    assert '[White "a \\"b\\""]' in text  # as the standard has it
    assert read.end().board().fen() == board.fen()
    assert ("FEN" in read.headers) == (fen != chess.STARTING_FEN)
    for node, value, ply in zip(read.mainline(), values, range(len(actions)), strict=True):
        found = node.eval()
        if value is None:
            assert found is None
            continue
        seat = ply % 2 if fen == chess.STARTING_FEN else 1 - ply % 2
        assert found is not None
        assert found.white().score() == centipawns(value if seat == 0 else -value)


def test_results_by_the_rules() -> None:
    start = parse("startpos")
    board, actions, state = chess.Board(), [], start
    for san in ("f3", "e5", "g4", "Qh4"):
        move = board.parse_san(san)
        actions.append(action_of(board, move))
        state = after(GAME, state, actions[-1])
        board.push(move)
    assert result_of(start) == "*"
    assert result_of(state) == "0-1"
    text = pgn_of(GAME, start, actions)
    assert text.endswith("1. f3 e5 2. g4 Qh4# 0-1\n")
    assert pgn_of(GAME, start, actions[:3]).endswith("1. f3 e5 2. g4 *\n")
    assert result_of(parse("4k3/8/8/8/8/8/8/4K3 w - - 0 1")) == "1/2-1/2"
    with pytest.raises(ValueError, match="argument"):
        pgn_of(GAME, start, actions, [0.0])


@pytest.mark.slow
def test_worst_positions_are_named_worst_first() -> None:
    fens = [chess.STARTING_FEN, QUEENED, "4k3/8/8/8/8/8/3R4/4K3 w - - 12 34"]
    rows = np.stack([np.asarray(single("pack")(parse(fen))) for fen in fens])
    lines = worst_positions(GAME, rows, np.array([0.5, np.nan, 2.25]), 3)
    assert lines == [
        '4k3/8/8/8/8/8/3R4/4K3 w - - hmvc 12; fmvn 34; c0 "loss 2.250";',
        'rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - hmvc 0; fmvn 1; c0 "loss 0.500";',
    ]
    board, _ = chess.Board.from_epd(lines[0])
    assert board.fen() == fens[2]
