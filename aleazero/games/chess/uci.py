"""Moves and values as engines write them, and moves where this package's rules have already called a game drawn.

UCI programs play on until somebody claims a draw, so a game may go on where `Chess` has ended it by repetition, fifty
moves or bare kings. `open_actions` lists what can be moved there. On the host, one position at a time.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aleazero.core.errors import NotationError
from aleazero.games.chess.actions import ACTION_OF
from aleazero.games.chess.board import CODES
from aleazero.games.chess.compiled import after, legal_actions
from aleazero.games.chess.fen import (
    KNIGHT_STEPS,
    LINES,
    MAX_CLOCK,
    MAX_NUMBER,
    Position,
    attacked,
    make_state,
    read,
    square_of,
)

if TYPE_CHECKING:
    from aleazero.games.chess.game import Chess, ChessState

MOST_CENTIPAWNS = 9999
_MOVE = re.compile(r"([a-h][1-8])([a-h][1-8])([nbrq]?)")


def action_of(text: str, seat: int) -> int:
    """The action a move such as `e7e8q` names for a seat (0 White), legal or not."""
    found = _MOVE.fullmatch(text)
    turn = 0 if seat == 0 else 56
    if found:
        source, target = square_of(found[1]) ^ turn, square_of(found[2]) ^ turn
        kind = 0 if found[3] in ("", "q") else CODES[found[3]]
        if (source, target, kind) in ACTION_OF:
            return ACTION_OF[source, target, kind]
    raise NotationError(f"{text!r} is no move as in e2e4 or e7e8q")


def counted(fen: str) -> str:
    """A FEN with its two counts as our rules know them: other programs count on after 100 plies, or from move 0."""
    words = fen.split()
    if len(words) == 6 and all(word.isascii() and word.isdecimal() for word in words[4:]):
        words[4:] = [str(min(int(words[4]), MAX_CLOCK)), str(min(max(int(words[5]), 1), MAX_NUMBER))]
    return " ".join(words)


def open_actions(game: Chess, state: ChessState) -> list[int]:
    """What can be moved, also where the game is drawn by rule; none in mate and stalemate."""
    state = as_open(game, state)
    return legal_actions(game, state) if not bool(state.terminated) else _bare_actions(read(state))


def go_on(game: Chess, state: ChessState, text: str) -> ChessState:
    """The state after a move that can be made, whether or not the game was called drawn before it."""
    here = read(state)
    action = action_of(text, here.to_play)
    promotes = here.pieces[square_of(text[:2])] in "Pp" and text[3] in "18"
    if action not in open_actions(game, state) or promotes != (len(text) == 5):
        raise NotationError(f"move {text!r} is not legal in {game.notation.format_state(state)!r}")
    return after(game, state, action)


def as_open(game: Chess, state: ChessState) -> ChessState:
    """The same position without what made it a draw by repetition or fifty moves."""
    if not bool(state.terminated):
        return state
    return make_state(game, dataclasses.replace(read(state), clock=0, seen=0))


def centipawns(value: float) -> int:
    """A value in [-1, 1] on the scale on which a pawn is a score of 64 %, as Elo counts: 100 for 0.28."""
    score = min(max((1 + value) / 2, 1e-9), 1 - 1e-9)
    return min(max(round(400 * math.log10(score / (1 - score))), -MOST_CENTIPAWNS), MOST_CENTIPAWNS)


def _bare_actions(here: Position) -> list[int]:
    """Legal moves where neither side could ever mate: kings, knights and bishops alone; none where there is more."""
    if set(here.pieces.lower()) - set("knb."):
        return []  # the game is over for another reason: mate, or stalemate
    turn, found = (0 if here.to_play == 0 else 56), []
    for source, piece in enumerate(here.pieces):
        if piece == "." or piece.isupper() != (here.to_play == 0):
            continue
        for target in _reached(here.pieces, source):
            moved = list(here.pieces)
            moved[source], moved[target] = ".", piece
            board = "".join(moved)
            if not attacked(board, board.index("Kk"[here.to_play]), by=1 - here.to_play):
                found.append(ACTION_OF[source ^ turn, target ^ turn, 0])
    return found


def _reached(pieces: str, source: int) -> Iterator[int]:
    """Squares that a king, knight or bishop gets to, whatever becomes of its king."""
    piece, (row, column) = pieces[source], divmod(source, 8)
    ways = KNIGHT_STEPS if piece in "Nn" else [way for way in LINES if piece in "Kk" or (way[0] and way[1])]
    for rows, columns in ways:
        for distance in range(1, 8 if piece in "Bb" else 2):
            to_row, to_column = row + rows * distance, column + columns * distance
            if not (0 <= to_row < 8 and 0 <= to_column < 8):
                break
            there = pieces[8 * to_row + to_column]
            if there == "." or there.isupper() != piece.isupper():
                yield 8 * to_row + to_column
            if there != ".":
                break
