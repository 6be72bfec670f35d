"""The rules against python-chess: games at random, from the start, from sharp positions and from endings; perft."""

from __future__ import annotations

import chess
import pytest

from tests.games.chess.support import ENDINGS, PERFT, STARTPOS, TACTICAL, assert_games_agree, perft


@pytest.mark.slow
def test_games_from_the_start_and_from_sharp_positions_agree_with_python_chess():
    reasons = assert_games_agree([*[STARTPOS] * 3, *TACTICAL, *ENDINGS], plies=120, seed=1)
    assert reasons["mate"] >= 1
    assert reasons["material"] >= 1


def test_every_way_to_end_a_game_agrees_with_python_chess():
    reasons = assert_games_agree([*ENDINGS, *ENDINGS, *TACTICAL[:6]], plies=110, seed=2, back=0.4)
    assert set(reasons) == {"mate", "stalemate", "material", "fifty", "threefold"}


@pytest.mark.slow
@pytest.mark.parametrize("fen", PERFT)
def test_perft(fen: str):
    assert perft(fen, len(PERFT[fen])) == list(PERFT[fen])
    board, levels = chess.Board(fen), min(len(PERFT[fen]), 2)
    assert [counted(board, depth) for depth in range(1, levels + 1)] == list(PERFT[fen][:levels])


def counted(board: chess.Board, depth: int) -> int:
    """By python-chess."""
    if depth == 1:
        return board.legal_moves.count()
    found = 0
    for move in board.legal_moves:
        board.push(move)
        found += counted(board, depth - 1)
        board.pop()
    return found


@pytest.mark.long
def test_two_hundred_whole_games_agree_with_python_chess():
    reasons = assert_games_agree([STARTPOS] * 200, plies=512, seed=3)
    sharp = assert_games_agree([*TACTICAL, *ENDINGS] * 4, plies=512, seed=4, back=0.05)
    assert sum(reasons.values()) > 150
    assert set(reasons | sharp) == {"mate", "stalemate", "material", "fifty", "threefold"}
