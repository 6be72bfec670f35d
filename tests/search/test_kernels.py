"""The kernels, interpreted, against the plain walks: the same tree, bit for bit."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.errors import ConfigError
from aleazero.doctor.evaluators import OPINIONATED, hashed
from aleazero.search.build import build_search
from aleazero.search.reuse import Reusing
from aleazero.search.settings import SearchConfig, make_knobs
from aleazero.search.tree import Tree
from tests.search.support import keys, patient, positions

LANES = 13  # not a multiple of a program's


@pytest.fixture(autouse=True)
def quick_compile() -> None:
    """Not here: compiled so, the least value of a tree with two leaves in flight differs in its last bit."""


def _grown(name: str, config: SearchConfig, lanes: int = LANES) -> Tree:
    game, knobs = patient(name).game, make_knobs(config, noise_fraction=0.25)
    search, evaluate = build_search(game, config), hashed(game)

    def grow(states: object, keys: jax.Array) -> Tree:
        return search.grow(evaluate, OPINIONATED, search.plant(evaluate, OPINIONATED, states, keys, knobs), knobs)

    tree: Tree = jax.jit(grow)(positions(name, lanes), keys(lanes))
    return tree


def _assert_same(one: Tree, other: Tree) -> None:
    live = np.asarray(one.stats)[..., 0] > 0
    for field in dataclasses.fields(Tree):
        left, right = (np.asarray(getattr(tree, field.name)) for tree in (one, other))
        if field.name in ("next_edge", "next_child"):  # of nodes that are there
            left, right = left[live], right[live]
        if field.name != "lineage":
            np.testing.assert_array_equal(left, right, err_msg=field.name)


@pytest.mark.parametrize(
    "settings", [{"kind": "puct"}, {"kind": "puct", "try_all": True}, {"kind": "gumbel", "least_range": 0.3}]
)
@pytest.mark.parametrize("name", ["tictactoe", "connect_four", "pig"])
def test_kernels_grow_the_same_tree(name: str, settings: Any) -> None:
    """Short games that end within the search, one that goes on, and one with chance nodes."""
    config = SearchConfig(max_simulations=48, **settings)
    plain = _grown(name, dataclasses.replace(config, kernels="never"))
    kernels = _grown(name, dataclasses.replace(config, kernels="interpreted"))
    _assert_same(plain, kernels)
    assert (np.asarray(plain.stats)[0, :, 0] == 49).all()
    assert kernels.lineage.size == 0


@pytest.mark.parametrize("name", ["tictactoe", "connect_four", "pig"])
def test_kernels_grow_the_same_tree_with_two_leaves_in_flight(name: str) -> None:
    config = SearchConfig(kind="gumbel", max_simulations=33, in_flight=2)
    plain = _grown(name, dataclasses.replace(config, kernels="never"))
    _assert_same(plain, _grown(name, dataclasses.replace(config, kernels="interpreted")))
    assert (np.asarray(plain.stats)[0, :, 0] <= 34).all()


def test_kernels_grow_the_same_tree_below_one_that_was_kept() -> None:
    def play(how: Any) -> Tree:
        config = SearchConfig(max_simulations=24, reuse=True, kernels=how)
        game, knobs = patient("connect_four").game, make_knobs(config)
        search, evaluate = Reusing(build_search(game, config)), hashed(game)

        def two_moves(states: Any, keys: jax.Array) -> Tree:
            result, tree = search.go_on(search.nothing(LANES), evaluate, OPINIONATED, states, keys, knobs)
            after = jax.vmap(game.apply_action)(states, result.action)
            kept = search.follow(tree, result.action, jnp.full(LANES, -1, jnp.int32), ~after.terminated)
            return search.go_on(kept, evaluate, OPINIONATED, after, keys, knobs)[1]

        tree: Tree = jax.jit(two_moves)(positions("connect_four", LANES), keys(LANES))
        return tree

    plain = play("never")
    _assert_same(plain, play("interpreted"))
    assert (np.asarray(plain.stats)[0, :, 0] > 25).any()  # something was kept


@pytest.mark.parametrize(
    "settings",
    [{"kind": "puct"}, {"kind": "puct", "try_all": True}, {"kind": "gumbel"}, {"kind": "gumbel", "in_flight": 2}],
)
def test_kernels_are_compiled_for_a_gpu(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as that goes without one: every operation in them is known to the kernels' compiler."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    game, config = patient("pig").game, SearchConfig(max_simulations=8, kernels="auto", **settings)
    search, evaluate, knobs = build_search(game, config), hashed(game), make_knobs(config)
    program = jax.jit(lambda states, keys: search.run(evaluate, OPINIONATED, states, keys, knobs))
    text = program.trace(positions("pig", 16), keys(16)).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("triton") == 2  # down and up


def test_expectations_are_walked_plainly() -> None:
    config = SearchConfig(max_simulations=8, chance="exact", kernels="interpreted")
    assert not build_search(patient("pig").game, config).plan.fused


def test_a_tree_whose_places_cannot_be_counted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aleazero.search.kernels.LARGEST", 1000)
    with pytest.raises(ConfigError, match="13 games at once"):
        _grown("tictactoe", SearchConfig(max_simulations=8, kernels="interpreted"))


def test_without_kernels_their_compiler_is_not_imported() -> None:
    lines = "import sys, aleazero.search.build, aleazero.cli.main; print('jax.experimental.pallas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True).stdout == "False\n"
