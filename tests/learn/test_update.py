"""Updates: the optimiser step by step in numpy, batches cut into pieces, buffers given away, and learning itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import Array

from aleazero.core.records import Rows
from aleazero.core.struct import replace
from aleazero.games.tictactoe import TicTacToe
from aleazero.games.wander import wander
from aleazero.learn.losses import Batch, Counts, LossConfig, Measures, make_batch, make_loss
from aleazero.learn.update import LearnConfig, LearnerState, Update, in_a_row, in_cached_pieces, make_update, start
from aleazero.models.build import Model, ModelConfig, build_model

GAME = TicTacToe()
CONFIG = LearnConfig(batch_size=16, weight_decay=0.1, clip=1e3, beta1=0.8, beta2=0.9, ema=0.7)
KEY = jax.random.key(0)


@pytest.fixture(autouse=True, scope="module")
def quick_compile() -> Iterator[None]:
    """Many small programs run once each: XLA without its expensive passes."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


# ---- a loss that needs no rows: half the squared distance from a place


def numbers(seed: int) -> dict[str, np.ndarray]:
    """Weights of every kind: a dense layer's, a convolution's, and a scale."""
    rng = np.random.default_rng(seed)
    shapes = {"kernel": (3, 2), "bias": (2,), "planes": (2, 2, 1, 3), "scale": (3,)}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


PLACE = numbers(1)


def distance(weights: Any, batch: Batch, counts: Counts) -> tuple[Array, Measures]:
    loss = sum(0.5 * ((weights[name] - x) ** 2).sum() for name, x in PLACE.items())
    return jnp.asarray(loss), Measures({}, jnp.zeros(()), jnp.zeros(()), jnp.zeros(()))


def nowhere(weights: Any, batch: Batch, counts: Counts) -> tuple[Array, Measures]:
    """A loss without a gradient: what is left is decay."""
    loss, measures = distance(weights, batch, counts)
    return 0.0 * loss, measures


def as_they_are(rows: Rows, key: Array) -> Batch:
    return Batch(rows.state, rows.actions, rows)


@functools.cache
def rows_of_nothing() -> Rows:
    lists, shares = jnp.zeros((16, 4), jnp.int16), jnp.zeros((16, 4), jnp.float16)
    state, target = jnp.zeros((16, 2), jnp.uint8), jnp.zeros((16, 3))
    yes, unknown = jnp.ones(16, bool), jnp.full(16, -1, jnp.int16)
    return Rows(state, lists, shares, yes, target, yes, lists, shares, jnp.ones(16), unknown)


@functools.cache
def step_with(config: LearnConfig, loss: Any) -> Any:
    return jax.jit(make_update(config, loss, as_they_are))


def taking_steps(config: LearnConfig, loss: Any, rates: list[float]) -> Any:
    """The states and stats of some updates from `numbers(0)`."""
    state = start(config, jax.tree.map(jnp.asarray, numbers(0)))
    found = []
    for rate in rates:
        state, stats = step_with(config, loss)(state, rows_of_nothing(), jnp.float32(rate), KEY)
        found.append((state, stats))
    return found


def moments(state: LearnerState) -> Any:
    """Adam's first moments."""
    return optax.tree_utils.tree_get(state.optimiser, "mu")


def norm_of(tree: Any) -> float:
    return float(np.sqrt(sum((np.asarray(leaf, np.float64) ** 2).sum() for leaf in jax.tree.leaves(tree))))


def adam_in_numpy(config: LearnConfig, rates: list[float]) -> list[tuple[Any, Any, float, float]]:
    """Weights, their average, the gradient's norm and the loss, update by update (Kingma and Ba 2015, algorithm 1)."""
    weights = {name: x.astype(np.float64) for name, x in numbers(0).items()}
    average = dict(weights)
    m = {name: np.zeros_like(x) for name, x in weights.items()}
    v = {name: np.zeros_like(x) for name, x in weights.items()}
    found = []
    for t, rate in enumerate(rates, 1):
        gradient = {name: x - PLACE[name] for name, x in weights.items()}
        loss = sum(0.5 * (g**2).sum() for g in gradient.values())
        norm = np.sqrt(sum((g**2).sum() for g in gradient.values()))
        for name, w in weights.items():
            decay = config.weight_decay * w if name in ("kernel", "planes") else 0 * w
            g = gradient[name] * min(1.0, config.clip / norm)
            g = g + decay if config.decay == "l2" else g
            m[name] = config.beta1 * m[name] + (1 - config.beta1) * g
            v[name] = config.beta2 * v[name] + (1 - config.beta2) * g**2
            step = m[name] / (1 - config.beta1**t) / (np.sqrt(v[name] / (1 - config.beta2**t)) + 1e-8)
            step = step + decay if config.decay == "decoupled" else step
            weights[name] = w - rate * step
            average[name] = config.ema * average[name] + (1 - config.ema) * weights[name]
        found.append((dict(weights), dict(average), float(norm), float(loss)))
    return found


