"""A subtree that is kept is the one that belongs to the position."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.struct import replace
from aleazero.doctor.evaluators import OPINIONATED, hashed
from aleazero.doctor.recount import recount
from aleazero.search.build import build_search
from aleazero.search.reuse import Reusing, regrow
from aleazero.search.settings import SearchConfig, make_knobs
from tests.search.support import keys, patient

LANES, BUDGET = 16, 48


@pytest.fixture(scope="module")
def played() -> dict[str, Any]:
    """A search, the move it chose, and what follows."""
    game = patient("connect_four").game
    evaluate = hashed(game)
    config = SearchConfig(max_simulations=BUDGET, reuse=True)
    search, knobs = build_search(game, config), make_knobs(config)
    states = patient("connect_four").positions(
        patient("connect_four").decides & (np.asarray(patient("connect_four").steps.ply) < 12), "none", LANES
    )
    grow = jax.jit(lambda tree: search.grow(evaluate, OPINIONATED, tree, knobs))
    plant = jax.jit(lambda s, k: search.plant(evaluate, OPINIONATED, s, k, knobs))
    again = jax.jit(lambda tree, edge, s, k: regrow(search, tree, (edge,), evaluate, OPINIONATED, s, k, knobs))
    tree = grow(plant(states, keys(LANES)))
    result = jax.jit(search.result)(tree, knobs)
    after = jax.jit(jax.vmap(game.apply_action))(states, result.action)
    return {"search": search, "tree": tree, "result": result, "after": after, "again": again, "grow": grow} | {
        "evaluate": evaluate,
        "plant": plant,
    }


@pytest.mark.slow
def test_kept_visits_are_those_of_the_edge(played: dict[str, Any]) -> None:
    tree = played["again"](played["tree"], played["result"].edge, played["after"], keys(LANES))
    visits = np.take_along_axis(np.asarray(played["result"].visits), np.asarray(played["result"].edge)[:, None], -1)[
        :, 0
    ]
    over = np.asarray(played["after"].terminated)
    np.testing.assert_array_equal(np.asarray(tree.stats)[0, ~over, 0], visits[~over])
    assert recount(played["search"].plan, tree, played["evaluate"], OPINIONATED, lanes=np.flatnonzero(~over),
                   root_visits=False) == []  # fmt: skip
    grown = played["grow"](tree)
    assert (np.asarray(grown.stats)[0, ~over, 0] == visits[~over] + BUDGET).all()


def test_another_position_keeps_nothing(played: dict[str, Any]) -> None:
    """The lanes are shuffled: the edge leads somewhere, but not to the state that is given."""
    shuffled = jax.tree.map(lambda x: jnp.roll(x, 1, 0), played["after"])
    tree = played["again"](played["tree"], played["result"].edge, shuffled, keys(LANES))
    same = (np.asarray(shuffled.board) == np.asarray(played["after"].board)).all((1, 2))
    assert not same.all()
    assert (np.asarray(tree.stats)[0, ~same, 0] == 1).all()
    fresh = played["plant"](shuffled, keys(LANES))
    np.testing.assert_array_equal(np.asarray(tree.next_edge)[0, ~same], np.asarray(fresh.next_edge)[0, ~same])


def test_only_a_game_that_goes_on_along_an_edge_of_the_tree_is_followed(played: dict[str, Any]) -> None:
    search, tree, result = Reusing(played["search"]), played["tree"], played["result"]
    everybody, none = jnp.ones(LANES, bool), jnp.full(LANES, -1, jnp.int32)
    children = np.asarray(tree.children)[0, np.arange(LANES), np.asarray(result.edge)]
    assert (children > 0).all()
    some = jnp.arange(LANES) % 3 > 0
    node = np.asarray(search.follow(tree, result.action, none, some).node)
    np.testing.assert_array_equal(node, np.where(some, children, 0))  # the others' games are over: new ones begin
    assert not np.asarray(search.follow(tree, jnp.full(LANES, 99, jnp.int32), none, everybody).node).any()
    won = replace(tree, children=-tree.children)  # as if every move had ended the game
    assert not np.asarray(search.follow(won, result.action, none, everybody).node).any()


@pytest.mark.slow
def test_with_little_room_the_oldest_nodes_of_a_subtree_are_kept() -> None:
    """All that is kept is right; visits to what was cut off stay counted above it."""
    game = patient("tictactoe").game
    config = SearchConfig(max_simulations=24, reuse=True, max_nodes=33)
    search, evaluate, knobs = build_search(game, config), hashed(game), make_knobs(config)
    assert search.plan.num_nodes == 32  # whole words, and no more than was asked for
    reusing, room = Reusing(search), 32 - 24

    @jax.jit
    def go_on(kept: Any, states: Any, keys: jax.Array) -> tuple[Any, Any, Any]:
        result, tree = reusing.go_on(kept, evaluate, OPINIONATED, states, keys, knobs)
        kept = reusing.follow(tree, result.action, jnp.full(8, -1, jnp.int32), jnp.ones(8, bool))
        return kept, jax.vmap(game.apply_action)(states, result.action), tree

    states = jax.jit(jax.vmap(game.init))(keys(8))
    kept, after, before = go_on(jax.jit(reusing.nothing, static_argnums=0)(8), states, keys(8))
    spent = np.asarray(before.stats)[np.asarray(kept.node), np.arange(8), 0]
    assert (spent > room).any()
    _, _, tree = go_on(kept, after, keys(8, seed=1))
    np.testing.assert_array_equal(np.asarray(tree.stats)[0, :, 0], spent + 24)
    assert int(tree.next_node) <= 32
    problems = recount(search.plan, tree, evaluate, OPINIONATED, root_visits=False)
    assert [problem for problem in problems if "visits" not in problem and "add up" not in problem] == []


@pytest.mark.slow
def test_a_chain_of_kept_searches_stays_within_its_room() -> None:
    """And its books still balance."""
    game = patient("tictactoe").game
    evaluate, config = hashed(game), SearchConfig(max_simulations=24, reuse=True)
    search, knobs = build_search(game, config), make_knobs(config)
    reusing, none = Reusing(search), jnp.full(4, -1, jnp.int32)

    @jax.jit
    def step(kept: Any, states: Any) -> tuple[Any, Any, Any]:
        result, tree = reusing.go_on(kept, evaluate, OPINIONATED, states, keys(4), knobs)
        after = jax.vmap(game.apply_action)(states, result.action)
        return reusing.follow(tree, result.action, none, ~after.terminated), after, tree

    kept, states = jax.jit(reusing.nothing, static_argnums=0)(4), jax.jit(jax.vmap(game.init))(keys(4))
    for move in range(4):
        kept, states, tree = step(kept, states)
        assert int(tree.next_node) <= search.plan.num_nodes
        assert (np.asarray(tree.stats)[0, :, 0] > 25).all() == (move > 0)
    assert recount(search.plan, tree, evaluate, OPINIONATED, root_visits=False) == []
