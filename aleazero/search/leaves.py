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
from aleazero.search.tree import Tree, edge_of, rows


@struct
class Leaves:
    """Where a descent ended, per lane, and what must be evaluated there."""

    parent: Array  # [B] int32: the node whose edge was followed last
    edge: Array  # [B] int32: that edge
    revisit: Array  # [B] int32: the finished game it ends in, if it was known already; else 0
    known: Array  # [B] float32: that game's value, seat 0's side
    line: Array  # [B, W] uint32: the lineage of that game, or else of the parent
    state: Any  # the new node's state
    middle: Any  # the state of the chance node passed through before it; None where that cannot be
    passes: Array  # [B] bool: whether one is
    outcome: Array  # [B] int32: the outcome drawn there
    observation: Array  # [B * R, ...]: the rows to evaluate, R a lane (1, or one per outcome with exact chance)
    row_values: Array  # [B * R] float32: the result of rows where the game is over, seat 0's side
    row_signs: Array  # [B * R] float32: turns the evaluation into seat 0's side; 0 where the game is over
    path: Array  # [., B] int32: the new nodes, then the path from the root; lanes that end early repeat their last node
    length: Array  # [] int32: how much of it is filled


@struct
class NewNodes:
    """What a simulation writes: S slabs, the leaf's last. Fields as in `Tree`, `[S, B, ...]`."""

    at: Array  # [] int32: the leaf's node
    links: Array  # [B] int32: how it is linked: its number, negated where the game is over
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
    plan: Plan, tree: Tree, parent: Array, edge: Array, revisit: Array, path: Array, length: Array
) -> Leaves:
    """Plays the edge (and nature's move behind it), and prepares the rows to evaluate."""
    game = plan.game
    states = jax.vmap(game.unpack)(rows(tree.states, parent))
    action = edge_of(rows(tree.actions, parent), edge).astype(jnp.int32)
    acted = jax.vmap(game.apply_action)(states, action)
    leaf, middle, outcome = acted, None, edge
    passes = jnp.zeros(edge.shape, bool)
    if plan.explicit:
        from_chance = rows(tree.turn, parent) == 0
        before = where_lanes(from_chance, states, acted)
        rolls = from_chance
        if not plan.stops_at_chance:
            middle = before
            passes = ~from_chance & acted.is_chance
            rolls = from_chance | passes
            words = plan.chance_words(tree.words, tree.simulation)[0]  # of the chance node to be, at its first visit
            first = plan.draw(words, jnp.zeros_like(edge), plan.probs(before))
            outcome = jnp.where(from_chance, edge, first)
        leaf = where_lanes(rolls, jax.vmap(game.apply_chance)(before, outcome), before)
    evaluated = _all_outcomes(plan, leaf) if plan.exact else leaf
    return Leaves(
        parent=parent,
        edge=edge,
        revisit=revisit,
        known=rows(tree.raw, revisit),
        line=rows(tree.lineage, jnp.where(revisit > 0, revisit, parent)),
        state=leaf,
        middle=middle,
        passes=passes & (revisit == 0),
        outcome=outcome,
        observation=jax.vmap(game.observe)(evaluated),
        row_values=jnp.where(evaluated.terminated, evaluated.returns[:, 0] / game.spec.scale, 0.0),
        row_signs=jnp.where(evaluated.terminated, 0.0, seat_sign(evaluated.to_play)),
        path=path,
        length=length,
    )


def read(plan: Plan, leaves: Leaves, prediction: Prediction) -> tuple[Array, Array, Array | None, Array]:
    """Value `[B]` (seat 0's side), logits `[B, A]`, outcome values `[1, B, E]` if exact, rows needed `[B]`."""
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


def _all_outcomes(plan: Plan, leaf: Any) -> Any:
    """`[B * C]` states: every outcome of lanes at a chance state; in the others the leaf itself, C times."""
    outcomes = jnp.arange(plan.num_outcomes)

    def spread(state: Any) -> Any:
        rolled = jax.vmap(lambda outcome: plan.game.apply_chance(state, outcome))(outcomes)
        return jax.tree.map(lambda r, s: jnp.where(state.is_chance, r, s), rolled, state)

    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), jax.vmap(spread)(leaf))
