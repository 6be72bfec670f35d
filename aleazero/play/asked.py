"""A network asked about any number of positions: in pieces, padded to a few sizes, so that few are compiled.

What is worked out on the way takes more room than the answer: pieces keep it small, however many positions there are.
Knows a network's signature; not where positions come from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.records import Evaluate, Weights

MOST_ROWS = 4096  # of a piece


def logits_of(evaluate: Evaluate, weights: Weights, observation: np.ndarray) -> np.ndarray:
    """The policy's logits `[N, A]` of observations `[N, ...]`."""
    return _in_pieces(lambda piece: _logits(evaluate, weights, piece), observation)


def values_of(evaluate: Evaluate, weights: Weights, observation: np.ndarray) -> np.ndarray:
    """The values `[N]` of observations `[N, ...]`."""
    return _in_pieces(lambda piece: _values(evaluate, weights, piece), observation)


def _in_pieces(ask: Callable[[np.ndarray], Array], observation: np.ndarray) -> np.ndarray:
    pieces = [observation[first : first + MOST_ROWS] for first in range(0, max(len(observation), 1), MOST_ROWS)]
    return np.concatenate([np.asarray(ask(_padded(piece)))[: len(piece)] for piece in pieces])


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
