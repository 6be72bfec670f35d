"""What networks see of a backgammon position: numbers from the side of the player whose turn it is or was.

Checkers point by point, and what a player would count: pips, shots at blots, points that keep checkers on the bar, and
primes with somebody behind them. Everything is read off the board's bits. Knows no rules beyond where checkers go.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.games.backgammon.board import CHECKERS, HOME, POINTS, Board, counts, several, some, total, turned

_POINTS = 24
_PRIMES = (3, 4, 5, 6)
_SIDE = 5 * _POINTS + 5 + 3 + len(_PRIMES)  # numbers of one side: points; bar and off; danger; primes
CONTACT = 2 * _SIDE + 3  # the flag that tells contact from races
INPUTS = CONTACT + 3 + 6

_LARGER, _SMALLER = (
    np.array(x, np.uint32) for x in zip(*((a, b) for a in range(1, 7) for b in range(1, a)), strict=True)
)
_DOUBLES = np.arange(1, 7, dtype=np.uint32)


def observe(board: Board, dice: Array, left: Array, is_chance: Array, opening: Array) -> Array:
    """`[INPUTS]` float32 of one position."""
    mine, theirs = counts(board.mine), counts(board.theirs)
    places = jnp.arange(mine.shape[-1])
    pips = (mine * places).sum(), (theirs * (places.shape[0] - 1 - places)).sum()
    faces = jnp.arange(1, 7)
    double = dice[0] == dice[1]
    to_play = jnp.where(double, left, 1) * (faces == dice[0]) + (~double & (faces == dice[1]))
    numbers = [
        *_apart(mine[25], total(board.mine)),
        *_apart(theirs[0], total(board.theirs)),
        *_danger(board),
        *_danger(turned(board)),
        pips[0] / 100.0,
        pips[1] / 100.0,
        (pips[0] - pips[1]) / 50.0,
        in_contact(board),
        is_chance,
        opening,
    ]
    # Worked out before they are joined: a GPU would do all of it again for every input.
    numbers = jax.lax.optimization_barrier([jnp.asarray(number, jnp.float32) for number in numbers])
    return jnp.concatenate([_points(mine, theirs), jnp.stack(numbers), (to_play / 2.0).astype(jnp.float32)])


def in_contact(board: Board) -> Array:
    """Whether some checkers have still to pass each other."""
    mine, theirs = some(board.mine), some(board.theirs)
    lowest = theirs & (~theirs + 1)  # their last checker, in my places
    return (theirs != 0) & (mine > lowest)


def shots(board: Board) -> Array:
    """int32: how many of the other side's 36 rolls hit a blot of mine, by one die, both, or along a double.

    Counted as players count: a roll hits if some checker gets there over open points, and those on the bar come first.
    """
    theirs, held = some(board.theirs), several(board.mine)
    blots, open_ = some(board.mine) & ~held & jnp.uint32(POINTS), ~held & jnp.uint32(POINTS)
    on_bar = counts(board.theirs)[..., 0]
    bar, runners = jnp.uint32(1), theirs & ~jnp.uint32(1)

    def hits(places: Array) -> Array:
        return (places & blots) != 0

    one, two = jnp.asarray(_LARGER), jnp.asarray(_SMALLER)
    straight, entering = (
        hits((x << one) | (x << two) | (((x << one) & open_) << two) | (((x << two) & open_) << one))
        for x in (theirs, bar)
    )
    enters = [((bar << die) & open_) != 0 for die in (one, two)]
    by_others = (enters[0] & hits(runners << two)) | (enters[1] & hits(runners << one))
    both_enter = hits((bar << one) | (bar << two))
    mixed = jnp.where(on_bar == 0, straight, jnp.where(on_bar == 1, entering | by_others, both_enter))
    die = jnp.asarray(_DOUBLES)
    goes = jnp.where(on_bar == 0, theirs, bar) << die
    doubled = hits(goes)
    goes = (goes & open_) | jnp.where((on_bar > 0) & ((goes & open_) != 0), runners, 0)
    for used in range(1, 4):
        goes = goes << die
        doubled = doubled | (hits(goes) & (used >= on_bar))  # each checker on the bar takes one move to enter
        goes = goes & open_
    return 2 * mixed.sum(dtype=jnp.int32) + doubled.sum(dtype=jnp.int32)


def _points(mine: Array, theirs: Array) -> Array:
    """Point by point of both sides: a blot, at least two, three, four; and how many more."""
    number = jnp.stack([mine, theirs])[:, None, 1 : _POINTS + 1]
    level = jnp.arange(5)[None, :, None]
    reached = jnp.where(level == 0, number == 1, number > level).astype(jnp.float32)
    return jnp.where(level == 4, jnp.maximum(number - 4, 0) / 4.0, reached).reshape(-1)


def _apart(bar: Array, left: Array) -> list[Array]:
    """The bar, and what is off."""
    off = CHECKERS - left
    return [bar > 0, bar > 1, bar / 3.0, off > 0, off / CHECKERS]


def _danger(board: Board) -> list[Array]:
    """My blots under fire; how shut my home is; the chances to enter it; and my primes with checkers behind them."""
    held = several(board.mine) & jnp.uint32(POINTS)
    shut = jax.lax.population_count(held & jnp.uint32(HOME)).astype(jnp.float32) / 6.0
    waits = (some(board.theirs) & 1).astype(jnp.float32)
    danger = [shots(board) / 36.0, shut, waits * (1.0 - shut * shut)]
    run = held
    for length in range(2, max(_PRIMES) + 1):
        run = run & (held >> (length - 1))  # the lowest points of primes of this length
        if length in _PRIMES:
            # Somebody stands below a prime's lowest point if their lowest place is below the highest such point.
            lowest = some(board.theirs) & (~some(board.theirs) + 1)
            danger.append(((run != 0) & (lowest != 0) & (lowest < run)).astype(jnp.float32))
    return danger
