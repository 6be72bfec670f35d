"""A network asked about any number of positions: batches are padded to a few sizes, so that few are compiled.

Knows a network's signature; not where positions come from.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.records import Evaluate, Weights


def logits_of(evaluate: Evaluate, weights: Weights, observation: np.ndarray) -> np.ndarray:
    """The policy's logits `[N, A]` of observations `[N, ...]`."""
    return np.asarray(_logits(evaluate, weights, _padded(observation)))[: len(observation)]


def values_of(evaluate: Evaluate, weights: Weights, observation: np.ndarray) -> np.ndarray:
    """The values `[N]` of observations `[N, ...]`."""
    return np.asarray(_values(evaluate, weights, _padded(observation)))[: len(observation)]


@functools.partial(jax.jit, static_argnums=0)
def _logits(evaluate: Evaluate, weights: Weights, observation: Array) -> Array:
    return evaluate(weights, observation).logits.astype(jnp.float32)


@functools.partial(jax.jit, static_argnums=0)
def _values(evaluate: Evaluate, weights: Weights, observation: Array) -> Array:
    return evaluate(weights, observation).value.astype(jnp.float32)


def _padded(observation: np.ndarray) -> np.ndarray:
    """Rows up to a power of two."""
    size = 1 << (len(observation) - 1).bit_length()
    return np.concatenate([observation, np.zeros((size - len(observation), *observation.shape[1:]), observation.dtype)])
