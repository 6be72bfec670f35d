"""Checks vectors of random streams (`rng.json`): hash, successive seeds and draws of named keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.core.errors import ConfigError
from aleazero.games.balatro import keys, rng
from aleazero.games.balatro.jit import entry
from aleazero.games.balatro.layout import new_batch


@entry
def _set_seed(states: Any, letters: Any, ante: int) -> None:
    rng.set_seed(states[0], letters, len(letters))
    states[0].ante = ante


@entry
def _hash(letters: Any) -> float:
    return rng.hash_bytes(letters, len(letters))


@entry
def _draw(states: Any, key: int) -> tuple[float, float, float]:
    """A stream's next seed, and the first two numbers it gives."""
    seed = rng.stream(states[0], key, 0)
    first, second = rng.two_draws(seed)
    return seed, first, second


def key_of(name: str) -> tuple[int, int]:
    """The stream of a name, and the ante in it (1 where it has none)."""
    for ante in range(17):
        for key in range(keys.NUM_KEYS):
            if keys.spelled(key, ante) == name:
                return key, ante if keys.HAS_ANTE[key] else 1
    raise ConfigError(f"random stream {name!r} is not one that the game uses")


def text_bytes(text: str) -> np.ndarray:
    """A text as the numbers of its letters, `[n]` int64."""
    return np.array(list(text.encode()), np.int64)


def seeded_batch(seed: str, ante: int = 1) -> np.recarray:
    """One record with a seed and nothing else, `[1]`."""
    states = new_batch(1)
    _set_seed(states, text_bytes(seed), ante)
    return states


def differences(vector: dict[str, Any]) -> list[str]:
    """What one vector says and we do not, in words."""
    key, ante = key_of(vector["key"])
    states = seeded_batch(vector["seed"], ante)
    letters = text_bytes(vector["key"] + vector["seed"])
    got: dict[str, Any] = {
        "pseudohash_key_seed": _hash(letters),
        "hashed_seed": float(states["hashed_seed"][0]),
        "pseudoseed": [],
        "random": [],
        "randint_1_52_second_draw": [],
    }
    for _ in vector["pseudoseed"]:
        seed, first, second = _draw(states, key)
        got["pseudoseed"].append(seed)
        got["random"].append(first)
        got["randint_1_52_second_draw"].append(int(second * 52) + 1)
    name = f"{vector['seed']} {vector['key']}"
    return [f"{name}: {field} is {got[field]}, not {vector[field]}" for field in got if got[field] != vector[field]]
