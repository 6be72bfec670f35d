"""What alpha-beta finds: mates, what hangs, and the same as looking at everything where it prunes nothing away."""

from __future__ import annotations

from importlib import resources

import chess
import numpy as np
import pytest

from aleazero.classical.alphabeta import CAPTURES, MATE, look, quiesce, worth_of
from aleazero.classical.board import NO_SQUARE, Position, drawn, empty, in_check, make, take_back
from aleazero.classical.moves import list_moves
from aleazero.classical.values import Values
from tests.classical.positions import name_of, number_of, put, wander

PIECES = Values(np.broadcast_to(np.array([1.0, 3.0, 3.1, 5.0, 9.0, 0.0])[None, :, None], (2, 6, 64)).copy(), 0.1)
TABLE = PIECES.table()
WORTH = worth_of(TABLE)


def best(board: chess.Board, depth: int, margin: float = 0.0) -> list[tuple[str, float]]:
    at = empty()
    put(at, TABLE, board)
    found, say = np.zeros(256, np.int32), np.zeros(256)
    count = look(at, TABLE, WORTH, PIECES.tempo, depth, margin, found, say)
    return [(name_of(int(move)), float(value)) for move, value in zip(found[:count], say[:count], strict=True)]


def everything(at: Position, depth: int, height: int) -> float:
    """Minimax without windows; captures go on as they do there."""
    if drawn(at):
        return 0.0
    check = bool(in_check(at))
    depth += check
    if depth == 0:
        return float(quiesce(at, TABLE, WORTH, PIECES.tempo, -MATE, MATE, height, NO_SQUARE, CAPTURES))
    value, found = -2 * MATE, np.zeros(256, np.int32)
    for move in found[: list_moves(at, found, False)]:
        if make(at, TABLE, move):
            value = max(value, -everything(at, depth - 1, height + 1))
        take_back(at, move)
    if value > -2 * MATE:
        return value
    return -MATE + height if check else 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fen", "wanted"),
    [
        ("rnb1kbnr/pppp1ppp/8/4p1q1/4P3/3P4/PPP2PPP/RNBQKBNR w KQkq - 1 3", "c1g5"),  # a queen hangs
        ("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1", "e4d5"),
        ("4k3/8/8/8/3p4/4Q3/8/4K3 b - - 0 1", "d4e3"),
        ("r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4", "h5f7"),  # mate
        ("8/P6k/8/8/8/8/8/K7 w - - 0 1", "a7a8q"),
    ],
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_it_takes_what_hangs_and_mates(fen: str, wanted: str, depth: int) -> None:
    assert best(chess.Board(fen), depth)[0][0] == wanted


def test_a_piece_is_not_given_for_one_that_is_guarded() -> None:
    board = chess.Board("rnbqkbnr/ppp2ppp/3p4/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 0 3")
    ranked = dict(best(board, 2, margin=20))
    assert ranked["f3e5"] < max(ranked.values()) - 1.5


@pytest.mark.parametrize(("moves", "depth", "least"), [(1, 1, 60), (2, 4, 54)])
def test_mates_that_are_proved_are_found(moves: int, depth: int, least: int) -> None:
    """All in one; most in two, for moves that look quiet are looked at less deeply."""
    lines = (resources.files("aleazero") / "data" / "chess_tactics.epd").read_text().splitlines()
    problems = [chess.Board.from_epd(line) for line in lines if f"dm {moves};" in line]
    solved = 0
    for board, said in problems:
        name, value = best(board, depth)[0]
        solved += value == MATE - (2 * moves - 1) and chess.Move.from_uci(name) in said["bm"]
    assert len(problems) == 60
    assert solved >= least


@pytest.mark.slow
def test_two_moves_ahead_it_finds_what_looking_at_everything_finds() -> None:
    """As deep as that nothing is left out but captures in vain, which both leave out."""
    at, checked = empty(), 0
    for number, (board, _) in enumerate(wander(4, seed=4)):
        if number % 23 or board.is_repetition(2):
            continue
        ranked = best(board, 2)
        put(at, TABLE, board)
        reference = {}
        for name, _ in ranked:
            move = number_of(chess.Move.from_uci(name))
            make(at, TABLE, move)
            reference[name] = -everything(at, 1, 1)
            take_back(at, move)
        assert ranked[0][1] == pytest.approx(max(reference.values()))
        assert reference[ranked[0][0]] == pytest.approx(ranked[0][1])
        assert all(said >= reference[name] - 1e-6 for name, said in ranked)
        checked += 1
    assert checked > 20


def test_moves_within_the_margin_are_told_apart_and_others_are_no_better_than_said() -> None:
    board = chess.Board("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1")
    wide, narrow = dict(best(board, 1, margin=100)), dict(best(board, 1, margin=0.5))
    top = max(wide.values())
    assert max(narrow.values()) == top
    for name, value in wide.items():
        if value > top - 0.5:
            assert narrow[name] == pytest.approx(value)
        else:
            assert narrow[name] >= value - 1e-9
            assert narrow[name] <= top - 0.5 + 1e-9
