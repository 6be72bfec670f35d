"""The networks in PyTorch say what ours say, with weights that go both ways unchanged."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import torch

from aleazero.core import twohot
from aleazero.host_players import host_game
from aleazero.models.build import ModelConfig, build_model
from aleazero.runtimes.rllib.networks import NETWORKS, decode, encode, from_weights, to_weights

CONFIGS = (
    ModelConfig(kind="balatro", width=24, value="twohot", graph_width=5),
    ModelConfig(kind="balatro_rows", width=16, blocks=2, value="twohot"),
    ModelConfig(kind="mlp", width=16, blocks=2, value="twohot", compute="float32"),
)


def seen(kind: str, moves: int = 40) -> np.ndarray:
    """Positions of random play, some of them in the shop."""
    game, random = host_game("balatro", kind), np.random.default_rng(0)
    states = game.init_batch(np.arange(16, dtype=np.uint64))
    for _ in range(moves):
        legal = game.legal_actions(states)
        chosen = (random.random(legal.shape) * legal).argmax(-1)
        states = game.step_batch(states, chosen, legal.any(-1))
    return game.observe(states).astype(np.float32)


def roughened(weights: Any) -> Any:
    """No zeros that would hide a mistake."""
    random = np.random.default_rng(1)
    return jax.tree.map(lambda x: (x + 0.05 * random.normal(size=x.shape)).astype(np.float32), jax.device_get(weights))


@pytest.mark.usefixtures("quick_programs")
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_it_says_what_ours_says(config: ModelConfig) -> None:
    game = host_game("balatro", config.kind)
    model = build_model(config, game.spec)
    weights = roughened(jax.jit(model.init)(jax.random.key(0)))
    network = NETWORKS[config.kind](config, game.spec.num_actions, *game.spec.observation_shape)
    named = {name: torch.as_tensor(array) for name, array in from_weights(weights).items()}
    network.load_state_dict(named, strict=True)
    observation = seen(config.kind)
    ours = jax.jit(model.apply)(weights, observation)
    with torch.no_grad():
        logits, value = network(torch.as_tensor(observation))
    np.testing.assert_allclose(logits, np.asarray(ours.logits), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(value, np.asarray(ours.value), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(decode(value), np.asarray(twohot.decode(ours.value)), rtol=1e-3, atol=1e-3)
    assert np.ptp(np.asarray(ours.logits), axis=0).max() > 0.1  # positions differ to it

    back = to_weights({name: array.numpy() for name, array in network.state_dict().items()}, weights)
    assert jax.tree.structure(back) == jax.tree.structure(weights)
    for one, other in zip(jax.tree.leaves(back), jax.tree.leaves(weights), strict=True):
        np.testing.assert_array_equal(one, other)


def test_values_are_shared_out_as_ours_are() -> None:
    values = np.array([-2000.0, -1.5, 0.0, 0.3, 7.0, 900.0, 5000.0], np.float32)
    np.testing.assert_allclose(encode(torch.as_tensor(values)), np.asarray(twohot.encode(values)), atol=1e-6)
