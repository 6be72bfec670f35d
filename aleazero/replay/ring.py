"""The ring of training rows: slabs of T moves of B games, written whole, oldest overwritten first.

A row can be drawn once its game is over and its target known; what is in between waits in its place. All functions
are pure and compiled by the caller with the ring donated, so that a slab is written without a copy of the ring. The
same code serves on an accelerator and on the host. Knows neither games nor how targets are made.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.keys import Role, role_key
from aleazero.core.records import Rows, Trajectory
from aleazero.core.struct import replace, struct

_WRITTEN = (
    "state", "to_play", "actions", "policy", "action", "searched", "random", "ended", "settled", "truncated", "points",
)  # fmt: skip
_PROPOSALS = 8  # per row and round: with one in six accepted, six rounds fill a batch; with nearly all, one


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """What is kept and how it is drawn."""

    capacity_rows: int = 200_000
    capacity_games: int = 0  # finished games in the slabs drawn from, at most; 0: as many as there are
    min_rows: int = 2_000  # ready before the first update
    surprise: float = 0.0  # w: share of the draws in proportion to surprise; the others are uniform
    importance: float = 0.0  # beta: weighs rows by (chance of a uniform draw / own chance) ** beta
    rows_per_new_row: float = 4.0  # training rows drawn for every row played, at most
    window: Literal["all", "power"] = "all"  # power: the newest c (1 + b ((n / c) ** a - 1) / a) of n rows played
    window_start: int = 50_000  # c
    window_power: float = 0.75  # a
    window_growth: float = 0.4  # b
    place: Literal["device", "host"] = "device"
    prefetch: int = 2  # batches drawn ahead where the ring lives on the host
    log: bool = True  # keep what is played on disk, so that a resumed run plays it back; false: it is in checkpoints

    def problems(self) -> list[str]:
        """What is wrong with it."""
        least = {"capacity_rows": 1, "capacity_games": 0, "min_rows": 1, "window_start": 1, "prefetch": 1}
        found = [
            f"{n} is {getattr(self, n)}; it must be at least {v}" for n, v in least.items() if getattr(self, n) < v
        ]
        for name in ("surprise", "importance"):
            if not 0 <= getattr(self, name) <= 1:
                found.append(f"{name} is {getattr(self, name)}; it must be in 0..1")
        for name in ("rows_per_new_row", "window_power", "window_growth"):
            if getattr(self, name) <= 0:
                found.append(f"{name} is {getattr(self, name)}; it must be positive")
        if self.min_rows > self.capacity_rows:
            found.append(f"min_rows is {self.min_rows}; it cannot exceed capacity_rows ({self.capacity_rows})")
        return found

    def window_rows(self, played: int) -> int:
        """How many of the newest rows are drawn from when `played` rows have been played."""
        held = min(played, self.capacity_rows)
        if self.window == "all" or played <= self.window_start:
            return held
        c, a, b = self.window_start, self.window_power, self.window_growth
        return min(held, int(c * (1 + b * ((played / c) ** a - 1) / a)))


@struct
class Ring:
    """S slabs of T moves of B games, `[S, T, B, ...]`. Fields as in `Trajectory` where they share a name."""

    state: Array
    to_play: Array
    actions: Array
    policy: Array
    action: Array  # for whoever wants to see the games; nothing is learned from it
    searched: Array
    random: Array
    ended: Array
    settled: Array
    truncated: Array
    points: Array
    opinion: Array  # [S, T, B, V] float16: what is thought of the position, to_play's side
    predicted: Array  # [S, T, B] float32: the value the network gave it
    exists: Array  # [S, T, B] bool
    target: Array  # [S, T, B, V] float32
    has_value: Array  # [S, T, B] bool
    surprise: Array  # [S, T, B] float32; negative where the row cannot be drawn
    moves_left: Array  # [S, T, B] int16; -1 where that is not known
    following: Array  # [S] int32: the slot of the slab that goes on with the same games; S where there is none yet
    slab_ready: Array  # [S] int32: rows of the slab that can be drawn
    slab_surprise: Array  # [S] float32: their surprise, summed
    part_surprise: Array  # [S, P] float32: the same for each of P equal parts of the slab (`parts_of`)


MakeTargets = Callable[[Any], Any]
"""From the last slabs as one span (a `Ring` whose fields are `[T, B, ...]`) to targets: `learn.targets.Targets`."""


def make_ring(like: Trajectory, slabs: int) -> Ring:
    """An empty ring for trajectories shaped as `like` (arrays or ShapeDtypeStructs `[T, B, ...]`)."""

    def room(x: Any, dtype: Any = None, fill: Any = 0) -> Array:
        return jnp.full((slabs, *x.shape), fill, dtype or x.dtype)

    return Ring(
        **{name: room(getattr(like, name)) for name in (*_WRITTEN, "opinion")},
        predicted=room(like.value),
        exists=room(like.ended),
        target=room(like.opinion, jnp.float32),
        has_value=room(like.ended),
        surprise=room(like.value, fill=-1.0),
        moves_left=room(like.ended, jnp.int16, -1),
        following=jnp.full(slabs, slabs, jnp.int32),
        slab_ready=jnp.zeros(slabs, jnp.int32),
        slab_surprise=jnp.zeros(slabs, jnp.float32),
        part_surprise=jnp.zeros((slabs, parts_of(*like.ended.shape)), jnp.float32),
    )


def parts_of(moves: int, lanes: int) -> int:
    """How many parts a slab has: as many as a part has rows, or somewhat more."""
    rows = moves * lanes
    return rows // max(size for size in range(1, math.isqrt(rows) + 1) if rows % size == 0)


def insert(
    ring: Ring, slab: Trajectory, opinion: Array, predicted: Array, slots: Array, make_targets: MakeTargets
) -> Ring:
    """Writes a slab at the last of `slots` `[R]`, and the targets of all games that ended in it.

    The slots before are those of the slabs that the same games were in, oldest first; S where there is none. Games of
    other sources may lie between them.
    """
    slot, reach, parts = slots[-1], slots.shape[0], ring.part_surprise.shape[1]
    written = {name: getattr(slab, name) for name in _WRITTEN}
    written |= {"opinion": opinion, "predicted": predicted, "exists": jnp.ones_like(slab.ended)}
    ring = replace(
        ring,
        **{
            name: jax.lax.dynamic_update_index_in_dim(getattr(ring, name), x.astype(getattr(ring, name).dtype), slot, 0)
            for name, x in written.items()
        },
    )
    slabs = ring.exists.shape[0]
    names = ("to_play", "ended", "settled", "truncated", "random", "points", "opinion", "predicted")
    held = jnp.minimum(slots, slabs - 1)
    span = {name: _join(getattr(ring, name)[held]) for name in names}
    span["exists"] = _join(ring.exists[held] & (slots < slabs)[:, None, None])
    found = make_targets(span)
    surprise = jnp.where(found.ready, found.surprise, -1.0)

    def put(old: Array, new: Array) -> Array:
        return old.at[slots].set(new.reshape(reach, *old.shape[1:]).astype(old.dtype), mode="drop")

    return replace(
        ring,
        target=put(ring.target, found.target),
        has_value=put(ring.has_value, found.has_value),
        surprise=put(ring.surprise, surprise),
        moves_left=put(ring.moves_left, found.moves_left),
        following=ring.following.at[slots].set(jnp.append(slots[1:], slabs), mode="drop"),
        slab_ready=put(ring.slab_ready, found.ready.reshape(reach, -1).sum(-1)),
        slab_surprise=put(ring.slab_surprise, jnp.maximum(surprise, 0.0).reshape(reach, -1).sum(-1)),
        part_surprise=put(ring.part_surprise, jnp.maximum(surprise, 0.0).reshape(reach, parts, -1).sum(-1)),
    )


def draw(
    ring: Ring, config: ReplayConfig, count: int, seed: Array, number: Array, newest: Array, window: Array
) -> Rows:
    """`count` rows from the `window` slabs that end with slot `newest`; `number` names the draw.

    Exactly (1 - w) uniform + w in proportion to surprise: a row of the batch first chooses which of the two it is. A
    uniform one proposes rows of the window until one is ready. A surprising one chooses a slab by its summed surprise,
    then a part of it, then a row of that: so the cost depends neither on the size of the ring nor on how surprise is
    spread. Where no row of the window is ready, the whole ring is drawn from; one row of it must be.
    """
    slabs, moves, lanes = ring.exists.shape
    window = jnp.where((ring.slab_ready * _inside(slabs, newest, window)).sum() > 0, window, slabs)
    key = role_key(seed, Role.REPLAY, number)
    if config.surprise:
        surprising, weighted = _by_surprise(ring, config, jax.random.fold_in(key, 0), count, newest, window)
    else:
        surprising, weighted = jnp.zeros(count, jnp.int32), jnp.zeros(count, bool)

    def propose(round_key: Array) -> tuple[Array, Array]:
        keys = jax.random.split(round_key)
        shape = (count, _PROPOSALS)
        age = jax.random.randint(keys[0], shape, 0, window)
        place = jax.random.randint(keys[1], shape, 0, moves * lanes)
        at = (newest - age) % slabs * (moves * lanes) + place
        good = ring.surprise.reshape(-1)[at] >= 0
        first = jnp.argmax(good, -1)
        return jnp.take_along_axis(at, first[:, None], -1)[:, 0], good.any(-1)

    def unfilled(carry: tuple[Array, Array, Array]) -> Array:
        return ~carry[1].all()

    def fill(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        at, done, round_number = carry
        found, good = propose(jax.random.fold_in(key, round_number))
        return jnp.where(done, at, found), done | good, round_number + 1

    at, _, _ = jax.lax.while_loop(unfilled, fill, (surprising, weighted, jnp.int32(1)))
    return _rows(ring, at, _importance(ring, config, at, newest, window))


def _by_surprise(
    ring: Ring, config: ReplayConfig, key: Array, count: int, newest: Array, window: Array
) -> tuple[Array, Array]:
    """`[count], [count]`: rows in proportion to surprise, and which places of a batch are for such rows."""
    keys = jax.random.split(key, 4)
    slabs, parts = ring.part_surprise.shape
    weights = ring.slab_surprise * _inside(slabs, newest, window)
    wanted = (jax.random.uniform(keys[0], (count,)) < config.surprise) & (weights.sum() > 0)
    slab = _choose(weights, jax.random.uniform(keys[1], (count,)))
    choose = jax.vmap(_choose)
    part = choose(ring.part_surprise[slab], jax.random.uniform(keys[2], (count,)))
    rows = jnp.maximum(ring.surprise.reshape(slabs, parts, -1)[slab, part], 0.0)
    place = choose(rows, jax.random.uniform(keys[3], (count,)))
    return (slab * parts + part) * rows.shape[1] + place, wanted


def _choose(weights: Array, uniform: Array) -> Array:
    """Indices of weights `[N]`, in proportion to them, one for each of `uniform`; never one without weight."""
    sums = jnp.cumsum(weights)
    # Where rounding reaches past the end, the last one that has any weight is meant.
    last = weights.shape[0] - 1 - jnp.argmax(weights[::-1] > 0)
    return jnp.minimum(jnp.searchsorted(sums, uniform * sums[-1], side="right"), last).astype(jnp.int32)


def _importance(ring: Ring, config: ReplayConfig, at: Array, newest: Array, window: Array) -> Array:
    """`[count]`: weights that undo the preference for surprise by a power, at most 1."""
    if not config.importance or not config.surprise:
        return jnp.ones(at.shape, jnp.float32)
    inside = _inside(ring.slab_ready.shape[0], newest, window)
    mean = (ring.slab_surprise * inside).sum() / jnp.maximum((ring.slab_ready * inside).sum(), 1)
    share = ring.surprise.reshape(-1)[at] / jnp.maximum(mean, 1e-9)
    ratio = jnp.where(mean > 0, (1 - config.surprise) + config.surprise * share, 1.0)
    weight = ratio ** (-config.importance)
    return weight / weight.max()


def _inside(slabs: int, newest: Array, window: Array) -> Array:
    """`[S]`: which slabs are drawn from."""
    return (newest - jnp.arange(slabs)) % slabs < window


def _rows(ring: Ring, at: Array, weight: Array) -> Rows:
    slabs, moves, lanes = ring.exists.shape

    def pick(field: Array, index: Array) -> Array:
        return field.reshape(-1, *field.shape[3:])[index]

    slab, place = at // (moves * lanes), at % (moves * lanes)
    last = place >= (moves - 1) * lanes
    after = jnp.where(last, ring.following[slab], slab)
    there = after < slabs  # the same lane's next move
    following = jnp.where(there, after, slab) * (moves * lanes) + (place + lanes) % (moves * lanes)
    replies = (
        there
        & ~pick(ring.random, at)  # what follows a random move is no reply to what was thought of
        & ~pick(ring.ended, at)
        & ~pick(ring.truncated, at)
        & pick(ring.searched, following)
        & (pick(ring.to_play, following) != pick(ring.to_play, at))
    )
    return Rows(
        state=pick(ring.state, at),
        actions=pick(ring.actions, at),
        policy=pick(ring.policy, at),
        has_policy=pick(ring.searched, at),
        target=pick(ring.target, at),
        has_value=pick(ring.has_value, at),
        reply_actions=jnp.where(replies[:, None], pick(ring.actions, following), jnp.int16(-1)),
        reply_policy=jnp.where(replies[:, None], pick(ring.policy, following), jnp.float16(0)),
        weight=weight,
        moves_left=pick(ring.moves_left, at),
    )


def _join(x: Array) -> Array:
    """`[reach, T, B, ...]` as `[reach * T, B, ...]`."""
    return x.reshape(-1, *x.shape[2:])
