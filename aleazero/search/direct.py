"""No looking ahead: the network's own policy, with a temperature. The baseline, and what PPO acts with.

Knows no game and no network.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.search.tree import NO_EDGE

_LEAST = -3.4e38


def edge_priors(logits: Array, legal: Array) -> Array:
    """`[B, K]` probabilities of the listed actions; NO_EDGE where the list `[B, K]` has none.

    Only legal actions count: the softmax is over them alone.
    """
    listed = jnp.take_along_axis(logits, jnp.maximum(legal, 0).astype(jnp.int32), -1, mode="promise_in_bounds")
    listed = jnp.where(legal >= 0, listed.astype(jnp.float32), -jnp.inf)
    # A terminal or chance state has no legal action; its row is all NO_EDGE, without a division by zero on the way.
    highest = jnp.maximum(listed.max(-1, keepdims=True), _LEAST)
    weights = jnp.exp(listed - highest)
    total = weights.sum(-1, keepdims=True)
    return jnp.where(legal >= 0, weights / jnp.where(total > 0, total, 1.0), NO_EDGE)


def keep_best(priors: Array, actions: Array, num_edges: int) -> tuple[Array, Array]:
    """The `num_edges` likeliest edges, their probabilities made to sum to one again."""
    if priors.shape[-1] <= num_edges:
        return priors, actions
    best, index = jax.lax.top_k(priors, num_edges)
    mass = jnp.maximum(best, 0.0).sum(-1, keepdims=True)
    best = jnp.where(best >= 0, best / jnp.where(mass > 0, mass, 1.0), NO_EDGE)
    return best, jnp.take_along_axis(actions, index, -1, mode="promise_in_bounds")
