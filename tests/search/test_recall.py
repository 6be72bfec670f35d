"""Games in which it matters what was there before: a tree of packed rows ends lines where whole play ends them."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.struct import replace
from aleazero.doctor.evaluators import OPINIONATED, hashed
from aleazero.doctor.recount import recount
from aleazero.games.chess.game import Chess
from aleazero.search.build import build_search
from aleazero.search.plan import Plan
from aleazero.search.reuse import Kept, Reusing
from aleazero.search.settings import SearchConfig, make_knobs
from aleazero.search.tree import Tree
from tests.search.support import keys

GAME = Chess()
LOCKED = "k7/8/8/p7/P7/8/8/K7 w - - 0 1 moves"  # two kings and pawns that cannot move
ONCE, TWICE = "a1b1 a8b8 b1a1 b8a8", "a1b1 a8b8 b1a1 b8a8 a1b1 a8b8"
LANES = 3
CONFIG = SearchConfig(kind="puct", max_simulations=400, reuse=True)


@functools.cache
def _roots() -> Any:
    states = [GAME.notation.parse_state(f"{LOCKED} {moves}") for moves in (ONCE, TWICE, "a1b1 a8b8")]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


@functools.cache
def _program(config: SearchConfig) -> tuple[Reusing, Any]:
    """A search, and it compiled as `(kept, states, keys) -> (kept for the best move, that move, tree)`."""
    search, knobs, evaluate = Reusing(build_search(GAME, config)), make_knobs(config), hashed(GAME)

    @jax.jit
    def go_on(kept: Kept, states: Any, keys: jax.Array) -> tuple[Kept, jax.Array, Tree]:
        result, tree = search.go_on(kept, evaluate, OPINIONATED, states, keys, knobs)
        everybody, none = jnp.ones(LANES, bool), jnp.full(LANES, -1, jnp.int32)
        return search.follow(tree, result.action, none, everybody), result.action, tree

    return search, go_on


@functools.cache
def _grown(config: SearchConfig) -> tuple[Plan, Kept, jax.Array, Tree]:
    search, go_on = _program(config)
    nothing = jax.jit(search.nothing, static_argnums=0)(LANES)
    return search.search.plan, *go_on(nothing, _roots(), keys(LANES))


@jax.jit
def _step(state: Any, action: jax.Array) -> tuple[Any, jax.Array]:
    after = GAME.apply_action(state, action)
    return after, GAME.pack(after)


def _played_out(tree: Tree, roots: Any) -> np.ndarray:
    """`[N, B, P]`: the packed states of live nodes, by whole play along their paths."""
    parents, children, actions = (np.asarray(x) for x in (tree.parents, tree.children, tree.actions))
    packed = np.zeros(tree.states.shape, np.uint8)
    for lane in range(packed.shape[1]):
        whole = {0: jax.tree.map(lambda x, lane=lane: x[lane], roots)}
        packed[0, lane] = jax.jit(GAME.pack)(whole[0])
        for node in np.flatnonzero(np.asarray(tree.stats)[:, lane, 0] > 0)[1:]:
            above = parents[node, lane]
            edge = np.flatnonzero(np.abs(children[above, lane]) == node)[0]
            whole[node], packed[node, lane] = _step(whole[above], jnp.int32(actions[above, lane, edge]))
    return packed


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["never", pytest.param("interpreted", marks=pytest.mark.long)])
def test_a_tree_ends_where_whole_play_ends(kernels: Any) -> None:
    roots = _roots()
    plan, _, _, tree = _grown(dataclasses.replace(CONFIG, kernels=kernels))
    live = np.asarray(tree.stats)[..., 0] > 0
    np.testing.assert_array_equal(np.asarray(tree.states)[live], _played_out(tree, roots)[live])
    over = jax.jit(jax.vmap(jax.vmap(lambda row: GAME.unpack(row).terminated)))
    ended = np.asarray(over(tree.states)) & live
    assert (ended.sum(0)[:2] > 0).all(), "no line came back for the third time: the test tests nothing"
    assert (np.asarray(tree.raw)[ended] == 0).all(), "a draw"
    assert recount(plan, tree, hashed(GAME), OPINIONATED) == []


@pytest.mark.slow
def test_a_recount_sees_a_tree_that_forgot_the_past() -> None:
    plan, _, _, tree = _grown(dataclasses.replace(CONFIG, kernels="never"))
    forgot = replace(tree, past=jnp.zeros_like(tree.past))
    problems = recount(plan, forgot, hashed(GAME), OPINIONATED)
    assert any("does not hold the state" in problem for problem in problems)


@pytest.mark.slow
def test_a_kept_subtree_goes_on_counting() -> None:
    config = dataclasses.replace(CONFIG, kernels="never")
    _, kept, action, _ = _grown(config)
    played = [_step(jax.tree.map(lambda x, i=i: x[i], _roots()), np.asarray(action)[i])[0] for i in range(LANES)]
    after = jax.tree.map(lambda *leaves: np.stack(leaves), *played)
    _, _, grown = _program(config)[1](kept, after, keys(LANES, seed=1))
    live = np.asarray(grown.stats)[..., 0] > 0
    assert (live.sum(0) > CONFIG.max_simulations + 1).any(), "something was kept"
    np.testing.assert_array_equal(np.asarray(grown.states)[live], _played_out(grown, after)[live])
