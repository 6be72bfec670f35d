"""Random play on the device: positions to test rules and searches with.

Knows the game contract only. Lanes start again when their game ends, so every row is a position of a real game.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.game import Game
from aleazero.core.keys import Role, lane_keys
from aleazero.core.struct import struct, where_lanes


@struct
class Steps:
    """What happened in T plies of B games; every field is `[T, B, ...]`."""

    state: Any
    legal: Array  # [T, B, K] int16
    action: Array  # [T, B] int32: the action taken; -1 where nature or nobody acted
    outcome: Array  # [T, B] int32: the chance outcome taken; -1 where a player or nobody acted
    after: Any  # the state that followed; the same one where the game was over
    ply: Array  # [T, B] int32: actions and outcomes since the game began


def wander(game: Game, *, lanes: int, plies: int, seed: int = 0) -> Steps:
    """Plays uniformly at random from the start."""
    return _compiled(game)(jnp.arange(lanes), plies, seed)


@functools.cache
def _compiled(game: Game) -> Any:
    return jax.jit(functools.partial(_wander, game), static_argnums=1)


def _wander(game: Game, lanes: Array, plies: int, seed: Array) -> Steps:
    start = jax.vmap(game.init)(lane_keys(seed, Role.INIT, 0, lanes))

    def ply(carry: tuple[Any, Array], number: Array) -> tuple[tuple[Any, Array], Steps]:
        state, age = carry
        keys = lane_keys(seed, Role.TEST, number, lanes)
        step = jax.vmap(functools.partial(random_ply, game))(state, keys)
        over = step.after.terminated | (age + 1 >= game.spec.max_plies)
        fresh = jax.vmap(game.init)(lane_keys(seed, Role.INIT, number + 1, lanes))
        following = where_lanes(over, fresh, step.after)
        return (following, jnp.where(over, 0, age + 1)), Steps(**vars(step) | {"ply": age})

    return jax.lax.scan(ply, (start, jnp.zeros(lanes.shape, jnp.int32)), jnp.arange(plies))[1]


def random_ply(game: Game, state: Any, key: Array) -> Steps:
    """One random action, or one draw of nature, from one state."""
    legal = game.legal_list(state)
    noise = jax.random.gumbel(key, legal.shape)
    action = legal[jnp.argmax(jnp.where(legal >= 0, noise, -jnp.inf))].astype(jnp.int32)
    after = game.apply_action(state, action)
    outcome = jnp.int32(-1)
    if game.spec.chance == "explicit":
        drawn = jax.random.categorical(jax.random.fold_in(key, 1), jnp.log(game.chance_probs(state))).astype(jnp.int32)
        after = where_lanes(state.is_chance, game.apply_chance(state, drawn), after)
        outcome = jnp.where(state.is_chance & ~state.terminated, drawn, -1)
    acts = ~state.is_chance & ~state.terminated
    return Steps(
        state=state,
        legal=legal,
        action=jnp.where(acts, action, -1),
        outcome=outcome,
        after=where_lanes(state.terminated, state, after),
        ply=jnp.int32(0),
    )
