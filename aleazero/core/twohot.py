"""One number as a distribution over fixed points, close together near zero: values of games without finite outcomes.

The points are evenly spaced on a symlog scale (Hafner et al. 2023, section "Robust predictions"). A number is shared
between its two neighbours in proportion to how near each is, in the number's own units, so that the mean of a
distribution is the mean of what it was learned from. Knows neither games nor networks.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

NUM_BINS = 127  # odd: one of them is zero
_REACH = 7.0  # of the scale: values to about 1,100 points either way

BINS = (np.sign(_x := np.linspace(-_REACH, _REACH, NUM_BINS)) * np.expm1(np.abs(_x))).astype(np.float32)


def encode(value: Array) -> Array:
    """`[..., NUM_BINS]`: numbers `[...]` as distributions; those out of reach as the nearest that is not."""
    value = jnp.clip(value.astype(jnp.float32), BINS[0], BINS[-1])
    bins = jnp.asarray(BINS)
    high = jnp.clip(jnp.searchsorted(bins, value, side="right"), 1, NUM_BINS - 1)
    low = high - 1
    share = (value - bins[low]) / (bins[high] - bins[low])
    return (1 - share)[..., None] * jax.nn.one_hot(low, NUM_BINS) + share[..., None] * jax.nn.one_hot(high, NUM_BINS)


def decode(logits: Array) -> Array:
    """`[...]`: the mean of distributions given as logits `[..., NUM_BINS]`."""
    chances = jax.nn.softmax(logits.astype(jnp.float32))
    return (chances * jnp.asarray(BINS).reshape(*[1] * (logits.ndim - 1), -1)).sum(-1)
