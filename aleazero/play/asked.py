"""A network asked about any number of positions: in pieces, padded to a few sizes, so that few are compiled.

What is worked out on the way takes more room than the answer. On a CPU pieces are so small that it fits a core's cache,
and every core that is a device has its share of each. Knows a network's signature; not where positions come from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.records import Evaluate, Weights
from aleazero.play.spread import Spread

MOST_ROWS = 4096  # of a piece on an accelerator
CACHED_ROWS = 64  # of a core's share: with 8 times as many it answers half as many a second


def logits_of(evaluate: Evaluate, weights: Weights, observation: np.ndarray) -> np.ndarray:
    """The policy's logits `[N, A]` of observations `[N, ...]`."""
    return _in_pieces(_logits, evaluate, weights, observation)


def values_of(evaluate: Evaluate, weights: Weights, observation: np.ndarray) -> np.ndarray:
    """The values `[N]` of observations `[N, ...]`."""
    return _in_pieces(_values, evaluate, weights, observation)


def distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows `[N, ...]` without those that stand before, and where each of the `[N]` is among them."""
    places: dict[bytes, int] = {}
    where = np.array([places.setdefault(row.tobytes(), len(places)) for row in rows], np.int64)
    return rows[np.unique(where, return_index=True)[1]], where


def most_rows() -> int:
    """Of a piece here."""
    return CACHED_ROWS * len(jax.local_devices()) if jax.default_backend() == "cpu" else MOST_ROWS


def _in_pieces(ask: Callable[..., Array], evaluate: Evaluate, weights: Weights, observation: np.ndarray) -> np.ndarray:
    spread, most = Spread.over_all(), most_rows()
    weights = spread.everywhere(weights)
    pieces = [observation[first : first + most] for first in range(0, max(len(observation), 1), most)]
    # Asked about all before any answer is read, so that devices need not wait for the host.
    answers = [ask(spread, evaluate, weights, spread.lanes(_padded(piece, spread.mesh.size))) for piece in pieces]
    return np.concatenate([np.asarray(answer)[: len(piece)] for answer, piece in zip(answers, pieces, strict=True)])


@functools.partial(jax.jit, static_argnums=(0, 1))
def _logits(spread: Spread, evaluate: Evaluate, weights: Weights, observation: Array) -> Array:
    logits: Array = spread.function(evaluate, None, 0)(weights, observation).logits
    return logits.astype(jnp.float32)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _values(spread: Spread, evaluate: Evaluate, weights: Weights, observation: Array) -> Array:
    values: Array = spread.function(evaluate, None, 0)(weights, observation).value
    return values.astype(jnp.float32)


def _padded(observation: np.ndarray, shares: int) -> np.ndarray:
    """Rows up to a power of two in each of so many shares."""
    size = shares << (-(-len(observation) // shares) - 1).bit_length()
    return np.concatenate([observation, np.zeros((size - len(observation), *observation.shape[1:]), observation.dtype)])
