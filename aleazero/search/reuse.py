"""Keeping the subtree of the move that was played, so that the next search starts with what it already knows.

A lane keeps its subtree only where it really describes the new root: the node's packed state and its actions must
equal the new root's, bit for bit. So a child that went stale (other dice, other weights' choice of edges) can never
be used. Works for PUCT; a Gumbel root starts from no visits.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.records import Evaluate, Weights
from aleazero.core.struct import replace
from aleazero.search.build import Search
from aleazero.search.settings import Knobs
from aleazero.search.tree import WORD, Tree, edge_of, extend_lineage, rows, write


def regrow(
    search: Search, tree: Tree, edges: tuple[Array, ...],
    evaluate: Evaluate, weights: Weights, states: Any, keys: Array, knobs: Knobs,
) -> Tree:  # fmt: skip
    """The tree for new roots `states`, reached from the old ones along `edges` (`[B]` each: the action, the outcome).

    Lanes whose subtree is too large keep its oldest nodes; those without one, or with another state, start afresh.
    """
    fresh = search.plant(evaluate, weights, states, keys, knobs)
    node = jnp.zeros(keys.shape[0], jnp.int32)
    found = jnp.ones(keys.shape[0], bool)
    for edge in edges:
        child = edge_of(rows(tree.children, node), edge)
        found &= child > 0
        node = jnp.where(found, child, 0)
    found &= (rows(tree.states, node) == fresh.states[0]).all(-1)
    found &= (rows(tree.actions, node) == fresh.actions[0]).all(-1)
    room = search.plan.num_nodes - search.plan.slabs * search.plan.config.max_simulations
    kept, order, place = _compaction(tree, node, found, room)
    return _move(search, tree, fresh, found, kept, order, place, knobs)


def _compaction(tree: Tree, node: Array, found: Array, room: int) -> tuple[Array, Array, Array]:
    """How many nodes each lane keeps `[B]`, the old number of each new one `[N, B]`, the new of each old (-1: gone).

    Parents have lower numbers than their children, so the first `room` nodes of a subtree are a tree themselves.
    """
    num_nodes = tree.stats.shape[0]
    word = jnp.take_along_axis(tree.lineage, (node // WORD)[None, :, None], -1)[..., 0]  # [N, B]
    below = ((word >> (node % WORD).astype(jnp.uint32)[None]) & jnp.uint32(1)).astype(bool) & found[None]
    place = jnp.cumsum(below, 0) - 1
    place = jnp.where(below & (place < room), place, -1)
    order = jnp.argsort(place < 0, axis=0, stable=True)
    return jnp.minimum(below.sum(0), min(room, num_nodes)), order, place


def _move(
    search: Search,
    tree: Tree,
    fresh: Tree,
    found: Array,
    kept: Array,
    order: Array,
    place: Array,
    knobs: Knobs,
) -> Tree:
    """The old nodes in their new places, under the freshly evaluated roots."""
    live = jnp.arange(order.shape[0])[:, None] < kept[None]  # [N, B]

    def moved(old: Array, new: Array) -> Array:
        """Old rows where a kept node now stands, the fresh tree's elsewhere."""
        shape = (*live.shape, *[1] * (old.ndim - 2))
        return jnp.where(live.reshape(shape), jnp.take_along_axis(old, order.reshape(shape), 0), new)

    def renamed(numbers: Array) -> Array:
        """Node numbers `[N, B, ...]` as they are now; 0 where the node was not kept."""
        flat = numbers.reshape(*numbers.shape[:2], -1)
        now = jnp.stack([jnp.take_along_axis(place, jnp.abs(flat[..., i]), 0) for i in range(flat.shape[-1])], -1)
        return (jnp.sign(flat) * jnp.maximum(now, 0)).reshape(numbers.shape)

    at_root = (jnp.arange(order.shape[0]) == 0)[:, None, None]
    children = moved(renamed(tree.children), fresh.children)
    parents = moved(renamed(tree.parents), fresh.parents)
    next_edge = moved(tree.next_edge, fresh.next_edge)
    grown = replace(
        fresh,
        states=moved(tree.states, fresh.states),
        turn=moved(tree.turn, fresh.turn),
        actions=moved(tree.actions, fresh.actions),
        priors=jnp.where(at_root, fresh.priors, moved(tree.priors, fresh.priors)),  # the new root has its own noise
        children=children,
        outcome_values=moved(tree.outcome_values, fresh.outcome_values)
        if fresh.outcome_values.ndim > 1
        else fresh.outcome_values,
        raw=moved(tree.raw, fresh.raw),
        stats=moved(tree.stats, fresh.stats),
        parents=parents,
        lineage=_lineages(fresh.lineage, parents, live),
        next_edge=next_edge,
        next_child=edge_of(children, next_edge),
        low=jnp.where(found, jnp.minimum(tree.low, fresh.low), fresh.low),
        high=jnp.where(found, jnp.maximum(tree.high, fresh.high), fresh.high),
        next_node=jnp.maximum(kept.max(), 1),
    )
    return search.choose_at_root(grown, knobs)


def _lineages(lineage: Array, parents: Array, live: Array) -> Array:
    """The lineages of a tree whose parents come before their children, one slab after the other."""

    def add(at: Array, lineage: Array) -> Array:
        return write(lineage, extend_lineage(rows(lineage, parents[at]), at, live[at])[None], at)

    lineages: Array = jax.lax.fori_loop(1, parents.shape[0], add, lineage)
    return lineages
