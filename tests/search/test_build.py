"""The budget, the books and the compiled program."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.errors import ConfigError
from aleazero.doctor.evaluators import IGNORANT, OPINIONATED, hashed
from aleazero.doctor.recount import recount
from aleazero.search.build import build_search
from aleazero.search.settings import SearchConfig, make_knobs
from tests.search.support import keys, patient, positions, run, states_of


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("puct", "tictactoe"), ("gumbel", "tictactoe"), ("puct", "pig"), ("gumbel", "connect_four")),
        *(pytest.param(*each, marks=pytest.mark.long) for each in (("puct", "connect_four"), ("gumbel", "pig"))),
    ],
)
def test_recount(name: str, kind: str) -> None:
    modes = ["sampled", "exact"] if name == "pig" else ["sampled"]
    for chance in modes:
        search, tree, _ = patient(name).run(positions(name), 96, kind=kind, chance=chance)
        assert recount(search.plan, tree, patient(name).evaluate, OPINIONATED) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["pig", *(pytest.param(name, marks=pytest.mark.long) for name in ("tictactoe", "connect_four"))]
)
def test_recount_of_two_leaves_in_flight(name: str) -> None:
    search, tree, _ = patient(name).run(positions(name), 95, kind="gumbel", in_flight=2)
    assert recount(search.plan, tree, patient(name).evaluate, OPINIONATED) == []


@pytest.mark.parametrize("field", ["stats", "children", "turn", "priors", "states"])
def test_recount_sees_a_planted_fault(field: str) -> None:
    """A tree with one number changed does not add up."""
    search, tree, _ = patient("tictactoe").run(positions("tictactoe"), 96)
    array = np.array(getattr(tree, field))
    lane = int(np.argmax(np.asarray(tree.stats)[1, :, 0] > 1))
    if field == "children":
        edge = int(np.argmax(array[0, lane] != 0))
        array[0, lane, edge] = 0
    elif field == "states":
        array[1, lane] = array[0, lane]
    elif field == "turn":
        array[1, lane] *= -1
    else:
        array[1, lane] = array[1, lane] + 1
    wrong = tree.__class__(**vars(tree) | {field: jnp.asarray(array)})
    assert recount(search.plan, wrong, patient("tictactoe").evaluate, OPINIONATED) != []


def test_budget_temperature_and_noise_do_not_recompile() -> None:
    search, program = patient("pig").compiled("puct")
    states, config = positions("pig"), search.plan.config
    program(states, keys(16), make_knobs(config, simulations=5), IGNORANT)
    programs = program._cache_size()
    for budget, temperature, noise in ((1, 0.0, 0.0), (40, 1.0, 0.25), (64, 0.3, 0.5)):
        knobs = make_knobs(config, simulations=budget, temperature=temperature, noise_fraction=noise, exploration=2.0)
        _, result = program(states, keys(16), knobs, OPINIONATED)
        assert (np.asarray(result.visits).sum(-1) == budget).all()
    assert program._cache_size() == programs


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["pig", *(pytest.param(name, marks=pytest.mark.long) for name in ("tictactoe", "pgx:backgammon"))]
)
def test_no_copy_of_the_tree_is_made(name: str) -> None:
    """The compiled loop copies no array of the tree's size (nodes x lanes x edges or bytes)."""
    game = patient(name).game
    config = SearchConfig(max_simulations=100)
    search, evaluate, lanes = build_search(game, config), hashed(game), 4
    states = jax.eval_shape(jax.vmap(game.init), keys(lanes))
    program = jax.jit(lambda s, k, knobs: search.run(evaluate, OPINIONATED, s, k, knobs))
    text = program.lower(states, keys(lanes), make_knobs(config)).compile().as_text()
    wide = re.compile(rf"= \w+\[{search.plan.num_nodes},{lanes},\d+\]\S* copy\((?!%?constant)")
    bodies = [part for part in re.split(r"\n(?=%|ENTRY)", text) if not part.startswith("ENTRY")]
    assert [line for body in bodies for line in body.splitlines() if wide.search(line)] == []


@pytest.mark.slow
def test_simulations_and_evaluations_are_counted_apart() -> None:
    """A finished game that is visited again asks the network nothing."""
    result = run("tictactoe", states_of("tictactoe", "XX./OO./..."), 64, loudness=IGNORANT)
    assert float(result.visits.sum()) == 64
    assert int(result.evaluations[0]) < 64
    exact = run("pig", states_of("pig", "0-0+0 1"), 1, chance="exact", loudness=IGNORANT)
    assert int(exact.evaluations[0]) == 1 + 6


@pytest.mark.slow
def test_few_edges_keep_the_likeliest() -> None:
    game = patient("connect_four").game
    states, evaluate = positions("connect_four"), hashed(game)
    config = SearchConfig(max_simulations=48, max_edges=3)
    search = build_search(game, config)
    knobs = make_knobs(config)

    @jax.jit
    def found(states: Any, keys: jax.Array) -> Any:
        tree = search.grow(evaluate, OPINIONATED, search.plant(evaluate, OPINIONATED, states, keys, knobs), knobs)
        logits = evaluate(OPINIONATED, jax.vmap(game.observe)(states)).logits
        return tree, search.result(tree, knobs), logits, jax.vmap(game.legal_list)(states) >= 0

    tree, result, logits, legal = jax.device_get(found(states, keys(16)))
    assert recount(search.plan, tree, evaluate, OPINIONATED) == []
    ranked = np.argsort(np.where(legal, -logits, np.inf), -1)
    best = [set(row[: min(3, count)].tolist()) for row, count in zip(ranked, legal.sum(-1), strict=True)]
    kept = [{int(a) for a in row if a >= 0} for row in np.asarray(result.actions)]
    assert kept == best


def test_direct_search_is_the_networks_policy() -> None:
    game = patient("connect_four").game
    states, evaluate = positions("connect_four"), hashed(game)
    config = SearchConfig(kind="direct")
    search = build_search(game, config)
    assert search.plan.num_nodes == 32  # one word: no room is taken for a tree
    result = jax.jit(lambda s, k: search.run(evaluate, OPINIONATED, s, k, make_knobs(config)))(states, keys(16))
    np.testing.assert_allclose(np.asarray(result.policy).sum(-1), 1.0, atol=1e-5)
    assert (np.asarray(result.edge) == np.asarray(result.policy).argmax(-1)).all()
    assert (np.asarray(result.evaluations) == 1).all()


def test_bad_settings_are_named_all_at_once() -> None:
    game = patient("tictactoe").game
    with pytest.raises(ConfigError) as caught:
        build_search(game, SearchConfig(kind="gumbel", max_simulations=0, chance="exact", reuse=True, max_edges=0))
    for part in ("max_simulations is 0", "max_edges is 0", "no chance states", "reuse needs kind 'puct'"):
        assert part in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        build_search(game, SearchConfig(chance="afterstate", max_nodes=32))
    assert str(caught.value).splitlines() == [
        "search.max_nodes is 32; it is for reuse: make that true, or max_nodes none",
        "search.chance is 'afterstate', but networks for tictactoe do not judge chance states; use 'sampled'",
        "search.max_nodes is 32; 32 simulations of tictactoe need 33 nodes, and room is made for 32 at a time: "
        "at least 64",
    ]
    with pytest.raises(ConfigError) as caught:
        make_knobs(SearchConfig(max_simulations=8), simulations=9, temperature=-1, noise_fraction=2, exploration=0)
    for part in ("room for 0 to 8", "temperature is -1", "noise_fraction is 2", "exploration is 0"):
        assert part in str(caught.value)
