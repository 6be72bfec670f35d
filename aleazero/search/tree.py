"""The search tree of a batch of lanes, and the few operations on it. Knows no game, network or selection rule.

Arrays are node-major, `[N, B, ...]`: the nodes that one simulation adds, one per lane, are one contiguous slab.

Four choices make the tree cheap and hard to get wrong:
- Values are kept from seat 0's side. A backup adds the same number to every node above the leaf (with exact chance,
  the expectation from each chance node upward); the side to play only matters where an evaluation enters and where an
  edge is chosen.
- A node's `lineage` is the set of itself and its ancestors, as bits. A backup is then one masked addition over the
  visit counts, with no scatter and no walk back up, and depth is bounded by N only.
- A child that ended the game is linked by its negated number, so the descent sees that it must stop without looking
  the node up. Revisits count on that same node.
- Every node remembers the edge it will follow next. What an edge is worth changes only when its node is visited, so
  the choice is made then, for the whole path at once, and a descent is a walk from number to number. (The range that
  PUCT normalises by is the one known when the choice was made.)
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from aleazero.core.struct import struct

WORD = 32  # bits in a lineage word; the number of nodes is a multiple of it
_TRUSTED = "promise_in_bounds"
NO_EDGE = -1.0  # stands in `priors` where a node has no edge
PAD = -2.0  # and in a kernel's view of them, where no node has room for one
ROOT = 0
NOWHERE = -1  # in place of a node: there is none


@struct
class Tree:
    """Everything known so far. Node 0 is the root."""

    states: Array  # [N, B, P] uint8: packed states
    turn: Array  # [N, B] int8: +1 seat 0 decides, -1 seat 1 decides, 0 nature does
    actions: Array  # [N, B, E] int16: the action of each edge, the outcome at a chance node; -1 where there is none
    priors: Array  # [N, B, E] float32: the network's probability, nature's at a chance node; NO_EDGE where none
    children: Array  # [N, B, E] int32: 0 not expanded, i node i, -i node i where the game is over
    outcome_values: Array  # [N, B, E] float32: first estimate per chance outcome, seat 0's side; [0] unless exact
    raw: Array  # [N, B] float32: the network's value when the node was added, seat 0's side
    stats: Array  # [N, B, 2] float32: visits, and the sum of the values they brought, seat 0's side
    lineage: (
        Array  # [N, B, N / WORD] uint32: the node and its ancestors as bits, 0 where unused; [N, B, 0] if not asked
    )
    parents: Array  # [N, B] int32
    chance_words: Array  # [N, B] uint32: what outcomes are drawn by at each node; [0] unless chance is explicit
    next_edge: Array  # [N, B] int32: the edge the next visit follows
    next_child: Array  # [N, B] int32: where it leads, as in `children`
    low: Array  # [B] float32: the least value seen in the tree, seat 0's side
    high: Array  # [B] float32: the greatest
    next_node: Array  # [] int32: where the next slab goes
    simulation: Array  # [] int32: how many have been absorbed
    evaluations: Array  # [B] int32: evaluations that were needed
    past: Array  # [B, H, 2] uint32: keys of positions before the root; [B, 0, 2] unless the game asks which were there
    root_bonus: Array  # [B, E] float32: what the root's rule adds to its edges (Gumbel noise), else zeros
    words: Array  # [B] uint32: the lane's word, of which its nodes' words are made
    action_words: Array  # [B] uint32: the lane's word for the action drawn at the end


@struct
class NodeView:
    """One node per lane (or L of them) and what is known of its edges, from the side of the player who decides there.

    `*` stands for B or for L, B.
    """

    children: Array  # [*, E] int32
    priors: Array  # [*, E] float32
    visits: Array  # [*, E] float32
    values: Array  # [*, E] float32: mean value; meaningless where visits is 0
    node_visits: Array  # [*] float32
    node_value: Array  # [*] float32: mean value
    raw: Array  # [*] float32: the network's first opinion
    width: Array  # [*] float32: how far apart the values seen in the tree are
    is_chance: Array  # [*] bool
    is_root: Array  # [*] bool


def rows(array: Array, node: Array) -> Array:
    """`array[node[..., b], b]` for every lane: `[N, B, ...]` and `[*]` give `[*, ...]`. One flat gather."""
    num_nodes, num_lanes, *rest = array.shape
    flat = array.reshape(num_nodes * num_lanes, *rest)
    return flat.at[node * num_lanes + lanes_of(node)].get(mode=_TRUSTED, wrap_negative_indices=False)


def lanes_of(node: Array) -> Array:
    """The lane of each of nodes `[*]`."""
    return lax.broadcasted_iota(jnp.int32, node.shape, node.ndim - 1)


def view(tree: Tree, node: Array) -> NodeView:
    """What a selection rule needs of nodes `[*]`."""
    num_nodes, num_lanes, _ = tree.stats.shape
    children = rows(tree.children, node)
    turn = rows(tree.turn, node).astype(jnp.float32)
    mine = rows(tree.stats, node)
    flat = tree.stats.reshape(num_nodes * num_lanes, 2)
    index = jnp.abs(children) * num_lanes + lanes_of(node)[..., None]
    theirs = flat.at[index].get(mode=_TRUSTED, wrap_negative_indices=False)  # [*, E, 2]
    visits = jnp.where(children != 0, theirs[..., 0], 0.0)
    return NodeView(
        children=children,
        priors=rows(tree.priors, node),
        visits=visits,
        values=turn[..., None] * theirs[..., 1] / jnp.maximum(visits, 1.0),
        node_visits=mine[..., 0],
        node_value=turn * mine[..., 1] / jnp.maximum(mine[..., 0], 1.0),
        raw=turn * rows(tree.raw, node),
        width=jnp.broadcast_to(tree.high - tree.low, node.shape),
        is_chance=turn == 0,
        is_root=node == ROOT,
    )


def edge_of(table: Array, edge: Array) -> Array:
    """`table[..., edge]`: `[*, E]` and `[*]` give `[*]`."""
    return jnp.take_along_axis(table, edge[..., None], -1, mode="promise_in_bounds")[..., 0]


def remember(next_edge: Array, next_child: Array, node: Array, edge: Array, child: Array) -> tuple[Array, Array]:
    """The two memories `[N, B]` once nodes `[L, B]` follow `edge` to `child`; a node may be named twice, alike."""
    num_nodes, num_lanes = next_edge.shape
    index = node * num_lanes + lanes_of(node)

    def put(array: Array, new: Array) -> Array:
        return (
            array.reshape(-1)
            .at[index]
            .set(new, mode=_TRUSTED, wrap_negative_indices=False)
            .reshape(num_nodes, num_lanes)
        )

    return put(next_edge, edge), put(next_child, child)


def write(array: Array, slabs: Array, first: Array) -> Array:
    """The array with slabs `[S, B, ...]` written from node `first` on: one contiguous copy."""
    return lax.dynamic_update_slice_in_dim(array, slabs.astype(array.dtype), first, 0)


def link(children: Array, node: Array, edge: Array, child: Array, there: Array) -> Array:
    """Children with `children[node[k, b], b, edge[k, b]] = child[k, b]` where `there` `[K, B]`; no edge named twice."""
    num_nodes, num_lanes, num_edges = children.shape
    flat = children.reshape(num_nodes * num_lanes, num_edges)
    row = node * num_lanes + lanes_of(node)
    if node.shape[0] == 1:  # always there
        index, mode = (row, edge), _TRUSTED
    else:
        index, mode = (jnp.where(there, row, num_nodes * num_lanes), edge), "drop"
    linked = flat.at[index].set(child, unique_indices=True, mode=mode, wrap_negative_indices=False)
    return linked.reshape(children.shape)


def extend_lineage(line: Array, at: Array, used: Array) -> Array:
    """The lineages `[*, W]` of nodes `at` `[*]` below ones of lineage `line`; zero where the slab is not `used`."""
    words = lax.broadcasted_iota(jnp.int32, line.shape, line.ndim - 1)
    bit = jnp.uint32(1) << (at % WORD).astype(jnp.uint32)
    own = jnp.where(words == (at // WORD)[..., None], bit[..., None], jnp.uint32(0))
    return jnp.where(used[..., None], line | own, jnp.uint32(0))


def members(line: Array, num_nodes: int) -> Array:
    """`[N, B]` bool from bits `[B, W]`: which nodes are in each lane's set."""
    shifts = jnp.arange(WORD, dtype=jnp.uint32)[None, :, None]
    bits = (line.T[:, None, :] >> shifts) & jnp.uint32(1)  # [W, WORD, B]
    inside: Array = bits.reshape(num_nodes, -1).astype(jnp.bool_)
    return inside


def back_up(stats: Array, line: Array, value: Array) -> Array:
    """Stats after one visit to every node in `line` `[B, W]` that brought `value` `[B]`, seat 0's side."""
    visited = members(line, stats.shape[0])[..., None]
    brought = jnp.stack([jnp.ones_like(value), value], -1)[None]
    return stats + jnp.where(visited, brought, 0.0)
