"""Nature's moves inside a search: which outcome a visit takes, and expectations where they are exact.

Knows trees, not games: probabilities come from the node's row or the caller.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.keys import mix, unit
from aleazero.search.tree import Tree, rows

GOLDEN = 0x9E3779B9  # 2**32 over the golden ratio: multiples of it fill the circle evenly


def running_sums(probs: Array) -> Array:
    """`[*, C]`: each probability and those before it."""
    below = jnp.asarray(np.triu(np.ones((probs.shape[-1],) * 2, np.float32)))
    return jnp.matmul(probs, below, precision="highest")  # an accelerator's quick products would load the dice


def draw(
    words: Array, visit: Array, probs: Array, *, evenly: bool, sums: Callable[[Array], Array] = running_sums
) -> Array:
    """The outcome `[*]` that visit number `visit` `[*]` to chance nodes of words `words` `[*]` takes, from `[*, C]`.

    Every visit, taken alone, follows the probabilities exactly. With `evenly` the visits to one node together do too
    (a rotation by the golden ratio from a random start), so that a few visits already make a fair average;
    otherwise they are independent.
    """
    visit = visit.astype(jnp.uint32)
    point = words + visit * jnp.uint32(GOLDEN) if evenly else mix(words, visit)
    upto = sums(jnp.maximum(probs, 0.0))
    return (upto <= unit(point)[..., None] * upto.max(-1, keepdims=True)).sum(-1, dtype=jnp.int32)


def back_up_exactly(tree: Tree, stats: Array, leaf: Array, value: Array) -> Array:
    """Stats after a visit to `leaf` `[B]` that brought `value` `[B]`, with expectations at chance nodes.

    Going up, a chance node passes on the expectation over its outcomes as they now stand in place of the one value
    that came from below; its own mean is kept equal to that expectation. Values differ from level to level, so this
    walks the path; only the stats run through the loop.
    """
    num_lanes = leaf.shape[0]
    lanes = jnp.arange(num_lanes)

    def add(stats: Array, node: Array, brought: Array, active: Array) -> Array:
        return stats.at[node, lanes].add(jnp.where(active[:, None], brought, 0.0))

    def visit(value: Array) -> Array:
        return jnp.stack([jnp.ones_like(value), value], -1)

    def climbs(carry: tuple[Array, Array, Array, Array]) -> Array:
        return carry[3].any()

    def climb(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        stats, node, value, active = carry
        parent = rows(tree.parents, node)
        expected = _expectation(tree, stats, parent)
        own = rows(stats, parent)
        at_chance = rows(tree.turn, parent) == 0
        value = jnp.where(at_chance, expected, value)
        # At a chance node the sum becomes (visits + 1) * expectation: its mean is the expectation itself.
        brought = jnp.where(at_chance, (own[:, 0] + 1.0) * expected - own[:, 1], value)
        stats = add(stats, parent, jnp.stack([jnp.ones_like(value), brought], -1), active)
        return stats, parent, value, active & (parent != 0)

    stats = add(stats, leaf, visit(value), jnp.ones(num_lanes, bool))
    stats, *_ = jax.lax.while_loop(climbs, climb, (stats, leaf, value, leaf != 0))
    return stats


def _expectation(tree: Tree, stats: Array, node: Array) -> Array:
    """`[B]`: the mean over outcomes of each one's value, its first estimate where it has no node yet."""
    children = rows(tree.children, node)
    known = stats[jnp.abs(children), jnp.arange(node.shape[0])[:, None]]
    means = known[..., 1] / jnp.maximum(known[..., 0], 1.0)
    values = jnp.where((children != 0) & (known[..., 0] > 0), means, rows(tree.outcome_values, node))
    return (jnp.maximum(rows(tree.priors, node), 0.0) * values).sum(-1)
