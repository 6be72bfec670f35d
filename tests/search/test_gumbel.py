"""Sequential halving's schedule, and what the improved policy must satisfy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mctx._src.seq_halving import get_sequence_of_considered_visits

from aleazero.core.errors import ConfigError
from aleazero.doctor.evaluators import IGNORANT
from aleazero.search.gumbel import halving_visit, improved_policy
from aleazero.search.settings import SearchConfig
from aleazero.search.tree import NodeView
from tests.search.support import patient, positions, run, states_of

LANES = 64  # in every batch of connect four
schedule = jax.jit(
    jax.vmap(lambda m, n, i: halving_visit(40, m[None], n, i)[0], (None, None, 0)),
)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(1, 300))
def test_schedule_equals_the_listed_one(considered: int, simulations: int) -> None:
    ours = schedule(jnp.int32(considered), jnp.int32(simulations), jnp.arange(300))[:simulations]
    assert tuple(np.asarray(ours).tolist()) == get_sequence_of_considered_visits(considered, simulations)


def test_policy_sums_to_one_over_legal_edges() -> None:
    _, _, result = patient("connect_four").run(positions("connect_four", LANES), 40, kind="gumbel")
    np.testing.assert_allclose(np.asarray(result.policy).sum(-1), 1.0, atol=1e-5)
    assert (np.asarray(result.policy)[np.asarray(result.actions) < 0] == 0).all()


def test_takes_a_win_in_one() -> None:
    states = states_of("connect_four", "112233", "1223344")
    result = run("connect_four", states, 32, LANES, kind="gumbel", loudness=IGNORANT)
    assert np.asarray(result.action).tolist() == [3, 4]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["connect_four", *(pytest.param(name, marks=pytest.mark.long) for name in ("pig", "quoridor"))]
)
def test_two_leaves_in_flight_find_what_one_after_the_other_would(name: str) -> None:
    """The same visits and values, but in the few lanes where a phase ended between two descents and it mattered."""
    states = positions(name, LANES)
    _, _, one = patient(name).run(states, 64, kind="gumbel")
    _, _, two = patient(name).run(states, 64, kind="gumbel", in_flight=2)
    choice = (np.asarray(one.actions) >= 0).sum(-1) > 1
    assert choice.any()
    same = (np.asarray(one.visits) == np.asarray(two.visits)).all(-1)
    assert same[choice].mean() > 0.9
    for found in ("values", "policy"):
        np.testing.assert_array_equal(np.asarray(getattr(one, found))[same], np.asarray(getattr(two, found))[same])
    assert (np.asarray(two.visits).sum(-1)[choice] == 64).all()


@pytest.mark.parametrize("budget", [1, 2, 7])
def test_two_leaves_in_flight_keep_to_the_budget(budget: int) -> None:
    states = positions("connect_four", LANES)
    _, tree, result = patient("connect_four").run(states, budget, kind="gumbel", in_flight=2)
    assert (np.asarray(result.visits).sum(-1) == budget).all()
    assert (np.asarray(tree.stats)[0, :, 0] == budget + 1).all()


def test_a_root_with_one_move_is_searched_half_as_far_with_two_in_flight() -> None:
    states = states_of("tictactoe", "XOX/OXO/OX.")
    result = run("tictactoe", states, 8, kind="gumbel", in_flight=2)
    assert np.asarray(result.visits).sum(-1).tolist() == [4]
    assert np.asarray(result.action).tolist() == [8]


def _node(*values: float) -> NodeView:
    """Its edges are alike but for their values; ten visits each."""
    count = len(values)
    one, many = jnp.zeros(1), jnp.full((1, count), 10.0)
    priors = jnp.full((1, count), 1 / count)
    return NodeView(
        jnp.ones((1, count), jnp.int32),
        priors,
        many,
        jnp.asarray([values]),
        one,
        one,
        one,
        one,
        *[one.astype(bool)] * 2,
    )


def test_values_that_hardly_differ_are_not_stretched_where_that_is_asked() -> None:
    """The paper's scale for games with outcomes, (50 + visits) x Q from 0 to 1, is that of a least range of 0.2."""
    near, far = _node(0.50, 0.51), _node(-0.5, 0.5)
    sharp, mild = (np.asarray(improved_policy(near, least))[0] for least in (0.0, 0.2))
    np.testing.assert_allclose(np.log(sharp[1] / sharp[0]), 6.0, rtol=1e-3)
    np.testing.assert_allclose(np.log(mild[1] / mild[0]), 60 * 0.01 / 2, rtol=1e-3)
    np.testing.assert_array_equal(improved_policy(far, 0.0), improved_policy(far, 0.2))


@pytest.mark.parametrize(("setting", "wrong"), [({"least_range": 3.0}, "0..2"), ({"least_range": 0.1}, "gumbel")])
def test_a_least_range_that_means_nothing_is_refused(setting: dict[str, float], wrong: str) -> None:
    with pytest.raises(ConfigError, match=wrong):
        SearchConfig(kind="puct", **setting).check(patient("tictactoe").game.spec)
