"""The losses: policy cross-entropy, value cross-entropy (or squared error), and the further heads' as options.

Each term is a sum over rows divided by what the whole batch holds, so that a batch cut into pieces gives the same
gradient as the batch at once. Knows rows and a network's outputs; not where they come from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.game import Game
from aleazero.core.opinions import expected_value
from aleazero.core.records import Output, Rows, Weights
from aleazero.core.struct import replace, struct

_MOVES = 100.0  # a game's length is measured in hundreds of moves


@dataclasses.dataclass(frozen=True)
class LossConfig:
    """What the terms weigh. The further heads are there if the model has them (`model.soft_policy`, ...)."""

    policy_weight: float = 1.0
    value_weight: float = 1.0
    value_loss: Literal["cross_entropy", "mse"] = "cross_entropy"
    soft_weight: float = 1.0
    soft_temperature: float = 4.0  # the soft policy is policy ** (1 / this), normalised
    reply_weight: float = 0.15
    moves_left_weight: float = 0.1  # of the squared error in hundreds of moves, linear beyond a hundred
    augment: bool = True  # show each row in a random one of the game's symmetries

    def problems(self) -> list[str]:
        """What is wrong with it."""
        names = ("policy_weight", "value_weight", "soft_weight", "reply_weight", "moves_left_weight")
        found = [f"{n} is {getattr(self, n)}; it must not be negative" for n in names if getattr(self, n) < 0]
        if self.soft_temperature < 1:
            found.append(f"soft_temperature is {self.soft_temperature}; it must be at least 1")
        return found


@struct
class Batch:
    """Rows made ready for a network. Lists are as in `Rows`; K places of the legal list."""

    observation: Array  # [B, ...]
    legal: Array  # [B, K] int16
    rows: Rows


@struct
class Measures:
    """What a batch, or a piece of one, adds to the numbers reported; divided by the whole batch's counts."""

    terms: dict[str, Array]  # by term: its part of the loss, already divided
    value_error: Array  # [] mean |predicted value - target|
    target_mean: Array  # [] mean of the value targets
    target_square: Array  # [] mean of their squares


Loss = Callable[[Weights, Batch, "Counts"], tuple[Array, Measures]]


@struct
class Counts:
    """What the terms of a batch are divided by."""

    policy: Array  # [] float32: weights of rows with a policy
    value: Array  # [] float32: of rows with a value target
    reply: Array  # [] float32: of rows with a reply
    moves_left: Array  # [] float32: of rows whose game's length is known


def count(rows: Rows) -> Counts:
    """The divisors of a whole batch; never zero."""

    def total(present: Array) -> Array:
        return jnp.maximum((rows.weight * present).sum(), 1e-6)

    return Counts(
        policy=total(rows.has_policy),
        value=total(rows.has_value),
        reply=total(rows.reply_actions.max(-1) >= 0),
        moves_left=total(rows.moves_left >= 0),
    )


def make_batch(game: Game, rows: Rows, key: Array, augment: bool) -> Batch:
    """Unpacks states and observes them, each turned by random symmetries of the game if `augment`."""
    states = jax.vmap(game.unpack)(rows.state)
    if augment:
        for i, symmetry in enumerate(2 * game.symmetries):  # twice over: a quarter turn may be wanted twice
            turned = jax.vmap(symmetry.turn)(states)
            chosen = jax.random.bernoulli(jax.random.fold_in(key, i), 0.5, rows.weight.shape)
            states = jax.tree.map(
                lambda new, old: jnp.where(chosen.reshape(-1, *[1] * (new.ndim - 1)), new, old),  # noqa: B023
                turned,
                states,
            )
            names = jnp.asarray(symmetry.actions, jnp.int16)
            rows = replace(
                rows,
                actions=_rename(rows.actions, names, chosen),
                reply_actions=_rename(rows.reply_actions, names, chosen),
            )
    return Batch(jax.vmap(game.observe)(states), jax.vmap(game.legal_list)(states), rows)


def _rename(actions: Array, names: Array, chosen: Array) -> Array:
    return jnp.where(chosen[:, None] & (actions >= 0), names[jnp.maximum(actions, 0)], actions)


def make_loss(game: Game, config: LossConfig, apply: Callable[[Weights, Array], Output]) -> Loss:
    """The loss of a batch, or of a piece of one, whose divisors are given."""
    spec = game.spec

    def loss(weights: Weights, batch: Batch, counts: Counts) -> tuple[Array, Measures]:
        rows, output = batch.rows, apply(weights, batch.observation)
        policy = rows.policy.astype(jnp.float32)
        with_policy = rows.weight * rows.has_policy / counts.policy
        with_value = rows.weight * rows.has_value / counts.value
        terms = {}
        if output.logits is not None:
            policy_error = _cross_entropy(output.logits, batch.legal, rows.actions, policy)
            terms["policy"] = config.policy_weight * (with_policy * policy_error).sum()
        scalar = output.value.shape[-1] == 1
        opinion = output.value if scalar else jax.nn.softmax(output.value)
        predicted, wanted = expected_value(spec, opinion), expected_value(spec, rows.target)
        if scalar or config.value_loss == "mse":
            error = (predicted - wanted) ** 2
        else:
            error = -(rows.target * jax.nn.log_softmax(output.value)).sum(-1)
        terms["value"] = config.value_weight * (with_value * error).sum()
        if output.soft is not None:
            soft = jnp.where(rows.actions >= 0, policy ** (1.0 / config.soft_temperature), 0.0)
            soft = soft / jnp.maximum(soft.sum(-1, keepdims=True), 1e-6)
            soft_error = _cross_entropy(output.soft, batch.legal, rows.actions, soft)
            terms["soft"] = config.soft_weight * (with_policy * soft_error).sum()
        if output.reply is not None:
            replies = rows.weight * (rows.reply_actions.max(-1) >= 0) / counts.reply
            everything = jnp.broadcast_to(
                jnp.arange(spec.num_actions, dtype=jnp.int16), (rows.weight.shape[0], spec.num_actions)
            )  # which replies are legal is not known here
            reply_error = _cross_entropy(
                output.reply, everything, rows.reply_actions, rows.reply_policy.astype(jnp.float32)
            )
            terms["reply"] = config.reply_weight * (replies * reply_error).sum()
        if output.moves_left is not None:
            known = rows.weight * (rows.moves_left >= 0) / counts.moves_left
            missed = jnp.abs(output.moves_left - rows.moves_left) / _MOVES
            length_error = jnp.where(missed < 1, missed**2, 2 * missed - 1)
            terms["moves_left"] = config.moves_left_weight * (known * length_error).sum()
        measures = Measures(
            terms=terms,
            value_error=(with_value * jnp.abs(predicted - wanted)).sum(),
            target_mean=(with_value * wanted).sum(),
            target_square=(with_value * wanted**2).sum(),
        )
        return sum(terms.values(), jnp.float32(0)), measures

    return loss


def _cross_entropy(logits: Array, legal: Array, actions: Array, policy: Array) -> Array:
    """`[B]`: of policies over listed actions, with the network's policy over the legal list alone."""
    total = jax.nn.logsumexp(jnp.where(legal >= 0, _listed(logits, legal), -jnp.inf), axis=-1)
    gain = jnp.where(actions >= 0, policy * (_listed(logits, actions) - total[:, None]), 0.0)
    return -gain.sum(-1)


def _listed(logits: Array, actions: Array) -> Array:
    """`[B, K]` logits of listed actions; those of action 0 where there is none."""
    return jnp.take_along_axis(logits, jnp.maximum(actions, 0).astype(jnp.int32), -1)
