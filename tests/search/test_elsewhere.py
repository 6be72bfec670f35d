"""A search whose network is asked elsewhere finds what the compiled loop finds."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.records import Prediction
from aleazero.games.registry import make_game
from aleazero.search.build import build_search
from aleazero.search.elsewhere import Elsewhere
from aleazero.search.settings import SearchConfig, make_knobs
from tests.runtimes.support import programs, quick_programs  # noqa: F401 - fixtures

pytestmark = pytest.mark.usefixtures("quick_programs")


def evaluate(weights: Any, observations: jax.Array) -> Prediction:
    """The same numbers in any program: sums of small whole numbers, scaled by powers of two."""
    flat = jnp.round(observations.reshape(observations.shape[0], -1) * 4)
    logits = jnp.round(flat @ weights) / 8
    return Prediction(logits, jnp.clip(jnp.round(flat.sum(-1)) / 64, -1, 1) * (1 - 2 * (flat[:, 0] % 2)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "config"),
    [
        ("tictactoe", SearchConfig(kind="gumbel", max_simulations=8, in_flight=2)),
        ("pig", SearchConfig(kind="puct", max_simulations=8)),
    ],
    ids=["two in flight", "chance"],
)
def test_it_finds_what_the_compiled_loop_finds(game: str, config: SearchConfig) -> None:
    rules = make_game(game)
    search = build_search(rules, config)
    keys = jax.random.split(jax.random.key(0), 8)
    states = jax.jit(jax.vmap(rules.init))(keys)
    if rules.spec.chance == "explicit":
        assert not bool(states.is_chance.any())
    size = int(np.prod(rules.spec.observation_shape))
    weights = np.round(np.random.default_rng(1).normal(size=(size, rules.spec.num_actions)) * 4).astype(np.float32)
    knobs = make_knobs(config)
    wanted = jax.jit(search.run, static_argnums=0)(evaluate, weights, states, keys, knobs)
    asking = Elsewhere(search).run(states, keys, knobs)
    observations, asked = next(asking), 0
    while True:
        try:
            asked += 1
            observations = asking.send(jax.jit(evaluate)(weights, observations))
        except StopIteration as end:
            found = end.value
            break
    assert asked == 1 + -(-config.max_simulations // config.in_flight)
    for name in ("action", "edge", "actions", "visits", "evaluations"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name)), name
    for name in ("policy", "values", "value", "priors"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-6, atol=1e-6)
