"""The weights of a run in the object store: put there once per version that is sent, for whoever plays.

Between two sendings so many games must be over as the settings say. Knows references, and what comes of them; not who
fetches them.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import ray

from aleazero.core.finite import not_finite
from aleazero.core.records import Weights
from aleazero.runtimes.codec import BadWeights
from aleazero.runtimes.ray.messages import Named


def received(version: int, leaves: list[np.ndarray], like: Any) -> Weights:
    """The weights that came as these leaves, in the structure of `like`, on a device; raises `BadWeights`."""
    if wrong := not_finite({f"array {place}": leaf for place, leaf in enumerate(leaves)}):
        raise BadWeights(f"the weights of version {version} cannot be used: {'; '.join(wrong)}")
    weights: Weights = jax.device_put(jax.tree.unflatten(jax.tree.structure(like), leaves))
    return weights


class StoredWeights:
    """The weight store of a learner."""

    def __init__(self, sync_every: int, learner: int = 0) -> None:
        """`sync_every` games must be over before newer weights are sent; 0: every version is.

        A later `learner` of the run has a larger number: it goes on from a checkpoint, and what has the same version of
        an earlier one is something else.
        """
        self._learner = learner
        self._sync_every = sync_every
        self._latest: tuple[int, Weights] | None = None
        self._sent: tuple[Named, list[Any]] | None = None
        self._sent_games = 0
        self.games = 0  # over so far, in what the learner has taken

    def publish(self, version: int, weights: Weights) -> None:
        """Keeps them, and sends them if it is time."""
        self._latest = (version, weights)
        if self._sent is None or self.games - self._sent_games >= self._sync_every:
            leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(weights)]  # those of JAX would be copied once more
            self._sent, self._sent_games = ((self._learner, version), [ray.put(leaves)]), self.games

    def latest(self) -> tuple[int, Weights]:
        """The newest version, sent or not: for matches in this process."""
        if self._latest is None:
            raise LookupError("no weights have been published")
        return self._latest

    @property
    def sent(self) -> tuple[Named, list[Any]]:
        """The name of the newest that were sent, and a list with the one reference to them."""
        if self._sent is None:
            raise LookupError("no weights have been published")
        return self._sent
