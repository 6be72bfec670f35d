"""What the search tests share: positions of random play, and searches compiled once."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.core.game import Game
from aleazero.core.keys import Role, lane_keys
from aleazero.doctor.checks import LANES, Patient
from aleazero.games.registry import make_game


@functools.cache
def patient(name: str) -> Patient:
    game = make_game(name)
    assert isinstance(game, Game)
    return Patient(game)


def positions(name: str, count: int = LANES) -> Any:
    return patient(name).positions(patient(name).decides, "none", count)


def states_of(name: str, *texts: str) -> Any:
    """A batch of positions given in notation."""
    notation = patient(name).game.notation
    return jax.tree.map(lambda *x: np.stack(x), *[notation.parse_state(text) for text in texts])


def run(name: str, states: Any, simulations: int, lanes: int = LANES, **settings: Any) -> Any:
    """What a few lanes find, by the program for more that other tests use."""
    count = len(states.to_play)
    rows = np.arange(lanes) % count
    _, _, result = patient(name).run(jax.tree.map(lambda x: x[rows], states), simulations, **settings)
    return jax.tree.map(lambda x: np.asarray(x)[:count], result)


def keys(count: int, seed: int = 0) -> jax.Array:
    return _keys(seed, jnp.arange(count))


_keys = jax.jit(lambda seed, lanes: lane_keys(seed, Role.SEARCH, 0, lanes))


def by_action(result: Any, field: str, num_actions: int) -> np.ndarray:
    """A field of a result by action number."""
    dense = np.zeros((len(result.action), num_actions))
    actions = np.asarray(result.actions).astype(int)
    for lane, row in enumerate(actions):
        legal = row >= 0
        dense[lane, row[legal]] = np.asarray(getattr(result, field))[lane, legal]
    return dense
