"""Proximal policy optimisation: advantages, the clipped loss, and several epochs of minibatches as one program.

Schulman et al. 2017, with generalised advantage estimation (Schulman et al. 2016). Where it differs: the penalty's
divergence is estimated from the played actions alone, `ratio - 1 - log(ratio)`, so that no policy over a thousand
actions is kept for every row; values are distributions (`core.twohot`), and what the value clip holds near is
their target. Knows fragments and a network's outputs; not who played.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core import twohot
from aleazero.core.records import Fragment, Output, Weights
from aleazero.core.schedule import Schedule
from aleazero.core.scopes import part
from aleazero.core.struct import struct
from aleazero.learn.update import LearnConfig, LearnerState, cut, make_optimiser, summed

_FASTER, _SLOWER = 1.5, 0.5  # what the penalty is multiplied by
_FAR, _NEAR = 2.0, 0.5  # of the target, beyond which it is


@dataclasses.dataclass(frozen=True)
class PpoConfig:
    """How a policy follows its advantages. Minibatches have `learn.batch_size` rows; gradients `learn.clip`."""

    gamma: float = 0.99  # what a point is worth one decision later
    gae_lambda: float = 0.95
    clip: float = 0.2  # of the ratio of new to old probabilities
    value_clip: float = 10.0  # points that a value target may be away from what the network said in play; 0: any
    value_weight: float = 0.5
    entropy: Schedule = Schedule(0.01)  # weight of the policy's entropy, by rows played
    kl_target: float = 0.02  # how far an iteration should move the policy, in nats; 0: no penalty
    kl_start: float = 0.2  # the penalty's first weight; it grows and shrinks to meet the target
    epochs: int = 4  # times that every row is learned from
    cached_rows: int = 0  # on a CPU: rows learned from at once, so that what is made of them stays in its cache; 0: all
    teacher: str = ""  # a baseline of the game that plays first, and is imitated; Balatro: greedy, expectimax
    teacher_rows: int = 0  # rows that it plays
    opponents: int = 0  # past selves that a game for two is played against; games for one have none
    opponents_every: int = 10  # iterations until the next is kept, in the oldest one's place
    memory_gb: float = 8.0  # that the process may take

    def problems(self) -> list[str]:
        """What is wrong with it."""
        found = [
            f"{name} is {getattr(self, name)}; it must be in [0, 1]"
            for name in ("gamma", "gae_lambda")
            if not 0 <= getattr(self, name) <= 1
        ]
        found += [
            f"{name} is {getattr(self, name)}; it must not be negative"
            for name in ("value_clip", "value_weight", "kl_target", "kl_start")
            if not getattr(self, name) >= 0
        ]
        found += [
            f"{name} is {getattr(self, name)}; it must be positive"
            for name in ("clip", "memory_gb")
            if not getattr(self, name) > 0
        ]
        if self.teacher_rows < 0 or bool(self.teacher) != bool(self.teacher_rows):
            found.append(f"teacher is {self.teacher!r} and teacher_rows {self.teacher_rows}; give both, or neither")
        found += [
            f"{name} is {getattr(self, name)}; it must be at least {least}"
            for name, least in (("epochs", 1), ("cached_rows", 0), ("opponents", 0), ("opponents_every", 1))
            if getattr(self, name) < least
        ]
        return found


@struct
class PpoRows:
    """Decisions to learn from, in no order. Every field is `[N, ...]`."""

    observation: Array  # [N, ...]
    legal: Array  # [N, A] bool
    action: Array  # [N] int32
    log_prob: Array  # [N] float32: when it was played
    value: Array  # [N] float32: when it was played
    advantage: Array  # [N] float32
    target: Array  # [N] float32: the value that the network should have said
    mine: Array  # [N] bool


@struct
class PpoMeasures:
    """What a minibatch says, as means over its rows."""

    policy: Array  # [] the clipped loss
    value: Array  # [] cross-entropy of the value
    entropy: Array  # [] nats, of the policy over legal actions
    kl: Array  # [] nats, from the policy that played to this one
    clipped: Array  # [] share of rows whose ratio is beyond the clip


@struct
class PpoStats:
    """What one iteration saw: U updates on one fragment."""

    loss: Array  # [U]
    measures: PpoMeasures  # each [U]
    gradient_norm: Array  # [U], before clipping
    kl_weight: Array  # [] of the next iteration
    explained: Array  # [] share of the returns' variance that the values had foreseen
    return_variance: Array  # []
    value_error: Array  # [] mean |value - return|, in points


Apply = Callable[[Weights, Array], Output]
PpoUpdate = Callable[[LearnerState, Fragment, Array, Array, Array], tuple[LearnerState, PpoStats]]
"""`update(state, fragment, rates [U], entropy_weight, key) -> (state, stats)`."""


def gae(fragment: Fragment, gamma: float, gae_lambda: float) -> tuple[Array, Array]:
    """Advantages and returns `[T, B]` of the learner's moves; 0 at an opponent's.

    What opponents' moves pay counts for the learner's move before them. A game that was stopped goes on, in thought,
    with the value of where it stood.
    """
    rows = (
        fragment.value, fragment.reward, fragment.ended, fragment.truncated, fragment.after, fragment.mine,
    )  # fmt: skip

    def back(later: tuple[Array, Array, Array], row: tuple[Array, ...]) -> tuple[tuple[Array, Array, Array], Array]:
        value, reward, ended, truncated, after, mine = row
        next_value, next_advantage, paid = later
        over = ended | truncated
        next_value = jnp.where(ended, 0.0, jnp.where(truncated, after, next_value))
        next_advantage, paid = jnp.where(over, 0.0, next_advantage), jnp.where(over, 0.0, paid) + reward
        advantage = paid + gamma * next_value - value + gamma * gae_lambda * next_advantage
        earlier = (
            jnp.where(mine, value, next_value),
            jnp.where(mine, advantage, next_advantage),
            jnp.where(mine, 0.0, paid),
        )
        return earlier, jnp.where(mine, advantage, 0.0)

    nothing = jnp.zeros_like(fragment.last)
    _, advantages = jax.lax.scan(back, (fragment.last, nothing, nothing), rows, reverse=True)
    return advantages, jnp.where(fragment.mine, advantages + fragment.value, 0.0)


def _log_policy(output: Output, rows: PpoRows) -> tuple[Array, Array]:
    """Log-probabilities of every action `[N, A]`, and of those that were played `[N]`."""
    assert output.logits is not None, "a policy is learned"
    # Entries that cannot be played are far below, not infinitely: an infinity times zero would spoil the gradient.
    policy = jax.nn.log_softmax(jnp.where(rows.legal, output.logits.astype(jnp.float32), -1e9))
    return policy, jnp.take_along_axis(policy, rows.action[:, None].astype(jnp.int32), -1)[:, 0]


def _entropy(policy: Array, rows: PpoRows) -> Array:
    return -jnp.where(rows.legal, jnp.exp(policy) * policy, 0.0).sum(-1)


def _value_loss(config: PpoConfig, output: Output, rows: PpoRows) -> Array:
    target = rows.target
    if config.value_clip:
        target = rows.value + jnp.clip(target - rows.value, -config.value_clip, config.value_clip)
    return -(twohot.encode(target) * jax.nn.log_softmax(output.value.astype(jnp.float32))).sum(-1)


def ppo_loss(
    config: PpoConfig,
    apply: Apply,
    weights: Weights,
    rows: PpoRows,
    kl_weight: Array,
    entropy_weight: Array,
    count: Array | None = None,
) -> tuple[Array, PpoMeasures]:
    """The loss of a minibatch; or of a piece of one whose learner made `count` decisions in all: pieces add up."""
    output = apply(weights, rows.observation)
    policy, log_prob = _log_policy(output, rows)
    log_ratio = log_prob - rows.log_prob
    ratio = jnp.exp(log_ratio)
    near = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    surrogate = jnp.minimum(ratio * rows.advantage, near * rows.advantage)
    entropy, value = _entropy(policy, rows), _value_loss(config, output, rows)
    count = _decisions(rows) if count is None else count

    def mean(each: Array) -> Array:
        return jnp.where(rows.mine, each, 0.0).sum() / count

    measures = PpoMeasures(
        policy=-mean(surrogate),
        value=mean(value),
        entropy=mean(entropy),
        kl=mean(ratio - 1 - log_ratio),
        clipped=mean((jnp.abs(ratio - 1) > config.clip).astype(jnp.float32)),
    )
    loss = measures.policy + config.value_weight * measures.value - entropy_weight * measures.entropy
    return loss + kl_weight * measures.kl, measures


def clone_loss(
    config: PpoConfig,
    apply: Apply,
    weights: Weights,
    rows: PpoRows,
    kl_weight: Array,
    entropy_weight: Array,
    count: Array | None = None,
) -> tuple[Array, PpoMeasures]:
    """The same where a teacher played: what it did becomes likelier, and what it got is the value."""
    output = apply(weights, rows.observation)
    policy, log_prob = _log_policy(output, rows)
    count = _decisions(rows) if count is None else count
    measures = PpoMeasures(
        policy=-jnp.where(rows.mine, log_prob, 0.0).sum() / count,
        value=jnp.where(rows.mine, _value_loss(config, output, rows), 0.0).sum() / count,
        entropy=jnp.where(rows.mine, _entropy(policy, rows), 0.0).sum() / count,
        kl=jnp.float32(0.0),
        clipped=jnp.float32(0.0),
    )
    return measures.policy + config.value_weight * measures.value, measures


def _decisions(rows: PpoRows) -> Array:
    """How many are the learner's own; at least 1."""
    return jnp.maximum(rows.mine.sum(), 1)