@pytest.mark.parametrize("decay", ["decoupled", "l2"])
@pytest.mark.parametrize("clip", [0.5, 1e3])
def test_updates_follow_the_formulas(decay: Any, clip: float) -> None:
    config = replace(CONFIG, decay=decay, clip=clip)
    rates = [0.1, 0.1, 0.4, 0.2, 0.0, 0.1]
    found, wanted = taking_steps(config, distance, rates), adam_in_numpy(config, rates)
    norms = [norm for _, _, norm, _ in wanted]
    assert min(norms) > 0.6  # the smaller clip always acts, the larger never, and the norm shrinks in between
    for (state, stats), (weights, average, norm, loss) in zip(found, wanted, strict=True):
        for name in PLACE:
            np.testing.assert_allclose(state.weights[name], weights[name], rtol=1e-4, atol=1e-5, err_msg=name)
            np.testing.assert_allclose(state.average[name], average[name], rtol=1e-4, atol=1e-5, err_msg=name)
            assert state.weights[name].dtype == state.average[name].dtype == jnp.float32
        assert float(stats.gradient_norm) == pytest.approx(norm, rel=1e-4)
        assert float(stats.loss) == pytest.approx(loss, rel=1e-4)


def test_decay_is_for_matrices() -> None:
    """Without a gradient, AdamW shrinks a matrix by its share; Adam with a penalty moves it by the rate."""
    before = numbers(0)
    decoupled = taking_steps(CONFIG, nowhere, [0.5])[0][0].weights
    penalty = taking_steps(replace(CONFIG, decay="l2"), nowhere, [0.5])[0][0].weights
    for name in ("bias", "scale"):
        np.testing.assert_array_equal(decoupled[name], before[name])
        np.testing.assert_array_equal(penalty[name], before[name])
    for name in ("kernel", "planes"):
        np.testing.assert_allclose(decoupled[name], before[name] * (1 - 0.5 * 0.1), rtol=1e-5)
        np.testing.assert_allclose(penalty[name], before[name] - 0.5 * np.sign(before[name]), rtol=1e-4)


@pytest.mark.parametrize(("clip", "kept"), [(0.5, 0.5), (1e3, None)])
def test_a_gradient_is_cut_to_the_greatest_norm_and_no_further(clip: float, kept: float | None) -> None:
    config = replace(CONFIG, clip=clip)
    state, stats = taking_steps(config, distance, [0.1])[0]
    # The first moment after one update is the gradient that was used, times 1 - beta1.
    used = norm_of(moments(state)) / (1 - config.beta1)
    assert float(stats.gradient_norm) > 1
    assert used == pytest.approx(kept or float(stats.gradient_norm), rel=1e-5)


def test_without_an_average_the_newest_weights_play() -> None:
    state, _ = taking_steps(replace(CONFIG, ema=0.0), distance, [0.1, 0.2])[-1]
    jax.tree.map(np.testing.assert_array_equal, state.average, state.weights)


def test_learning_starts_with_an_average_of_its_own() -> None:
    for begin in (start, jax.jit(start, static_argnums=0)):
        state: LearnerState = begin(CONFIG, jax.tree.map(jnp.asarray, numbers(0)))
        jax.tree.map(np.testing.assert_array_equal, state.weights, numbers(0))
        jax.tree.map(np.testing.assert_array_equal, state.average, numbers(0))
        places = [x.unsafe_buffer_pointer() for x in jax.tree.leaves(state)]
        assert len(set(places)) == len(places)


def test_the_learning_rate_is_an_argument_and_compiles_nothing() -> None:
    traced = []

    def loss(*arguments: Any) -> tuple[Array, Measures]:
        traced.append(1)
        return distance(*arguments)

    update: Any = jax.jit(make_update(replace(CONFIG, weight_decay=0.0), loss, as_they_are))
    state = start(CONFIG, jax.tree.map(jnp.asarray, numbers(0)))
    steps = []
    for rate in (0.1, 0.2, 0.4):
        found, _ = update(state, rows_of_nothing(), jnp.float32(rate), KEY)
        steps.append((numbers(0)["kernel"] - np.asarray(found.weights["kernel"])) / rate)
    np.testing.assert_allclose(steps, np.broadcast_to(np.sign(numbers(0)["kernel"] - PLACE["kernel"]), (3, 3, 2)), 1e-4)
    assert len(traced) == 1
    assert update._cache_size() == 1


