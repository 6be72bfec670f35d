"""Root noise, the action drawn, and wins that must be seen."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.doctor.evaluators import IGNORANT
from aleazero.search.build import build_search
from aleazero.search.puct import _log_gamma, choose, noisy_priors
from aleazero.search.settings import SearchConfig, make_knobs
from tests.search.support import keys, patient, positions, run, states_of

WORDS = jax.random.bits(jax.random.key(3), (20000,), jnp.uint32)


@pytest.mark.parametrize("alpha", [0.03, 0.3, 1.0, 3.0])
def test_gamma_draws_have_the_right_distribution(alpha: float) -> None:
    draws = np.exp(np.asarray(_log_gamma(WORDS, jnp.float32(alpha), 4), np.float64)).ravel()
    error = np.sqrt(alpha / draws.size)
    assert abs(draws.mean() - alpha) < 5 * error
    assert abs(draws.var() - alpha) < 0.1 * alpha + 20 * error * alpha
    # The median of an exponential, which Gamma(1) is.
    if alpha == 1.0:
        assert abs(np.median(draws) - np.log(2)) < 0.02


def test_noise_mixes_in_over_legal_edges_only() -> None:
    priors = jnp.tile(jnp.array([[0.7, 0.3, -1.0]]), (5000, 1))
    knobs = make_knobs(SearchConfig(), noise_fraction=0.25, noise_alpha=0.5)
    noisy = np.asarray(noisy_priors(WORDS[:5000], priors, knobs))
    assert (noisy[:, 2] == -1).all()
    np.testing.assert_allclose(noisy[:, :2].sum(-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(noisy[:, 0].mean(), 0.75 * 0.7 + 0.25 * 0.5, atol=0.01)
    assert noisy[:, 0].std() > 0.05
    quiet = noisy_priors(WORDS[:5000], priors, make_knobs(SearchConfig(), noise_fraction=0.0))
    np.testing.assert_allclose(quiet, priors, atol=1e-6)


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 0.75), (0.5, 0.9), (2.0, 3**0.5 / (3**0.5 + 1))])
def test_actions_are_drawn_by_temperature(temperature: float, share: float) -> None:
    weights = jnp.tile(jnp.array([[0.75, 0.25, 0.0, 0.0]]), (20000, 1))
    priors = jnp.tile(jnp.array([[0.4, 0.4, 0.2, -1.0]]), (20000, 1))
    drawn = np.asarray(choose(WORDS, weights, priors, jnp.float32(temperature)))
    assert abs((drawn == 0).mean() - share) < 0.015
    assert set(drawn.tolist()) == {0, 1}


def test_temperature_zero_takes_the_most_visited_then_the_likeliest() -> None:
    weights = jnp.array([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]])
    priors = jnp.array([[0.2, 0.7, 0.1], [0.9, 0.05, 0.05]])
    assert np.asarray(choose(WORDS[:2], weights, priors, jnp.float32(0.0))).tolist() == [1, 1]


def test_no_simulations_leaves_the_priors() -> None:
    _, _, result = patient("connect_four").run(positions("connect_four"), 0)
    np.testing.assert_allclose(result.policy, np.maximum(np.asarray(result.priors), 0), atol=1e-6)


@pytest.mark.slow
def test_win_in_one_keeps_its_visits() -> None:
    states = states_of("connect_four", "112233", "1122334")
    result = run("connect_four", states, 64, loudness=IGNORANT)
    assert int(result.action[0]) == 3
    assert float(result.values[0, 3]) == 1.0
    assert float(result.visits[0, 3]) > 32
    assert float(result.visits[0].sum()) == 64


def test_a_threat_is_stopped() -> None:
    """O has three on the bottom row and one open end, column 4 and column 3; X cannot win at once."""
    states = states_of("connect_four", "617273", "267574")
    result = run("connect_four", states, 196, loudness=IGNORANT)
    assert np.asarray(result.action).tolist() == [3, 2]


@pytest.mark.slow
def test_a_root_tries_every_move_once_where_there_is_room() -> None:
    """An evaluator that shouts; with room for fewer than four times as many simulations as moves, all is as ever."""
    states = positions("connect_four", 32)
    shouted = np.array([3.0, 0.5], np.float32)

    def searched(room: int, all_of_them: bool, *budgets: int) -> list[Any]:
        config = SearchConfig(kind="puct", max_simulations=room, try_all=all_of_them)
        program = jax.jit(build_search(patient("connect_four").game, config).run, static_argnums=0)
        evaluate = patient("connect_four").evaluate
        knobs = [make_knobs(config, simulations=budget) for budget in budgets]
        return [jax.device_get(program(evaluate, shouted, states, keys(32), each)) for each in knobs]

    (everything,), (cramped,) = searched(40, True, 40), searched(24, True, 24)
    usual, shorter = searched(40, False, 40, 24)
    legal = usual.actions >= 0
    many = legal.sum(1) > 24 // 4
    assert many.any()
    assert (everything.visits[legal] > 0).all()
    assert (usual.visits[many] == 0).any()
    np.testing.assert_array_equal(cramped.visits[many], shorter.visits[many])
