"""Where randomness comes from: a key is named by seed, role, move and lane, never by what ran before.

So the dice of game 17 do not depend on how many games run beside it, on which device, or under which runtime.
"""

from __future__ import annotations

import enum

import jax
import jax.numpy as jnp
from jax import Array


class Role(enum.IntEnum):
    """What a key is for; two roles never share randomness. Numbers are fixed: recorded runs depend on them."""

    INIT = 0
    SEARCH = 1
    CHANCE = 2
    ACTION = 3
    WEIGHTS = 4
    REPLAY = 5
    MATCH = 6
    TEST = 7
    OPENING = 8
    BUDGET = 9
    AUGMENT = 10
    TASTE = 11
    START = 12
    ENDING = 13


def role_key(seed: int | Array, role: Role, move: int | Array = 0) -> Array:
    """The key of one role at one move."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), int(role)), move)


def lane_keys(seed: int | Array, role: Role, move: int | Array, lanes: Array) -> Array:
    """Keys `[B]` for lanes `[B]` (the games' own numbers, not their places in a batch)."""
    base = role_key(seed, role, move)
    return jax.vmap(lambda lane: jax.random.fold_in(base, lane))(lanes)


def lane_words(keys: Array, count: int) -> Array:
    """`count` 32-bit words per key, `[count, B]` uint32: seeds of a lane's cheap counters (see `mix`).

    Mixed from the keys' own data, which is well mixed already where the keys come from `lane_keys`.
    """
    data = jax.random.key_data(keys)
    counters = jnp.arange(1, count + 1, dtype=jnp.uint32)[:, None]
    words = jnp.broadcast_to(jnp.uint32(0x5BF03635), counters.shape)
    for i in range(data.shape[-1]):
        words = mix(words ^ data[None, :, i], counters + jnp.uint32(count * i))
    return words


def mix(word: Array, counter: Array) -> Array:
    """A well-mixed 32-bit word of `(word, counter)`: two rounds of multiply and xor-shift.

    Cheap to run and to compile, so it serves inside a search; not a replacement for keys anywhere else.
    """
    x = word ^ (counter.astype(jnp.uint32) * jnp.uint32(0x9E3779B1))
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    mixed: Array = x ^ (x >> 16)
    return mixed


def unit(word: Array) -> Array:
    """A 32-bit word as float32 in [0, 1), exactly."""
    fraction: Array = (word >> 8).astype(jnp.float32) * jnp.float32(2.0**-24)
    return fraction


def fold(rows: Array) -> Array:
    """`[B]` uint32 of bytes `[B, P]`, such as packed states: equal rows alike, others apart but for rare accidents."""
    weights = mix(jnp.uint32(1), jnp.arange(rows.shape[-1], dtype=jnp.uint32))
    return (rows.astype(jnp.uint32) * weights[None]).sum(-1, dtype=jnp.uint32)


def gumbel_noise(words: Array, count: int) -> Array:
    """`[B, count]` Gumbel noise from words `[B]`."""
    bits = mix(words[:, None], jnp.arange(count, dtype=jnp.uint32)[None])
    return -jnp.log(-jnp.log(jnp.maximum(unit(bits), 2.0**-25)))
