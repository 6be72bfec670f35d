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

from aleazero.core.keys import gumbel_noise, mix, unit
from aleazero.search.settings import Knobs
from aleazero.search.tree import NO_EDGE, NodeView

EXPLORATION_BASE = 19652.0  # c2: exploration grows with the logarithm of the visits over this
_ATTEMPTS = 6
_FIRST = 1e6  # more than any other score
LEAST_WIDTH = 1e-3  # differences below a thousandth of the largest outcome are not blown up


def score(node: NodeView, exploration: Array, tries_all: int = 0) -> Array:
    """`[*, E]`: the edge with the greatest score is followed.

    A root of at most `tries_all` edges tries each of them first, the likeliest before the others.
    """
    total = node.node_visits[..., None]
    growth = exploration + jnp.log((total + EXPLORATION_BASE + 1.0) / EXPLORATION_BASE)
    explore = growth * node.priors * jnp.sqrt(total) / (1.0 + node.visits)
    gain = (node.values - node.node_value[..., None]) / jnp.maximum(node.width, LEAST_WIDTH)[..., None]
    scores = jnp.where(node.visits > 0, gain, 0.0) + explore
    legal = node.priors >= 0
    if tries_all:
        first = node.is_root & (legal.sum(-1) <= tries_all)
        scores = jnp.where(first[..., None] & (node.visits == 0), _FIRST + node.priors, scores)
    return jnp.where(legal, scores, -jnp.inf)


def noisy_priors(words: Array, priors: Array, knobs: Knobs) -> Array:
    """The root's priors `[B, E]` mixed with Dirichlet noise over its legal edges; words `[B]` seed it."""
    legal = priors >= 0
    gamma = _log_gamma(words, knobs.noise_alpha, priors.shape[-1])
    noise = jax.nn.softmax(jnp.where(legal, gamma, -jnp.inf), axis=-1)
    return jnp.where(legal, (1 - knobs.noise_fraction) * priors + knobs.noise_fraction * noise, NO_EDGE)


def _log_gamma(words: Array, alpha: Array, count: int) -> Array:
    """`[B, count]` logarithms of Gamma(alpha) draws, by Marsaglia and Tsang (2000).

    A fixed number of attempts in place of a loop: each is accepted with probability over 0.95, so that one draw in ten
    million is off, and there is no loop to compile. Draws for alpha + 1 are brought down to alpha by a power of a
    uniform, in logarithms, so that small alphas do not underflow.
    """
    counters = jnp.arange(count * (3 * _ATTEMPTS + 1), dtype=jnp.uint32)[None]
    uniforms = jnp.maximum(unit(mix(words[:, None], counters)), 2.0**-25).reshape(-1, 3 * _ATTEMPTS + 1, count)
    first, second, accept = (uniforms[:, i * _ATTEMPTS : (i + 1) * _ATTEMPTS] for i in range(3))
    normal = jnp.sqrt(-2.0 * jnp.log(first)) * jnp.cos(2.0 * jnp.pi * second)
    d = alpha + 2.0 / 3.0
    cube = (1.0 + normal / jnp.sqrt(9.0 * d)) ** 3
    log_cube = jnp.log(jnp.maximum(cube, 1e-30))
    good = (cube > 0) & (jnp.log(accept) < 0.5 * normal**2 + d * (1.0 - cube + log_cube))
    chosen = jnp.argmax(good, 1, keepdims=True)
    draw = jnp.log(d) + jnp.take_along_axis(log_cube, chosen, 1)[:, 0]
    return draw + jnp.log(uniforms[:, -1]) / alpha


def policy(root: NodeView) -> Array:
    """`[B, E]`: the share of the visits; the priors themselves where there were none."""
    visits = root.visits.sum(-1, keepdims=True)
    return jnp.where(visits > 0, root.visits / jnp.maximum(visits, 1.0), jnp.maximum(root.priors, 0.0))


def choose(words: Array, weights: Array, priors: Array, temperature: Array) -> Array:
    """`[B]`: an edge drawn in proportion to `weights ** (1 / temperature)`; at 0 the heaviest, then the likeliest."""
    legal = priors >= 0
    temperature = jnp.broadcast_to(temperature, words.shape)
    heaviest = jnp.argmax(jnp.where(legal, weights + 1e-6 * priors, -1.0), -1)
    logits = jnp.log(jnp.maximum(weights, 1e-30)) / jnp.maximum(temperature, 1e-6)[:, None]
    noise = gumbel_noise(words, priors.shape[-1])
    drawn = jnp.argmax(jnp.where(legal & (weights > 0), logits + noise, -jnp.inf), -1)
    return jnp.where(temperature > 0, drawn, heaviest).astype(jnp.int32)
