"""Chess positions as plain numbers and as FEN, with everything that can be wrong with one.

`startpos` is the first position; `moves` behind a position is followed by moves from there. Behind a FEN, `seen 1` says
that the position was there before, and `after` which placements led to it, latest first: neither is part of FEN, and
neither is written where there is nothing to say. On the host, one position at a time. Knows no moves.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from aleazero.core.errors import NotationError
from aleazero.games.chess.board import CODES, LONG, SHORT, THEIR_LONG, THEIR_SHORT, Board, from_codes

if TYPE_CHECKING:
    from aleazero.games.chess.game import Chess, ChessState

STARTPOS = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
COLUMNS = "abcdefgh"
MAX_CLOCK, MAX_NUMBER = 100, 65_535
_LETTER = {code: letter for letter, code in CODES.items()}
_RIGHTS = {
    "K": ("e1", "h1", "K", "R"),
    "Q": ("e1", "a1", "K", "R"),
    "k": ("e8", "h8", "k", "r"),
    "q": ("e8", "a8", "k", "r"),
}
_SIDES = ("White", "Black")
KNIGHT_STEPS = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))
LINES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))


@dataclasses.dataclass(frozen=True)
class Position:
    """A position as people see it: White below, whoever is to move."""

    pieces: str  # 64 signs from a1, b1 on: letters as in FEN, dots where there is nothing
    to_play: int = 0  # 0 White, 1 Black
    castling: str = ""  # of KQkq
    ep: int | None = None  # the square behind a pawn that has just gone two
    clock: int = 0
    number: int = 1
    seen: int = 0  # times the position was there before
    earlier: tuple[str, ...] = ()  # pieces of the positions before it, latest first

    def problems(self) -> list[str]:
        """Why it is no position of a game."""
        found = [problem for side in (0, 1) for problem in self._side_problems(side)]
        found += self._castling_problems() + self._ep_problems()
        king = self.pieces.find("kK"[self.to_play])
        if self.pieces.count("kK"[self.to_play]) == 1 and attacked(self.pieces, king, by=self.to_play):
            found.append(
                f"{_SIDES[1 - self.to_play]} is in check with {_SIDES[self.to_play]} to move: the king could be taken"
            )
        return found

    def _side_problems(self, side: int) -> list[str]:
        name, found = _SIDES[side], []
        numbers = {kind: self.pieces.count(kind.upper() if side == 0 else kind) for kind in CODES}
        if numbers["k"] != 1:
            found.append(f"{name} has {numbers['k'] or 'no'} king{'s' * (numbers['k'] > 1)}; each side has one")
        if numbers["p"] > 8:
            found.append(f"{name} has {numbers['p']} pawns; a side has at most 8")
        pawn = "Pp"[side]
        wrong = [square_name(i) for i in (*range(8), *range(56, 64)) if self.pieces[i] == pawn]
        if wrong:
            found.append(f"{name} has a pawn on {', '.join(wrong)}; pawns stand on ranks 2 to 7")
        first = {"n": 2, "b": 2, "r": 2, "q": 1}
        promoted = sum(max(numbers[kind] - first[kind], 0) for kind in first)
        if numbers["p"] <= 8 < numbers["p"] + promoted:
            found.append(
                f"{name} has {numbers['p']} pawns and {promoted} promoted pieces; together there are at most 8"
            )
        return found

    def _castling_problems(self) -> list[str]:
        found = []
        for right in self.castling:
            king, rook, king_letter, rook_letter = _RIGHTS[right]
            if self.pieces[square_of(king)] != king_letter or self.pieces[square_of(rook)] != rook_letter:
                found.append(f"castling {right} needs the king on {king} and a rook on {rook}; leave it out")
        return found

    def _ep_problems(self) -> list[str]:
        if self.ep is None:
            return []
        ahead = 8 if self.to_play == 0 else -8  # the way of the side to move
        name = square_name(self.ep)
        if self.ep // 8 != (5 if self.to_play == 0 else 2):
            rank = 6 if self.to_play == 0 else 3
            return [f"en passant {name}: with {_SIDES[self.to_play]} to move it is on rank {rank}, or - for none"]
        pawn = self.pieces[self.ep - ahead] == "pP"[self.to_play]
        if not pawn or self.pieces[self.ep] != "." or self.pieces[self.ep + ahead] != ".":
            return [
                f"en passant {name}: no pawn can just have gone from {square_name(self.ep + ahead)} past it; write -"
            ]
        return []


# ---- squares


def square_name(number: int) -> str:
    """`e4` of 28."""
    return COLUMNS[number % 8] + str(number // 8 + 1)


def square_of(name: str) -> int:
    """28 of `e4`."""
    return COLUMNS.index(name[0]) + 8 * (int(name[1]) - 1)


def attacked(pieces: str, number: int, by: int) -> bool:
    """Whether a side (0 White) attacks a square."""
    row, column = divmod(number, 8)

    def at(rows: int, columns: int) -> str:
        on_board = 0 <= row + rows < 8 and 0 <= column + columns < 8
        piece = pieces[8 * (row + rows) + column + columns] if on_board else " "
        return piece.lower() if piece.isupper() == (by == 0) else "x" if piece not in ". " else piece

    down = -1 if by == 0 else 1  # where a pawn that attacks it stands
    if "p" in (at(down, 1), at(down, -1)) or "n" in [at(*jump) for jump in KNIGHT_STEPS]:
        return True
    for rows, columns in LINES:
        sliders = "bq" if rows and columns else "rq"
        for distance in range(1, 8):
            piece = at(rows * distance, columns * distance)
            if piece in sliders or (piece == "k" and distance == 1):
                return True
            if piece != ".":
                break
    return False


# ---- states


def read(state: Any) -> Position:
    """The position of a state."""
    seat = int(state.to_play)
    rights = int(state.castling)
    mine, theirs = ("KQ", "kq") if seat == 0 else ("kq", "KQ")
    held = {mine[0]: SHORT, mine[1]: LONG, theirs[0]: THEIR_SHORT, theirs[1]: THEIR_LONG}
    ep = int(state.ep)
    earlier = [_pieces(board, seat) for board in state.earlier]
    while earlier and not earlier[-1].strip("."):
        earlier.pop()
    return Position(
        pieces=_pieces(state.board, seat),
        to_play=seat,
        castling="".join(right for right in "KQkq" if rights & held[right]),
        ep=None if ep < 0 else ep + (40 if seat == 0 else 16),
        clock=int(state.clock),
        number=int(state.number),
        seen=int(state.repeats),
        earlier=tuple(earlier),
    )


def _pieces(board: Board, seat: int) -> str:
    """64 signs of a board that `seat` looks at."""
    own, *codes = (
        (int(bits.low) | int(bits.high) << 32) for bits in (board.own, board.diagonal, board.straight, board.steps)
    )
    signs = []
    for number in range(64):
        seen = number if seat == 0 else number ^ 56
        code = sum((plane >> seen & 1) << bit for bit, plane in enumerate(codes))
        white = (own >> seen & 1) == (seat == 0)
        letter = _LETTER.get(code, ".")
        signs.append(letter.upper() if white else letter)
    return "".join(signs)


def _board(pieces: str, seat: int) -> Board:
    order = [number if seat == 0 else number ^ 56 for number in range(64)]
    signs = [pieces[number] for number in order]
    codes = np.array([CODES.get(sign.lower(), 0) for sign in signs], np.uint8)
    own = np.array([sign != "." and sign.isupper() == (seat == 0) for sign in signs])
    return from_codes(codes, own)


def make_state(game: Chess, position: Position) -> ChessState:
    """The state of a position that has no problems."""
    from aleazero.games.chess.compiled import compiled

    seat = position.to_play
    mine, theirs = ("KQ", "kq") if seat == 0 else ("kq", "KQ")
    bits = {mine[0]: SHORT, mine[1]: LONG, theirs[0]: THEIR_SHORT, theirs[1]: THEIR_LONG}
    earlier = (*position.earlier, *["." * 64] * game.history)[: game.history]
    return compiled(game, "position")(
        _board(position.pieces, seat),
        jnp.uint32(sum(bits[right] for right in position.castling)),
        jnp.int32(-1 if position.ep is None else position.ep % 8),
        jnp.int8(seat),
        jnp.int32(position.clock),
        jnp.int32(position.number),
        jnp.int32(position.seen),
        tuple(_board(pieces, seat) for pieces in earlier),
    )


# ---- text


def plain_fen(position: Position) -> str:
    """FEN as other programs read it, without what was before."""
    return format_fen(dataclasses.replace(position, seen=0, earlier=()))


def format_fen(position: Position) -> str:
    """FEN, with `seen` and `after` where there is something to say."""
    fields = [
        _placement(position.pieces),
        "wb"[position.to_play],
        position.castling or "-",
        "-" if position.ep is None else square_name(position.ep),
        str(position.clock),
        str(position.number),
    ]
    if position.seen:
        fields += ["seen", str(position.seen)]
    if position.earlier:
        fields += ["after", *map(_placement, position.earlier)]
    return " ".join(fields)


def _placement(pieces: str) -> str:
    rows = [pieces[8 * row : 8 * row + 8] for row in reversed(range(8))]
    return "/".join(re.sub(r"\.+", lambda gap: str(len(gap[0])), row) for row in rows)


def parse_fen(text: str) -> Position:
    """A FEN of four or six fields; says everything that is wrong with it."""
    words = text.split()
    if words == ["startpos"]:
        words = STARTPOS.split()
    words, after = _cut(words, "after")
    words, seen = _cut(words, "seen")
    if len(words) not in (4, 6):
        raise NotationError(
            f"{len(words)} fields; a FEN has six: pieces, side to move (w or b), castling (of KQkq, or -), en passant "
            "(a square or -), plies without capture or pawn move, move number (these two may be left out), as in "
            + STARTPOS
        )
    words += ["0", "1"] if len(words) == 4 else []
    problems: list[str] = []
    earlier = tuple(_read_pieces(word, problems) for word in after)
    times = _read_number("seen", seen[0], 0, 2, problems) if len(seen) == 1 else 0
    if len(seen) > 1 or (not seen and "seen" in text.split()):
        problems.append("seen is followed by one number, how often the position was there before")
    position = Position(
        pieces=_read_pieces(words[0], problems),
        to_play=_read_side(words[1], problems),
        castling=_read_castling(words[2], problems),
        ep=_read_ep(words[3], problems),
        clock=_read_number("the fifty-move clock", words[4], 0, MAX_CLOCK, problems),
        number=_read_number("the move number", words[5], 1, MAX_NUMBER, problems),
        seen=times,
        earlier=earlier,
    )
    problems += [] if problems else position.problems()
    if problems:
        raise NotationError("; ".join(problems))
    return position


def _cut(words: list[str], name: str) -> tuple[list[str], list[str]]:
    at = words.index(name) if name in words else len(words)
    return words[:at], words[at + 1 :]


def _read_pieces(text: str, problems: list[str]) -> str:
    rows = text.split("/")
    if len(rows) != 8:
        problems.append(f"the pieces {text!r} have {len(rows)} ranks; write eight joined by '/', the eighth first")
        return "." * 64
    read = []
    for rank, row in zip(range(8, 0, -1), rows, strict=True):
        signs = "".join("." * int(sign) if sign in "12345678" else sign for sign in row)
        strange = sorted(set(signs) - set("PNBRQKpnbrqk."))
        if strange or "." in row:
            problems.append(f"rank {rank} is {row!r}; it is made of PNBRQKpnbrqk and the digits 1 to 8")
        elif len(signs) != 8:
            problems.append(f"rank {rank} is {row!r}, which is {len(signs)} squares; a rank has 8")
        read.append(signs)
    return "".join(reversed(read)) if not problems else "." * 64


def _read_side(text: str, problems: list[str]) -> int:
    if text not in ("w", "b"):
        problems.append(f"the side to move is {text!r}; write w or b")
    return int(text == "b")


def _read_castling(text: str, problems: list[str]) -> str:
    if text == "-":
        return ""
    if not text or set(text) - set("KQkq") or len(set(text)) != len(text):
        problems.append(f"castling is {text!r}; write some of KQkq, each once, or -")
        return ""
    return "".join(right for right in "KQkq" if right in text)


def _read_ep(text: str, problems: list[str]) -> int | None:
    if text == "-":
        return None
    if not re.fullmatch(r"[a-h][1-8]", text):
        problems.append(f"en passant is {text!r}; write a square, as in e3, or -")
        return None
    return square_of(text)


def _read_number(what: str, text: str, least: int, most: int, problems: list[str]) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
        problems.append(f"{what} is {text!r}; write a number from {least} to {most}")
        return least
    return int(text)
