"""PUCT: AlphaZero's rule for choosing edges, its root noise, and the action its visits name.

The score is MuZero's (Schrittwieser et al. 2020, appendix B, eq. 2), with two differences: Q is measured from the
node's own value in units of the range of values seen in the tree, so that one exploration constant serves games with
small equities, and an action not yet tried is taken to be worth what its node is worth.
Knows no game and no network.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.search.settings import Knobs
from aleazero.search.tree import NO_EDGE, NodeView

EXPLORATION_BASE = 19652.0  # c2: exploration grows with the logarithm of the visits over this
LEAST_WIDTH = 1e-3  # differences below a thousandth of the largest outcome are not blown up


def score(node: NodeView, knobs: Knobs) -> Array:
    """`[*, E]`: the edge with the greatest score is followed."""
    total = node.node_visits[..., None]
    growth = knobs.exploration + jnp.log((total + EXPLORATION_BASE + 1.0) / EXPLORATION_BASE)
    explore = growth * node.priors * jnp.sqrt(total) / (1.0 + node.visits)
    gain = (node.values - node.node_value[..., None]) / jnp.maximum(node.width, LEAST_WIDTH)[:, None]
    return jnp.where(node.priors >= 0, jnp.where(node.visits > 0, gain, 0.0) + explore, -jnp.inf)


def noisy_priors(keys: Array, priors: Array, knobs: Knobs) -> Array:
    """The root's priors `[B, E]` mixed with Dirichlet noise over its legal edges."""
    legal = priors >= 0
    gamma = jax.vmap(lambda key: jax.random.loggamma(key, knobs.noise_alpha, (priors.shape[1],)))(keys)
    noise = jax.nn.softmax(jnp.where(legal, gamma, -jnp.inf), axis=-1)
    return jnp.where(legal, (1 - knobs.noise_fraction) * priors + knobs.noise_fraction * noise, NO_EDGE)


def policy(root: NodeView) -> Array:
    """`[B, E]`: the share of the visits; the priors themselves where there were none."""
    visits = root.visits.sum(-1, keepdims=True)
    return jnp.where(visits > 0, root.visits / jnp.maximum(visits, 1.0), jnp.maximum(root.priors, 0.0))


def choose(keys: Array, weights: Array, priors: Array, temperature: Array) -> Array:
    """`[B]`: an edge drawn in proportion to `weights ** (1 / temperature)`; at 0 the heaviest, then the likeliest."""
    legal = priors >= 0
    heaviest = jnp.argmax(jnp.where(legal, weights + 1e-6 * priors, -1.0), -1)
    logits = jnp.log(jnp.maximum(weights, 1e-30)) / jnp.maximum(temperature, 1e-6)
    gumbel = jax.vmap(lambda key: jax.random.gumbel(key, (priors.shape[1],)))(keys)
    drawn = jnp.argmax(jnp.where(legal & (weights > 0), logits + gumbel, -jnp.inf), -1)
    return jnp.where(temperature > 0, drawn, heaviest).astype(jnp.int32)
