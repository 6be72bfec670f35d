"""A position that moves are made on and taken back: compiled, one position at a time.

Squares are numbers from a1 = 0 to h8 = 63 as White sees them; pieces 1 to 6 (pawn, knight, bishop, rook, queen, king),
Black's negative. A move is `from | to << 6 | promotion << 12`. Castling is the king's move of two squares. Nothing here
checks that a move is legal; nothing knows values but their sums, which moves keep up to date.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from aleazero.classical.jit import jit

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(1, 7)
SIDE, CASTLING, PASSING, CLOCK, PIECES, MADE, WHITE_KING, BLACK_KING = range(8)  # places in `Position.facts`
NO_SQUARE, ALL_RIGHTS = -1, 15
MOST_MADE = 1024  # moves on top of one another
MOST_MOVES = 256  # of one position
MOST_HEIGHT = 64  # of a search

_STRAIGHT, _DIAGONAL = ((1, 0), (-1, 0), (0, 1), (0, -1)), ((1, 1), (1, -1), (-1, 1), (-1, -1))
_LEAPS = ((1, 2), (1, -2), (-1, 2), (-1, -2), (2, 1), (2, -1), (-2, 1), (-2, -1))


def _steps(ways: tuple[tuple[int, int], ...]) -> np.ndarray:
    """`[64, 9]` int64: the squares one step away; -1 behind the last."""
    table = np.full((64, 9), NO_SQUARE)
    for square in range(64):
        row, column = divmod(square, 8)
        reached = [(row + up, column + across) for up, across in ways]
        inside = [8 * r + c for r, c in reached if 0 <= r < 8 and 0 <= c < 8]
        table[square, : len(inside)] = inside
    return table


def _rays() -> np.ndarray:
    """`[64, 8, 8]` int64: the squares along each way, straight ones first; -1 behind the last."""
    table = np.full((64, 8, 8), NO_SQUARE)
    for square in range(64):
        for way, (up, across) in enumerate(_STRAIGHT + _DIAGONAL):
            row, column = square // 8 + up, square % 8 + across
            for place in range(8):
                if not (0 <= row < 8 and 0 <= column < 8):
                    break
                table[square, way, place] = 8 * row + column
                row, column = row + up, column + across
    return table


LEAPS, AROUND, RAYS = _steps(_LEAPS), _steps(_STRAIGHT + _DIAGONAL), _rays()
# By side: from where its pawns attack a square.
PAWNS_FROM = np.stack([_steps(((-1, -1), (-1, 1))), _steps(((1, -1), (1, 1)))])


def _rights() -> np.ndarray:
    """`[64]` int64: rights to castle that are left when a piece leaves or enters a square."""
    kept = np.full(64, 15)
    for square, lost in ((4, 3), (7, 1), (0, 2), (60, 12), (63, 4), (56, 8)):
        kept[square] = 15 & ~lost
    return kept


RIGHTS = _rights()
_dice = np.random.default_rng(20_090_616)
PIECE_KEYS = _dice.integers(0, 2**64, (13, 64), np.uint64)  # by piece + 6
OTHER_KEYS = _dice.integers(0, 2**64, 16 + 64 + 1, np.uint64)  # rights; the square in passing; Black to move
_BLACK = 80


class Position(NamedTuple):
    """Where the pieces are, what was made of it so far, and room for a search."""

    board: Any  # [64] int8
    facts: Any  # [8] int64
    sums: Any  # [2] float64: values of all pieces early and late in a game, for White
    keys: Any  # [MOST_MADE] uint64: of positions, by moves made
    old_facts: Any  # [MOST_MADE, 10] int64: facts, the piece that moved and the one that was taken
    old_sums: Any  # [MOST_MADE, 2] float64
    moves: Any  # [MOST_HEIGHT, MOST_MOVES] int32
    order: Any  # [MOST_HEIGHT, MOST_MOVES] float64: what is tried first
    killers: Any  # [MOST_HEIGHT, 2] int32: quiet moves that refuted a sibling
    history: Any  # [13, 64] float64: how often moves of a piece to a square refuted anything
    nodes: Any  # [1] int64


def empty() -> Position:
    """Room for a position and its search."""
    return Position(
        board=np.zeros(64, np.int8),
        facts=np.zeros(8, np.int64),
        sums=np.zeros(2),
        keys=np.zeros(MOST_MADE, np.uint64),
        old_facts=np.zeros((MOST_MADE, 10), np.int64),
        old_sums=np.zeros((MOST_MADE, 2)),
        moves=np.zeros((MOST_HEIGHT, MOST_MOVES), np.int32),
        order=np.zeros((MOST_HEIGHT, MOST_MOVES)),
        killers=np.zeros((MOST_HEIGHT, 2), np.int32),
        history=np.zeros((13, 64)),
        nodes=np.zeros(1, np.int64),
    )


FIRST = np.zeros(64, np.int8)
FIRST[:8] = [ROOK, KNIGHT, BISHOP, QUEEN, KING, BISHOP, KNIGHT, ROOK]
FIRST[8:16], FIRST[48:56], FIRST[56:] = PAWN, -PAWN, -FIRST[:8]


@jit
def set_up(at: Position, values: Any, board: Any, side: int, castling: int, passing: int, clock: int) -> None:
    """Puts a position down, with nothing made before it. `values` `[2, 13, 64]` are by piece + 6, for White."""
    at.sums[:] = 0.0
    key = np.uint64(0)
    pieces = 0
    for square in range(64):
        piece = board[square]
        at.board[square] = piece
        if piece != 0:
            pieces += 1
            at.sums[0] += values[0, piece + 6, square]
            at.sums[1] += values[1, piece + 6, square]
            key ^= PIECE_KEYS[piece + 6, square]
            if piece == KING:
                at.facts[WHITE_KING] = square
            elif piece == -KING:
                at.facts[BLACK_KING] = square
    at.facts[SIDE], at.facts[CASTLING], at.facts[PASSING], at.facts[CLOCK] = side, castling, passing, clock
    at.facts[PIECES], at.facts[MADE] = pieces, 0
    key ^= OTHER_KEYS[castling]
    if passing != NO_SQUARE:
        key ^= OTHER_KEYS[16 + passing]
    if side == 1:
        key ^= OTHER_KEYS[_BLACK]
    at.keys[0] = key


@jit
def attacked(board: Any, square: int, by: int) -> bool:
    """Whether pieces of a side (0 White, 1 Black) attack a square."""
    sign = 1 - 2 * by
    for place in range(8):
        source = LEAPS[square, place]
        if source < 0:
            break
        if board[source] == sign * KNIGHT:
            return True
    for place in range(2):
        source = PAWNS_FROM[by, square, place]
        if source < 0:
            break
        if board[source] == sign * PAWN:
            return True
    for way in range(8):
        slider = sign * (ROOK if way < 4 else BISHOP)
        for place in range(7):
            source = RAYS[square, way, place]
            if source < 0:
                break
            piece = board[source]
            if piece != 0:
                if piece == slider or piece == sign * QUEEN or (place == 0 and piece == sign * KING):
                    return True
                break
    return False


@jit
def in_check(at: Position) -> bool:
    """Whether the side to move is."""
    side = at.facts[SIDE]
    return attacked(at.board, at.facts[WHITE_KING + side], 1 - side)


@jit
def _put(at: Position, values: Any, piece: int, square: int, sign: float, key: Any) -> Any:
    """Adds a piece to the sums (sign 1) or takes it from them (-1); the key that it leaves."""
    at.sums[0] += sign * values[0, piece + 6, square]
    at.sums[1] += sign * values[1, piece + 6, square]
    return key ^ PIECE_KEYS[piece + 6, square]


@jit
def make(at: Position, values: Any, move: int) -> bool:
    """Makes a move; whether it was legal, so far as the mover's king is concerned. `take_back` undoes it either way."""
    facts, board, made = at.facts, at.board, at.facts[MADE]
    source, target, promotion = move & 63, (move >> 6) & 63, move >> 12
    side, passing, castling = facts[SIDE], facts[PASSING], facts[CASTLING]
    sign, piece, taken = 1 - 2 * side, board[source], board[target]
    for i in range(8):
        at.old_facts[made, i] = facts[i]
    at.old_facts[made, 8], at.old_facts[made, 9] = piece, taken
    at.old_sums[made, 0], at.old_sums[made, 1] = at.sums[0], at.sums[1]
    key = at.keys[made] ^ OTHER_KEYS[castling]
    if passing != NO_SQUARE:
        key ^= OTHER_KEYS[16 + passing]
    facts[CLOCK] += 1
    facts[PASSING] = NO_SQUARE
    key = _put(at, values, piece, source, -1.0, key)
    if taken != 0:
        key = _put(at, values, taken, target, -1.0, key)
        facts[PIECES] -= 1
        facts[CLOCK] = 0
    board[source] = 0
    becomes = piece
    if piece == sign * PAWN:
        facts[CLOCK] = 0
        if target == passing:
            behind = target - 8 * sign
            key = _put(at, values, -piece, behind, -1.0, key)
            board[behind] = 0
            facts[PIECES] -= 1
        elif promotion != 0:
            becomes = sign * promotion
        elif target - source == 16 * sign:
            ahead = target - 8 * sign
            for place in range(2):  # only where a pawn stands ready to take
                by = PAWNS_FROM[1 - side, ahead, place]
                if by >= 0 and board[by] == -piece:
                    facts[PASSING] = ahead
                    key ^= OTHER_KEYS[16 + ahead]
                    break
    elif piece == sign * KING:
        facts[WHITE_KING + side] = target
        if target - source == 2 or source - target == 2:
            corner, over = (source + 3, source + 1) if target > source else (source - 4, source - 1)
            key = _put(at, values, sign * ROOK, corner, -1.0, key)
            key = _put(at, values, sign * ROOK, over, 1.0, key)
            board[corner], board[over] = 0, sign * ROOK
    board[target] = becomes
    key = _put(at, values, becomes, target, 1.0, key)
    castling &= RIGHTS[source] & RIGHTS[target]
    facts[CASTLING], facts[SIDE], facts[MADE] = castling, 1 - side, made + 1
    at.keys[made + 1] = key ^ OTHER_KEYS[castling] ^ OTHER_KEYS[_BLACK]
    return not attacked(board, facts[WHITE_KING + side], 1 - side)


