"""Texts against python-chess's own, and every text that is wrong."""

from __future__ import annotations

import chess
import jax
import numpy as np
import pytest

from aleazero.core.errors import NotationError
from aleazero.games.chess.fen import attacked, parse_fen
from tests.games.chess.support import (
    ENDINGS,
    GAME,
    KIWIPETE,
    STARTPOS,
    TACTICAL,
    action_of,
    batched,
    lane,
    move_of,
    parse,
    single,
    starts,
)

NOTATION = GAME.notation


def walk(fen: str, plies: int, seed: int):
    """States and boards along a random game."""
    draw, board, state = np.random.default_rng(seed), chess.Board(fen), parse(fen)
    for _ in range(plies):
        legal = [a for a in np.asarray(single("legal_list")(state)).tolist() if a >= 0]
        if not legal:
            return
        yield state, board, legal
        action = int(draw.choice(legal))
        board.push(move_of(board, action))
        state = single("apply_action")(state, action)


@pytest.mark.slow
@pytest.mark.parametrize("fen", [STARTPOS, *TACTICAL, *ENDINGS])
def test_moves_and_positions_are_written_as_python_chess_writes_them(fen: str):
    for state, board, legal in walk(fen, 6, len(fen)):
        assert NOTATION.format_state(state).split(" seen ")[0] == board.fen()
        for action in legal:
            move = move_of(board, action)
            san, uci = NOTATION.format_action(state, action), NOTATION.format_uci(state, action)
            assert (san, uci) == (board.san(move), move.uci())
            assert (
                NOTATION.parse_action(state, san)
                == NOTATION.parse_action(state, uci)
                == action
                == action_of(board, move)
            )


def test_fens_come_back():
    for fen in (STARTPOS, *TACTICAL, *ENDINGS):
        expected = chess.Board(fen).fen()  # without a capture in passing that nobody can make
        assert NOTATION.format_state(parse(fen)) == expected
    states = starts(list(TACTICAL))
    rows = np.asarray(batched("pack")(states))
    for number in range(0, len(TACTICAL), 3):
        back = parse(NOTATION.format_state(lane(states, number)))
        assert np.array_equal(single("pack")(back), rows[number])


def test_what_came_before_is_written_where_it_matters():
    line = "startpos moves g1f3 g8f6 f3g1 f6g8"
    text = NOTATION.format_state(parse(line))
    assert text == f"{STARTPOS.replace('0 1', '4 3')} seen 1"
    assert NOTATION.format_state(parse(text)) == text
    twice = NOTATION.format_state(parse(f"{line} g1f3 g8f6 f3g1 f6g8"))
    assert twice.endswith("8 5 seen 2")
    assert bool(parse(twice).terminated)


@pytest.mark.parametrize(
    ("fen", "text", "uci"),
    [
        (STARTPOS, "e4", "e2e4"),
        (STARTPOS, " Nf3!? ", "g1f3"),
        (STARTPOS, "Ngf3", "g1f3"),  # more than is needed
        (STARTPOS, "e2e4", "e2e4"),
        (KIWIPETE, "0-0", "e1g1"),
        (KIWIPETE, "O-O-O", "e1c1"),
        (KIWIPETE, "dxe6", "d5e6"),
        (KIWIPETE, "d5:e6", "d5e6"),
        ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a8=N", "a7a8n"),
        ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a8Q", "a7a8q"),
        ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a7a8Q", "a7a8q"),
        ("6k1/8/8/1B6/8/8/1B6/4K3 w - - 0 1", "B2d4", "b2d4"),
        ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a8(R)", "a7a8r"),
        ("8/8/8/K1pP4/8/8/8/4k3 w - c6 0 2", "dxc6 e.p.", "d5c6"),
    ],
)
def test_moves_people_write(fen: str, text: str, uci: str):
    state = parse(fen)
    assert NOTATION.format_uci(state, NOTATION.parse_action(state, text)) == uci


