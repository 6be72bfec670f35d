"""Moves on a compiled board are those of python-chess; taking them back leaves nothing behind."""

from __future__ import annotations

import chess
import numpy as np
import pytest

from aleazero.classical.board import (
    CASTLING,
    CLOCK,
    MADE,
    PASSING,
    PIECES,
    SIDE,
    Position,
    attacked,
    bare,
    drawn,
    empty,
    in_check,
    make,
    pass_by,
    take_back,
    take_pass_back,
)
from aleazero.classical.jit import jit
from aleazero.classical.moves import list_moves
from tests.classical.positions import name_of, number_of, plain, put, wander

VALUES = np.random.default_rng(3).normal(size=(2, 13, 64))
PERFT = {  # positions and counts of leaves, by depth, that engines are tested with
    chess.STARTING_FEN: (20, 400, 8_902, 197_281),
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1": (48, 2_039, 97_862, 4_085_603),
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1": (14, 191, 2_812, 43_238),
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1": (6, 264, 9_467, 422_333),
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8": (44, 1_486, 62_379, 2_103_487),
}


@jit
def leaves(at: Position, values: np.ndarray, depth: int, height: int) -> int:
    count, total = list_moves(at, at.moves[height], False), 0
    for i in range(count):
        move = at.moves[height, i]
        if make(at, values, move):
            total += 1 if depth == 1 else leaves(at, values, depth - 1, height + 1)
        take_back(at, move)
    return total


def seen(at: Position) -> tuple[bytes, ...]:
    made = at.facts[MADE]
    return at.board.tobytes(), at.facts.tobytes(), at.sums.tobytes(), at.keys[: made + 1].tobytes()


def legal(at: Position, forcing: bool = False) -> set[str]:
    found = np.zeros(256, np.int32)
    count = list_moves(at, found, forcing)
    names = set()
    for move in found[:count]:
        if make(at, VALUES, int(move)):
            names.add(name_of(int(move)))
        take_back(at, int(move))
    return names


@pytest.mark.parametrize("fen", PERFT)
def test_leaves_are_as_many_as_is_known(fen: str) -> None:
    at = empty()
    put(at, VALUES, chess.Board(fen))
    before = seen(at)
    assert tuple(leaves(at, VALUES, depth, 0) for depth in range(1, 5)) == PERFT[fen]
    assert seen(at) == before


@pytest.mark.slow
def test_random_games_are_python_chess_s_move_for_move() -> None:
    at, again = empty(), empty()
    kinds = set()
    for board, move in wander(40, seed=1):
        if board.ply() == 0:
            put(at, VALUES, board)
        assert legal(at) == {each.uci() for each in board.legal_moves}
        takes = {each.uci() for each in board.legal_moves if board.is_capture(each) or each.promotion == chess.QUEEN}
        under = {each for each in takes if each[4:] in ("n", "b", "r")}
        assert legal(at, forcing=True) == takes - under
        assert in_check(at) == board.is_check()
        before = seen(at)
        pass_by(at)
        assert at.facts[SIDE] == (1 if board.turn else 0)
        take_pass_back(at)
        assert seen(at) == before
        kinds |= {("passing", board.is_en_passant(move)), ("castles", board.is_castling(move)), move.promotion}
        assert make(at, VALUES, number_of(move))
        board.push(move)
        # What moves keep up to date is what a position that is set up anew has.
        put(again, VALUES, board)
        np.testing.assert_array_equal(at.board, again.board)
        for fact in (SIDE, CASTLING, PASSING, CLOCK, PIECES):
            assert at.facts[fact] == again.facts[fact], (fact, board.fen())
        np.testing.assert_allclose(at.sums, again.sums, atol=1e-9)
        assert at.keys[at.facts[MADE]] == again.keys[0]
        board.pop()
    assert kinds >= {("passing", True), ("castles", True), chess.QUEEN, chess.KNIGHT}


def test_attacks_are_python_chess_s() -> None:
    for number, (board, _) in enumerate(wander(4, seed=2)):
        if number % 10:
            continue
        pieces = plain(board)[0]
        for square in range(64):
            for side, colour in enumerate((chess.WHITE, chess.BLACK)):
                assert attacked(pieces, square, side) == board.is_attacked_by(colour, square)


@pytest.mark.parametrize(
    "fen",
    ["8/8/4k3/8/8/3K4/8/8", "8/8/4k3/8/8/3KN3/8/8", "8/8/4kb2/8/8/3KB3/8/8", "8/8/4kb2/8/8/3K1B2/8/8",
     "8/8/4kn2/8/8/3KN3/8/8", "8/8/4k3/8/8/3KP3/8/8", "8/8/4k3/8/8/3KR3/8/8", "8/8/4k3/8/8/2NKN3/8/8"],
)  # fmt: skip
def test_what_can_never_mate_is_python_chess_s(fen: str) -> None:
    board = chess.Board(f"{fen} w - - 0 1")
    assert bare(plain(board)[0]) == board.is_insufficient_material()


def test_a_position_that_was_there_before_counts_as_a_draw_and_so_do_fifty_moves() -> None:
    at = empty()
    board = chess.Board()
    put(at, VALUES, board)
    for number, name in enumerate(("g1f3", "g8f6", "f3g1", "f6g8")):
        assert not drawn(at), number
        make(at, VALUES, number_of(chess.Move.from_uci(name)))
    assert drawn(at)
    put(at, VALUES, chess.Board("4k3/8/8/8/8/8/4R3/4K3 w - - 99 80"))
    assert not drawn(at)
    make(at, VALUES, number_of(chess.Move.from_uci("e2e3")))
    assert drawn(at)
