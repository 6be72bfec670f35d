"""The pieces on the board as four sets of squares, and what one move makes of them.

Three sets spell the kind of piece on a square, in the order `slides diagonally, slides straight, steps`:

    bishop 100    rook 010    queen 110    pawn 001    knight 101    king 011    nothing 000

so that the sets a move generator asks for most cost one operation. The fourth holds the pieces of the side to move.
Elementwise, for boards of any shape. Knows no turns, no checks and no history.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.struct import struct
from aleazero.games.chess.bits import UP, Bits, count, flipped, only, shifted, square, squares

KINDS = "pnbrqk"
PAWN, BISHOP, ROOK, QUEEN, KNIGHT, KING = 4, 1, 2, 3, 5, 6  # bit 0 slides diagonally, bit 1 straight, bit 2 steps
CODES = {"p": PAWN, "n": KNIGHT, "b": BISHOP, "r": ROOK, "q": QUEEN, "k": KING}
START = "rnbqkbnr"  # columns 0 to 7; a king is on column 4 for both sides, for boards are turned upside down

# Rights to castle, as bits: of the side to move, then of the other.
SHORT, LONG, THEIR_SHORT, THEIR_LONG = 1, 2, 4, 8
_KING, _LONG_ROOK, _SHORT_ROOK = 4, 0, 7  # their squares, on row 0
_TOP = 56


@struct
class Board:
    """Where the pieces are, as the side to move sees it."""

    own: Bits  # pieces of the side to move
    diagonal: Bits  # bishops and queens, and knights
    straight: Bits  # rooks and queens, and kings
    steps: Bits  # pawns, knights and kings

    @property
    def occupied(self) -> Bits:
        """All pieces."""
        return self.diagonal | self.straight | self.steps

    @property
    def theirs(self) -> Bits:
        """The other side's pieces."""
        return self.occupied & ~self.own

    @property
    def pawns(self) -> Bits:
        """Of both sides, as are the others."""
        return self.steps & ~self.diagonal & ~self.straight

    @property
    def knights(self) -> Bits:
        """Step and slide diagonally: no such piece, so it stands for knights."""
        return self.steps & self.diagonal

    @property
    def kings(self) -> Bits:
        """Step and slide straight: the same for kings."""
        return self.steps & self.straight

    @property
    def diagonal_sliders(self) -> Bits:
        """Bishops and queens."""
        return self.diagonal & ~self.steps

    @property
    def straight_sliders(self) -> Bits:
        """Rooks and queens."""
        return self.straight & ~self.steps

    def of_kind(self, kind: str) -> Bits:
        """The pieces of one kind, by its letter."""
        code, there = CODES[kind], self.occupied
        for bit, plane in ((1, self.diagonal), (2, self.straight), (4, self.steps)):
            there = there & (plane if code & bit else ~plane)
        return there


@struct
class Moved:
    """What a move leaves, still as the side that moved sees it."""

    board: Board
    castling: Array  # uint32: rights that are left, as bits
    double: Array  # int32: the column of a pawn that went two squares; -1 where none did
    resets: Array  # bool: a capture or a pawn's move, which can never be taken back


def start() -> Board:
    """The first position."""
    codes = np.zeros(64, np.uint8)
    back = [CODES[kind] for kind in START]
    codes[:8], codes[8:16], codes[48:56], codes[56:] = back, PAWN, PAWN, back
    return from_codes(codes, np.arange(64) < 16)


def from_codes(codes: np.ndarray, own: np.ndarray) -> Board:
    """The board of codes `[64]` (0 for no piece), and whose they are `[64]` bool; on the host."""

    def gather(chosen: np.ndarray) -> Bits:
        bits = squares(sum(1 << int(number) for number in np.flatnonzero(chosen)))
        return Bits(jnp.asarray(bits.low), jnp.asarray(bits.high))

    return Board(gather(own), gather(codes & 1), gather(codes & 2), gather(codes & 4))


def turned(board: Board) -> Board:
    """The board as the other side sees it."""
    return Board(*(flipped(bits) for bits in (board.theirs, board.diagonal, board.straight, board.steps)))


def swapped(castling: Array) -> Array:
    """Rights as the other side sees them."""
    return (castling >> 2) | ((castling & 3) << 2)


def move(board: Board, castling: Array, ep: Array, source: Array, target: Array, promotion: Array) -> Moved:
    """Moves a piece between squares (numbers); `ep` is the column of a pawn that may be taken in passing, or -1.

    `promotion` is the code of what a pawn becomes on the last row where that is not a queen, else 0.
    Castling is the king's move. The move must be legal.
    """
    leaves, enters = square(source), square(target)
    code = [(plane & leaves).some for plane in (board.diagonal, board.straight, board.steps)]
    pawn, king = code[2] & ~code[0] & ~code[1], code[2] & code[1]
    rows = (target >> 3) - (source >> 3)
    passing = pawn & (ep >= 0) & (target == 40 + ep) & ((source & 7) != (target & 7))
    captures = (board.occupied & enters).some | passing
    gone = leaves | enters | only(passing, shifted(enters, -UP))
    last_row = pawn & (target >= _TOP)
    becomes = jnp.where(promotion > 0, promotion, QUEEN)
    code = [jnp.where(last_row, (becomes >> bit) & 1 > 0, is_set) for bit, is_set in enumerate(code)]
    # The rook of a king that goes two columns: to the square it passed.
    short, long = (king & (target - source == by) for by in (2, -2))
    rook_from = only(short, squares(1 << _SHORT_ROOK)) | only(long, squares(1 << _LONG_ROOK))
    rook_to = only(short, squares(1 << 5)) | only(long, squares(1 << 3))
    kept = ~(gone | rook_from)
    after = Board(
        own=(board.own & kept) | enters | rook_to,
        diagonal=(board.diagonal & kept) | only(code[0], enters),
        straight=(board.straight & kept) | only(code[1], enters) | rook_to,
        steps=(board.steps & kept) | only(code[2], enters),
    )
    return Moved(
        board=after,
        castling=castling & ~_lost(source, target),
        double=jnp.where(pawn & (rows == 2), source & 7, -1).astype(jnp.int32),
        resets=pawn | captures,
    )


def _lost(source: Array, target: Array) -> Array:
    """The rights that end with a move: a king or a rook leaves its first square, or a rook is taken on it."""
    ends = (
        (_KING, SHORT | LONG),
        (_SHORT_ROOK, SHORT),
        (_LONG_ROOK, LONG),
        (_TOP + _SHORT_ROOK, THEIR_SHORT),
        (_TOP + _LONG_ROOK, THEIR_LONG),
    )
    lost = jnp.zeros_like(source, jnp.uint32)
    for number, rights in ends:
        lost = lost | jnp.where((source == number) | (target == number), jnp.uint32(rights), jnp.uint32(0))
    return lost


def insufficient(board: Board) -> Array:
    """Whether neither side could ever mate, whatever the other did.

    As python-chess sees it: no pawn, rook or queen; and nothing but kings and one knight, or bishops that all stand on
    squares of one colour.
    """
    knights = board.knights
    bishops = board.diagonal_sliders & ~board.straight
    light = 0x55AA55AA55AA55AA
    one_colour = ~(bishops & squares(light)).some | ~(bishops & ~squares(light)).some
    heavy = (board.pawns | board.straight_sliders).some
    lone_knight = (count(knights) == 1) & ~bishops.some
    return ~heavy & (lone_knight | (~knights.some & one_colour))
