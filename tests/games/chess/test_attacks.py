"""Attacks, square by square, as python-chess has them; the network sees them from the side to move."""

from __future__ import annotations

import chess
import numpy as np
import pytest

from aleazero.games.chess.board import KINDS
from aleazero.games.chess.encode import ATTACK_PLANES
from tests.games.chess.support import ENDINGS, TACTICAL, parse, single

FIRST = 19  # of their planes


def wanted(board: chess.Board) -> np.ndarray:
    """`[12, 8, 8]`: by kind, own ones first; rows as the side to move sees them."""
    found = np.zeros((ATTACK_PLANES, 8, 8), bool)
    for square, piece in board.piece_map().items():
        plane = KINDS.index(piece.symbol().lower()) + (0 if piece.color == board.turn else len(KINDS))
        for target in board.attacks(square):
            row = chess.square_rank(target) if board.turn else 7 - chess.square_rank(target)
            found[plane, row, chess.square_file(target)] = True
    return found


@pytest.mark.slow
@pytest.mark.parametrize("fen", [*TACTICAL, *ENDINGS])
def test_attacks_are_those_of_python_chess(fen: str) -> None:
    rng, board = np.random.default_rng(0), chess.Board(fen)
    for _ in range(12):
        seen = np.asarray(single("observe")(parse(board.fen())))[..., FIRST : FIRST + ATTACK_PLANES]
        np.testing.assert_array_equal(np.moveaxis(seen, -1, 0), wanted(board), err_msg=board.fen())
        moves = list(board.legal_moves)
        if not moves or board.halfmove_clock >= 99:
            break
        board.push(moves[rng.integers(len(moves))])


def test_a_pinned_piece_attacks_and_own_pieces_are_covered() -> None:
    seen = np.asarray(single("observe")(parse("4r2k/8/8/8/8/4N3/8/4K3 w - - 0 1")))
    own = dict(zip(KINDS, np.moveaxis(seen[..., FIRST : FIRST + 6], -1, 0), strict=True))
    assert own["n"].sum() == 8
    assert own["k"][1, 4]
    theirs = dict(zip(KINDS, np.moveaxis(seen[..., FIRST + 6 : FIRST + 12], -1, 0), strict=True))
    assert theirs["r"][2, 4]  # the knight that it pins
    assert not theirs["r"][1, 4]
