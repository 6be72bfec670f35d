"""A simulation's two walks, each as one GPU kernel: down to a leaf, and up again to count the visit and choose anew.

A program of a kernel has a few lanes to itself and goes as far as they need, where compiled array operations would go
as far as the deepest lane of the batch, level by level, with the host looking at each loop's condition. The way up
follows `parents`: it needs neither a path nor lineages. Rules are the same functions as elsewhere (`puct`, `gumbel`,
`chance`), traced into the kernel. Without a GPU the kernels can be interpreted, which is how they are tested.
Knows trees; no game, no network.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from aleazero.search import gumbel
from aleazero.search.tree import NOWHERE, PAD, ROOT, NodeView, Tree

Score = Callable[[NodeView, Array], Array]
"""`score(nodes, exploration) -> [*, E]`: how much each edge should be followed next."""
Draw = Callable[[Array, Array, Array], Array]
"""`draw(words, visits, probs) -> [*]`: the outcome that a visit to a chance node takes."""

_Edges = tuple[Array, Array]  # children and priors [L, E'] of a node
_Carry = tuple[Array, _Edges, Array, Array, Array, Array, Array]
_LANES = 2  # of a program: one warp. Measured: fewer leave threads idle, more wait for the deepest of them


def descend(tree: Tree, dues: Array | None, least: float, *, interpret: bool) -> tuple[Array, Array, Array, Array]:
    """Whether walks set out, and where they end: the last node, its edge and what that leads to, `[K, B]` each.

    They follow the edges that nodes remember; with `dues` `[K, B]` the root chooses by what is due, for K at a time.
    """
    num_lanes, flights = tree.words.shape[0], 1 if dues is None else dues.shape[0]
    arrays: dict[str, Array] = {"next_edge": tree.next_edge, "next_child": tree.next_child}
    if dues is not None:
        arrays |= _looked_at(tree) | {"bonus": tree.root_bonus, "dues": dues, "width": tree.high - tree.low}
    kernel = functools.partial(_descend, flights, least, tuple(arrays), tree.children.shape)
    out = [jax.ShapeDtypeStruct((flights * num_lanes,), jnp.int32)] * 4  # type: ignore[no-untyped-call]
    found = _call(kernel, out, arrays, {}, num_lanes, interpret)
    there, parent, edge, child = (array.reshape(flights, num_lanes) for array in found)
    return there != 0, parent, edge, child


def ascend(
    tree: Tree, leaf: Array, value: Array, score: Score, exploration: Array, draw: Draw | None, *, interpret: bool
) -> tuple[Array, Array, Array]:
    """Stats, next edges and next children after visits to leaves `[K, B]` that brought `value` `[K, B]`, seat 0's side.

    Every node from a leaf to the root counts the visit, and chooses the edge to follow next: by `score`, or, where
    nature decides, by `draw`. A leaf may be NOWHERE. Those of a lane count one after the other.
    """
    arrays = {"leaf": leaf, "value": value, "width": tree.high - tree.low, "exploration": exploration[None]}
    arrays |= {"parents": tree.parents} | _looked_at(tree)
    if draw is not None:
        arrays["words"] = tree.chance_words
    changed = {"next_edge": tree.next_edge, "next_child": tree.next_child}
    arrays |= changed
    out = {"stats": tree.stats} | changed
    kernel = functools.partial(_ascend, leaf.shape[0], score, draw, tuple(arrays), tree.children.shape, interpret)
    shapes = [_flat(array) for array in out.values()]
    aliases = {list(arrays).index(name): place for place, name in enumerate(out)}
    stats, edges, children = _call(kernel, shapes, arrays, aliases, leaf.shape[1], interpret)
    return (
        stats.reshape(tree.stats.shape),
        edges.reshape(tree.next_edge.shape),
        children.reshape(tree.next_child.shape),
    )


def _call(
    kernel: Callable[..., None],
    out: list[jax.ShapeDtypeStruct],
    arrays: dict[str, Array],
    aliases: dict[int, int],
    num_lanes: int,
    interpret: bool,
) -> Any:
    """Runs a kernel over all lanes. Arrays lie flat before it; those aliased are changed in place."""
    call = pl.pallas_call(
        kernel,
        out_shape=out,
        grid=(-(-num_lanes // _LANES),),
        input_output_aliases=aliases,
        compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),  # this also says which compiler
        interpret=interpret,
    )
    return call(*[array.reshape(-1) for array in arrays.values()])


def _flat(array: Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((array.size,), array.dtype)  # type: ignore[no-untyped-call]


def _looked_at(tree: Tree) -> dict[str, Array]:
    return {name: getattr(tree, name) for name in ("children", "priors", "turn", "raw", "stats")}


# ---- inside the kernels: values are [L] or [L, E'], E' the edges filled up to a power of two


def _descend(flights: int, least: float, names: tuple[str, ...], shape: tuple[int, ...], *refs: Any) -> None:
    of = dict(zip(names, refs, strict=False))
    _, num_lanes, _ = shape
    lane, here = _lanes(num_lanes)
    node = jnp.zeros_like(lane)
    if "dues" not in of:
        edges, there = [_load(of["next_edge"], lane, here, 0)], [here]
        children = [_load(of["next_child"], lane, here, 0)]
    else:
        root = _look(of, shape, node, lane, here, _edges(of, shape, node, lane, here), None)
        bonus = _load(of["bonus"], *_row(lane, shape, here), 0.0)
        dues = [_load(of["dues"], k * num_lanes + lane, here, 0) for k in range(flights)]
        edges, there = gumbel.take_edges(root, bonus, dues, least)
        children = [jnp.where(goes, _at(root.children, edge), 0) for edge, goes in zip(edges, there, strict=True)]
    for k in range(flights):
        found = there[k].astype(jnp.int32), *_walk(of, num_lanes, lane, edges[k], children[k])
        for ref, new in zip(refs[len(names) :], found, strict=True):
            _store(ref, k * num_lanes + lane, here, new)


def _walk(of: dict[str, Any], num_lanes: int, lane: Array, edge: Array, child: Array) -> tuple[Array, Array, Array]:
    """The last node, its edge and what that leads to, of walks that leave the root by `edge` to `child` `[L]`."""

    def goes_on(carry: tuple[Array, Array]) -> Array:
        return jnp.max(carry[1]) > 0

    def step(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        node, child = carry
        down = child > 0
        node = jnp.where(down, child, node)
        return node, jnp.where(down, _load(of["next_child"], node * num_lanes + lane, down, 0), child)

    node, child = lax.while_loop(goes_on, step, (jnp.full_like(lane, ROOT), child))
    below = node != ROOT
    return node, jnp.where(below, _load(of["next_edge"], node * num_lanes + lane, below, 0), edge), child


def _ascend(
    flights: int, score: Score, draw: Draw | None, names: tuple[str, ...], shape: tuple[int, ...], interpret: bool,
    *refs: Any,
) -> None:  # fmt: skip
    stats, next_edge, next_child = refs[len(names) :]
    of = dict(zip(names, refs, strict=False)) | {"stats": stats}
    _, num_lanes, _ = shape
    lane, here = _lanes(num_lanes)
    exploration = of["exploration"][0]

    def goes_on(carry: _Carry) -> Array:
        return jnp.max(carry[-1]) > 0

    def step(value: Array, carry: _Carry) -> _Carry:
        """One node: counted, then chosen for. What was counted below is carried, not read back."""
        node, edges, above, below, visits, total, active = carry
        here = active > 0
        at = node * num_lanes + lane
        edges_above = _edges(of, shape, above, lane, here)  # asked for now, so that they are there a level later
        above_that = _load(of["parents"], above * num_lanes + lane, here, ROOT)
        seen = _look(of, shape, node, lane, here, edges, (below, visits, total), value)
        edge = gumbel.greatest(score(seen, exploration))
        if draw is not None:
            edge = jnp.where(seen.is_chance, draw(_load(of["words"], at, here, 0), seen.node_visits, seen.priors), edge)
        visits, total = _counted(stats, at, here, value)
        _store(stats, 2 * at, here, visits)
        _store(stats, 2 * at + 1, here, total)
        _store(next_edge, at, here, edge)
        _store(next_child, at, here, _at(seen.children, edge))
        return above, edges_above, above_that, node, visits, total, active * (node != ROOT).astype(jnp.int32)

    for k in range(flights):
        if k and not interpret:
            triton.debug_barrier()  # a lane's next visit reads what this one has stored
        place = k * num_lanes + lane
        value, leaf = _load(of["value"], place, here, 0.0), _load(of["leaf"], place, here, NOWHERE)
        there = leaf != NOWHERE
        above = _load(of["parents"], leaf * num_lanes + lane, there, ROOT)
        edges = _edges(of, shape, leaf, lane, there)
        nowhere, none = jnp.full_like(lane, NOWHERE), jnp.zeros_like(value)
        start = leaf, edges, above, nowhere, none, none, there.astype(jnp.int32)
        lax.while_loop(goes_on, functools.partial(step, value), start)


def _lanes(num_lanes: int) -> tuple[Array, Array]:
    """This program's lanes `[L]`, and which of them there are."""
    lane = pl.program_id(0) * _LANES + lax.iota(jnp.int32, _LANES)
    return lane, lane < num_lanes


