"""A search whose network is asked elsewhere: the same `plant`, `descend`, `absorb` and `result`, one at a time.

It is a generator: it yields observations and is sent what the network says of them. So whoever drives it may have many
searches under way at once, and ask for all of them together. Knows the search; not whom is asked.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Generator
from typing import Any

import jax
from jax import Array

from aleazero.core.records import Prediction
from aleazero.search.build import Search, SearchResult
from aleazero.search.settings import Knobs
from aleazero.search.tree import Tree

Asking = Generator[Array, Prediction, SearchResult]
"""Yields observations `[N, ...]`, is sent their predictions, and returns what was found."""


@dataclasses.dataclass(frozen=True)
class Elsewhere:
    """A search step by step, each step compiled."""

    search: Search

    def run(self, states: Any, keys: Array, knobs: Knobs) -> Asking:
        """Searches decision states `[B]`, as `Search.run` does."""
        config = self.search.plan.config
        prediction = yield self._observe(states)
        tree = self._plant(prediction, states, keys, knobs)
        if config.kind != "direct":
            budget = min(int(knobs.simulations), config.max_simulations)
            for _ in range(-(-budget // self.search.plan.in_flight)):
                leaves = self._descend(tree, knobs)
                prediction = yield leaves.observation
                tree = self._absorb(tree, leaves, prediction, knobs)
        return self._result(tree, knobs)

    @functools.cached_property
    def _observe(self) -> Callable[..., Array]:
        return jax.jit(jax.vmap(self.search.plan.game.observe))

    @functools.cached_property
    def _plant(self) -> Callable[..., Tree]:
        # What the network says of the roots is known already, and stands where its weights would.
        return jax.jit(lambda said, *where: self.search.plant(lambda weights, _: weights, said, *where))

    @functools.cached_property
    def _descend(self) -> Callable[..., Any]:
        return jax.jit(self.search.descend)

    @functools.cached_property
    def _absorb(self) -> Callable[..., Tree]:
        return jax.jit(self.search.absorb, donate_argnums=0)

    @functools.cached_property
    def _result(self) -> Callable[..., SearchResult]:
        return jax.jit(self.search.result)