@jit
def take_back(at: Position, move: int) -> None:
    """Undoes the last move, which must be this one."""
    facts, board, made = at.facts, at.board, at.facts[MADE] - 1
    source, target = move & 63, (move >> 6) & 63
    for i in range(8):
        facts[i] = at.old_facts[made, i]
    at.sums[0], at.sums[1] = at.old_sums[made, 0], at.old_sums[made, 1]
    piece, taken = at.old_facts[made, 8], at.old_facts[made, 9]
    board[source], board[target] = piece, taken
    sign = 1 - 2 * facts[SIDE]
    if piece == sign * PAWN and target == facts[PASSING]:
        board[target - 8 * sign] = -piece
    elif piece == sign * KING and (target - source == 2 or source - target == 2):
        corner, over = (source + 3, source + 1) if target > source else (source - 4, source - 1)
        board[corner], board[over] = sign * ROOK, 0


@jit
def pass_by(at: Position) -> None:
    """Leaves the move to the other side, which no rule allows; `take_pass_back` undoes it."""
    facts, made = at.facts, at.facts[MADE]
    for i in range(8):
        at.old_facts[made, i] = facts[i]
    key = at.keys[made] ^ OTHER_KEYS[_BLACK]
    if facts[PASSING] != NO_SQUARE:
        key ^= OTHER_KEYS[16 + facts[PASSING]]
    facts[SIDE], facts[PASSING], facts[CLOCK], facts[MADE] = 1 - facts[SIDE], NO_SQUARE, 0, made + 1
    at.keys[made + 1] = key


@jit
def take_pass_back(at: Position) -> None:
    """Undoes it."""
    made = at.facts[MADE] - 1
    for i in range(8):
        at.facts[i] = at.old_facts[made, i]


@jit
def drawn(at: Position) -> bool:
    """Whether the position is a draw: fifty moves, one that was there before, or nothing left that could mate.

    A position that comes a second time counts as a draw already, as searches see it.
    """
    clock, made = at.facts[CLOCK], at.facts[MADE]
    if clock >= 100:
        return True
    for back in range(4, min(clock, made) + 1, 2):
        if at.keys[made - back] == at.keys[made]:
            return True
    return at.facts[PIECES] <= 4 and bare(at.board)


@jit
def bare(board: Any) -> bool:
    """Whether neither side could ever mate: kings with a knight, or bishops of one colour of squares."""
    knights, light, dark = 0, 0, 0
    for square in range(64):
        piece = abs(board[square])
        if piece in (PAWN, ROOK, QUEEN):
            return False
        if piece == KNIGHT:
            knights += 1
        elif piece == BISHOP:
            if (square // 8 + square % 8) & 1:
                light += 1
            else:
                dark += 1
    if knights:
        return knights == 1 and light == 0 and dark == 0
    return light == 0 or dark == 0
