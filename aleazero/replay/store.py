"""The replay as a running part: takes slabs in, hands rows out, and keeps the counts that neither needs the device for.

Counts are Python integers: 32 bits would overflow within minutes. Where the ring lives on the host, batches are drawn
ahead of need. Knows neither games nor how targets are made: both come in as functions.
"""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.records import Rows, Trajectory
from aleazero.core.scopes import part
from aleazero.core.struct import struct
from aleazero.replay import ring as rings
from aleazero.replay.ring import ReplayConfig, Ring

QUANTILES = (0.5, 0.9, 0.99)  # of surprise, that are told
SAMPLED = 2**16  # rows that they are taken from, about: sorting all of a large ring would take long
MOST_SOURCES = 4096  # that are remembered without looking whether they are still needed


@struct
class Held:
    """What a ring holds, in numbers."""

    ready: Array  # [] int32: rows that can be drawn
    games: Array  # [] int32: games whose end is among the rows
    mean_surprise: Array  # [] float32: of the rows that can be drawn
    surprise: Array  # [Q] float32: its `QUANTILES`, over a sample of them


class Replay:
    """A ring and its counts."""

    def __init__(
        self,
        config: ReplayConfig,
        like: Trajectory,
        *,
        max_plies: int | None,
        batch_size: int,
        seed: int,
        think: Callable[[Trajectory], tuple[Array, Array]],
        make_targets: Callable[[Any, Array], Any],
        td_lambda: Callable[[int], float],
    ) -> None:
        """`like` has the shapes of a slab; `think` gives a slab's opinions and predicted values.

        Rows wait for their targets as long as a game can last, `max_plies`; None: they have them at once.
        `make_targets(span, td_lambda)` is `rings.MakeTargets` with one number more, which depends on the rows played.
        """
        self._td_lambda = td_lambda
        self.config = config
        moves, lanes = like.ended.shape
        self.slab_rows = moves * lanes
        # A game's first move must still be there when its last is written.
        self.reach = 1 if max_plies is None else -(-max_plies // moves) + 1
        self.slabs = max(config.capacity_rows // self.slab_rows, self.reach + 1)
        self.seed = seed
        self.num_slabs = 0  # added so far
        self.sources: dict[int, list[int]] = {}  # by source: the numbers of the last slabs it brought, oldest first
        self._games: collections.deque[int] = collections.deque(maxlen=self.slabs)  # over in each slab held, if counted
        self.rows_before = 0  # played before the first of them, in a run that began anew from weights
        self._home = jax.local_devices(backend="cpu")[0] if config.place == "host" else jax.local_devices()[0]
        self._away = config.place == "host" and jax.default_backend() != "cpu"
        self._ahead: collections.deque[tuple[int, Rows]] = collections.deque()

        @part("replay")
        def insert(ring: Ring, slab: Trajectory, slots: Array, td_lambda: Array) -> Ring:
            return rings.insert(ring, slab, *think(slab), slots, lambda span: make_targets(span, td_lambda))

        @part("replay")
        def draw(ring: Ring, seed: Array, numbers: Array, newest: Array, window: Array) -> Rows:
            def one(number: Array) -> Rows:
                return rings.draw(ring, config, batch_size, seed, number, newest, window)

            return jax.lax.map(one, numbers)

        self._insert = jax.jit(insert, donate_argnums=0)
        self._draw = jax.jit(draw)
        make = jax.jit(functools.partial(rings.make_ring, like, self.slabs), out_shardings=_on(self._home))
        self.ring: Ring = make()

    def add(self, slab: Trajectory, source: int = 0) -> None:
        """Writes a slab over the oldest one; its games go on from the slab that the same source brought before."""
        self._ahead.clear()
        before = [number for number in self.sources.get(source, ()) if number > self.num_slabs - self.slabs]
        numbers = [*before, self.num_slabs][-self.reach :]
        slots = [self.slabs] * (self.reach - len(numbers)) + [number % self.slabs for number in numbers]
        td_lambda = np.float32(self._td_lambda(self.rows_before + self.rows_played))
        self.ring = self._insert(self.ring, *jax.device_put((slab, np.array(slots, np.int32), td_lambda), self._home))
        self.sources[source] = numbers
        self.num_slabs += 1
        if self.config.capacity_games:
            self._games.append(int((slab.ended | slab.truncated).sum()))  # waits for the slab
        if len(self.sources) > MOST_SOURCES:
            self._forget()

    def _forget(self) -> None:
        """Lets go of sources of which the ring holds nothing any more."""
        self.sources = {
            source: numbers for source, numbers in self.sources.items() if numbers[-1] >= self.num_slabs - self.slabs
        }

    def restore(self, ring: Ring, num_slabs: int, sources: Mapping[int, list[int]]) -> None:
        """Takes up a ring as it was when so many slabs had been added, by these sources."""
        self._ahead.clear()
        self.ring, self.num_slabs = jax.device_put(ring, _on(self._home)), num_slabs
        self.sources = dict(sources)
        if self.config.capacity_games:
            over = np.asarray((ring.ended | ring.truncated).sum((1, 2)))
            held = range(max(num_slabs - self.slabs, 0), num_slabs)
            self._games = collections.deque((int(over[n % self.slabs]) for n in held), self.slabs)

    @property
    def rows_played(self) -> int:
        """Rows added so far, overwritten ones included."""
        return self.num_slabs * self.slab_rows

    @property
    def rows_held(self) -> int:
        """Rows in the ring."""
        return min(self.num_slabs, self.slabs) * self.slab_rows

    @property
    def window_slabs(self) -> int:
        """How many of the newest slabs are drawn from."""
        wanted = min(math.ceil(self.config.window_rows(self.rows_played) / self.slab_rows), self.slabs, self.num_slabs)
        if not self.config.capacity_games:
            return wanted
        games, slabs = 0, 0
        for over in reversed(self._games):
            games += over
            if slabs and games > self.config.capacity_games:
                break
            slabs += 1
        return min(wanted, slabs)

    def count_ready(self) -> int:
        """Rows that can be drawn. Waits for the device."""
        return int(self.ring.slab_ready.sum())

    def held(self) -> Held:
        """What there is to be told of it. Does not wait for the device."""
        return _held(self.ring)

    def sample(self, number: int, count: int) -> Rows:
        """Batches `number` to `number + count - 1`, `[count, B, ...]`: the same whenever drawn from the same rows."""
        if not self._away:
            return self._draw_now(number, count)
        while len(self._ahead) < self.config.prefetch:
            following = self._ahead[-1][0] + count if self._ahead else number
            rows = jax.device_put(self._draw_now(following, count), jax.local_devices()[0])
            self._ahead.append((following, rows))
        first, rows = self._ahead.popleft()
        if first != number or rows.weight.shape[0] != count:
            self._ahead.clear()
            return self.sample(number, count)
        return rows

    def _draw_now(self, number: int, count: int) -> Rows:
        numbers = (np.arange(number, number + count) % 2**32).astype(np.uint32)
        newest = np.int32((self.num_slabs - 1) % self.slabs)
        words = (np.uint32(self.seed), numbers, newest, np.int32(self.window_slabs))
        return self._draw(self.ring, *jax.device_put(words, self._home))


@jax.jit
@part("replay")
def _held(ring: Ring) -> Held:
    rows = ring.surprise.reshape(-1)
    some = rows[:: -(-rows.size // SAMPLED) | 1]  # an odd stride goes through all lanes
    known = jnp.where(some < 0, jnp.nan, some)
    ready = ring.slab_ready.sum()
    return Held(
        ready=ready,
        games=(ring.ended | ring.truncated).sum(),
        mean_surprise=ring.slab_surprise.sum() / jnp.maximum(ready, 1),
        surprise=jnp.nan_to_num(jnp.nanquantile(known, jnp.array(QUANTILES))),
    )


def _on(device: jax.Device) -> Any:
    return jax.sharding.SingleDeviceSharding(device)
