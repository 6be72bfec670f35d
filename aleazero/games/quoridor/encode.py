"""What the network sees of a Quoridor position."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.games.quoridor.rules import WALLS_EACH, State, facing

PLANES = 6


def observe(state: State) -> Array:
    """`[9, 9, 6]` float32: my pawn, yours, horizontal walls, vertical walls, my walls left, yours.

    The board is turned as the actions are: row 0 is the mover's home and row 8 the goal, whichever the seat,
    and [row, column] shows the square of action 9 * row + column. Walls, 8x8, leave the last row and column
    of their planes empty; walls left fill theirs, as a share of ten.
    """
    mine = facing(state)
    squares = np.arange(81).reshape(9, 9)
    planes = [
        squares == mine.pawns[0],
        squares == mine.pawns[1],
        jnp.pad(mine.walls[0], ((0, 1), (0, 1))),
        jnp.pad(mine.walls[1], ((0, 1), (0, 1))),
        jnp.full((9, 9), mine.walls_left[0] / WALLS_EACH),
        jnp.full((9, 9), mine.walls_left[1] / WALLS_EACH),
    ]
    return jnp.stack([plane.astype(jnp.float32) for plane in planes], -1)
