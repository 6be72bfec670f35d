"""Every number of PPO beside a slow one in plain Python."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.core import twohot
from aleazero.core.records import Fragment, Output
from aleazero.core.schedule import Schedule
from aleazero.learn import ppo
from aleazero.learn.ppo import PpoConfig, PpoRows, gae, next_kl_weight, ppo_loss
from aleazero.learn.update import LearnConfig

T, B, A, F = 7, 3, 4, 5


def fragment(seed: int, opponents: bool = False) -> Fragment:
    rng = np.random.default_rng(seed)
    legal = rng.random((T, B, A)) < 0.6
    action = rng.integers(0, A, (T, B))
    legal[np.arange(T)[:, None], np.arange(B)[None], action] = True
    ended = rng.random((T, B)) < 0.2
    truncated = ~ended & (rng.random((T, B)) < 0.2)
    number = lambda *shape: rng.normal(size=shape).astype(np.float32)  # noqa: E731
    return Fragment(
        observation=jnp.asarray(number(T, B, F)),
        legal=jnp.asarray(legal),
        action=jnp.asarray(action, jnp.int32),
        log_prob=jnp.asarray(-np.abs(number(T, B))),
        value=jnp.asarray(number(T, B)),
        reward=jnp.asarray(number(T, B)),
        ended=jnp.asarray(ended),
        truncated=jnp.asarray(truncated),
        after=jnp.asarray(np.where(truncated, number(T, B), 0.0).astype(np.float32)),
        mine=jnp.asarray(rng.random((T, B)) < 0.6 if opponents else np.ones((T, B), bool)),
        last=jnp.asarray(number(B)),
    )


def slow_advantage(f: Fragment, t: int, b: int, gamma: float, lam: float) -> float:
    """The sum of discounted errors, each from the definition, walking forward from a move."""
    total, factor = 0.0, 1.0
    while True:
        value, paid = float(f.value[t, b]), 0.0
        while True:  # up to the learner's next move, or the end
            paid += float(f.reward[t, b])
            if f.ended[t, b] or f.truncated[t, b]:
                follows = 0.0 if f.ended[t, b] else float(f.after[t, b])
                return total + factor * (paid + gamma * follows - value)
            t += 1
            if t == T:
                return total + factor * (paid + gamma * float(f.last[b]) - value)
            if f.mine[t, b]:
                break
        total += factor * (paid + gamma * float(f.value[t, b]) - value)
        factor *= gamma * lam


@pytest.mark.parametrize("opponents", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_advantages_are_the_definitions(seed, opponents):
    f = fragment(seed, opponents)
    advantages, returns = gae(f, 0.9, 0.8)
    for t in range(T):
        for b in range(B):
            if not f.mine[t, b]:
                assert (advantages[t, b], returns[t, b]) == (0, 0)
                continue
            slow = slow_advantage(f, t, b, 0.9, 0.8)
            assert float(advantages[t, b]) == pytest.approx(slow, abs=1e-5)
            assert float(returns[t, b]) == pytest.approx(slow + float(f.value[t, b]), abs=1e-5)


def slow_loss(config: PpoConfig, logits, scores, rows: PpoRows, kl_weight: float, entropy_weight: float):
    """Loss and measures, row by row."""
    names = ("policy", "value", "entropy", "kl", "clipped")
    sums, count = dict.fromkeys(names, 0.0), 0
    for i in range(len(rows.action)):
        if not rows.mine[i]:
            continue
        count += 1
        weights = [math.exp(float(logits[i, a])) if rows.legal[i, a] else 0.0 for a in range(A)]
        chances = [w / sum(weights) for w in weights]
        ratio = chances[int(rows.action[i])] / math.exp(float(rows.log_prob[i]))
        advantage = float(rows.advantage[i])
        held = min(max(ratio, 1 - config.clip), 1 + config.clip)
        sums["policy"] -= min(ratio * advantage, held * advantage)
        sums["entropy"] -= sum(c * math.log(c) for c in chances if c > 0)
        sums["kl"] += ratio - 1 - math.log(ratio)
        sums["clipped"] += abs(ratio - 1) > config.clip
        target, said = float(rows.target[i]), float(rows.value[i])
        if config.value_clip:
            target = min(max(target, said - config.value_clip), said + config.value_clip)
        bins = twohot.BINS.astype(float)
        above = int(np.searchsorted(bins, target, side="right"))
        share = (target - bins[above - 1]) / (bins[above] - bins[above - 1])
        total = sum(math.exp(float(s)) for s in scores[i])
        log = [float(s) - math.log(total) for s in scores[i]]
        sums["value"] -= (1 - share) * log[above - 1] + share * log[above]
    means = {name: value / count for name, value in sums.items()}
    loss = means["policy"] + config.value_weight * means["value"] - entropy_weight * means["entropy"]
    return loss + kl_weight * means["kl"], means


@pytest.mark.slow
@pytest.mark.parametrize("value_clip", [0.0, 0.5])
def test_the_loss_is_the_slow_ones(value_clip):
    config = PpoConfig(value_clip=value_clip)
    rows = ppo.make_rows(config, fragment(1, opponents=True))
    rng = np.random.default_rng(9)
    logits = jnp.asarray(rng.normal(size=(T * B, A)), jnp.float32)
    scores = jnp.asarray(rng.normal(size=(T * B, twohot.NUM_BINS)), jnp.float32)
    said = jax.jit(lambda rows: ppo_loss(config, lambda w, x: Output(logits, scores), (), rows, 0.3, 0.02))
    found, measures = said(rows)
    loss, means = slow_loss(config, logits, scores, rows, 0.3, 0.02)
    assert float(found) == pytest.approx(loss, rel=1e-5)
    assert 0 < means["clipped"] < 1  # or else the clip was not tried
    for name, mean in means.items():
        assert float(getattr(measures, name)) == pytest.approx(mean, rel=1e-4, abs=1e-6), name


def test_advantages_are_normal_over_the_learners_own_rows():
    rows = ppo.make_rows(PpoConfig(), fragment(2, opponents=True))
    own = np.asarray(rows.advantage)[np.asarray(rows.mine)]
    assert own.mean() == pytest.approx(0, abs=1e-6)
    assert own.std() == pytest.approx(1, abs=1e-4)
    assert (np.asarray(rows.advantage)[~np.asarray(rows.mine)] == 0).all()


@pytest.mark.parametrize(("kl", "weight"), [(0.041, 0.3), (0.04, 0.2), (0.01, 0.2), (0.0099, 0.1)])
def test_the_penalty_follows_the_divergence(kl, weight):
    assert float(next_kl_weight(PpoConfig(), jnp.float32(0.2), jnp.float32(kl))) == pytest.approx(weight)
    assert float(next_kl_weight(PpoConfig(kl_target=0), jnp.float32(0.2), jnp.float32(kl))) == 0


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-900, 900, width=32), min_size=4, max_size=4))
def test_a_mixture_of_values_has_their_mean(values):
    chances = twohot.encode(jnp.asarray(values, jnp.float32)).mean(0)
    assert float(chances.sum()) == pytest.approx(1, abs=1e-5)
    assert float((chances * twohot.BINS).sum()) == pytest.approx(float(np.mean(values)), rel=1e-3, abs=1e-3)


def test_values_out_of_reach_are_the_farthest():
    assert twohot.decode(jnp.log(twohot.encode(jnp.float32([1e9, -1e9])) + 1e-30)) == pytest.approx(
        [twohot.BINS[-1], twohot.BINS[0]], rel=1e-4
    )


def linear(weights, observation):
    return Output(observation @ weights["policy"], observation @ weights["value"])


def make_weights(seed: int = 0):
    keys = jax.random.split(jax.random.key(seed), 2)
    return {
        "policy": 0.1 * jax.random.normal(keys[0], (F, A)),
        "value": 0.1 * jax.random.normal(keys[1], (F, twohot.NUM_BINS)),
    }


@pytest.mark.slow
@pytest.mark.parametrize(("accumulate", "cached_rows", "pieces"), [(1, 0, 1), (4, 0, 4), (1, 3, 4), (2, 1, 8)])
def test_epochs_of_minibatches_are_single_updates_in_a_row(accumulate, cached_rows, pieces):
    """Against a loop of one gradient at a time in the same order, in however many pieces a minibatch is learned."""
    config = PpoConfig(epochs=2, cached_rows=cached_rows)
    learn = LearnConfig(batch_size=8, weight_decay=0.0, learning_rate=Schedule(1e-2), accumulate=accumulate)
    f, key, count = fragment(3), jax.random.key(4), 2 * (T * B // 8)
    sizes = []

    def linear(weights, observation):
        sizes.append(len(observation))
        return Output(observation @ weights["policy"], observation @ weights["value"])

    assert ppo.updates_of(config, learn, T * B) == count
    rates = jnp.linspace(0.01, 0.02, count)
    before = ppo.start(config, learn, make_weights())
    after, stats = jax.jit(ppo.make_update(config, learn, linear))(before, f, rates, jnp.float32(0.01), key)
    assert set(sizes) == {8 // pieces}
    rows, optimiser = ppo.make_rows(config, f), ppo.make_optimiser(learn)

    @jax.jit
    def single(weights, adam, batch, rate):
        def loss_of(w):
            return ppo_loss(config, linear, w, batch, jnp.float32(0.2), jnp.float32(0.01))[0]

        loss, gradient = jax.value_and_grad(loss_of)(weights)
        step, adam = optimiser.update(gradient, adam, weights)
        return loss, jax.tree.map(lambda w, s: w - rate * s, weights, step), adam

    weights, adam, number = before.weights, before.optimiser["adam"], 0
    for epoch in jax.random.split(key, 2):
        order = jax.random.permutation(epoch, T * B)
        for i in range(T * B // 8):
            batch = jax.tree.map(lambda x: x[order[8 * i : 8 * i + 8]], rows)  # noqa: B023
            loss, weights, adam = single(weights, adam, batch, rates[number])
            assert float(stats.loss[number]) == pytest.approx(float(loss), rel=1e-4)
            number += 1
    for name in weights:
        np.testing.assert_allclose(after.weights[name], weights[name], rtol=1e-3, atol=1e-5)
        np.testing.assert_array_equal(after.weights[name], after.average[name])
    returns, values = np.asarray(gae(f, 0.99, 0.95)[1]), np.asarray(f.value)
    assert float(stats.explained) == pytest.approx(1 - (returns - values).var() / returns.var(), rel=1e-3)
    assert float(stats.return_variance) == pytest.approx(returns.var(), rel=1e-4)
    assert float(stats.value_error) == pytest.approx(np.abs(returns - values).mean(), rel=1e-4)


@pytest.mark.slow
def test_a_good_action_becomes_likelier_and_illegal_ones_never_count():
    f = fragment(5)
    good = jnp.where(f.action == 0, 1.0, 0.0)
    nothing = jnp.zeros((T, B))
    f = dataclasses.replace(
        f, observation=jnp.ones((T, B, F)), reward=good, value=nothing, ended=jnp.ones((T, B), bool),
        truncated=jnp.zeros((T, B), bool), after=nothing, log_prob=jnp.log(jnp.full((T, B), 0.25)),
        legal=jnp.ones((T, B, A), bool).at[:, :, 3].set(False), action=jnp.minimum(f.action, 2),
    )  # fmt: skip
    learn = LearnConfig(batch_size=T * B, weight_decay=0.0)
    config = PpoConfig(epochs=20, entropy=Schedule(0.0))
    state = ppo.start(config, learn, make_weights())
    update = jax.jit(ppo.make_update(config, learn, linear))
    after, _ = update(state, f, jnp.full(20, 0.01), jnp.float32(0.0), jax.random.key(0))
    seen = jnp.ones((1, F))
    before_logits, after_logits = (linear(s.weights, seen).logits[0] for s in (state, after))
    assert jax.nn.softmax(after_logits[:3])[0] > jax.nn.softmax(before_logits[:3])[0] + 0.05
    assert float(after_logits[3]) == pytest.approx(float(before_logits[3]), abs=1e-6)


def test_what_is_wrong_is_said_at_once():
    config = PpoConfig(gamma=1.5, clip=0, epochs=0, memory_gb=-1, value_clip=-1)
    said = "\n".join(config.problems())
    assert all(name in said for name in ("gamma is 1.5", "clip is 0", "epochs is 0", "memory_gb is -1", "value_clip"))
    assert len(config.problems()) == 5


def test_a_teacher_is_imitated():
    """Whatever it was paid: the loss is the actions' likelihood and the returns' as values."""
    f = fragment(6, opponents=True)
    config = PpoConfig(value_weight=0.5, value_clip=0.0)
    rows = ppo.make_rows(config, f)
    weights = make_weights()
    loss, measures = ppo.clone_loss(config, linear, weights, rows, jnp.float32(1.0), jnp.float32(1.0))
    output = linear(weights, rows.observation)
    _, means = slow_loss(config, output.logits, output.value, rows, 0.0, 0.0)
    likelihood = 0.0
    own = np.flatnonzero(np.asarray(rows.mine))
    for i in own:
        scores = [math.exp(float(output.logits[i, a])) for a in range(A) if rows.legal[i, a]]
        likelihood -= math.log(math.exp(float(output.logits[i, int(rows.action[i])])) / sum(scores)) / len(own)
    assert float(measures.policy) == pytest.approx(likelihood, rel=1e-4)
    assert float(loss) == pytest.approx(likelihood + 0.5 * means["value"], rel=1e-4)
    assert float(measures.entropy) == pytest.approx(means["entropy"], rel=1e-4)
    assert PpoConfig(teacher="greedy").problems() == ["teacher is 'greedy' and teacher_rows 0; give both, or neither"]
