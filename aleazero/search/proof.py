"""What a tree proves: how much moves bring at least and at most, whatever is in the parts that nobody looked at.

Bounds go from finished games up (Cazenave and Saffidine 2010, "Score bounded Monte-Carlo tree search"): a player has at
least the best of what its actions bring at least, and at most the best of what they bring at most; an action that was
not tried may bring anything. Visits are averages, which one line among many hardly moves; bounds know a forced win from
the first line that shows it; and where a game can tell whether somebody wins at once (`Game.wins_in_one`), a leaf where
that is so counts as won. For two players without chance, and nodes that hold every legal action (`SearchConfig`
refuses others). Knows no game and no network.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from aleazero.core.struct import struct
from aleazero.search.tree import ROOT, Tree, lanes_of

_MOST = 1.0  # values are points over the largest number of them
_FAR = 2**30  # plies


@struct
class Bounds:
    """What an edge brings at least and at most; `plies` to the end of the game where the two are the same."""

    least: Array  # float32
    most: Array  # float32
    plies: Array  # int32

    @property
    def sure(self) -> Array:
        """Whether it is known what the edge brings."""
        return self.least == self.most


def root_bounds(tree: Tree) -> Bounds:
    """Of the root's edges, `[B, E]`, from the side of the player to play there."""
    shape = tree.turn.shape  # [N, B]; of nodes, bounds are seat 0's
    start = Bounds(
        least=jnp.full(shape, -_MOST, jnp.float32),
        most=jnp.full(shape, _MOST, jnp.float32),
        plies=jnp.zeros(shape, jnp.int32),
    )

    def step(back: Array, known: Bounds) -> Bounds:
        node = tree.next_node - 1 - back  # children before their parents: these have lower numbers
        edges, turn = _edges(tree, node, known), tree.turn[node]
        legal = tree.actions[node] >= 0
        least = jnp.where(legal, edges.least, -_MOST).max(-1)
        most = jnp.where(legal, edges.most, -_MOST).max(-1)
        equal = legal & edges.sure & (edges.least == least[:, None])
        soon = jnp.where(equal, edges.plies, _FAR).min(-1)
        late = jnp.where(equal, edges.plies, -1).max(-1)
        mine = turn > 0
        return Bounds(
            least=known.least.at[node].set(jnp.where(mine, least, -most)),
            most=known.most.at[node].set(jnp.where(mine, most, -least)),
            plies=known.plies.at[node].set(jnp.where(least > 0, soon, late) + 1),
        )

    return _edges(tree, jnp.int32(ROOT), lax.fori_loop(0, tree.next_node - 1, step, start))


def choose(tree: Tree, preferred: Array, visits: Array) -> Array:
    """`[B]`: the `preferred` edge `[B]`, unless the tree proves that another one is better.

    Then the most visited of those that may be best; where it is proved what all of these bring, the nearest win, or
    the loss that is furthest away.
    """
    bounds, legal = root_bounds(tree), tree.actions[ROOT] >= 0
    floor = jnp.where(legal, bounds.least, -jnp.inf).max(-1, keepdims=True)
    at_floor = legal & (bounds.least == floor)
    ceiling = jnp.where(at_floor, bounds.most, -jnp.inf).max(-1, keepdims=True)
    open_ = legal & ((bounds.most > floor) | (at_floor & (ceiling == floor)))
    known = (bounds.sure | ~open_).all(-1, keepdims=True)
    score = jnp.where(known, -jnp.sign(floor) * bounds.plies, visits)
    best = jnp.argmax(jnp.where(open_, score, -jnp.inf), -1).astype(preferred.dtype)
    may = jnp.take_along_axis(open_ & ~known, preferred[:, None], -1)[:, 0]
    return jnp.where(may, preferred, best)


def _edges(tree: Tree, node: Array, known: Bounds) -> Bounds:
    """Of the edges of a node `[]`, `[B, E]`, from its player's side, by what is known of the nodes after it."""
    children, mine = tree.children[node], tree.turn[node][:, None] > 0
    place = jnp.abs(children) * children.shape[0] + lanes_of(tree.turn[node])[:, None]

    def of(array: Array) -> Array:
        return array.reshape(-1)[place]

    ended, tried = children < 0, children != 0
    value = of(tree.raw)
    least = jnp.where(ended, value, jnp.where(tried, of(known.least), -_MOST))
    most = jnp.where(ended, value, jnp.where(tried, of(known.most), _MOST))
    return Bounds(
        least=jnp.where(mine, least, -most),
        most=jnp.where(mine, most, -least),
        plies=jnp.where(ended, jnp.where(of(tree.turn) * value > 0, 1, 0), of(known.plies)),  # 1: it can be won at once
    )
