"""The kernels, interpreted, against the plain walks: the same tree, bit for bit."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.doctor.evaluators import OPINIONATED, hashed
from aleazero.search import kernels
from aleazero.search.build import _problem_here, build_search, kernels_problem
from aleazero.search.plan import Plan, warn_of_plain_walks
from aleazero.search.reuse import Reusing
from aleazero.search.settings import SearchConfig, make_knobs
from aleazero.search.tree import Tree
from tests.lowering import instead_of_a
from tests.search.support import keys, patient, positions

LANES = 13  # not a multiple of a program's
SETTINGS: tuple[dict[str, Any], ...] = (
    {"kind": "puct", "try_all": True},
    {"kind": "gumbel", "least_range": 0.3},
    {"kind": "puct"},
)


def _grower(name: str, config: SearchConfig) -> Callable[[Any, jax.Array], Tree]:
    game, knobs = patient(name).game, make_knobs(config, noise_fraction=0.25)
    search, evaluate = build_search(game, config), hashed(game)

    def grow(states: object, keys: jax.Array) -> Tree:
        return search.grow(evaluate, OPINIONATED, search.plant(evaluate, OPINIONATED, states, keys, knobs), knobs)

    return grow


def _grown(name: str, config: SearchConfig) -> Tree:
    tree: Tree = jax.jit(_grower(name, config))(positions(name, LANES), keys(LANES))
    return tree


@functools.cache
def _walked_plainly(name: str, config: SearchConfig) -> Tree:
    return _grown(name, dataclasses.replace(config, kernels="never"))


def _assert_same(one: Tree, other: Tree) -> None:
    live = np.asarray(one.stats)[..., 0] > 0
    for field in dataclasses.fields(Tree):
        left, right = (np.asarray(getattr(tree, field.name)) for tree in (one, other))
        if field.name in ("next_edge", "next_child"):  # of nodes that are there
            left, right = left[live], right[live]
        if field.name != "lineage":
            np.testing.assert_array_equal(left, right, err_msg=field.name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param(name, settings, marks=[] if number == place else pytest.mark.long)
        for number, settings in enumerate(SETTINGS)
        for place, name in enumerate(("tictactoe", "connect_four", "pig"))
    ],
)
def test_kernels_grow_the_same_tree(name: str, settings: Any) -> None:
    """Short games that end within the search, one that goes on, and one with chance nodes."""
    config = SearchConfig(max_simulations=48, **settings)
    plain = _walked_plainly(name, config)
    kernels = _grown(name, dataclasses.replace(config, kernels="interpreted"))
    _assert_same(plain, kernels)
    assert (np.asarray(plain.stats)[0, :, 0] == 49).all()
    assert kernels.lineage.size == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["pig", *(pytest.param(name, marks=pytest.mark.long) for name in ("tictactoe", "connect_four"))]
)
def test_kernels_grow_the_same_tree_with_two_leaves_in_flight(name: str) -> None:
    jax.config.update("jax_disable_most_optimizations", False)  # with it the least value differs in its last bit
    config = SearchConfig(kind="gumbel", max_simulations=33, in_flight=2)
    plain = _walked_plainly(name, config)
    _assert_same(plain, _grown(name, dataclasses.replace(config, kernels="interpreted")))
    assert (np.asarray(plain.stats)[0, :, 0] <= 34).all()


@pytest.mark.slow
def test_kernels_grow_the_same_tree_below_one_that_was_kept() -> None:
    def play(how: Any) -> Tree:
        config = SearchConfig(max_simulations=24, reuse=True, kernels=how)
        game, knobs = patient("connect_four").game, make_knobs(config)
        search, evaluate = Reusing(build_search(game, config)), hashed(game)

        @jax.jit
        def move(kept: Any, states: Any) -> tuple[Any, Any, Tree]:
            result, tree = search.go_on(kept, evaluate, OPINIONATED, states, keys(LANES), knobs)
            after = jax.vmap(game.apply_action)(states, result.action)
            kept = search.follow(tree, result.action, jnp.full(LANES, -1, jnp.int32), ~after.terminated)
            return kept, after, tree

        kept, after, _ = move(jax.jit(search.nothing, static_argnums=0)(LANES), positions("connect_four", LANES))
        return move(kept, after)[2]

    plain = play("never")
    _assert_same(plain, play("interpreted"))
    assert (np.asarray(plain.stats)[0, :, 0] > 25).any()  # something was kept


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [{"kind": "puct"}, {"kind": "puct", "try_all": True}, {"kind": "gumbel"}, {"kind": "gumbel", "in_flight": 2}],
)
@pytest.mark.parametrize("gpu", [pytest.param("NVIDIA A100", marks=pytest.mark.long), "NVIDIA H100"])
def test_kernels_are_compiled_for_a_gpu(settings: Any, gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as that goes without one: every operation in them is known to the kernels' compiler."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr("aleazero.search.build.kernels_problem", lambda plan: "")
    game, config = patient("pig").game, SearchConfig(max_simulations=8, kernels="auto", **settings)
    search, evaluate, knobs = build_search(game, config), hashed(game), make_knobs(config)
    program = jax.jit(lambda states, keys: search.run(evaluate, OPINIONATED, states, keys, knobs))
    given = positions("pig", 16), keys(16)
    with instead_of_a(gpu):
        text = program.trace(*given).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("triton") == 2  # down and up


@pytest.mark.parametrize(
    "settings",
    [{"kind": "puct"}, {"kind": "puct", "try_all": True}, {"kind": "gumbel"}, {"kind": "gumbel", "in_flight": 2}],
)
@pytest.mark.parametrize("name", [pytest.param("connect_four", marks=pytest.mark.long), "pig"])
def test_a_try_finds_kernels_that_run(settings: Any, name: str) -> None:
    config = SearchConfig(kernels="interpreted", **settings)
    assert kernels_problem(Plan(patient(name).game, config)) == ""


def test_kernels_that_give_wrong_numbers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = kernels._counted
    monkeypatch.setattr(kernels, "_counted", lambda *given: [number * 2 for number in counted(*given)])
    assert "wrong numbers" in kernels_problem(Plan(patient("pig").game, SearchConfig(kernels="interpreted")))


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What is said of plain walks on a GPU."""
    for cached in (warn_of_plain_walks, _problem_here):
        cached.cache_clear()
    yield caplog
    for cached in (warn_of_plain_walks, _problem_here):
        cached.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("why", ["no module", "not on this device"])
