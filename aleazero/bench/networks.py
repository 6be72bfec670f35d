"""The residual MLP that search is timed with: the size matters here, not what it has learned."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.game import GameSpec
from aleazero.core.records import Evaluate, Prediction


def residual_mlp(
    spec: GameSpec, *, width: int = 256, blocks: int = 6, dtype: Any = jnp.float32, seed: int = 0
) -> tuple[Evaluate, dict[str, Array]]:
    """An untrained network for a game: `(evaluate, weights)`; blocks are x + relu(xW1)W2."""
    inputs = 1
    for n in spec.observation_shape:
        inputs *= n
    keys = iter(jax.random.split(jax.random.key(seed), 3 + 2 * blocks))

    def matrix(rows: int, columns: int, gain: float = 1.0) -> Array:
        return gain * jax.random.normal(next(keys), (rows, columns)) / jnp.sqrt(rows)

    weights = {
        "inputs": matrix(inputs, width),
        "first": jnp.stack([matrix(width, width, 2**0.5) for _ in range(blocks)]),
        "second": jnp.stack([matrix(width, width, 0.3) for _ in range(blocks)]),
        "policy": matrix(width, spec.num_actions),
        "value": matrix(width, 1, 0.3),
    }

    def evaluate(weights: dict[str, Array], observations: Array) -> Prediction:
        w = jax.tree.map(lambda x: x.astype(dtype), weights)
        x = observations.reshape(observations.shape[0], -1).astype(dtype) @ w["inputs"]
        for i in range(blocks):
            x = x + jax.nn.relu(x @ w["first"][i]) @ w["second"][i]
        return Prediction(
            logits=(x @ w["policy"]).astype(jnp.float32),
            value=jnp.tanh((x @ w["value"])[:, 0].astype(jnp.float32)),
        )

    return evaluate, weights
