"""mctx over a Pgx environment, set up as its authors do: the peer our search is timed against.

Both sides use the environment's own rules (dice drawn in the step) and the same evaluator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.errors import MissingExtra
from aleazero.core.records import Evaluate, Weights


def mctx_search(env: Any, evaluate: Evaluate, kind: str, simulations: int) -> Callable[[Weights, Any, Array], Any]:
    """`search(weights, states, key)` by mctx's `gumbel_muzero_policy` or `muzero_policy`."""
    try:
        import mctx
    except ImportError as error:
        raise MissingExtra("the comparison with mctx", "mctx", "peers") from error
    step = jax.vmap(env.step)
    policies = {"gumbel": mctx.gumbel_muzero_policy, "puct": mctx.muzero_policy}

    def recurrent(weights: Weights, key: Array, action: Array, state: Any) -> tuple[Any, Any]:
        batch = action.shape[0]
        player = state.current_player
        state = step(state, action, jax.random.split(key, batch))
        prediction = evaluate(weights, state.observation.astype(jnp.float32))
        same = state.current_player == player
        output = mctx.RecurrentFnOutput(
            reward=state.rewards[jnp.arange(batch), player],
            discount=jnp.where(state.terminated, 0.0, jnp.where(same, 1.0, -1.0)),
            prior_logits=_mask(prediction.logits, state.legal_action_mask),
            value=jnp.where(state.terminated, 0.0, prediction.value),
        )
        return output, state

    def search(weights: Weights, states: Any, key: Array) -> Any:
        prediction = evaluate(weights, states.observation.astype(jnp.float32))
        root = mctx.RootFnOutput(
            prior_logits=_mask(prediction.logits, states.legal_action_mask),
            value=prediction.value,
            embedding=states,
        )
        return policies[kind](
            params=weights,
            rng_key=key,
            root=root,
            recurrent_fn=recurrent,
            num_simulations=simulations,
            invalid_actions=~states.legal_action_mask,
        )

    return search


def _mask(logits: Array, legal: Array) -> Array:
    return jnp.where(legal, logits - logits.max(-1, keepdims=True), jnp.finfo(jnp.float32).min)
