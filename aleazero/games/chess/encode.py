"""What the network sees of a chess position.

Planes are `[8, 8]` by row and column as the side to move sees them. In order: its pawns, knights, bishops, rooks,
queens and king; the other side's; its right to castle short and long, the other side's (whole planes); the square a
pawn can be taken on in passing; plies without a capture or a pawn's move, as a share of a hundred; whether the position
was there before; the squares that its pieces of each kind attack, and the other side's. Then, where asked for, twelve
planes of pieces for each earlier position, latest first.

That a piece hangs follows from the pieces alone, but convolutions need many layers, and training many games, to see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.games.chess.attacks import attacks
from aleazero.games.chess.bits import once, planes
from aleazero.games.chess.board import KINDS, Board

if TYPE_CHECKING:
    from aleazero.games.chess.game import ChessState

PIECE_PLANES = 12
OTHER_PLANES = 7
ATTACK_PLANES = 12
_EP_ROW = 5


def planes_seen(history: int) -> int:
    """How many planes, with so many earlier positions."""
    return PIECE_PLANES * (1 + history) + OTHER_PLANES + ATTACK_PLANES


def observe(state: ChessState) -> Array:
    """`[8, 8, 31 + 12 * history]` float32."""
    whole = jnp.ones((8, 8), jnp.float32)
    columns = jnp.arange(8) == state.ep
    passing = jnp.zeros((8, 8), jnp.bool_).at[_EP_ROW].set(columns)
    shown = [
        *_pieces(state.board),
        *(whole * ((state.castling >> bit) & 1).astype(jnp.float32) for bit in range(4)),
        passing,
        whole * (state.clock.astype(jnp.float32) / 100),
        whole * (state.repeats > 0).astype(jnp.float32),
        *jax.vmap(planes)(once(attacks(state.board))),
    ]
    for board in state.earlier:
        shown += _pieces(board)
    return jnp.stack([plane.astype(jnp.float32) for plane in shown], -1)


def _pieces(board: Board) -> list[Array]:
    """Twelve planes: own kinds, then the other side's."""
    sides = (board.own, board.theirs)
    return [planes(board.of_kind(kind) & side) for side in sides for kind in KINDS]
