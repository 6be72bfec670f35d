"""Gumbel search (Danihelka et al. 2022, "Policy improvement by planning with Gumbel"): few simulations, used well.

The root draws actions without replacement by Gumbel noise and halves them in rounds (sequential halving); other nodes
follow the improved policy deterministically (section 5); the policy target is the improved policy over completed
Q-values (appendix D). The same numbers as mctx's `gumbel_muzero_policy` on the same inputs; the visit schedule is a
formula here, so that the budget can change without recompiling. Where a node's values lie closer together than `least`
they are not stretched to the whole scale (`SearchConfig.least_range`).
Knows no game and no network.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from aleazero.search.settings import Knobs
from aleazero.search.tree import PAD, NodeView, edge_of

VALUE_SCALE = 0.1
MAX_VISIT_INIT = 50.0
_TINY = 1e-30
_NO_RANGE = 1e-8


def score(node: NodeView, least: float) -> Array:
    """`[*, E]` away from the root: follow the edge that lags furthest behind the improved policy."""
    lag = improved_policy(node, least) - node.visits / (1.0 + node.visits.sum(-1, keepdims=True))
    return jnp.where(node.priors >= 0, lag, -jnp.inf)


def due_visits(priors: Array, simulation: Array, knobs: Knobs, in_flight: int) -> Array:
    """`[K, B]`: the visits of the edges whose turn it is at roots of priors `[B, E]`, in sequential halving.

    For this simulation and those in flight with it; -1 where one must not be: beyond the budget, or where a root has
    one edge to look at, which is then visited once where others are K times.
    """
    considered = jnp.minimum((priors >= 0).sum(-1), knobs.max_considered)
    dues = []
    for place in range(in_flight):
        number = simulation + place
        due = halving_visit(priors.shape[-1], considered, knobs.simulations, number)
        alone = simulation // in_flight if place == 0 else -1
        dues.append(jnp.where(considered > 1, jnp.where((place == 0) | (number < knobs.simulations), due, -1), alone))
    return jnp.stack(dues)


def take_edges(root: NodeView, gumbel: Array, dues: Sequence[Array], least: float) -> tuple[list[Array], list[Array]]:
    """The edges that descents in flight take from the root, all different, and whether each sets out; `[B]` each.

    A round visits each of its edges once, and what one visit brings changes nothing below the others: their order does
    not matter, and two descents at a time find what one after the other would. Only where a round ends between them
    does the second one choose without knowing what the first will bring. One that does not set out has its edge.
    """
    scores = root_score(root, gumbel, dues[0], least)
    edges, sets_out = [greatest(scores)], [dues[0] >= 0]
    places = lax.broadcasted_iota(jnp.int32, root.priors.shape, root.priors.ndim - 1)
    pending = places == edges[0][:, None]
    for due in dues[1:]:
        scores = jnp.where(pending, -jnp.inf, root_score(root, gumbel, due, least))
        goes = (scores.max(-1) > -jnp.inf) & (due >= 0)
        edge = jnp.where(goes, greatest(scores), edges[0])
        edges.append(edge)
        sets_out.append(goes)
        pending = pending | (places == edge[:, None])
    return edges, sets_out


def greatest(scores: Array) -> Array:
    """The first of the greatest of scores `[*, E]`. By comparison, which kernels know too."""
    edge = lax.broadcasted_iota(jnp.int32, scores.shape, scores.ndim - 1)
    return jnp.min(jnp.where(scores == jnp.max(scores, -1, keepdims=True), edge, scores.shape[-1] - 1), -1)


def root_score(root: NodeView, gumbel: Array, due: Array, least: float) -> Array:
    """`[B, E]` at the root: among the edges visited `due` times, the most promising."""
    logits = jnp.log(jnp.maximum(root.priors, _TINY))
    promise = gumbel + logits + _transformed_values(root, least)[0]
    return jnp.where((root.priors >= 0) & (root.visits == due[:, None]), promise, -jnp.inf)


def best_score(root: NodeView, gumbel: Array, least: float) -> Array:
    """`[B, E]` when all is done: among the most visited edges, the most promising. Its argmax is the move."""
    return root_score(root, gumbel, root.visits.max(-1), least)


def improved_policy(node: NodeView, least: float) -> Array:
    """`[*, E]`: softmax of the logits plus the transformed completed Q-values; the policy target at the root."""
    gain, highest = _transformed_values(node, least)
    weights = jnp.maximum(node.priors, 0.0) * jnp.exp(gain - highest)
    return weights / weights.sum(-1, keepdims=True)


def halving_visit(num_edges: int, considered: Array, simulations: Array, simulation: Array) -> Array:
    """How many visits an edge must have to be next, `[B]`, when `considered` `[B]` of `num_edges` are in play.

    Sequential halving in phases: each gives every edge still in play the same number of visits, then halves their
    number, down to two, which share the rest of the budget. mctx lists the sequence for a fixed budget; here it is
    computed, so that the budget can change. Tables are over every possible number of edges in play, `[M, J]`.
    """
    widths = _phase_widths(num_edges)
    phases = np.maximum(np.ceil(np.log2(np.maximum(widths[:, :1], 1))), 1).astype(np.int32)
    each = jnp.maximum(1, simulations // (phases * widths))  # visits an edge gets in a phase
    earlier = np.triu(np.ones((widths.shape[1],) * 2, np.int32), 1)
    base, start = each @ earlier, (each * widths) @ earlier  # visits before a phase: of an edge, of all
    row = jnp.maximum(considered, 1)
    phase = (simulation >= start[row]).sum(-1) - 1
    begun, width = edge_of(start[row], phase), edge_of(jnp.asarray(widths)[row], phase)
    return edge_of(base[row], phase) + (simulation - begun) // width


def _phase_widths(num_edges: int) -> np.ndarray:
    """`[num_edges + 1, J]`: edges in play in each phase, by their number at the start; the last phase is for two.

    A sequence shorter than J is continued with its last phase; as that phase never ends, where it is said to begin
    again does not matter.
    """
    widths = [np.maximum(np.arange(num_edges + 1), 1)]
    while (widths[-1] > 2).any():
        widths.append(np.where(widths[-1] > 2, np.maximum(widths[-1] // 2, 2), widths[-1]))
    return np.stack(widths, -1).astype(np.int32)


def _transformed_values(node: NodeView, least: float) -> tuple[Array, Array]:
    """sigma(completed Q), eq. 8 with eq. 33, `[*, E]`, and its maximum `[*, 1]`.

    Unvisited edges get the mixed value; all are rescaled to 0..1, or to less where they lie within `least`.
    """
    visited = node.visits > 0
    priors = jnp.where(visited, jnp.maximum(node.priors, _TINY), 0.0)
    visits = node.visits.sum(-1, keepdims=True)
    mass = priors.sum(-1, keepdims=True)
    weighted = (priors * node.values).sum(-1, keepdims=True)
    mixed = (node.raw[..., None] + visits * weighted / jnp.where(mass > 0, mass, 1.0)) / (1.0 + visits)
    completed = jnp.where(visited, node.values, mixed)
    real = node.priors > PAD
    low = jnp.where(real, completed, jnp.inf).min(-1, keepdims=True)
    high = jnp.where(real, completed, -jnp.inf).max(-1, keepdims=True)
    scale = (
        (MAX_VISIT_INIT + node.visits.max(-1, keepdims=True))
        * VALUE_SCALE
        / jnp.maximum(high - low, max(least, _NO_RANGE))
    )
    return scale * (completed - low), scale * (high - low)
