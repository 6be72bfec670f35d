"""How people and programs write chess: SAN and UCI for moves, FEN for positions.

Moves are written in SAN (`Nf3`, `exd5`, `O-O`, `e8=Q+`) and read in SAN or UCI (`g1f3`, `e7e8q`). Positions are FEN,
`startpos`, or either with `moves` and moves behind it. On the host, one position at a time.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from aleazero.core.errors import NotationError
from aleazero.core.game import Notation
from aleazero.games.chess.actions import MOVES
from aleazero.games.chess.board import BISHOP, KNIGHT, ROOK
from aleazero.games.chess.compiled import after, legal_actions
from aleazero.games.chess.fen import COLUMNS, Position, attacked, format_fen, make_state, parse_fen, read, square_name

if TYPE_CHECKING:
    from aleazero.games.chess.game import Chess, ChessState

_PROMOTIONS = {KNIGHT: "n", BISHOP: "b", ROOK: "r"}
_UCI = re.compile(r"([a-h][1-8])([a-h][1-8])([nbrqNBRQ]?)")
_SAN = re.compile(r"([NBRQK]?)([a-h]?)([1-8]?)[x:]?([a-h][1-8])(?:=?\(?([NBRQ])\)?)?")
_SHOWN = 12  # legal moves that an error names


class ChessNotation(Notation):
    """SAN, UCI and FEN."""

    def __init__(self, game: Chess) -> None:
        self.game = game

    # ---- moves

    def format_action(self, state: Any, action: int) -> str:
        """The move in SAN, with `+` for check and `#` for mate."""
        here = read(state)
        move = _Move(here, int(action))
        others = [_Move(here, other) for other in legal_actions(self.game, state)]
        text = move.san(others)
        if not move.checks():
            return text
        return text + ("#" if bool(after(self.game, state, int(action)).returns.any()) else "+")

    def format_uci(self, state: Any, action: int) -> str:
        """The move as engines write it: `e2e4`, `e7e8q`; castling by the king's squares."""
        return _Move(read(state), int(action)).uci

    def parse_action(self, state: Any, text: str) -> int:
        """A legal move in SAN or UCI."""
        if bool(state.terminated):
            raise NotationError(f"move {text!r} is not possible: the game is over")
        here = read(state)
        legal = [_Move(here, action) for action in legal_actions(self.game, state)]
        word = re.sub(r"[+#!?]+$", "", text.strip()).removesuffix("e.p.").strip()
        found = [move for move in legal if move.means(word)]
        if len(found) == 1:
            return found[0].action
        names = [move.san(legal) for move in legal]
        if found:
            options = ", ".join(move.san(legal) for move in found)
            raise NotationError(f"move {text!r} can be read in more than one way: {options}")
        near = difflib.get_close_matches(word, [*names, *(move.uci for move in legal)], 1)
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        written = _UCI.fullmatch(word) or _SAN.fullmatch(word) or _castles(word)
        why = "is not legal here" if written else "is not a move as in Nf3, exd5, O-O, e8=Q or g1f3"
        raise NotationError(
            f"move {text!r} {why}" + (f"; did you mean {near[0]}?" if near else ".") + f" Legal: {shown}"
        )

    # ---- positions

    def format_state(self, state: Any) -> str:
        """FEN; `seen` and `after` behind it where the past matters."""
        return format_fen(read(state))

    def parse_state(self, text: str) -> ChessState:
        """A FEN or `startpos`, and moves from there behind `moves`."""
        start, _, line = text.partition(" moves ")
        try:
            state = make_state(self.game, parse_fen(start))
        except NotationError as error:
            raise NotationError(f"position {start.strip()!r}: {error}") from None
        for number, word in enumerate(line.split(), 1):
            try:
                state = after(self.game, state, self.parse_action(state, word))
            except NotationError as error:
                raise NotationError(f"position {text.strip()!r}: at move {number}: {error}") from None
        return state

    def draw(self, state: Any) -> str:
        """The board from White's side, capital letters for White."""
        here = read(state)
        rows = [f"{row + 1} " + " ".join(here.pieces[8 * row : 8 * row + 8]) for row in reversed(range(8))]
        king = here.pieces.index("Kk"[here.to_play])
        check = ", in check" if attacked(here.pieces, king, by=1 - here.to_play) else ""
        return "\n".join([*rows, "  " + " ".join(COLUMNS), f"{('White', 'Black')[here.to_play]} to move{check}"])

    def explain(self) -> str:
        """Moves and positions."""
        return (
            "Moves are SAN or UCI: Nf3, exd5, O-O, e8=Q, g1f3, e7e8q. Positions are FEN or startpos, with moves behind "
            "the word moves: startpos moves e2e4 e7e5"
        )


