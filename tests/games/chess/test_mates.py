"""Mate problems: proved again by python-chess, the same for a seed, written as EPD."""

from __future__ import annotations

from pathlib import Path

import chess
import numpy as np
import pytest

from aleazero.core.errors import ConfigError
from aleazero.games.chess.mates import Problem, generate, prover, write_epd
from tests.games.chess.support import GAME, parse, single

PROVER = prover(GAME)


def mates(board: chess.Board, moves: int) -> list[str]:
    """Every first move that forces mate, by python-chess, in SAN."""
    return sorted(board.san(move) for move in board.legal_moves if forces(board, move, moves))


def forces(board: chess.Board, move: chess.Move, moves: int) -> bool:
    board = board.copy(stack=False)
    board.push(move)
    if board.is_checkmate():
        return True
    if moves == 1 or board.is_stalemate() or board.is_insufficient_material():
        return False
    for reply in board.legal_moves:
        after = board.copy(stack=False)
        after.push(reply)
        if after.is_insufficient_material():
            return False
        if not any(forces(after, second, moves - 1) for second in after.legal_moves):
            return False
    return True


@pytest.fixture(scope="module")
def problems() -> dict[int, list[Problem]]:
    return {moves: generate(GAME, moves, count, seed=3) for moves, count in ((1, 4), (2, 2))}


@pytest.mark.slow
@pytest.mark.parametrize("moves", [1, 2])
def test_problems_are_what_python_chess_proves(problems: dict[int, list[Problem]], moves: int):
    count = len(problems[moves])
    assert sorted(problem.to_play for problem in problems[moves]) == [0] * (count // 2) + [1] * (count // 2)
    assert len({problem.fen for problem in problems[moves]}) == count
    for problem in problems[moves]:
        board = chess.Board(problem.fen)
        assert board.is_valid()
        assert board.turn == (problem.to_play == 0)
        assert sorted(problem.keys) == mates(board, moves), problem
        if moves == 2:
            assert mates(board, 1) == [], problem


@pytest.mark.parametrize(
    ("fen", "one", "two"),
    [
        ("7k/8/6K1/8/8/8/8/R7 w - - 0 1", 1, None),
        ("k7/8/2K5/8/8/8/8/1Q6 w - - 0 1", 1, None),
        ("6k1/5ppp/8/8/8/8/8/K2R4 b - - 0 1", 0, 0),
        ("8/8/8/8/8/2k5/2p5/K7 b - - 0 1", 0, None),
        ("7k/5K2/8/6R1/8/8/8/8 w - - 0 1", 1, None),
        ("7k/8/5K2/6R1/8/8/8/8 w - - 0 1", 0, None),
        ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", 0, 0),
        ("5rk1/5ppp/8/8/8/8/1Q6/K2R2R1 b - - 0 1", 0, 0),
        ("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1", 0, None),  # the rook is given up on a6
    ],
)
def test_known_positions(fen: str, one: int, two: int | None):
    row = np.asarray(single("pack")(parse(fen)))[None]
    board = chess.Board(fen)
    found = [GAME.notation.format_action(parse(fen), action) for action in PROVER.mates_in_one(row)[0]]
    assert sorted(found) == mates(board, 1)
    assert len(found) == one
    if one == 0:
        found = [GAME.notation.format_action(parse(fen), action) for action in PROVER.mates_in_two(row)[0]]
        assert sorted(found) == mates(board, 2)
        assert two is None or len(found) == two


def test_a_seed_names_its_problems(problems: dict[int, list[Problem]]):
    assert generate(GAME, 1, 4, seed=3) == problems[1]
    assert generate(GAME, 1, 4, seed=4) != problems[1]


def test_epd_is_read_by_python_chess(problems: dict[int, list[Problem]], tmp_path: Path):
    write_epd(tmp_path / "mates.epd", problems[2])
    lines = (tmp_path / "mates.epd").read_text().splitlines()
    assert len(lines) == 2
    for line, problem in zip(lines, problems[2], strict=True):
        board, operations = chess.Board.from_epd(line)
        assert board.epd() == " ".join(problem.fen.split()[:4])
        assert sorted(board.san(move) for move in operations["bm"]) == sorted(problem.keys)
        assert operations["dm"] == 2


def test_wrong_questions():
    with pytest.raises(ConfigError, match="moves is 3; mates in 1 to 2 can be proved"):
        generate(GAME, 3, 1)
    with pytest.raises(ConfigError, match="count is 0; it must be at least 1"):
        generate(GAME, 1, 0)
