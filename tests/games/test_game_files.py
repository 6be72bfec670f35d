from __future__ import annotations

import pytest

from aleazero.core.errors import NotationError
from aleazero.games.backgammon.files import GameRecord, Step, TurnRecord, write_mat
from aleazero.games.backgammon.mat import read_mat
from aleazero.games.chess.pgn_read import read_pgn

MATCH = """ 5 point match

 Game 1
 Ann Lee : 0                        Bob : 0
  1)                             31: 8/5 6/5
  2) 52: 13/8 24/22              66: 24/18(2) 13/7(2)
  3)  Doubles => 2                Takes
  4) 11: Cannot Move             21: bar/23* 6/5
                                   Wins 2 points

 Game 2
 Ann Lee : 0                        Bob : 2
  1) 43: 24/20 13/10
"""


def test_match_text_is_read_by_columns() -> None:
    first, second = read_mat(MATCH)
    assert first.names == ("Ann Lee", "Bob")
    assert [(turn.seat, turn.dice, turn.text) for turn in first.turns] == [
        (1, (3, 1), "8/5 6/5"),
        (0, (5, 2), "13/8 24/22"),
        (1, (6, 6), "24/18(2) 13/7(2)"),
        (0, (1, 1), ""),
        (1, (2, 1), "bar/23* 6/5"),
    ]
    assert second.turns[0].seat == 0


def test_what_we_write_is_read_back() -> None:
    turns = (
        TurnRecord(1, (3, 1), (Step(8, 5), Step(6, 5))),
        TurnRecord(0, (6, 4), (Step(24, 18), Step(18, 14, True))),
        TurnRecord(1, (5, 5), ()),
    )
    (game,) = read_mat(write_mat(GameRecord(("one", "two"), turns, 0, 2)))
    assert [(turn.seat, turn.dice, turn.text) for turn in game.turns] == [
        (1, (3, 1), "8/5 6/5"),
        (0, (6, 4), "24/18 18/14*"),
        (1, (5, 5), ""),
    ]


def test_a_text_without_rolls_is_refused() -> None:
    with pytest.raises(NotationError, match="no match text"):
        read_mat("1. e4 e5")


PGN = """[Event "x"]
[White "A \\"B\\" C"]
[Result "1-0"]

1. e4 {best by test} e5 2. Nf3 (2. f4 exf4 (2... d5) 3. Nf3) 2... Nc6 $1 3.Bb5 a6 ; a comment
1-0

[White "second"]
[FEN "8/P7/8/8/8/8/k6K/8 w - - 0 1"]

1. a8=Q+ *
"""


def test_pgn_is_read_without_comments_and_variations() -> None:
    first, second = read_pgn(PGN)
    assert first.moves == ("e4", "e5", "Nf3", "Nc6", "Bb5", "a6")
    assert (first.tags["White"], first.result) == ('A "B" C', "1-0")
    assert second.start.startswith("8/P7")
    assert second.moves == ("a8=Q+",)


def test_a_pgn_without_moves_is_refused() -> None:
    with pytest.raises(NotationError, match="no moves"):
        read_pgn('[White "x"]\n\n*\n')