def next_kl_weight(config: PpoConfig, weight: Array, kl: Array) -> Array:
    """The penalty's weight after an iteration that moved the policy by `kl`."""
    factor = jnp.where(kl > _FAR * config.kl_target, _FASTER, jnp.where(kl < _NEAR * config.kl_target, _SLOWER, 1.0))
    return jnp.clip(weight * factor, 1e-6, 1e3) if config.kl_target else jnp.zeros_like(weight)


def make_rows(config: PpoConfig, fragment: Fragment) -> PpoRows:
    """A fragment's decisions, with advantages that have mean 0 and variance 1 over the learner's own."""
    advantages, returns = gae(fragment, config.gamma, config.gae_lambda)
    count = jnp.maximum(fragment.mine.sum(), 1)
    mean = advantages.sum() / count
    away = jnp.where(fragment.mine, advantages - mean, 0.0)
    normal = away / (jnp.sqrt((away**2).sum() / count) + 1e-8)

    def flat(x: Array) -> Array:
        return x.reshape(-1, *x.shape[2:])

    return PpoRows(
        observation=flat(with_past(fragment)),
        legal=flat(fragment.legal),
        action=flat(fragment.action),
        log_prob=flat(fragment.log_prob),
        value=flat(fragment.value),
        advantage=flat(normal),
        target=flat(returns),
        mine=flat(fragment.mine),
    )


