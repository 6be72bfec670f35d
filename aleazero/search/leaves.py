"""From the edge where a descent ended to the new state there, and to what the network must evaluate.

Knows the game contract and the tree; not how edges are chosen nor what is done with the evaluation.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.game import seat_sign
from aleazero.core.records import Prediction
from aleazero.core.struct import struct, where_lanes
from aleazero.search.plan import Plan
from aleazero.search.tree import Tree, edge_of, members, rows

KEY_BYTES = 8  # of a packed row's position key, at its beginning


@struct
class Leaves:
    """Where descents ended, K in flight per lane, and what must be evaluated there. KB is K * B."""

    there: Array  # [K, B] bool: whether the descent set out; if not, what is said of it means nothing
    parent: Array  # [K, B] int32: the node whose edge was followed last
    edge: Array  # [K, B] int32: that edge
    revisit: Array  # [K, B] int32: the finished game it ends in, if it was known already; else 0
    known: Array  # [K, B] float32: that game's value, seat 0's side
    line: Array  # [K, B, W] uint32: the lineage of that game, or else of the parent
    state: Any  # [KB]: the new nodes' states
    legal: Array  # [KB, max_legal] int16: their legal actions
    settled: Array  # [KB] bool: whether the game is over there, or as good as over: it can be won at once
    middle: Any  # [KB]: the states of chance nodes passed through before them; None where that cannot be
    passes: Array  # [K, B] bool: whether one is
    outcome: Array  # [K, B] int32: the outcome drawn there
    observation: Array  # [KB * R, ...]: the rows to evaluate, R for each (1, or one per outcome with exact chance)
    row_values: Array  # [KB * R] float32: the result of rows where the game is over, seat 0's side
    row_signs: Array  # [KB * R] float32: turns the evaluation into seat 0's side; 0 where the game is over
    path: Array  # [., K, B] int32: the new nodes, then the path from the root; one that ends early repeats its last
    length: Array  # [] int32: how much of it is filled


@struct
class NewNodes:
    """What K simulations write: S slabs each, the leaf's last. Fields as in `Tree`, `[K * S, B, ...]`."""

    at: Array  # [K, B] int32: the leaves' nodes
    links: Array  # [K, B] int32: how they are linked: by number, negated where the game is over
    states: Array
    turn: Array
    actions: Array
    priors: Array
    children: Array
    outcome_values: Array | None  # only with exact chance
    raw: Array
    lineage: Array
    parents: Array
    chance_words: Array


def make_leaves(
    plan: Plan, tree: Tree, there: Array, parent: Array, edge: Array, revisit: Array, path: Array, length: Array
) -> Leaves:
    """Plays the edges (and nature's move behind them), and prepares the rows to evaluate."""
    game = plan.game
    states = jax.vmap(game.unpack)(in_a_row(rows(tree.states, parent)))
    action = in_a_row(edge_of(rows(tree.actions, parent), edge).astype(jnp.int32))
    acted = jax.vmap(game.apply_action)(states, action)
    if plan.recalls:
        acted = _recalled(plan, tree, parent, acted)
    leaf, middle, outcome = acted, None, in_a_row(edge)
    passes = jnp.zeros(outcome.shape, bool)
    if plan.explicit:
        from_chance = in_a_row(rows(tree.turn, parent)) == 0
        before = where_lanes(from_chance, states, acted)
        rolls = from_chance
        if not plan.stops_at_chance:
            middle = before
            passes = ~from_chance & acted.is_chance
            rolls = from_chance | passes
            words = plan.chance_words(tree.words, tree.simulation)[:: plan.slabs]  # of chance nodes to be
            first = plan.draw(in_a_row(words), jnp.zeros_like(outcome), plan.probs(before))  # at their first visit
            outcome = jnp.where(from_chance, outcome, first)
        leaf = where_lanes(rolls, jax.vmap(game.apply_chance)(before, outcome), before)
    evaluated = _all_outcomes(plan, leaf) if plan.exact else leaf
    row_values = jnp.where(evaluated.terminated, evaluated.returns[:, 0] / game.spec.scale, 0.0)
    over, settled = evaluated.terminated, leaf.terminated
    if plan.config.prove and game.wins_in_one is not None:
        won = jax.vmap(game.wins_in_one)(leaf) & ~over
        row_values = jnp.where(won, seat_sign(leaf.to_play), row_values)
        over = settled = settled | won
    return Leaves(
        there=there,
        parent=parent,
        edge=edge,
        revisit=revisit,
        known=rows(tree.raw, revisit),
        line=rows(tree.lineage, jnp.where(revisit > 0, revisit, parent)),
        state=leaf,
        legal=jax.vmap(game.legal_list)(leaf),
        settled=settled,
        middle=middle,
        passes=passes.reshape(edge.shape) & (revisit == 0),
        outcome=outcome.reshape(edge.shape),
        observation=jax.vmap(game.observe)(evaluated),
        row_values=row_values,
        row_signs=jnp.where(over, 0.0, seat_sign(evaluated.to_play)),
        path=path,
        length=length,
    )


