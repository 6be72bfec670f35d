"""Checks vectors of random streams (`rng.json`): hash, successive seeds and draws of named keys.

A stream that the engine has is drawn through it; any other name is hashed as it is written. What is null, or not
there, is not scored.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

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
def _draw(states: Any, key: int, times: int) -> tuple[float, float, float]:
    """A stream's next seed, and the first two numbers it gives."""
    seed = rng.stream(states[0], key, times)
    first, second = rng.two_draws(seed)
    return seed, first, second


@entry
def _draw_any(state: float, hashed: float) -> tuple[float, float, float, float]:
    """The same for a stream that stands at `state`; and where it stands then."""
    state = rng.advance(state)
    seed = (state + hashed) / 2.0
    first, second = rng.two_draws(seed)
    return state, seed, first, second


@cache
def _streams() -> dict[str, tuple[int, int]]:
    antes = {key: range(17) if keys.HAS_ANTE[key] else (1,) for key in range(keys.NUM_KEYS)}
    return {keys.spelled(key, ante): (key, ante) for key, found in antes.items() for ante in found}


def key_of(name: str) -> tuple[int, int, int] | None:
    """The engine's stream of a name, the ante in it (1 where it has none), and the number of a resample (or 0)."""
    base, _, times = name.partition("_resample")
    if base not in _streams() or (base != name and not (times.isdecimal() and 0 < int(times) < 100)):
        return None
    return *_streams()[base], int(times or 0)


def text_bytes(text: str) -> np.ndarray:
    """A text as the numbers of its letters, `[n]` int64."""
    return np.array(list(text.encode()), np.int64)


def seeded_batch(seed: str, ante: int = 1) -> np.recarray:
    """One record with a seed and nothing else, `[1]`."""
    states = new_batch(1)
    _set_seed(states, text_bytes(seed), ante)
    return states


def _draws(states: Any, name: str, seed: str) -> Iterator[tuple[float, float, float]]:
    """What a stream gives, for ever."""
    found = key_of(name)
    if found is not None:
        while True:
            yield _draw(states, found[0], found[2])
    state = _hash(text_bytes(name + seed))
    while True:
        state, drawn, first, second = _draw_any(state, float(states["hashed_seed"][0]))
        yield drawn, first, second


def differences(vector: dict[str, Any]) -> list[str]:
    """What one vector says and we do not, in words."""
    name, seed = vector["key"], rng.check_seed(vector["seed"])
    found = key_of(name)
    states = seeded_batch(seed, found[1] if found else 1)
    given = {field: vector.get(field) or [] for field in ("pseudoseed", "random", "randint_1_52_second_draw")}
    drawn = list(itertools.islice(_draws(states, name, seed), max(map(len, given.values()))))
    got: dict[str, Any] = {
        "pseudohash_key_seed": [_hash(text_bytes(name + seed))],
        "hashed_seed": [float(states["hashed_seed"][0])],
        "pseudoseed": [row[0] for row in drawn],
        "random": [row[1] for row in drawn],
        "randint_1_52_second_draw": [int(row[2] * 52) + 1 for row in drawn],
    }
    given |= {field: [vector.get(field)] for field in ("pseudohash_key_seed", "hashed_seed")}
    return [
        f"{seed} {name}: {field} is {got[field][: len(given[field])]}, not {given[field]}"
        for field in got
        if any(theirs not in (None, ours) for ours, theirs in zip(got[field], given[field], strict=False))
    ]