def with_past(fragment: Fragment) -> Array:
    """What the network was shown at every move: observations, or `[T, B, 1 + H, ...]` where it remembers.

    What was seen in a game before is zero.
    """
    if fragment.past is None:
        return fragment.observation
    history, moves = fragment.past.shape[1], fragment.observation.shape[0]
    before = jnp.swapaxes(fragment.past, 0, 1)[::-1]  # [H, B, ...], the oldest first
    seen = jnp.concatenate([before, fragment.observation])  # [H + T, B, ...]
    over = (fragment.ended | fragment.truncated).astype(jnp.int32)
    games = jnp.concatenate([jnp.zeros((history + 1, over.shape[1]), jnp.int32), jnp.cumsum(over, 0)])  # begun so far
    shown = []
    for lag in range(history + 1):
        there, same = slice(history - lag, history - lag + moves), games[history : history + moves]
        kept = games[there] == same
        shown.append(jnp.where(kept.reshape(*kept.shape, *[1] * (seen.ndim - 2)), seen[there], 0.0))
    return jnp.stack(shown, 2)


def start(config: PpoConfig, learn: LearnConfig, weights: Weights) -> LearnerState:
    """The state before the first update. The penalty's weight is kept beside the optimiser's numbers."""
    first = jnp.float32(config.kl_start if config.kl_target else 0.0)
    optimiser = {"adam": make_optimiser(learn).init(weights), "kl_weight": first}
    return LearnerState(weights, jax.tree.map(jnp.array, weights), optimiser)