def test_updates_in_a_row_are_those_one_by_one() -> None:
    rates = [0.1, 0.4, 0.2]
    weights = jax.tree.map(jnp.asarray, numbers(0))
    together: Any = jax.jit(in_a_row(make_update(CONFIG, distance, as_they_are)))
    rows = jax.tree.map(lambda x: jnp.stack([x] * 3), rows_of_nothing())
    last, stats = together(start(CONFIG, weights), rows, jnp.array(rates), jax.random.split(KEY, 3))
    found = taking_steps(CONFIG, distance, rates)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6), last, found[-1][0])
    for i, (_, one) in enumerate(found):
        assert float(stats.loss[i]) == pytest.approx(float(one.loss), rel=1e-5)
        assert float(stats.gradient_norm[i]) == pytest.approx(float(one.gradient_norm), rel=1e-5)


@pytest.mark.parametrize("changes", [{}, {"accumulate": 2}, {"ema": 0.0}, {"decay": "l2"}])
def test_the_old_state_is_given_away(changes: dict[str, Any]) -> None:
    """Warnings are errors here, so a buffer that could not be used again would fail the test as well."""
    config = replace(CONFIG, **changes)
    update = jax.jit(make_update(config, distance, as_they_are), donate_argnums=0)
    state = start(config, jax.tree.map(jnp.asarray, numbers(0)))
    for _ in range(2):
        old = jax.tree.leaves(state)
        state, _ = update(state, rows_of_nothing(), jnp.float32(0.1), KEY)
        assert all(leaf.is_deleted() for leaf in old)
        assert not any(leaf.is_deleted() for leaf in jax.tree.leaves((state, rows_of_nothing())))


# ---- a network and rows


@functools.cache
def model() -> Model:
    config = ModelConfig(
        kind="mlp", width=32, blocks=1, soft_policy=True, reply_policy=True, moves_left=True, compute="float32"
    )
    return build_model(config, GAME.spec)


@functools.cache
def fresh_weights() -> Any:
    return jax.jit(model().init)(jax.random.key(1))


def policies(rng: np.random.Generator, lists: np.ndarray) -> np.ndarray:
    shares = np.where(lists >= 0, rng.exponential(size=lists.shape), 0)
    return (shares / np.maximum(shares.sum(-1, keepdims=True), 1e-9)).astype(np.float16)


@functools.cache
def lessons() -> Any:
    """Sixteen different positions with targets made up at random."""
    steps = wander(GAME, lanes=16, plies=5, seed=1)
    every = np.asarray(jax.jit(jax.vmap(jax.vmap(GAME.pack)))(steps.state)).reshape(16 * 5, -1)
    legal = np.asarray(steps.legal).reshape(-1, 9)
    first = np.sort(np.unique(every, axis=0, return_index=True)[1])[-16:]
    rng = np.random.default_rng(2)
    replies = np.where(rng.random((16, 1)) < 0.7, legal[first], -1).astype(np.int16)
    fields: dict[str, Any] = {
        "state": every[first],
        "actions": legal[first],
        "policy": policies(rng, legal[first]),
        "has_policy": np.ones(16, bool),
        "target": rng.dirichlet(np.ones(3), 16).astype(np.float32),
        "has_value": np.ones(16, bool),
        "reply_actions": replies,
        "reply_policy": policies(rng, replies),
        "weight": rng.uniform(0.5, 1.0, 16).astype(np.float32),
        "moves_left": rng.integers(0, 90, 16).astype(np.int16),
    }
    return Rows(**fields)


def updating(config: LearnConfig, loss: LossConfig | None = None) -> Update:
    terms = make_loss(GAME, loss or LossConfig(), model().apply)
    return jax.jit(make_update(config, terms, lambda rows, key: make_batch(GAME, rows, key, augment=False)))


@functools.cache
def updated(accumulate: int) -> Callable[[Rows], Any]:
    config = replace(CONFIG, accumulate=accumulate)
    update = updating(config)
    return lambda rows: update(start(config, fresh_weights()), rows, jnp.float32(1e-3), KEY)


@pytest.mark.parametrize("which", ["everything", "masks differ", "one row"])
def test_pieces_add_up_to_the_batch(which: str) -> None:
    rows, number = lessons(), np.arange(16)
    if which == "masks differ":  # no piece has a target of every kind, and some have none
        none = np.full_like(rows.reply_actions, -1)
        rows = replace(
            rows,
            has_policy=number < 3,
            has_value=number == 15,
            reply_actions=np.where((number == 4)[:, None], rows.actions, none),
        )
    elif which == "one row":
        rows = replace(rows, weight=(number == 5).astype(np.float32))
    whole, parts = updated(1)(rows), updated(4)(rows)
    for name in ("weights", "average"):
        one, other = getattr(whole[0], name), getattr(parts[0], name)
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5), one, other)
    gradients = [moments(state) for state, _ in (whole, parts)]
    assert norm_of(gradients[0]) > 1e-2
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6), *gradients)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6), whole[1], parts[1])


