"""Other positions to begin games of self-play at: a short game, races, bear-offs and mid-games drawn at random.

Each is a board before a roll. Drawn ones are made so that it costs next to nothing: a board is needed in every lane of
every turn, though few lanes use it. Knows boards and where checkers may stand; neither dice nor plays.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.games.backgammon.board import CHECKERS, PLACES, planes

_SHORT = {20: 2, 8: 3, 6: 5, 4: 3, 3: 2}  # 112 pips of 167; neither side stands in the other's way
_POINTS, _HOME_POINTS, _HALF = 24, 6, 12
_BACK = 0.15  # the chance that one checker of a mid-game is on the bar, for each side
_OWN = np.linspace(
    0.8, 0.2, _POINTS, dtype=np.float32
)  # mid-games: the chance that a point is mine, my ace point first

Planes = tuple[Array, Array]  # [4] uint32 each: the checkers of the side that moved last, and the other's


def short(key: Array) -> Planes:
    """The same for both sides, as the usual start is, with two thirds of its pips."""
    side = np.zeros(PLACES, int)
    for point, number in _SHORT.items():
        side[point] = number
    mine, theirs = (jnp.asarray(np.stack(planes(counts))) for counts in (side, side[::-1]))
    return mine, theirs


def race(key: Array) -> Planes:
    """All checkers have passed each other: each side's fifteen stand on some of its first twelve points."""
    return _both(key, _racers)


def bearoff(key: Array) -> Planes:
    """Both sides have one to fifteen checkers left, all at home."""
    return _both(key, _home)


def midgame(key: Array) -> Planes:
    """Fifteen checkers each, anywhere, on points drawn for either side; some are on the bar."""
    owner_key, key, *bars = jax.random.split(key, 4)
    own = jax.random.uniform(owner_key, (_POINTS,)) < jnp.asarray(_OWN)
    own = own.at[5].set(True).at[-6].set(False)  # each side has a point to stand on: its six point

    def side(points: Array, key: Array, bar_key: Array) -> Array:
        liking = jnp.where(points, jax.random.gumbel(key, (_POINTS,)), -jnp.inf)
        counts = _place(jax.random.fold_in(key, 1), liking, jnp.int32(CHECKERS))
        back = (jax.random.uniform(bar_key) < _BACK).astype(jnp.int32)
        most = jnp.argmax(counts)
        return counts.at[most].add(-back).at[PLACES - 1].add(back)

    keys = jax.random.split(key)
    return _planes(side(own, keys[0], bars[0])), _planes(side(~own[::-1], keys[1], bars[1])[::-1])


def _both(key: Array, side: Callable[[Array], Array]) -> Planes:
    keys = jax.random.split(key)
    return _planes(side(keys[0])), _planes(side(keys[1])[::-1])


def _racers(key: Array) -> Array:
    keys = jax.random.split(key, 3)
    far = jax.random.randint(keys[0], (), 1, _HALF + 1)
    reached = jnp.arange(1, _POINTS + 1) <= far
    liking = jnp.where(reached, jax.random.gumbel(keys[1], (_POINTS,)), -jnp.inf)
    return _place(keys[2], liking, jnp.int32(CHECKERS))


def _home(key: Array) -> Array:
    keys = jax.random.split(key, 3)
    at_home = jnp.arange(1, _POINTS + 1) <= _HOME_POINTS
    liking = jnp.where(at_home, jax.random.gumbel(keys[1], (_POINTS,)), -jnp.inf)
    return _place(keys[2], liking, jax.random.randint(keys[0], (), 1, CHECKERS + 1))


def _place(key: Array, liking: Array, number: Array) -> Array:
    """`[26]` int32: so many checkers on points 1 to 24, each where chance and `liking` `[24]` (log weights) put it."""
    points = jax.random.categorical(key, liking, shape=(CHECKERS,)) + 1
    put = jnp.arange(CHECKERS) < number
    return (put[:, None] & (points[:, None] == jnp.arange(PLACES)[None])).sum(0)


def _planes(counts: Array) -> Array:
    """`[4]` uint32 of numbers of checkers `[26]`."""
    bits = (counts.astype(jnp.uint32)[None] >> jnp.arange(4, dtype=jnp.uint32)[:, None]) & 1
    return (bits << jnp.arange(PLACES, dtype=jnp.uint32)[None]).sum(-1, dtype=jnp.uint32)