def test_a_gpu_that_cannot_run_kernels_walks_plainly_and_says_so_once(
    why: str, said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What JAX says here is real: there is no such module, or Triton does not know this device, which is a CPU."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    if why == "no module":
        monkeypatch.delattr("aleazero.search.kernels")
        monkeypatch.setitem(sys.modules, "aleazero.search.kernels", None)
    config = SearchConfig(max_simulations=8)
    tree = _grown("tictactoe", config)
    build_search(patient("tictactoe").game, config)
    assert _problem_here.cache_info().misses == 1  # tried once
    (told,) = said.messages
    assert "two to four times as long" in told
    assert ("ModuleNotFoundError" if why == "no module" else "CPU backend") in told
    _assert_same(tree, _walked_plainly("tictactoe", config))


def test_expectations_are_walked_plainly() -> None:
    config = SearchConfig(max_simulations=8, chance="exact", kernels="interpreted")
    assert not build_search(patient("pig").game, config).plan.kernels


@pytest.mark.slow
def test_trees_whose_places_kernels_cannot_count_are_walked_plainly(
    said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = SearchConfig(max_simulations=8)
    config = dataclasses.replace(plain, kernels="interpreted")
    monkeypatch.setattr("aleazero.search.plan.LARGEST", 32 * 9 * LANES - 1)
    tree = _grown("tictactoe", config)
    (told,) = said.messages
    assert f"{LANES} games, 32 nodes and 9 edges a node" in told
    assert tree.lineage.size
    _assert_same(tree, _walked_plainly("tictactoe", plain))
    fewer = jax.eval_shape(_grower("tictactoe", config), positions("tictactoe", LANES - 1), keys(LANES - 1))
    assert not fewer.lineage.size


@pytest.mark.slow
def test_without_kernels_their_compiler_is_not_imported() -> None:
    lines = "import sys, aleazero.search.build, aleazero.cli.main; print('jax.experimental.pallas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True).stdout == "False\n"
