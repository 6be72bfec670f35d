"""The learner of policy gradients: takes a fragment, learns from it for some epochs, publishes the weights.

What a run asks of a `Learner`, so that one loop serves both. Knows a compiled update and two ports; not who plays.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.core.keys import Role, role_key
from aleazero.core.records import Fragment
from aleazero.learn.ppo import PpoStats, PpoUpdate
from aleazero.learn.update import LearnerState
from aleazero.replay.fifo import Fifo
from aleazero.roles.ports import WeightStore


class PpoLearner:
    """Learns; `state` and `steps` are all that it carries from step to step."""

    epoch = 0  # nothing goes by epochs of games

    def __init__(
        self,
        update: PpoUpdate,
        rate: Callable[[int], float],
        entropy: Callable[[int], float],
        state: LearnerState,
        source: Fifo,
        weights: WeightStore,
        *,
        batch_size: int,
        updates: int,
        seed: int,
        clone: PpoUpdate | None = None,
        clone_rows: int = 0,
    ) -> None:
        """`update` makes `updates` updates, compiled. `rate(rows trained)` and `entropy(rows played)` are schedules.

        `clone` is the update for the first `clone_rows` rows, which a teacher plays.
        """
        self._clone, self._clone_rows = clone, clone_rows
        self._update, self._rate, self._entropy = update, rate, entropy
        self._source, self._weights = source, weights
        self._batch_size, self._updates, self._seed = batch_size, updates, seed
        self.state = state
        self.steps = 0  # updates so far; also the weights' version
        self.base_steps = 0  # updates before the source began to count its rows

    @property
    def started(self) -> bool:
        """Whether anything was learned."""
        return self.steps > 0

    @started.setter
    def started(self, value: bool) -> None:
        """Follows from the updates."""

    @property
    def rows_trained(self) -> int:
        """Rows learned from so far, each as often as it was."""
        return self.steps * self._batch_size

    @property
    def learning_rate(self) -> float:
        """The rate of the next update."""
        return self._rate(self.rows_trained)

    def owed(self, games: int = 0) -> int:
        """Nothing is put off."""
        return 0

    def step(self, games: int = 0) -> list[PpoStats]:
        """An iteration, if a fragment is there."""
        fragment = self._source.take()
        if fragment is None:
            return []
        fragment = _apart(fragment)
        rates = [self._rate(self.rows_trained + i * self._batch_size) for i in range(self._updates)]
        played = self._source.rows_before + self._source.rows_played
        weight = self._entropy(played)
        taught = self._clone is not None and played - self._source.slab_rows < self._clone_rows
        update = self._clone if self._clone is not None and taught else self._update
        key = role_key(self._seed, Role.REPLAY, jnp.uint32(self.steps % 2**32))
        self.state, stats = update(self.state, fragment, jnp.asarray(rates, jnp.float32), jnp.float32(weight), key)
        self.steps += self._updates
        self.publish()
        return [stats]

    def publish(self) -> None:
        """Makes the weights known as they are now: copies, because the next update reuses the memory."""
        self._weights.publish(self.steps, jax.tree.map(jnp.copy, self.state.average))


def _apart(fragment: Fragment) -> Fragment:
    """On the device, in memory of its own: who plays writes into the same buffers while it is learned from.

    On a CPU the copy is made here: `device_put` shares a host array's memory there, even when told not to (JAX 0.11).
    """
    if jax.default_backend() == "cpu":
        fragment = jax.tree.map(lambda x: x.copy() if isinstance(x, np.ndarray) else x, fragment)
    return jax.block_until_ready(jax.device_put(fragment))