class _Move:
    """One action in one position, in people's squares."""

    def __init__(self, here: Position, action: int) -> None:
        source, target, promotion = MOVES[action]
        turn = 0 if here.to_play == 0 else 56
        self.here, self.action = here, action
        self.source, self.target = source ^ turn, target ^ turn
        self.kind = here.pieces[self.source].upper()
        self.captures = here.pieces[self.target] != "." or (self.kind == "P" and (source - target) % 8 != 0)
        last = self.kind == "P" and target >= 56
        self.promotion = _PROMOTIONS[promotion] if promotion else "q" if last else ""
        self.castles = self.kind == "K" and abs(source - target) == 2

    @property
    def uci(self) -> str:
        """`e7e8q`."""
        return square_name(self.source) + square_name(self.target) + self.promotion

    def san(self, legal: list[_Move]) -> str:
        """Without check; `legal` are the moves to tell it from."""
        if self.castles:
            return "O-O" if self.target > self.source else "O-O-O"
        target = ("x" if self.captures else "") + square_name(self.target)
        if self.kind == "P":
            column = COLUMNS[self.source % 8] if self.captures else ""
            return column + target + (f"={self.promotion.upper()}" if self.promotion else "")
        rivals = [
            m.source for m in legal if m.kind == self.kind and m.target == self.target and m.source != self.source
        ]
        return self.kind + self._which(rivals) + target

    def _which(self, rivals: list[int]) -> str:
        """The column, rank or both that tell a piece from others that go to the same square."""
        name = square_name(self.source)
        if not rivals:
            return ""
        if all(rival % 8 != self.source % 8 for rival in rivals):
            return name[0]
        return name[1] if all(rival // 8 != self.source // 8 for rival in rivals) else name

    def means(self, word: str) -> bool:
        """Whether a text without check marks can mean this move."""
        if _UCI.fullmatch(word):
            return word.lower() == self.uci
        if _castles(word):
            return self.castles and ("O-O" if self.target > self.source else "O-O-O") == _castles(word)
        san = _SAN.fullmatch(word)
        if not san or self.castles:
            return False
        kind, column, rank, target, promotion = san.groups()
        return (
            (kind or "P") == self.kind
            and target == square_name(self.target)
            and column in ("", square_name(self.source)[0])
            and rank in ("", square_name(self.source)[1])
            and (promotion or "").lower() == self.promotion
            and not (self.kind == "P" and self.captures and not column)
        )

    def checks(self) -> bool:
        """Whether the other king is attacked afterwards."""
        pieces, mover = list(self.here.pieces), self.here.to_play
        piece = self.promotion or self.kind
        if self.kind == "P" and self.captures and pieces[self.target] == ".":
            pieces[8 * (self.source // 8) + self.target % 8] = "."
        if self.castles:
            short = self.target > self.source
            rook = self.source + (3 if short else -4)
            pieces[(self.source + self.target) // 2], pieces[rook] = pieces[rook], "."
        pieces[self.target], pieces[self.source] = piece.upper() if mover == 0 else piece.lower(), "."
        board = "".join(pieces)
        return attacked(board, board.index("kK"[mover]), by=mover)


def _castles(word: str) -> str:
    """`O-O` or `O-O-O` of a text, also with zeros; else nothing."""
    plain = word.upper().replace("0", "O")
    return plain if plain in ("O-O", "O-O-O") else ""
