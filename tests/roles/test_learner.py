"""The learner: how many rows it may draw, what it waits for, and weights that outlive the update after them."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import Array

from aleazero.core.records import Rows
from aleazero.learn.losses import Batch, Counts, Measures
from aleazero.learn.update import LearnConfig, LearnerState, UpdateStats, in_a_row, make_update, start
from aleazero.roles.learner import Learner
from aleazero.roles.ports import LocalWeights
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")

BATCH = 4
SHAPE = (3, 2)


class Source:
    """Rows that say which batch they are of."""

    def __init__(self, played: int = 0, ready: int = 0) -> None:
        self.rows_played, self.ready = played, ready
        self.asked: list[tuple[int, int]] = []

    def count_ready(self) -> int:
        return self.ready

    def sample(self, number: int, count: int) -> Rows:
        self.asked.append((number, count))
        shape = (count, BATCH)
        numbers = np.broadcast_to(np.arange(number, number + count, dtype=np.float32)[:, None], shape)
        fields: dict[str, Any] = {
            "state": np.zeros((*shape, 1), np.uint8),
            "actions": np.zeros((*shape, 1), np.int16),
            "policy": np.ones((*shape, 1), np.float16),
            "has_policy": np.ones(shape, bool),
            "target": numbers[..., None],
            "has_value": np.ones(shape, bool),
            "reply_actions": np.full((*shape, 1), -1, np.int16),
            "reply_policy": np.zeros((*shape, 1), np.float16),
            "weight": np.ones(shape, np.float32),
            "moves_left": np.full(shape, -1, np.int16),
        }
        return Rows(**fields)


def prepare(rows: Rows, key: Array) -> Batch:
    """What the weights are pulled to depends on the batch and on its key."""
    noise = jax.random.uniform(key, rows.weight.shape)
    return Batch(rows.target[:, 0] + noise, jnp.zeros((BATCH, 1), jnp.int16), rows)


def loss(weights: Any, batch: Batch, counts: Counts) -> tuple[Array, Measures]:
    value = 0.5 * ((weights["kernel"] - batch.observation.mean()) ** 2).sum()
    return value, Measures({}, jnp.zeros(()), jnp.zeros(()), jnp.zeros(()))


CONFIG = LearnConfig(batch_size=BATCH, ema=0.5, clip=100.0)


@functools.cache
def update() -> Any:
    return jax.jit(in_a_row(make_update(CONFIG, loss, prepare)), donate_argnums=0)


def begin() -> LearnerState:
    return jax.jit(lambda: start(CONFIG, {"kernel": jnp.ones(SHAPE)}))()


def make(source: Source, per_call: int = 2, ratio: float = 2.0, min_rows: int = 0, **changes: Any) -> Learner:
    given: dict[str, Any] = {"update": update(), "rate": lambda rows: 0.1, "state": begin(), "weights": LocalWeights()}
    return Learner(
        source=source,
        batch_size=BATCH,
        updates_per_call=per_call,
        rows_per_new_row=ratio,
        min_rows=min_rows,
        seed=11,
        **given | changes,
    )


def idle(state: LearnerState, rows: Rows, rates: Array, keys: Array) -> tuple[LearnerState, UpdateStats]:
    """An update that learns nothing, quickly."""
    assert rows.weight.shape[0] == rates.shape[0] == keys.shape[0]
    zero = jnp.zeros(rates.shape)
    return state, UpdateStats(zero, Measures({}, zero, zero, zero), zero)


STATE = LearnerState({}, {}, ())


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(0, 90), min_size=1, max_size=6),
    st.sampled_from([0.1, 0.75, 1.0, 4.0, 7.3]),
    st.sampled_from([1, 3]),
    st.integers(0, 50),
)
def test_never_more_rows_than_allowed_and_no_fewer(new: list[int], ratio: float, per_call: int, before: int) -> None:
    source = Source()
    learner = make(source, per_call, ratio, update=idle, state=STATE)
    learner.steps = learner.base_steps = before
    for rows in new:
        source.rows_played += rows
        learner.step()
        trained = (learner.steps - before) * BATCH
        assert trained <= ratio * source.rows_played
        assert ratio * source.rows_played - trained < BATCH * per_call + 1  # a whole call more would be too many
        assert learner.rows_trained == learner.steps * BATCH
    # Every batch was asked for once, in order.
    assert source.asked == [(number, per_call) for number in range(before, learner.steps, per_call)]


def test_it_waits_for_enough_rows_once() -> None:
    source, weights = Source(played=100, ready=29), LocalWeights()
    learner = make(source, min_rows=30, weights=weights)
    assert learner.step() == []
    assert (learner.steps, learner.started, source.asked) == (0, False, [])
    with pytest.raises(LookupError):
        weights.latest()
    source.ready = 30
    assert len(learner.step()) == 25  # calls of two updates of four rows, for a hundred rows drawn twice
    assert learner.started
    source.ready = 0  # they are out of the window: learning goes on all the same
    source.rows_played += 4
    assert len(learner.step()) == 1
    assert (learner.steps, learner.rows_trained) == (52, 208)


def test_without_new_rows_nothing_is_published() -> None:
    published = []

    class Watched(LocalWeights):
        def publish(self, version: int, weights: Any) -> None:
            published.append(version)
            super().publish(version, weights)

    source = Source(played=8)
    learner = make(source, weights=Watched())
    learner.step()
    learner.step()
    source.rows_played += 3  # less than a call
    learner.step()
    assert published == [4]
    source.rows_played += 1
    learner.step()
    assert published == [4, 6]


def test_updates_made_before_the_count_began_do_not_count() -> None:
    """A run resumed from weights alone has an empty replay: it earns its updates anew."""
    source = Source(played=0)
    learner = make(source, update=idle, state=STATE)
    learner.steps, learner.base_steps = 1000, 1000
    assert learner.step() == []
    source.rows_played = 8
    assert len(learner.step()) == 2
    assert (learner.steps, learner.rows_trained) == (1004, 4016)
    assert learner._weights.latest()[0] == 1004
    # Had they counted, a hundred rows would earn nothing.
    other = make(Source(played=100), update=idle, state=STATE)
    other.steps = 1000
    assert other.step() == []


def test_published_weights_survive_the_next_update() -> None:
    source, weights = Source(played=4), LocalWeights()
    learner = make(source, weights=weights)
    learner.publish()
    assert weights.latest()[0] == 0
    states, published, values = [learner.state], [weights.latest()[1]], [np.ones(SHAPE)]
    for _ in range(3):
        (stats,) = learner.step()
        assert stats.loss.shape == (2,)
        source.rows_played += 4
        version, newest = weights.latest()
        assert version == learner.steps
        np.testing.assert_array_equal(newest["kernel"], learner.state.average["kernel"])
        states.append(learner.state)
        published.append(newest)
        values.append(np.array(newest["kernel"]))
    # The states before the last were given away to the updates after them; what was published was not.
    assert [leaf.is_deleted() for state in states[:-1] for leaf in jax.tree.leaves(state)] == [True] * 15
    for kept, value in zip(published, values, strict=True):
        np.testing.assert_array_equal(kept["kernel"], value)
    assert len({value.tobytes() for value in values}) == 4


def test_rates_follow_the_rows_trained_and_updates_do_not_depend_on_calls() -> None:
    asked: list[int] = []

    def rate(rows: int) -> float:
        asked.append(rows)
        return 0.1 / (1 + rows)

    source = Source(played=8)
    together = make(source, per_call=4, rate=rate)
    together.step()
    assert asked == [0, 4, 8, 12]
    assert together.learning_rate == pytest.approx(0.1 / 17)
    apart = make(Source(played=8), per_call=1, rate=rate)
    apart.step()
    for one, many in zip(jax.tree.leaves(apart.state), jax.tree.leaves(together.state), strict=True):
        np.testing.assert_allclose(one, many, rtol=1e-6)
    # Another seed turns the rows otherwise.
    other = make(Source(played=8), per_call=4, rate=rate)
    other._seed = 12
    other.step()
    assert (np.asarray(other.state.weights["kernel"]) != np.asarray(together.state.weights["kernel"])).any()


def test_weights_of_an_older_version_are_refused() -> None:
    weights = LocalWeights()
    weights.publish(5, {})
    with pytest.raises(ValueError, match="weights version 4 is older than 5"):
        weights.publish(4, {})


def test_an_epoch_waits_for_its_games_and_is_published_when_it_is_over() -> None:
    source = Source(ready=1)
    weights = LocalWeights()
    learner = make(
        source, per_call=2, update=idle, state=STATE, weights=weights, min_rows=1, games_per_epoch=5, steps_per_game=8
    )
    versions = []
    for games in (0, 4, 5, 9, 9, 9, 16, 16, 16, 16, 16, 16):
        learner.step(games)
        with contextlib.suppress(LookupError):
            versions.append(weights.latest()[0])
    # 20 calls of 2 make an epoch; 8 calls are made at a time.
    assert source.asked == [(number, 2) for number in range(0, 120, 2)]
    assert versions == [40, 40, 40, 40, 80, 80, 80, 120]
    assert (learner.epoch, learner.owed(16), learner.owed(19), learner.owed(20)) == (3, 0, 0, 20)


def test_an_epoch_goes_on_where_it_was() -> None:
    """Updates made and games played say all."""
    given: dict[str, Any] = {"update": idle, "state": STATE, "games_per_epoch": 5, "steps_per_game": 8}
    learner = make(Source(ready=1), per_call=2, **given)
    learner.steps = 26  # in the middle of the first
    assert learner.owed(7) == 7
    assert learner.epoch == 0
