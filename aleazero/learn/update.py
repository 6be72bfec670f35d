"""One update of the weights: gradient (in pieces, if asked), clipping, the optimiser, the moving average.

Knows a loss and the settings of the optimiser; neither replay nor play.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import jax
import jax.numpy as jnp
import optax
from jax import Array

from aleazero.core.records import Rows, Weights
from aleazero.core.schedule import Schedule
from aleazero.core.scopes import part
from aleazero.core.struct import struct
from aleazero.learn.losses import Batch, Loss, Measures, count

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class LearnConfig:
    """How weights follow the gradient, and from where."""

    start_from: str | None = None  # a trained network (bundled, run:NAME, path:FOLDER) that a new run begins with
    batch_size: int = 512  # rows per update
    updates_per_call: int = 8  # updates compiled as one program: fewer gaps in which a device waits for the host
    accumulate: int = 1  # pieces a batch is cut into, at least, to save memory; the gradient is the same
    learning_rate: Schedule = Schedule(2e-3, 1e-4, shape="cosine", warmup_rows=20_000)  # by rows trained
    decay: Literal["decoupled", "l2"] = "decoupled"  # AdamW, or Adam with the penalty in the gradient
    weight_decay: float = 1e-4
    clip: float = 1.0  # the gradient's greatest norm
    beta1: float = 0.9
    beta2: float = 0.99
    ema: float = 0.99  # of the averaged weights that play; 0: the newest weights play
    games_per_epoch: int = 0  # wait for so many games, then train: an epoch; 0: train as rows come in
    steps_per_game: int = 10  # updates for every game of an epoch

    def problems(self) -> list[str]:
        """What is wrong with it."""
        found = []
        if self.batch_size < 1:
            found.append(f"batch_size is {self.batch_size}; it must be at least 1")
        if self.updates_per_call < 1:
            found.append(f"updates_per_call is {self.updates_per_call}; it must be at least 1")
        if self.accumulate < 1 or self.batch_size % max(self.accumulate, 1):
            found.append(f"accumulate is {self.accumulate}; it must divide batch_size ({self.batch_size})")
        if self.weight_decay < 0:
            found.append(f"weight_decay is {self.weight_decay}; it must not be negative")
        if self.clip <= 0:
            found.append(f"clip is {self.clip}; it must be positive")
        for name in ("beta1", "beta2", "ema"):
            if not 0 <= getattr(self, name) < 1:
                found.append(f"{name} is {getattr(self, name)}; it must be in [0, 1)")
        if self.games_per_epoch < 0:
            found.append(f"games_per_epoch is {self.games_per_epoch}; it must not be negative")
        if self.steps_per_game < 1:
            found.append(f"steps_per_game is {self.steps_per_game}; it must be at least 1")
        if self.steps_per_epoch % max(self.updates_per_call, 1):
            found.append(
                f"updates_per_call is {self.updates_per_call}; it must divide the updates of an epoch "
                f"(games_per_epoch * steps_per_game = {self.steps_per_epoch})"
            )
        rate = self.learning_rate
        if self.games_per_epoch and rate.end not in (None, rate.start) and not rate.rows:
            found.append(
                "learning_rate.rows is 0; with games_per_epoch say after how many trained rows it is at its end"
            )
        return found

    @property
    def steps_per_epoch(self) -> int:
        """Updates of an epoch; 0 where there are none."""
        return self.games_per_epoch * self.steps_per_game


@struct
class LearnerState:
    """What learning carries from update to update."""

    weights: Weights  # float32
    average: Weights  # the moving average of them, float32; the weights themselves where it is off
    optimiser: Any


@struct
class UpdateStats:
    """What one update saw; of several updates every field is `[U, ...]`."""

    loss: Array  # []
    measures: Measures
    gradient_norm: Array  # [], before clipping


Update = Callable[[LearnerState, Rows, Array, Array], tuple[LearnerState, UpdateStats]]
"""`update(state, rows, learning_rate, key) -> (state, stats)`."""


def make_optimiser(config: LearnConfig) -> optax.GradientTransformation:
    """Adam with the chosen decay, for a learning rate of one: the rate itself is an argument of every update."""
    adam = optax.scale_by_adam(config.beta1, config.beta2)
    penalty = optax.add_decayed_weights(config.weight_decay, mask=_matrices)
    parts = [adam, penalty] if config.decay == "decoupled" else [penalty, adam]
    return optax.chain(optax.clip_by_global_norm(config.clip), *parts)


def start(config: LearnConfig, weights: Weights) -> LearnerState:
    """The state before the first update."""
    average = jax.tree.map(jnp.array, weights)  # its own arrays: both are donated
    return LearnerState(weights, average, make_optimiser(config).init(weights))


def make_update(config: LearnConfig, loss: Loss, prepare: Callable[[Rows, Array], Batch]) -> Update:
    """One update; `prepare` makes a batch of rows (and may turn them at random)."""
    optimiser = make_optimiser(config)

    @part("update")
    def update(state: LearnerState, rows: Rows, rate: Array, key: Array) -> tuple[LearnerState, UpdateStats]:
        counts = count(rows)

        def piece(part: tuple[Rows, Array]) -> tuple[Array, Measures, Weights]:
            batch = prepare(*part)
            (value, measures), gradient = jax.value_and_grad(loss, has_aux=True)(state.weights, batch, counts)
            return value, measures, gradient

        pieces = config.accumulate
        if pieces == 1:
            value, measures, gradient = piece((rows, key))
        else:
            value, measures, gradient = summed(piece, (cut(rows, pieces), jax.random.split(key, pieces)))
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradient)))
        step, optimiser_state = optimiser.update(gradient, state.optimiser, state.weights)
        weights = jax.tree.map(lambda w, s: w - rate * s, state.weights, step)
        average = jax.tree.map(lambda a, w: config.ema * a + (1 - config.ema) * w, state.average, weights)
        return LearnerState(weights, average, optimiser_state), UpdateStats(value, measures, norm)

    return update


def in_cached_pieces(config: LearnConfig, rows: int) -> LearnConfig:
    """The same with batches in pieces of at most so many rows and over half of that, where they divide so; 0: as is."""
    least = math.ceil(config.batch_size / rows) if rows else 1
    if least <= config.accumulate:
        return config
    even = (pieces for pieces in range(least, 2 * least) if config.batch_size % pieces == 0)
    return dataclasses.replace(config, accumulate=next(even, config.accumulate))


def cut(rows: Any, pieces: int) -> Any:
    """Rows `[N, ...]` as so many pieces `[pieces, N / pieces, ...]`."""
    return jax.tree.map(lambda x: x.reshape(pieces, -1, *x.shape[1:]), rows)


def summed(piece: Callable[[Any], T], parts: Any) -> T:
    """What the pieces `[pieces, ...]` of a batch bring, added up; one after the other."""
    like = jax.eval_shape(piece, jax.tree.map(lambda x: x[0], parts))
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)
    total, _ = jax.lax.scan(lambda total, part: (jax.tree.map(jnp.add, total, piece(part)), None), nothing, parts)
    return total


def in_a_row(update: Update) -> Update:
    """Several updates, one after the other, as one function: rows, rates and keys have an axis `[U, ...]` in front."""

    def updates(state: LearnerState, rows: Rows, rates: Array, keys: Array) -> tuple[LearnerState, UpdateStats]:
        return jax.lax.scan(lambda state, given: update(state, *given), state, (rows, rates, keys))

    return updates


def _matrices(weights: Weights) -> Any:
    """Decay is for matrices; biases and scales are left alone."""
    return jax.tree.map(lambda w: w.ndim > 1, weights)
