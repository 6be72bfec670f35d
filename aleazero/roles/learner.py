"""The learner: draws rows, updates the weights, publishes them. Never draws more rows per new row than allowed.

Or it waits for games, and then makes a number of updates for each: an epoch. It publishes when the epoch is over.
Knows a compiled update and two ports; not who plays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.keys import Role, role_key
from aleazero.core.records import Weights
from aleazero.core.scopes import part
from aleazero.learn.update import LearnerState, Update, UpdateStats
from aleazero.roles.ports import SampleSource, WeightStore

BURST_CALLS = 8  # of an epoch, before the run looks whether it should stop


class Learner:
    """Learns; `state`, `steps`, `base_steps` and `started` are all that it carries from step to step."""

    def __init__(
        self,
        update: Update,
        rate: Callable[[int], float],
        state: LearnerState,
        source: SampleSource,
        weights: WeightStore,
        *,
        batch_size: int,
        updates_per_call: int,
        rows_per_new_row: float,
        min_rows: int,
        seed: int,
        games_per_epoch: int = 0,
        steps_per_game: int = 0,
    ) -> None:
        """`update` makes `updates_per_call` updates in a row (`learn.update.in_a_row`), compiled, its state donated.

        `rate(rows)` is the learning rate after that many trained rows.
        """
        self._updates_per_call = updates_per_call
        self._update, self._rate, self._source, self._weights = update, rate, source, weights
        self._batch_size, self._rows_per_new_row, self._min_rows = batch_size, rows_per_new_row, min_rows
        self._seed, self._games_per_epoch = seed, games_per_epoch
        self._steps_per_epoch = games_per_epoch * steps_per_game
        self.state = state
        self.steps = 0  # updates so far; also the weights' version
        self.started = False  # whether there were enough rows to begin
        self.base_steps = 0  # updates before the source began to count its rows

    @property
    def rows_trained(self) -> int:
        """Rows drawn so far."""
        return self.steps * self._batch_size

    @property
    def learning_rate(self) -> float:
        """The rate of the next update."""
        return self._rate(self.rows_trained)

    @property
    def epoch(self) -> int:
        """Epochs that are over; 0 where there are none."""
        return self.steps // self._steps_per_epoch if self._steps_per_epoch else 0

    def owed(self, games: int = 0) -> int:
        """Calls of updates that what came in allows, now that `games` games of the run are over, still to be made."""
        self.started = self.started or self._source.count_ready() >= self._min_rows
        if not self.started:
            return 0
        if self._steps_per_epoch:  # counts from the beginning of the run: nothing else is needed to go on exactly
            allowed = games // self._games_per_epoch * self._steps_per_epoch
        else:
            allowed = self.base_steps + int(self._rows_per_new_row * self._source.rows_played) // self._batch_size
        return max(allowed - self.steps, 0) // self._updates_per_call

    def step(self, games: int = 0) -> list[UpdateStats]:
        """As many updates as what came in allows, in whole calls; of an epoch only a part at a time."""
        calls, epoch = self.owed(games), self.epoch
        if self._steps_per_epoch:
            left = self._steps_per_epoch - self.steps % self._steps_per_epoch
            calls = min(calls, BURST_CALLS, left // self._updates_per_call)
        found = [self._call() for _ in range(calls)]
        if found and (not self._steps_per_epoch or self.epoch > epoch):
            self.publish()
        return found

    def publish(self) -> None:
        """Makes the weights known as they are now: copies, because the next update reuses the memory."""
        self._weights.publish(self.steps, _copy(self.state.average))

    def _call(self) -> UpdateStats:
        count = self._updates_per_call
        rows = self._source.sample(self.steps, count)
        rates = np.array([self._rate(self.rows_trained + i * self._batch_size) for i in range(count)], np.float32)
        numbers = (np.arange(self.steps, self.steps + count) % 2**32).astype(np.uint32)
        self.state, stats = self._update(
            self.state, rows, jnp.asarray(rates), _augment_keys(np.uint32(self._seed), numbers)
        )
        self.steps += count
        return stats


def placed(state: LearnerState) -> LearnerState:
    """On a device by name, as updates leave it: or else the first and the second update would each be compiled."""
    return jax.device_put(state, jax.local_devices()[0])


@jax.jit
def all_finite(tree: Any) -> Array:
    """`[]` bool: whether every number is one."""
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]).all()


@jax.jit
@part("update")
def _copy(weights: Weights) -> Weights:
    return jax.tree.map(jnp.copy, weights)


@jax.jit
@part("update")
def _augment_keys(seed: Array, steps: Array) -> Array:
    return jax.vmap(lambda step: role_key(seed, Role.AUGMENT, step))(steps)