@pytest.mark.parametrize(
    ("batch", "asked", "rows", "pieces"),
    [
        (512, 1, 0, 1),  # no cache
        (512, 1, 32, 16),
        (512, 1, 512, 1),
        (16, 1, 32, 1),
        (512, 64, 32, 64),  # more were asked for
        (512, 2, 32, 16),
        (96, 1, 64, 2),
        (100, 1, 32, 4),
        (99, 1, 32, 1),  # none from 4 to 7 comes out even
    ],
)
def test_batches_in_pieces_that_stay_in_a_cache(batch: int, asked: int, rows: int, pieces: int) -> None:
    config = replace(CONFIG, batch_size=batch, accumulate=asked)
    assert in_cached_pieces(config, rows) == replace(config, accumulate=pieces)


def test_every_piece_is_turned_by_a_key_of_its_own() -> None:
    def loss(weights: Any, batch: Batch, counts: Counts) -> tuple[Array, Measures]:
        drawn = batch.observation
        return distance(weights, batch, counts)[0], Measures({}, drawn, drawn**2, drawn**3)

    def prepare(rows: Rows, key: Array) -> Batch:
        return Batch(jax.random.uniform(key), rows.actions, rows)

    update = jax.jit(make_update(replace(CONFIG, accumulate=4), loss, prepare))
    seen = update(start(CONFIG, jax.tree.map(jnp.asarray, numbers(0))), rows_of_nothing(), jnp.float32(0), KEY)[1]
    average, square = float(seen.measures.value_error) / 4, float(seen.measures.target_mean) / 4
    assert square - average**2 > 0.01


def entropy(policy: np.ndarray, weight: np.ndarray) -> float:
    policy = policy.astype(np.float64)
    rows = -(policy * np.log(np.maximum(policy, 1e-12))).sum(-1)
    return float((weight * rows).sum() / weight.sum())


def test_a_network_learns_its_lessons() -> None:
    """The loss falls to what the targets' own entropy leaves, for every head, and the average follows."""
    rows = lessons()
    config = LearnConfig(batch_size=16, weight_decay=0.0, ema=0.95)
    update = updating(config, LossConfig(soft_temperature=2.0, reply_weight=1.0, moves_left_weight=1.0))
    state = start(config, fresh_weights())
    first: Any = None
    for step in range(400):
        state, stats = update(state, rows, jnp.float32(0.01 if step < 300 else 0.001), KEY)
        first = first or stats
    soft = np.sqrt(rows.policy.astype(np.float64))
    replied = rows.weight * (rows.reply_actions >= 0).any(-1)
    least = {
        "policy": entropy(rows.policy, rows.weight),
        "value": entropy(rows.target, rows.weight),
        "soft": entropy(soft / soft.sum(-1, keepdims=True), rows.weight),
        "reply": entropy(rows.reply_policy, replied),
        "moves_left": 0.0,
    }
    averaged = update(replace(state, weights=state.average), rows, jnp.float32(0), KEY)[1]
    for name, floor in least.items():
        assert float(first.measures.terms[name]) > floor + 0.05, name
        for now in (stats, averaged):
            assert floor - 0.005 < float(now.measures.terms[name]) < floor + 0.02, name
    assert float(stats.measures.value_error) < 0.05 < float(first.measures.value_error)
    assert update._cache_size() == 1  # type: ignore[attr-defined]


# ---- the settings


def test_sound_settings_have_no_problems() -> None:
    assert LearnConfig().problems() == []
    edge = LearnConfig(
        batch_size=12, updates_per_call=1, accumulate=12, weight_decay=0.0, beta1=0.0, beta2=0.0, ema=0.0
    )
    assert edge.problems() == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"accumulate": 0}, "accumulate is 0; it must divide batch_size (512)"),
        ({"accumulate": 3}, "accumulate is 3; it must divide batch_size (512)"),
        ({"batch_size": 0}, "batch_size is 0; it must be at least 1"),
        ({"updates_per_call": 0}, "updates_per_call is 0; it must be at least 1"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1; it must not be negative"),
        ({"clip": 0.0}, "clip is 0.0; it must be positive"),
        ({"beta1": 1.0}, "beta1 is 1.0; it must be in [0, 1)"),
        ({"beta2": -0.1}, "beta2 is -0.1; it must be in [0, 1)"),
        ({"ema": 1.0}, "ema is 1.0; it must be in [0, 1)"),
    ],
)
def test_each_problem_is_named(changes: dict[str, Any], problem: str) -> None:
    assert LearnConfig(**changes).problems() == [problem]


def test_all_problems_are_reported_at_once() -> None:
    found = LearnConfig(batch_size=0, accumulate=0, weight_decay=-1.0, clip=-1.0, beta1=2.0, ema=-1.0).problems()
    assert [text.split()[0] for text in found] == ["batch_size", "accumulate", "weight_decay", "clip", "beta1", "ema"]
