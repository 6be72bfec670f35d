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
from aleazero.search.build import Search, build_search
from aleazero.search.reuse import regrow
from aleazero.search.settings import SearchConfig, make_knobs
from aleazero.search.tree import Tree
from tests.search.support import keys

GAME = Chess()
LOCKED = "k7/8/8/p7/P7/8/8/K7 w - - 0 1 moves"  # two kings and pawns that cannot move
ONCE, TWICE = "a1b1 a8b8 b1a1 b8a8", "a1b1 a8b8 b1a1 b8a8 a1b1 a8b8"
CONFIG = SearchConfig(kind="puct", max_simulations=400, reuse=True)


@functools.cache
def _roots() -> Any:
    states = [GAME.notation.parse_state(f"{LOCKED} {moves}") for moves in (ONCE, TWICE, "a1b1 a8b8")]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


@functools.cache
def _grown(config: SearchConfig) -> tuple[Search, Tree]:
    search, knobs, evaluate = build_search(GAME, config), make_knobs(config), hashed(GAME)

    def grow(states: Any, keys: jax.Array) -> Tree:
        return search.grow(evaluate, OPINIONATED, search.plant(evaluate, OPINIONATED, states, keys, knobs), knobs)

    return search, jax.jit(grow)(_roots(), keys(3))


def _played_out(tree: Tree, roots: Any) -> np.ndarray:
    """`[N, B, P]`: the packed states of live nodes, by whole play along their paths."""
    parents, children, actions = (np.asarray(x) for x in (tree.parents, tree.children, tree.actions))
    step = jax.jit(lambda state, action: (lambda after: (after, GAME.pack(after)))(GAME.apply_action(state, action)))
    packed = np.zeros(tree.states.shape, np.uint8)
    for lane in range(packed.shape[1]):
        whole = {0: jax.tree.map(lambda x, lane=lane: x[lane], roots)}
        packed[0, lane] = jax.jit(GAME.pack)(whole[0])
        for node in np.flatnonzero(np.asarray(tree.stats)[:, lane, 0] > 0)[1:]:
            above = parents[node, lane]
            edge = np.flatnonzero(np.abs(children[above, lane]) == node)[0]
            whole[node], packed[node, lane] = step(whole[above], jnp.int32(actions[above, lane, edge]))
    return packed


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["never", pytest.param("interpreted", marks=pytest.mark.long)])
def test_a_tree_ends_where_whole_play_ends(kernels: Any) -> None:
    roots = _roots()
    search, tree = _grown(dataclasses.replace(CONFIG, kernels=kernels))
    live = np.asarray(tree.stats)[..., 0] > 0
    np.testing.assert_array_equal(np.asarray(tree.states)[live], _played_out(tree, roots)[live])
    ended = np.asarray(jax.vmap(jax.vmap(GAME.unpack))(tree.states).terminated) & live
    assert (ended.sum(0)[:2] > 0).all(), "no line came back for the third time: the test tests nothing"
    assert (np.asarray(tree.raw)[ended] == 0).all(), "a draw"
    assert recount(search.plan, tree, hashed(GAME), OPINIONATED) == []


@pytest.mark.slow
def test_a_recount_sees_a_tree_that_forgot_the_past() -> None:
    search, tree = _grown(dataclasses.replace(CONFIG, kernels="never"))
    forgot = replace(tree, past=jnp.zeros_like(tree.past))
    assert any(
        "does not hold the state" in problem for problem in recount(search.plan, forgot, hashed(GAME), OPINIONATED)
    )


@pytest.mark.slow
def test_a_kept_subtree_goes_on_counting() -> None:
    config = dataclasses.replace(CONFIG, kernels="never")
    roots, knobs, evaluate = _roots(), make_knobs(config), hashed(GAME)
    search, tree = _grown(config)
    edge = jnp.argmax(search.result(tree, knobs).visits, -1).astype(jnp.int32)
    action = jnp.take_along_axis(tree.actions[0], edge[:, None], 1)[:, 0].astype(jnp.int32)
    after = jax.jit(jax.vmap(GAME.apply_action))(roots, action)

    def go_on(tree: Tree, states: Any, keys: jax.Array) -> Tree:
        tree = regrow(search, tree, (edge,), evaluate, OPINIONATED, states, keys, knobs)
        return search.grow(evaluate, OPINIONATED, tree, knobs)

    grown = jax.jit(go_on)(tree, after, keys(3, seed=1))
    live = np.asarray(grown.stats)[..., 0] > 0
    assert (live.sum(0) > CONFIG.max_simulations + 1).any(), "something was kept"
    np.testing.assert_array_equal(np.asarray(grown.states)[live], _played_out(grown, after)[live])