def updates_of(config: PpoConfig, learn: LearnConfig, rows: int) -> int:
    """U: updates of an iteration of so many rows. What is left over of an epoch's last minibatch is not used."""
    return config.epochs * max(rows // learn.batch_size, 1)


def rows_at_once(config: PpoConfig, learn: LearnConfig, size: int) -> int:
    """Of a minibatch: those that its gradient is made of at once."""
    return size // _pieces(config, learn, size)


def _pieces(config: PpoConfig, learn: LearnConfig, size: int) -> int:
    """How many a minibatch is cut into: the gradient is the same."""
    wanted = learn.accumulate
    if config.cached_rows and jax.default_backend() == "cpu":
        wanted = max(wanted, math.ceil(size / config.cached_rows))
    return next((pieces for pieces in range(wanted, size) if size % pieces == 0), size)


def make_update(config: PpoConfig, learn: LearnConfig, apply: Apply, clone: bool = False) -> PpoUpdate:
    """All epochs of an iteration; the rows are drawn anew into minibatches for each. `clone`: a teacher played them."""
    optimiser, loss_function = make_optimiser(learn), clone_loss if clone else ppo_loss

    @part("update")
    def update(
        state: LearnerState, fragment: Fragment, rates: Array, entropy_weight: Array, key: Array
    ) -> tuple[LearnerState, PpoStats]:
        rows, kl_weight = make_rows(config, fragment), state.optimiser["kl_weight"]
        total = rows.action.shape[0]
        size, each = min(learn.batch_size, total), max(total // learn.batch_size, 1)
        order = jax.vmap(lambda k: jax.random.permutation(k, total))(jax.random.split(key, config.epochs))
        places = order[:, : size * each].reshape(config.epochs * each, size)

        def one(carry: tuple[Weights, Any], given: tuple[Array, Array]) -> tuple[tuple[Weights, Any], Any]:
            (weights, adam), (place, rate) = carry, given
            batch = jax.tree.map(lambda x: x[place], rows)

            decisions = _decisions(batch)

            def piece(rows: PpoRows) -> tuple[tuple[Array, PpoMeasures], Weights]:
                def loss_of(weights: Weights) -> tuple[Array, PpoMeasures]:
                    return loss_function(config, apply, weights, rows, kl_weight, entropy_weight, decisions)

                return jax.value_and_grad(loss_of, has_aux=True)(weights)

            pieces = _pieces(config, learn, size)
            found = piece(batch) if pieces == 1 else summed(piece, cut(batch, pieces))
            (loss, measures), gradient = found
            norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradient)))
            step, adam = optimiser.update(gradient, adam, weights)
            return (jax.tree.map(lambda w, s: w - rate * s, weights, step), adam), (loss, measures, norm)

        (weights, adam), (loss, measures, norm) = jax.lax.scan(
            one, (state.weights, state.optimiser["adam"]), (places, rates)
        )
        # The last epoch says where the policy ended.
        penalty = kl_weight if clone else next_kl_weight(config, kl_weight, measures.kl[-each:].mean())
        count = jnp.maximum(rows.mine.sum(), 1)
        mean = rows.target.sum() / count
        wrong = jnp.where(rows.mine, rows.target - rows.value, 0.0)
        variance = jnp.where(rows.mine, (rows.target - mean) ** 2, 0.0).sum() / count
        spread = jnp.where(rows.mine, (wrong - wrong.sum() / count) ** 2, 0.0).sum() / count
        stats = PpoStats(
            loss=loss,
            measures=measures,
            gradient_norm=norm,
            kl_weight=penalty,
            explained=1 - spread / jnp.maximum(variance, 1e-8),
            return_variance=variance,
            value_error=jnp.abs(wrong).sum() / count,
        )
        average = jax.tree.map(jnp.copy, weights)
        return LearnerState(weights, average, {"adam": adam, "kl_weight": penalty}), stats

    return update
