"""What moves of chess give away: positions that are open and always the same, and players told apart."""

from __future__ import annotations

import chess
import pytest

from aleazero import chess_players
from aleazero.chess_decisions import FIRST, LAST, OPEN, open_positions, score_lost
from aleazero.engines.stockfish import DEBIAN_PLACE
from aleazero.games.chess.fen import plain_fen, read
from aleazero.games.chess.game import Chess
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("quick_compile"),
    pytest.mark.skipif(not DEBIAN_PLACE.exists(), reason="Debian's stockfish is not installed"),
]
GAME = Chess()


@pytest.fixture(scope="module")
def judge() -> chess_players.StockfishPlayer:
    return chess_players.make("stockfish", ["nodes=2000"], GAME, "stockfish:nodes=2000")


def player(text: str) -> chess_players.StockfishPlayer:
    kind, _, rest = text.partition(":")
    return chess_players.make(kind, rest.split(","), GAME, text)


def test_positions_are_open_and_the_same_for_the_same_seed(judge: chess_players.StockfishPlayer) -> None:
    met = open_positions(GAME, judge, 8, seed=3)
    fens = [plain_fen(read(one.state)) for one in met]
    assert fens == [plain_fen(read(one.state)) for one in open_positions(GAME, judge, 8, seed=3)]
    assert fens[0] not in [plain_fen(read(one.state)) for one in open_positions(GAME, judge, 4, seed=4)]
    assert len(set(fens)) == 8
    for fen, one in zip(fens, met, strict=True):
        board = chess.Board(fen)
        assert board.is_valid()
        assert FIRST <= board.ply() <= LAST
        assert board.legal_moves.count() > 1
        assert OPEN <= one.worth <= 1 - OPEN


def test_the_judge_itself_gives_hardly_anything_away_and_others_do(judge: chess_players.StockfishPlayer) -> None:
    met = open_positions(GAME, judge, 24, seed=0)
    own = score_lost(GAME, judge, judge, met, seed=0)
    weak, lots = (score_lost(GAME, judge, player(text), met, seed=0) for text in ("stockfish:nodes=1", "eps100"))
    assert own.score.value < 0.02  # its move may be one that its last whole line did not show yet
    assert own.blunders == 0
    assert own.score.value < weak.score.value < lots.score.value
    assert lots.score.value > 0.15
    assert lots.each.shape == (24,)
    assert (lots.each >= 0).all()
