"""Opinions: how a game will end, as a distribution over its outcomes `[..., O]`, or as one value `[..., 1]`.

An opinion is always somebody's: to_play's, or seat 0's. Knows the game's facts only.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.game import GameSpec, outcome_index

_HALVINGS = 26  # of the interval a tilt is sought in: past float32's precision for any mean away from the ends
_STEEPEST = 60.0


def points_table(spec: GameSpec) -> np.ndarray:
    """`[O]` float32: every outcome's points over the game's largest."""
    return np.array([outcome.points / spec.scale for outcome in spec.outcomes], np.float32)


def expected_value(spec: GameSpec, opinion: Array) -> Array:
    """`[...]` in [-1, 1]: the expected points over the largest."""
    if opinion.shape[-1] == 1:
        return opinion[..., 0]
    return (opinion * _over_last(points_table(spec), opinion)).sum(-1)


def other_side(spec: GameSpec, opinion: Array) -> Array:
    """The opponent's view of the same opinion: my win is your loss."""
    if opinion.shape[-1] == 1:
        return -opinion
    points = points_table(spec)
    return opinion[..., np.abs(points[:, None] + points[None]).argmin(-1)]


def seen_by_seat(spec: GameSpec, opinion: Array, seat: Array) -> Array:
    """Turns opinions of players in `seat` `[...]` into seat 0's, or seat 0's into theirs: the same operation."""
    return jnp.where((seat == 1)[..., None], other_side(spec, opinion), opinion)


def certain(spec: GameSpec, points: Array, width: int) -> Array:
    """The opinion `[..., width]` of one who knows the final points `[...]`."""
    if width == 1:
        return (points / spec.scale)[..., None]
    return jax.nn.one_hot(outcome_index(spec, points), width)


def tilt(spec: GameSpec, opinion: Array, value: Array) -> Array:
    """The distribution nearest to `opinion` (in relative entropy) whose expected value is `value` `[...]`.

    So a search's value, which is one number, corrects a distribution: each probability is multiplied by
    exp(slope * points), and the slope is found by halving.
    """
    if opinion.shape[-1] == 1:
        return value[..., None]
    points = points_table(spec)
    logs = jnp.log(jnp.maximum(opinion.astype(jnp.float32), 1e-6))

    def tilted(slope: Array) -> Array:
        return jax.nn.softmax(logs + slope[..., None] * _over_last(points, logs))

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        below = expected_value(spec, tilted(middle)) < value
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    ends = (jnp.full(value.shape, -_STEEPEST), jnp.full(value.shape, _STEEPEST))
    low, high = jax.lax.fori_loop(0, _HALVINGS, halve, ends)
    return tilted((low + high) / 2)


def _over_last(table: np.ndarray, like: Array) -> Array:
    return jnp.asarray(table).reshape(*[1] * (like.ndim - 1), -1)
