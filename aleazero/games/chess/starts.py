"""Other first positions for self-play: some pieces of each side anywhere, so that games soon end and material differs.

From the usual first position untrained play shuffles for hundreds of moves until a draw, and values learn nothing.
Knows boards; not the state of a game.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.games.chess.bits import Bits
from aleazero.games.chess.board import CODES, KING, PAWN, START, Board

_ROW, _COLUMN = np.divmod(np.arange(64), 8)
_APART = np.maximum(abs(_ROW[:, None] - _ROW), abs(_COLUMN[:, None] - _COLUMN)) > 1  # [64, 64]
_NO_PAWNS = np.isin(_ROW, (0, 7))
_PIECES = np.array([CODES[kind] for kind in START if kind != "k"] * 2, np.int32)  # of both sides, without kings
_PAWNS = 16  # of both sides
_UNEVEN = 0.5  # how far the sides' shares of pieces may be apart


def scattered(key: Array) -> Board:
    """A board with both kings, apart, and a random share of each side's other pieces; either side may be in check."""
    kings, places, shares, kept = jax.random.split(key, 4)
    own_king, their_king = _apart(kings)
    with_kings = (jnp.arange(64) == own_king) | (jnp.arange(64) == their_king)
    # Pawns first: on squares that take them, in a random order. Then the others, on what is left.
    chance = jax.random.uniform(places, (2, 64))
    for_pawns = jnp.argsort(chance[0] + (with_kings | _NO_PAWNS))[:_PAWNS]
    taken = with_kings.at[for_pawns].set(True)
    for_others = jnp.argsort(chance[1] + taken)[: len(_PIECES)]
    where = jnp.concatenate([for_pawns, for_others])
    codes = jnp.concatenate([jnp.full(_PAWNS, PAWN, jnp.int32), jnp.asarray(_PIECES)])
    mine = jnp.concatenate([jnp.arange(_PAWNS) < _PAWNS // 2, jnp.arange(len(_PIECES)) < len(_PIECES) // 2])
    common, own, their = jax.random.uniform(shares, (3,))
    share = common + _UNEVEN * (jnp.where(mine, own, their) - 0.5)
    stays = jax.random.uniform(kept, where.shape) < share
    on_board = jnp.zeros(64, jnp.int32).at[where].set(jnp.where(stays, codes, 0))
    on_board = jnp.where(with_kings, KING, on_board)
    own_pieces = jnp.zeros(64, bool).at[where].set(mine & stays).at[own_king].set(True)
    planes = [own_pieces, *((on_board >> bit) & 1 == 1 for bit in range(3))]
    return Board(*map(_bits, planes))


def _apart(key: Array) -> tuple[Array, Array]:
    """Two squares that are no neighbours."""
    first, second = jax.random.split(key)
    own = jax.random.randint(first, (), 0, 64)
    return own, jnp.argmax(jax.random.uniform(second, (64,)) * jnp.asarray(_APART)[own])


def _bits(there: Array) -> Bits:
    """The set of the squares `[64]` bool."""
    words = (there.reshape(2, 32) * (jnp.uint32(1) << jnp.arange(32, dtype=jnp.uint32))[None]).sum(1, dtype=jnp.uint32)
    return Bits(words[0], words[1])
