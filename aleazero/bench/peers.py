"""Peers that compute as we do: Pgx's rules, and mctx's searches over them, set up as their authors do.

Where a search of ours is set against mctx's, both use the environment's own rules (dice drawn in the step) and the same
evaluator. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.errors import MissingExtra
from aleazero.core.keys import mix
from aleazero.core.records import Evaluate, Weights
from aleazero.core.struct import struct, where_lanes
from aleazero.games.pgx import FACTS
from aleazero.games.registry import PGX_PREFIX

TWINS = {
    "backgammon": "backgammon",
    "chess": "chess",
    "connect_four": "connect_four",
    "tictactoe": "tic_tac_toe",
}  # ours to Pgx's

_FIRST_STATES = 256


def twin(name: str) -> str | None:
    """Pgx's name for a game of ours, or for its own; None where it has none."""
    if name.startswith(PGX_PREFIX):
        return name.removeprefix(PGX_PREFIX)
    return TWINS.get(name)


def our_twin(name: str) -> str | None:
    """Our own rules for a Pgx environment that we only adapt; None where we have none."""
    if not name.startswith(PGX_PREFIX):
        return None
    return next((ours for ours, theirs in TWINS.items() if theirs == name.removeprefix(PGX_PREFIX)), None)


def no_twin(name: str) -> str | None:
    """Why a game cannot be compared with Pgx; None where it can."""
    if twin(name) is not None:
        return None
    return f"Pgx has no {name}: compare {', '.join(sorted(TWINS))} or any of pgx:{', pgx:'.join(sorted(FACTS))}"


def need(package: str) -> Any:
    """A peer's package; mctx is measured on Pgx's rules, so it needs both."""
    for name in dict.fromkeys([package, "pgx"]):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise MissingExtra(f"--compare {package}", name, "peers") from error
    return importlib.import_module(package)


@struct
class PgxLanes:
    """Games in flight in Pgx."""

    states: Any  # [B]
    games: Array  # [B] int32: games ended


def pgx_play(
    name: str, numbers: Array, draw_action: Callable[[Array, Array], Array]
) -> tuple[PgxLanes, Callable[[PgxLanes, Array, int], PgxLanes]]:
    """First games of lanes `[B]` uint32, and `play(lanes, first, steps)`, which goes on with them at random.

    As fast as we can make it: observations, which nobody looks at, are left out, and a game that ends is followed by
    one of many first states drawn beforehand, because to make one anew at every step would halve its speed.
    """
    env = need("pgx").make(twin(name))

    def bare(states: Any) -> Any:
        return states.replace(observation=jnp.zeros((states.terminated.shape[0], 0)))

    def keys(words: Array, counter: int) -> Array:
        data = [mix(words, jnp.uint32(counter)), mix(words, jnp.uint32(counter + 1))]
        return jax.random.wrap_key_data(jnp.stack(data, -1))

    begin = jax.jit(lambda words: bare(jax.vmap(env.init)(keys(words, 4))))
    pool = begin(jnp.arange(_FIRST_STATES, dtype=jnp.uint32))

    def play(lanes: PgxLanes, first: Array, steps: int) -> PgxLanes:
        def step(lanes: PgxLanes, number: Array) -> tuple[PgxLanes, None]:
            words = mix(numbers, number)
            mask = lanes.states.legal_action_mask
            legal = jnp.where(mask, jnp.arange(mask.shape[-1], dtype=jnp.int16)[None], jnp.int16(-1))
            action = draw_action(legal, mix(words, jnp.uint32(1)))
            after = bare(jax.vmap(env.step)(lanes.states, action, keys(words, 2)))
            over = after.terminated | after.truncated
            fresh = jax.tree.map(lambda x: x[mix(words, jnp.uint32(4)) % _FIRST_STATES], pool)
            return PgxLanes(where_lanes(over, fresh, after), lanes.games + over), None

        return jax.lax.scan(step, lanes, first + jnp.arange(steps, dtype=jnp.uint32))[0]

    return PgxLanes(begin(numbers), jnp.zeros(numbers.shape, jnp.int32)), play


def mctx_search(env: Any, evaluate: Evaluate, kind: str, simulations: int) -> Callable[[Weights, Any, Array], Any]:
    """`search(weights, states, key)` by mctx's `gumbel_muzero_policy` or `muzero_policy`."""
    mctx = need("mctx")
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
