"""How far it is to the goal in Quoridor, and moves that go by nothing else. Knows walls; not that pawns are jumped.

walk    the pawn goes where the goal is nearest
race    the same; but whoever would lose the race places the wall that costs the opponent most
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from aleazero.games.quoridor.rules import SQUARES, State, facing, half_turn, legal_list, pawn_moves, shut_off

_STEPS = (9, 1, -9, -1)  # as `shut_off` has the ways: up, right, down, left
_FAR = 99


def distances(walls: Array) -> Array:
    """`[81]` int32: steps from every square to the top row; `_FAR` where there is no way."""
    shut = shut_off(walls)
    goal = np.where(np.arange(SQUARES) >= SQUARES - 9, 0, _FAR).astype(np.int32)

    def spread(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        far, _ = carry
        padded = jnp.pad(far, 9, constant_values=_FAR)
        ways = [jnp.where(shut[i], _FAR, padded[9 + step : 9 + step + SQUARES] + 1) for i, step in enumerate(_STEPS)]
        nearer = jnp.minimum(far, jnp.stack(ways).min(0))
        return nearer, (nearer != far).any()

    found: Array = lax.while_loop(lambda carry: carry[1], spread, (jnp.asarray(goal), jnp.bool_(True)))[0]
    return found


def both(walls: Array, pawns: Array) -> Array:
    """`[2]` int32: how far each pawn has to go, seen from seat 0's side."""
    return jnp.stack([distances(walls)[pawns[0]], distances(half_turn(walls))[SQUARES - 1 - pawns[1]]])


def walk(state: State) -> Array:
    """`[]` int32: the pawn's move to where the goal is nearest; the first of several."""
    mine = facing(state)
    moves = pawn_moves(mine).astype(jnp.int32)
    far = jnp.where(moves >= 0, distances(mine.walls)[moves], 2 * _FAR)
    return moves[jnp.argmin(far)]


def race(state: State) -> Array:
    """`[]` int32: the same, or a wall where the race would be lost and one gains a step at least."""
    mine = facing(state)
    me, you = both(mine.walls, mine.pawns)
    places = legal_list(state)[5:].reshape(2, 8, 8)

    def lead(orientation: Array, row: Array, column: Array) -> Array:
        after = both(mine.walls.at[orientation, row, column].set(True), mine.pawns)
        return after[1] - after[0]

    where = jnp.meshgrid(jnp.arange(2), jnp.arange(8), jnp.arange(8), indexing="ij")
    leads = jax.vmap(lead)(*(axis.reshape(-1) for axis in where))
    leads = jnp.where(places.reshape(-1) >= 0, leads, -2 * _FAR)
    best = jnp.argmax(leads)
    better = (me > you) & (leads[best] > you - me)
    return jnp.where(better, SQUARES + best, walk(state)).astype(jnp.int32)