def _row(at: Array, shape: tuple[int, ...], here: Array) -> tuple[Array, Array]:
    """The places `[L, E']` of rows `[L]` of an array whose last axis is the edges, and which of them there are."""
    num_edges = shape[-1]
    edge = lax.broadcasted_iota(jnp.int32, (at.shape[0], pl.next_power_of_2(num_edges)), 1)
    return at[:, None] * num_edges + edge, (edge < num_edges) & here[:, None]


def _edges(of: dict[str, Any], shape: tuple[int, ...], node: Array, lane: Array, here: Array) -> _Edges:
    """What is written at nodes `[L]` themselves about their edges."""
    place, real = _row(node * shape[1] + lane, shape, here)
    return _load(of["children"], place, real, 0), _load(of["priors"], place, real, PAD)


def _look(
    of: dict[str, Any], shape: tuple[int, ...], node: Array, lane: Array, here: Array, edges: _Edges,
    counted: tuple[Array, Array, Array] | None, value: Array | None = None,
) -> NodeView:  # fmt: skip
    """`tree.view` of nodes `[L]`, once they have counted `value`; the child that counted it before them is given."""
    _, num_lanes, _ = shape
    at = node * num_lanes + lane
    children, priors = edges
    number = jnp.abs(children)
    child = 2 * (number * num_lanes + lane[:, None])
    known = children != 0
    visits, total = (_load(of["stats"], child + i, known, 0.0) for i in range(2))
    if counted is not None:
        same = known & (number == counted[0][:, None])
        visits = jnp.where(same, counted[1][:, None], visits)
        total = jnp.where(same, counted[2][:, None], total)
    turn = _load(of["turn"], at, here, 0).astype(jnp.float32)
    node_visits, node_total = _counted(of["stats"], at, here, value)
    return NodeView(
        children=children,
        priors=priors,
        visits=visits,
        values=turn[:, None] * total / jnp.maximum(visits, 1.0),
        node_visits=node_visits,
        node_value=turn * node_total / jnp.maximum(node_visits, 1.0),
        raw=turn * _load(of["raw"], at, here, 0.0),
        width=_load(of["width"], lane, here, 1.0),
        is_chance=turn == 0,
        is_root=node == ROOT,
    )


def _counted(stats: Any, at: Array, here: Array, value: Array | None) -> tuple[Array, Array]:
    """Visits and values of nodes at `[L]`, with one more that brought `value`."""
    visits, total = (_load(stats, 2 * at + i, here, 0.0) for i in range(2))
    return (visits, total) if value is None else (visits + 1.0, total + value)


def _at(table: Array, edge: Array) -> Array:
    """`table[..., edge]`."""
    places = lax.broadcasted_iota(jnp.int32, table.shape, 1)
    return jnp.sum(jnp.where(places == edge[:, None], table, 0), -1)


def _load(ref: Any, place: Array, mask: Array, other: float) -> Array:
    loaded: Array = triton.load(ref.at[place], mask=mask, other=jnp.asarray(other, ref.dtype))
    return loaded


def _store(ref: Any, place: Array, mask: Array, new: Array) -> None:
    triton.store(ref.at[place], new.astype(ref.dtype), mask=mask)
