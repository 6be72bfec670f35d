"""An evaluator that has learned nothing, for proving searches. Its weights say how loud its opinions are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.game import Game
from aleazero.core.keys import mix, unit
from aleazero.core.records import Evaluate, Prediction

# How loud the evaluator is about moves and about positions.
IGNORANT = np.zeros(2, np.float32)  # every action alike, every position even: what is found, the search has found
UNDECIDED = np.array([0, 1], np.float32)  # every action alike, but opinions on positions
OPINIONATED = np.ones(2, np.float32)


def hashed(game: Game, seed: int = 0) -> Evaluate:
    """Opinions that look random but depend on the observation alone, bit for bit, in any batch on any device.

    The weights (IGNORANT, UNDECIDED, OPINIONATED) scale them, so that one compiled search serves for all three. The
    sum inside is of integers, which wrap round and so come out the same in every order.
    """
    spec = game.spec
    size = int(np.prod(spec.observation_shape))
    factors = np.random.default_rng(seed).integers(0, 2**32, size, dtype=np.uint64).astype(np.uint32) | 1

    def evaluate(loudness: Array, observations: Array) -> Prediction:
        bits = jax.lax.bitcast_convert_type(observations.reshape(-1, size).astype(jnp.float32), jnp.uint32)
        words = (mix(bits, bits >> 7) * jnp.asarray(factors)[None]).sum(-1, dtype=jnp.uint32)
        actions = jnp.arange(1, spec.num_actions + 1, dtype=jnp.uint32)
        value = unit(mix(words, jnp.zeros_like(words)))
        logits = unit(mix(words[:, None], actions[None]))
        return Prediction(logits=loudness[0] * (4.0 * logits - 2.0), value=loudness[1] * (1.6 * value - 0.8))

    return evaluate
