"""A subtree that is kept is the one that belongs to the position."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.doctor.evaluators import OPINIONATED, hashed
from aleazero.doctor.recount import recount
from aleazero.search.build import build_search
from aleazero.search.reuse import regrow
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
    result = search.result(tree, knobs)
    after = jax.vmap(game.apply_action)(states, result.action)
    return {"search": search, "tree": tree, "result": result, "after": after, "again": again, "grow": grow} | {
        "evaluate": evaluate,
        "plant": plant,
    }


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


def test_a_subtree_too_large_keeps_its_oldest_nodes() -> None:
    """A chain of kept searches never outgrows the room it has, and its books still balance."""
    game = patient("tictactoe").game
    evaluate, config = hashed(game), SearchConfig(max_simulations=24, reuse=True)
    search, knobs = build_search(game, config), make_knobs(config)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 4))

    @jax.jit
    def step(tree: Any, states: Any) -> tuple[Any, Any]:
        tree = search.grow(evaluate, OPINIONATED, tree, knobs)
        result = search.result(tree, knobs)
        after = jax.vmap(game.apply_action)(states, result.action)
        return regrow(search, tree, (result.edge,), evaluate, OPINIONATED, after, keys(4), knobs), after

    tree = search.plant(evaluate, OPINIONATED, states, keys(4), knobs)
    for _ in range(3):
        tree, states = step(tree, states)
        assert int(tree.next_node) + 24 <= search.plan.num_nodes
        grown = jax.jit(lambda t: search.grow(evaluate, OPINIONATED, t, knobs))(tree)
        assert recount(search.plan, grown, evaluate, OPINIONATED, root_visits=False) == []