def read(plan: Plan, leaves: Leaves, prediction: Prediction) -> tuple[Array, Array, Array | None, Array]:
    """Value `[KB]` (seat 0's side), logits `[KB, A]`, outcome values `[1, KB, E]` if exact, rows needed `[KB]`."""
    values = leaves.row_values + leaves.row_signs * prediction.value.astype(jnp.float32)
    asked = (leaves.row_signs != 0).astype(jnp.int32)
    if not plan.exact:
        return values, prediction.logits, None, asked
    num_outcomes = plan.num_outcomes
    at_chance = leaves.state.is_chance
    values, asked = values.reshape(-1, num_outcomes), asked.reshape(-1, num_outcomes)
    logits = prediction.logits.reshape(*values.shape, -1)[:, 0]
    expected = (plan.probs(leaves.state) * values).sum(-1)
    outcome_values = jnp.pad(values, ((0, 0), (0, plan.num_edges - num_outcomes)))[None]
    return (
        jnp.where(at_chance, expected, values[:, 0]),
        logits,
        outcome_values,
        jnp.where(at_chance, asked.sum(-1), asked[:, 0]),
    )


def in_a_row(x: Array) -> Array:
    """`[K, B, ...]` as `[KB, ...]`."""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def _recalled(plan: Plan, tree: Tree, parent: Array, states: Any) -> Any:
    """States `[KB]` below nodes `parent`, told how often their positions were there: on the way, or before the root."""
    game, num_nodes = plan.game, tree.states.shape[0]
    assert game.position_key is not None
    assert game.seen_before is not None
    keys = jax.vmap(game.position_key)(states).reshape(*parent.shape, 2)
    known = tree.states[..., :KEY_BYTES].reshape(*tree.states.shape[:2], 2, KEY_BYTES // 2)
    known = jax.lax.bitcast_convert_type(known, jnp.uint32)  # [N, B, 2]
    times = []
    for key, above in zip(keys, rows(tree.lineage, parent), strict=True):
        on_the_way = members(above, num_nodes) & (known == key[None]).all(-1)
        times.append(on_the_way.sum(0) + (tree.past == key[:, None]).all(-1).sum(-1))
    return jax.vmap(game.seen_before)(states, jnp.concatenate(times))


def _all_outcomes(plan: Plan, leaf: Any) -> Any:
    """`[B * C]` states: every outcome of lanes at a chance state; in the others the leaf itself, C times."""
    outcomes = jnp.arange(plan.num_outcomes)

    def spread(state: Any) -> Any:
        rolled = jax.vmap(lambda outcome: plan.game.apply_chance(state, outcome))(outcomes)
        return jax.tree.map(lambda r, s: jnp.where(state.is_chance, r, s), rolled, state)

    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), jax.vmap(spread)(leaf))
