"""Keeping the subtree of the move that was played, so that the next search starts with what it already knows.

A lane keeps its subtree only where it really describes the new root: the node's packed state and its actions must
equal the new root's, bit for bit. So a child that went stale (other dice, other weights' choice of edges) can never
be used. Works for PUCT; a Gumbel root starts from no visits.
What a lane keeps, and what it then finds, does not depend on the lanes beside it. Knows trees and the game contract,
not who plays.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.records import Evaluate, Weights
from aleazero.core.struct import replace, struct
from aleazero.search.build import Search, SearchResult, empty_tree
from aleazero.search.settings import Knobs
from aleazero.search.tree import ROOT, WORD, Tree, edge_of, rows


@struct
class Kept:
    """What lanes `[B]` take along from one move to the next."""

    tree: Tree
    node: Array  # [B] int32: where in it the game now stands; 0: nowhere, so that the lane starts afresh


@dataclasses.dataclass(frozen=True)
class Reusing:
    """A search that goes on from what it found at the move before. Holds no arrays."""

    search: Search

    def nothing(self, lanes: int) -> Kept:
        """What is kept before a first move."""
        plan, none = self.search.plan, jnp.zeros(lanes, jnp.uint32)
        bonus = jnp.zeros((lanes, plan.num_edges), jnp.float32)
        tree = empty_tree(plan, none, none, bonus, jnp.zeros(lanes, jnp.float32))
        return Kept(tree, jnp.zeros(lanes, jnp.int32))

    def go_on(
        self, kept: Kept, evaluate: Evaluate, weights: Weights, states: Any, keys: Array, knobs: Knobs
    ) -> tuple[SearchResult, Tree]:
        """As `Search.run`, its simulations on top of those kept; and the tree, to `follow` the game in."""
        tree = _transplant(self.search, kept.tree, kept.node, evaluate, weights, states, keys, knobs)
        tree = self.search.grow(evaluate, weights, tree, knobs)
        return self.search.result(tree, knobs), tree

    def follow(self, tree: Tree, action: Array, outcome: Array, going: Array) -> Kept:
        """The place in the tree after actions `[B]` and nature's outcomes `[B]` (-1: none), where the game is `going`.

        An action the search did not look at (a random one, beyond `max_edges`) leads nowhere.
        """
        taken = tree.actions[ROOT] == action[:, None]
        edge = jnp.argmax(taken, -1).astype(jnp.int32)
        return Kept(tree, _walk(tree, (edge, outcome), going & taken.any(-1)))


def regrow(
    search: Search, tree: Tree, edges: tuple[Array, ...],
    evaluate: Evaluate, weights: Weights, states: Any, keys: Array, knobs: Knobs,
) -> Tree:  # fmt: skip
    """The tree for new roots `states`, reached from the old ones along `edges` (`[B]` each: the action, the outcome).

    Lanes whose subtree is too large keep its oldest nodes; those without one, or with another state, start afresh.
    """
    node = _walk(tree, edges, jnp.ones(keys.shape[0], bool))
    return _transplant(search, tree, node, evaluate, weights, states, keys, knobs)


def _walk(tree: Tree, edges: tuple[Array, ...], lanes: Array) -> Array:
    """The nodes `[B]` that edges lead to from the roots in `lanes` `[B]` (-1: no step); 0 where the tree ends before.

    Never a finished game: nothing can go on from there.
    """
    node, there = jnp.zeros(lanes.shape, jnp.int32), lanes
    for edge in edges:
        child = edge_of(rows(tree.children, node), jnp.maximum(edge, 0))
        there &= (edge < 0) | (child > 0)
        node = jnp.where(there & (edge >= 0), child, node)
    return jnp.where(there, node, ROOT)


def _transplant(
    search: Search, tree: Tree, node: Array,
    evaluate: Evaluate, weights: Weights, states: Any, keys: Array, knobs: Knobs,
) -> Tree:  # fmt: skip
    """The tree for new roots `states`, with what hangs below `node` `[B]` of the old one where that is the same."""
    fresh = search.plant(evaluate, weights, states, keys, knobs)
    found = node != ROOT
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
    below = _below(tree, node) & found[None]
    place = jnp.cumsum(below, 0) - 1
    place = jnp.where(below & (place < room), place, -1)
    order = jnp.argsort(place < 0, axis=0, stable=True)
    return jnp.minimum(below.sum(0), min(room, num_nodes)), order, place


def _below(tree: Tree, node: Array) -> Array:
    """`[N, B]`: which nodes in use are `node` `[B]` or hang below it.

    Every pass asks of each node's furthest known ancestor what the others' passes have found out for it, so that a few
    passes reach any depth.
    """
    number = jax.lax.broadcasted_iota(jnp.int32, tree.parents.shape, 0)

    def goes_on(carry: tuple[Array, Array]) -> Array:
        return (carry[1] != ROOT).any()

    def reach(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        inside, furthest = carry
        return inside | rows(inside, furthest), rows(furthest, furthest)

    inside, _ = jax.lax.while_loop(goes_on, reach, (number == node[None], tree.parents))
    return inside & (tree.stats[..., 0] > 0)


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
        lanes = jax.lax.broadcasted_iota(jnp.int32, numbers.shape, 1)
        now = place.reshape(-1)[jnp.abs(numbers) * place.shape[1] + lanes]
        return jnp.sign(numbers) * jnp.maximum(now, 0)

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
        outcome_values=moved(tree.outcome_values, fresh.outcome_values) if search.plan.exact else fresh.outcome_values,
        raw=moved(tree.raw, fresh.raw),
        stats=moved(tree.stats, fresh.stats),
        parents=parents,
        chance_words=moved(tree.chance_words, fresh.chance_words) if search.plan.explicit else fresh.chance_words,
        lineage=_lineages(parents, live) if search.plan.lineages(tree.words.shape[0]) else fresh.lineage,
        next_edge=next_edge,
        next_child=edge_of(children, next_edge),
        low=jnp.where(found, jnp.minimum(tree.low, fresh.low), fresh.low),
        high=jnp.where(found, jnp.maximum(tree.high, fresh.high), fresh.high),
        next_node=jnp.maximum(kept.max(), 1),
    )
    return search.choose_at_root(grown, knobs)


def _lineages(parents: Array, live: Array) -> Array:
    """The lineages `[N, B, W]` of a tree with these parents, where `live` or the root.

    Every pass joins to each node's known ancestors those of the furthest one, so that a few passes reach any depth.
    """
    shape = (*parents.shape, parents.shape[0] // WORD)
    node, _, word = (jax.lax.broadcasted_iota(jnp.uint32, shape, axis) for axis in range(3))
    own = jnp.where(word == node // WORD, jnp.uint32(1) << (node % WORD), jnp.uint32(0))
    known = own | (word == 0).astype(jnp.uint32)  # itself, and the root

    def goes_on(carry: tuple[Array, Array]) -> Array:
        return (carry[1] != ROOT).any()

    def reach(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        known, furthest = carry
        return known | rows(known, furthest), rows(furthest, furthest)

    lineages, _ = jax.lax.while_loop(goes_on, reach, (known, parents))
    return jnp.where(live[..., None] | (node == ROOT), lineages, jnp.uint32(0))