@pytest.mark.parametrize(
    ("fen", "text", "said"),
    [
        (STARTPOS, "e5", "move 'e5' is not legal here"),
        (STARTPOS, "e2e5", "not legal here; did you mean e2e"),
        (STARTPOS, "O-O", "not legal here"),
        (STARTPOS, "hello", "is not a move as in Nf3, exd5, O-O, e8=Q or g1f3"),
        (STARTPOS, "", "is not a move as in"),
        (STARTPOS, "e5", "Legal: Na3, Nc3, Nf3, Nh3, a3, a4, b3, b4, c3, c4, d3, d4 and 8 more"),
        ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a8", "not legal here"),
        ("8/P6k/8/8/8/8/7K/8 w - - 0 1", "a7a8", "not legal here"),
        ("4k3/8/8/8/8/8/8/RN2K1NR w - - 0 1", "Nd7", "not legal here"),
        ("4k3/8/8/8/8/3K4/8/N1N5 w - - 0 1", "Nb3", "can be read in more than one way: Nab3, Ncb3"),
        ("k7/1Q6/1K6/8/8/8/8/8 b - - 0 1", "Ka7", "the game is over"),
    ],
)
def test_moves_that_cannot_be_made(fen: str, text: str, said: str):
    with pytest.raises(NotationError) as error:
        NOTATION.parse_action(parse(fen), text)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("fen", "said"),
    [
        ("8/8/8/8/8/8/8/4K3 w - - 0 1", "Black has no king; each side has one"),
        ("4k3/8/8/8/8/8/8/8 w - - 0 1", "White has no king"),
        ("4k2k/8/8/8/8/8/8/4K3 w - - 0 1", "Black has 2 kings; each side has one"),
        ("4k3/8/8/8/8/P7/PPPPPPPP/4K3 w - - 0 1", "White has 9 pawns; a side has at most 8"),
        ("4k2P/8/8/8/8/8/8/4K3 w - - 0 1", "White has a pawn on h8; pawns stand on ranks 2 to 7"),
        ("4k3/8/8/8/8/8/8/p3K3 w - - 0 1", "Black has a pawn on a1"),
        (
            "4k3/8/8/8/8/8/PPPPPPPP/QQ2K3 w - - 0 1",
            "White has 8 pawns and 1 promoted pieces; together there are at most 8",
        ),
        ("4k3/4R3/8/8/8/8/8/4K3 w - - 0 1", "Black is in check with White to move: the king could be taken"),
        ("4k3/8/8/8/8/8/3p4/4K3 b - - 0 1", "White is in check with Black to move"),
        ("4k3/8/8/8/8/8/8/4K3 x - - 0 1", "the side to move is 'x'; write w or b"),
        ("4k3/8/8/8/8/8/8/4K3 w X - 0 1", "castling is 'X'; write some of KQkq, each once, or -"),
        ("4k3/8/8/8/8/8/8/4K2R w KK - 0 1", "castling is 'KK'"),
        ("4k3/8/8/8/8/8/8/4K3 w K - 0 1", "castling K needs the king on e1 and a rook on h1; leave it out"),
        ("4k2r/8/8/8/8/8/8/4K3 w q - 0 1", "castling q needs the king on e8 and a rook on a8"),
        ("4k3/8/8/8/8/8/8/4K3 w - z9 0 1", "en passant is 'z9'; write a square, as in e3, or -"),
        ("4k3/8/8/8/8/8/8/4K3 w - e3 0 1", "with White to move it is on rank 6"),
        ("4k3/8/8/8/8/8/8/4K3 w - d6 0 1", "no pawn can just have gone from d7 past it; write -"),
        ("3rk3/3p4/8/3p4/8/8/8/4K3 w - d6 0 1", "no pawn can just have gone from d7 past it"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 101 1", "the fifty-move clock is '101'; write a number from 0 to 100"),
        ("4k3/8/8/8/8/8/8/4K3 w - - x 1", "the fifty-move clock is 'x'"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 0", "the move number is '0'; write a number from 1 to 65535"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0", "5 fields; a FEN has six"),
        ("", "0 fields; a FEN has six"),
        ("4k3/8/8/8/8/8/4K3 w - - 0 1", "have 7 ranks; write eight joined by '/'"),
        ("4k3/8/8/8/8/8/7/4K3 w - - 0 1", "rank 2 is '7', which is 7 squares; a rank has 8"),
        ("4k3/8/8/8/8/8/9/4K3 w - - 0 1", "rank 2 is '9'; it is made of PNBRQKpnbrqk and the digits 1 to 8"),
        ("4k3/8/8/8/8/8/8/4K2x w - - 0 1", "rank 1 is '4K2x'"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 seen 3", "seen is '3'; write a number from 0 to 2"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 seen", "seen is followed by one number"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 seen 1 2", "seen is followed by one number"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1 after 8/8", "have 2 ranks"),
    ],
)
def test_positions_that_cannot_be(fen: str, said: str):
    with pytest.raises(NotationError) as error:
        parse(fen)
    assert said in str(error.value)
    assert str(error.value).startswith(f"position {fen!r}: ")


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(NotationError) as error:
        parse("4k3/8/8/8/8/8/8/4K3 x X z9 101 0")
    assert str(error.value).count(";") == 9
    with pytest.raises(NotationError) as error:
        parse("8/8/8/8/8/P7/PPPPPPPP/8 w K - 0 1")
    for said in ("White has no king", "Black has no king", "9 pawns", "castling K"):
        assert said in str(error.value)


def test_a_wrong_move_in_a_line_is_named():
    with pytest.raises(NotationError, match="at move 2: move 'e2e4' is not legal here"):
        parse("startpos moves e2e4 e2e4")


@pytest.mark.slow
def test_short_fens_and_the_first_position():
    start = single("init")(jax.random.key(0))
    assert NOTATION.format_state(start) == STARTPOS
    for text in ("startpos", STARTPOS, STARTPOS[:-4]):
        assert np.array_equal(single("pack")(parse(text)), single("pack")(start))


def test_attacks_are_python_chesss():
    for fen in TACTICAL:
        board, pieces = chess.Board(fen), parse_fen(fen).pieces
        for square in range(64):
            for side in (0, 1):
                assert attacked(pieces, square, by=side) == board.is_attacked_by(side == 0, square), (fen, square, side)


def test_a_drawing():
    drawn = NOTATION.draw(parse("4k3/8/8/8/8/8/3p4/4K2R w K - 0 1"))
    assert drawn.splitlines() == [
        "8 . . . . k . . .",
        "7 . . . . . . . .",
        "6 . . . . . . . .",
        "5 . . . . . . . .",
        "4 . . . . . . . .",
        "3 . . . . . . . .",
        "2 . . . p . . . .",
        "1 . . . . K . . R",
        "  a b c d e f g h",
        "White to move, in check",
    ]
