"""What networks see of a backgammon position: numbers from the side of the player whose turn it is or was.

Everything is read off the board's bits. Knows no rules beyond where checkers go.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from aleazero.games.backgammon.board import CHECKERS, Board, Planes, counts, several, some, total

_POINTS = 24
INPUTS = 2 * (5 * _POINTS + 3 + 2) + 3 + 1 + 2 + 6


def observe(board: Board, dice: Array, left: Array, is_chance: Array, opening: Array) -> Array:
    """`[INPUTS]` float32 of one position: both sides' points, bars and checkers off; pips, contact, dice to play."""
    mine, theirs = counts(board.mine), counts(board.theirs)
    places = jnp.arange(mine.shape[-1])
    pips = (mine * places).sum(), (theirs * (places.shape[0] - 1 - places)).sum()
    faces = jnp.arange(1, 7)
    double = dice[0] == dice[1]
    to_play = jnp.where(double, left, 1) * (faces == dice[0]) + (~double & (faces == dice[1]))
    numbers = jnp.stack([pips[0] / 100.0, pips[1] / 100.0, (pips[0] - pips[1]) / 50.0])
    flags = jnp.stack([in_contact(board), is_chance, opening]).astype(jnp.float32)
    return jnp.concatenate(
        [
            _points(board.mine, mine),
            _points(board.theirs, theirs),
            _apart(mine[25], total(board.mine)),
            _apart(theirs[0], total(board.theirs)),
            numbers,
            flags,
            to_play / 2.0,
        ]
    ).astype(jnp.float32)


def in_contact(board: Board) -> Array:
    """Whether some checkers have still to pass each other."""
    mine, theirs = some(board.mine), some(board.theirs)
    lowest = theirs & (~theirs + 1)  # their last checker, in my places
    return (theirs != 0) & (mine > lowest)


def _points(planes: Planes, number: Array) -> Array:
    """A blot, at least two, three, four; and how many more."""
    two = several(planes)
    three = (planes[0] & planes[1]) | planes[2] | planes[3]
    masks = (planes[0] & ~two, two, three, planes[2] | planes[3])
    places = jnp.arange(1, _POINTS + 1, dtype=jnp.uint32)
    bits = [((mask >> places) & 1).astype(jnp.float32) for mask in masks]
    more = jnp.maximum(number[1 : _POINTS + 1] - 4, 0) / 4.0
    return jnp.concatenate([*bits, more])


def _apart(bar: Array, left: Array) -> Array:
    """The bar, and what is off."""
    off = CHECKERS - left
    return jnp.stack([bar > 0, bar > 1, bar / 3.0, off > 0, off / CHECKERS]).astype(jnp.float32)
