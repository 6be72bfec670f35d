"""Positions of python-chess as plain arrays, for tests of `aleazero.classical`."""

from __future__ import annotations

import random
from collections.abc import Iterator

import chess
import numpy as np

from aleazero.classical.board import Position, set_up

Plain = tuple[np.ndarray, int, int, int, int]
RIGHTS = (chess.BB_H1, chess.BB_A1, chess.BB_H8, chess.BB_A8)


def plain(board: chess.Board) -> Plain:
    """Pieces, side, rights, square in passing (where a pawn stands ready to take) and clock."""
    pieces = np.zeros(64, np.int8)
    for square, piece in board.piece_map().items():
        pieces[square] = piece.piece_type if piece.color else -piece.piece_type
    rights = sum(1 << bit for bit, corner in enumerate(RIGHTS) if board.clean_castling_rights() & corner)
    passing = board.ep_square if board.ep_square is not None and board.has_pseudo_legal_en_passant() else -1
    return pieces, 0 if board.turn else 1, rights, passing, board.halfmove_clock


def put(at: Position, values: np.ndarray, board: chess.Board) -> None:
    """Sets the position up."""
    set_up(at, values, *plain(board))


def name_of(move: int) -> str:
    """As UCI writes it."""
    promotion = move >> 12
    return chess.Move(move & 63, (move >> 6) & 63, promotion or None).uci()


def number_of(move: chess.Move) -> int:
    """The other way round."""
    return move.from_square | move.to_square << 6 | (move.promotion or 0) << 12


def wander(games: int, seed: int) -> Iterator[tuple[chess.Board, chess.Move]]:
    """Positions of random games, and the move that is made in each: a capture in passing, where there is one."""
    lots = random.Random(seed)
    for _ in range(games):
        board = chess.Board()
        while not board.is_game_over():
            passing = [move for move in board.legal_moves if board.is_en_passant(move)]
            move = lots.choice(passing or list(board.legal_moves))
            yield board, move
            board.push(move)
