"""The ring: what is drawn and how often, what the weights undo, which targets games get, and what it costs."""

from __future__ import annotations

import dataclasses
import functools
import re
import time
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aleazero.core.game import WIN_DRAW_LOSS, GameSpec
from aleazero.core.records import Rows, Trajectory
from aleazero.core.struct import replace
from aleazero.learn.targets import Span, TargetConfig, Targets, value_targets
from aleazero.replay.ring import ReplayConfig, Ring, draw, insert, make_ring, parts_of
from tests.games.conftest import quick_compile  # noqa: F401

SPEC = GameSpec(
    name="made up",
    version=1,
    num_players=2,
    num_actions=8,
    max_legal=8,
    observation_shape=(1,),
    outcomes=WIN_DRAW_LOSS,
    max_plies=9,
)
WIDTH = 2  # E
FIELDS = [field.name for field in dataclasses.fields(Ring)]


def like(moves: int, lanes: int, packed: int = 4, width: int = WIDTH) -> Trajectory:
    """The shapes of a slab, with a scalar value."""

    def room(dtype: Any, *shape: int) -> Any:
        return jax.ShapeDtypeStruct((moves, lanes, *shape), dtype)

    return Trajectory(
        state=room(jnp.uint8, packed),
        to_play=room(jnp.int8),
        actions=room(jnp.int16, width),
        policy=room(jnp.float16, width),
        action=room(jnp.int16),
        opinion=room(jnp.float16, 1),
        value=room(jnp.float32),
        searched=room(jnp.bool_),
        random=room(jnp.bool_),
        ended=room(jnp.bool_),
        settled=room(jnp.bool_),
        truncated=room(jnp.bool_),
        points=room(jnp.float32),
        fingerprint=room(jnp.uint32),
    )


def marks(shape: tuple[int, ...]) -> np.ndarray:
    """A packed state for every row that says which row it is."""
    numbers = np.arange(np.prod(shape), dtype="<u4").reshape(shape)
    return numbers[..., None].view(np.uint8)


def read_marks(rows: Rows) -> np.ndarray:
    return np.ascontiguousarray(np.asarray(rows.state)).view("<u4")[..., 0].astype(int)


def ring_of(surprise: np.ndarray) -> Ring:
    """A ring whose rows `[S, T, B]` have these surprises (negative: cannot be drawn) and say who they are."""
    slabs, moves, lanes = surprise.shape
    empty = make_empty(moves, lanes, slabs)
    flat = surprise.reshape(slabs, -1)
    return replace(
        empty,
        state=jnp.asarray(marks(surprise.shape)),
        exists=jnp.ones(surprise.shape, bool),
        surprise=jnp.asarray(surprise, jnp.float32),
        slab_ready=jnp.asarray((flat >= 0).sum(-1), jnp.int32),
        slab_surprise=jnp.asarray(np.maximum(flat, 0).sum(-1), jnp.float32),
        part_surprise=jnp.asarray(np.maximum(flat, 0).reshape(slabs, parts_of(moves, lanes), -1).sum(-1), jnp.float32),
    )


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def make_empty(moves: int, lanes: int, slabs: int) -> Ring:
    return make_ring(like(moves, lanes), slabs)


@functools.partial(jax.jit, static_argnums=(1, 2))
def drawn(ring: Ring, config: ReplayConfig, count: int, number: Any, newest: Any, window: Any) -> Rows:
    return draw(ring, config, count, jnp.uint32(5), number, newest, window)


def take(ring: Ring, config: ReplayConfig, count: int, number: int, newest: int, window: int) -> Rows:
    return drawn(ring, config, count, jnp.uint32(number), jnp.int32(newest), jnp.int32(window))


# ---- how often


def some_surprises(seed: int = 0) -> np.ndarray:
    """`[5, 2, 6]`: a third of the rows cannot be drawn, some do not surprise, slabs differ in how much they hold."""
    rng = np.random.default_rng(seed)
    surprise = rng.uniform(0, 2, (5, 2, 6)) * np.array([1.0, 0.5, 1.0, 0.1, 0.3]).reshape(-1, 1, 1)
    surprise[rng.random(surprise.shape) < 0.1] = 0
    surprise[rng.random(surprise.shape) < np.array([0.1, 0.6, 0.2, 0.3, 0.5]).reshape(-1, 1, 1)] = -1
    return surprise


def chances(surprise: np.ndarray, inside: list[int], w: float) -> np.ndarray:
    """What the chance of every row should be: (1 - w) uniform + w surprise over its sum."""
    ready = np.zeros(surprise.shape)
    ready[inside] = surprise[inside] >= 0
    weight = np.where(ready > 0, surprise, 0.0)
    return np.asarray((1 - w) * ready / ready.sum() + w * weight / weight.sum()).reshape(-1)


def p_value(counts: np.ndarray, expected: np.ndarray) -> float:
    """Of Pearson's test, by Wilson and Hilferty: the cube root of a chi-square is nearly normal.

    0 if something came that could not.
    """
    if counts[expected == 0].any():
        return 0.0
    counts, wanted = counts[expected > 0], counts.sum() * expected[expected > 0]
    freedom = len(counts) - 1
    statistic = ((counts - wanted) ** 2 / wanted).sum()
    spread = 2 / (9 * freedom)
    return NormalDist().cdf((1 - spread - (statistic / freedom) ** (1 / 3)) / spread**0.5)


NEWEST, WINDOW, INSIDE = 1, 3, [1, 0, 4]  # the window goes round the end of the ring
BATCH = 20_000
BETA = 0.7
CONFIG = ReplayConfig(surprise=0.5, importance=BETA)


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize("w", [0.0, 0.5, 1.0])
def test_draws_follow_the_mixture_exactly_and_weights_undo_it(w: float) -> None:
    surprise = some_surprises()
    ring, config = ring_of(surprise), dataclasses.replace(CONFIG, surprise=w)
    batches = [take(ring, config, BATCH, number, NEWEST, WINDOW) for number in range(3)]
    counts = np.bincount(np.concatenate([read_marks(rows) for rows in batches]), minlength=surprise.size)
    assert counts.sum() == 3 * BATCH
    expected = chances(surprise, INSIDE, w)
    assert p_value(counts, expected) > 1e-4

    # The test would notice: a little less weight, a slab first and then a row of it, squares.
    ready = (surprise >= 0) & np.isin(np.arange(5), INSIDE)[:, None, None]
    by_slab = (ready / np.maximum(ready.sum((1, 2), keepdims=True), 1) / WINDOW).reshape(-1)
    squares = chances(np.where(surprise > 0, surprise**2, surprise), INSIDE, w)
    wrong = [by_slab] if w == 0 else [by_slab, squares, chances(surprise, INSIDE, w - 0.05)]
    assert [share for share in wrong if p_value(counts, share) > 1e-6] == []

    # Weights are (N p) ** -beta over their greatest.
    weight = (ready.sum() * expected[read_marks(batches[0])]) ** -BETA
    np.testing.assert_allclose(batches[0].weight, weight / weight.max(), rtol=1e-4)
    assert float(batches[0].weight.max()) == 1.0


@pytest.mark.usefixtures("quick_compile")
def test_a_draw_has_a_number() -> None:
    ring = ring_of(some_surprises())
    first, again, other = (read_marks(take(ring, CONFIG, BATCH, n, NEWEST, WINDOW)) for n in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert 0.01 < (first == other).mean() < 0.15  # as often as two draws from some twenty rows agree


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize(("newest", "window"), [(0, 2), (3, 1), (3, 5)])
def test_rows_outside_the_window_never_come(newest: int, window: int) -> None:
    surprise = np.where(some_surprises() >= 0, 1.0, -1.0)
    found = set(read_marks(take(ring_of(surprise), CONFIG, BATCH, 0, newest, window)).tolist())
    inside = [(newest - age) % 5 for age in range(window)]
    ready = np.flatnonzero(chances(surprise, inside, 0.0))
    assert found == set(ready.tolist())


@pytest.mark.usefixtures("quick_compile")
def test_where_nothing_surprises_draws_are_uniform() -> None:
    surprise = np.where(some_surprises() >= 0, 0.0, -1.0)
    rows = take(ring_of(surprise), CONFIG, BATCH, 0, NEWEST, WINDOW)
    counts = np.bincount(read_marks(rows), minlength=surprise.size)
    assert p_value(counts, chances(np.where(surprise == 0, 1.0, -1.0), INSIDE, 0.0)) > 1e-4


@pytest.mark.usefixtures("quick_compile")
def test_where_nothing_in_the_window_is_ready_the_whole_ring_is_drawn_from() -> None:
    surprise = np.abs(some_surprises())
    surprise[INSIDE] = -1
    rows = take(ring_of(surprise), CONFIG, BATCH, 0, NEWEST, WINDOW)
    counts = np.bincount(read_marks(rows), minlength=surprise.size)
    assert p_value(counts, chances(surprise, [2, 3], 0.5)) > 1e-4


# ---- the window


@given(st.integers(1, 10**6), st.floats(0.05, 2.0), st.floats(0.01, 2.0), st.integers(1, 10**7), st.integers(0, 10**9))
def test_the_window_grows_and_is_bounded(start: int, power: float, growth: float, capacity: int, played: int) -> None:
    config = ReplayConfig(
        capacity_rows=capacity, window="power", window_start=start, window_power=power, window_growth=growth
    )
    here = config.window_rows(played)
    assert 0 <= here <= min(played, capacity)
    assert here <= config.window_rows(played + 1) <= config.window_rows(played * 2 + 1)
    # The formula itself, and no jump where it takes over.
    assert config.window_rows(start) == min(start, capacity)
    step = config.window_rows(start + 1) - config.window_rows(start)
    assert step in (0, 1)


def test_the_window_follows_its_formula() -> None:
    config = ReplayConfig(capacity_rows=10**9, window="power")  # c 50,000, a 0.75, b 0.4
    assert config.window_rows(30_000) == 30_000
    assert config.window_rows(800_000) == int(50_000 * (1 + 0.4 * (16**0.75 - 1) / 0.75))  # 236,666
    assert dataclasses.replace(config, window="all").window_rows(800_000) == 800_000
    assert dataclasses.replace(config, capacity_rows=100_000).window_rows(800_000) == 100_000
    assert dataclasses.replace(config, capacity_rows=100_000, window="all").window_rows(800_000) == 100_000


def test_every_problem_is_named() -> None:
    wrong = ReplayConfig(
        capacity_rows=0, min_rows=5, surprise=1.5, importance=-1, rows_per_new_row=0, window_power=0, prefetch=0
    )
    assert wrong.problems() == [
        "capacity_rows is 0; it must be at least 1",
        "prefetch is 0; it must be at least 1",
        "surprise is 1.5; it must be in 0..1",
        "importance is -1; it must be in 0..1",
        "rows_per_new_row is 0; it must be positive",
        "window_power is 0; it must be positive",
        "min_rows is 5; it cannot exceed capacity_rows (0)",
    ]
    assert ReplayConfig().problems() == []


# ---- slabs in


def play(seed: int, moves: int, lanes: int) -> Trajectory:
    """Made-up games `[T, B]` of one to nine moves, some stopped, some begun at random; players do not alternate."""
    rng = np.random.default_rng(seed)
    over, opening = np.zeros((moves, lanes), bool), np.zeros((moves, lanes), bool)
    for lane in range(lanes):
        start = 0
        while start < moves:
            length = int(rng.integers(1, SPEC.max_plies + 1))
            opening[start : start + int(rng.integers(0, 3)), lane] = True
            if start + length <= moves:
                over[start + length - 1, lane] = True
            start += length
    stopped = over & (rng.random(over.shape) < 0.3)
    ended = over & ~stopped
    fields: dict[str, Any] = {
        "state": marks((moves, lanes)),
        "to_play": rng.integers(0, 2, over.shape).astype(np.int8),
        "actions": rng.integers(0, 8, (*over.shape, WIDTH)).astype(np.int16),
        "policy": rng.random((*over.shape, WIDTH)).astype(np.float16),
        "action": rng.integers(0, 8, over.shape).astype(np.int16),
        "opinion": rng.uniform(-1, 1, (*over.shape, 1)).astype(np.float16),
        "value": rng.uniform(-1, 1, over.shape).astype(np.float32),
        "searched": rng.random(over.shape) < 0.7,
        "random": opening,
        "ended": ended,
        "settled": np.zeros_like(ended),
        "truncated": stopped,
        "points": np.where(ended, rng.integers(-1, 2, over.shape), 0).astype(np.float32),
        "fingerprint": rng.integers(0, 2**32, over.shape).astype(np.uint32),
    }
    return Trajectory(**fields)


def part(whole: Trajectory, start: int, end: int) -> Trajectory:
    return jax.tree.map(lambda x: x[start:end], whole)


@functools.partial(jax.jit, static_argnums=3, donate_argnums=0)
def put(ring: Ring, slab: Trajectory, slots: Any, config: TargetConfig) -> Ring:
    def make_targets(span: Any) -> Targets:
        return value_targets(SPEC, config, Span(**span))

    opinion = slab.opinion.astype(jnp.float32)
    return insert(ring, slab, opinion, opinion[..., 0], slots, make_targets)


def reach_of(moves: int) -> int:
    return -(-SPEC.max_plies // moves) + 1


def filled(whole: Trajectory, moves: int, slabs: int, config: TargetConfig | None = None) -> Ring:
    """A ring that got the trajectory in slabs of so many moves."""
    total, lanes = whole.action.shape
    ring = make_empty(moves, lanes, slabs)
    for number, start in enumerate(range(0, total, moves)):
        slab = part(whole, start, start + moves)
        numbers = range(number + 1 - reach_of(moves), number + 1)
        slots = [slabs if n < 0 else n % slabs for n in numbers]
        ring = put(ring, slab, np.array(slots, np.int32), config or TargetConfig())
    return ring


def held(field: Any, slabs_added: int) -> np.ndarray:
    """A ring's field in the order in which rows were played, `[T of the slabs held, B, ...]`."""
    array = np.asarray(field)
    slabs = array.shape[0]
    order = [number % slabs for number in range(max(slabs_added - slabs, 0), slabs_added)]
    return array[order].reshape(-1, *array.shape[2:])


@dataclasses.dataclass
class ByHand:
    """What every row `[T, B]` should be."""

    ready: np.ndarray  # its game is over: it can be drawn
    has_value: np.ndarray
    target: np.ndarray
    surprise: np.ndarray


def by_hand(whole: Trajectory) -> ByHand:
    """Outcomes by looking ahead, game by game; what followed a random move says nothing of the position."""
    shape = whole.action.shape
    ready, has_value, target = np.zeros(shape, bool), np.zeros(shape, bool), np.zeros(shape)
    for lane in range(shape[1]):
        for t in range(shape[0]):
            for end in range(t, shape[0]):
                if whole.ended[end, lane] or whole.truncated[end, lane]:
                    ready[t, lane], has_value[t, lane] = True, bool(whole.ended[end, lane] & ~whole.random[t, lane])
                    sign = 1 if whole.to_play[t, lane] == 0 else -1
                    target[t, lane] = sign * whole.points[end, lane] if has_value[t, lane] else 0.0
                    break
    away = np.abs(np.asarray(whole.opinion[..., 0], np.float32) - target)
    return ByHand(ready, has_value, target, np.where(ready, np.where(has_value, away, 0), -1))


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize("moves", [1, 4])
def test_games_that_span_slabs_get_their_targets_when_they_end(moves: int) -> None:
    whole, slabs = play(0, 48, 5), max(7, reach_of(moves) + 1)
    # As more slabs come in, what is known at every moment is what the games played so far say.
    for end in range(24, 49, 12):
        seen: Trajectory = jax.tree.map(lambda x, end=end: x[:end], whole)
        wanted, ring = by_hand(seen), filled(seen, moves, slabs)
        rows = slice(-min(end, slabs * moves), None)
        known = {name: held(getattr(ring, name), end // moves) for name in ("has_value", "target", "surprise")}
        np.testing.assert_array_equal(known["has_value"], wanted.has_value[rows])
        np.testing.assert_allclose(known["surprise"], wanted.surprise[rows], atol=1e-6)
        has = wanted.has_value[rows]
        np.testing.assert_array_equal(known["target"][..., 0][has], wanted.target[rows][has])
        assert int(ring.slab_ready.sum()) == wanted.ready[rows].sum()
        assert float(ring.slab_surprise.sum()) == pytest.approx(np.maximum(wanted.surprise[rows], 0).sum(), rel=1e-5)


@pytest.mark.usefixtures("quick_compile")
def test_many_slabs_are_one_long_slab() -> None:
    whole, config = play(1, 48, 5), TargetConfig(td_lambda=0.6, search_mix=0.2)
    long, short = filled(whole, 48, 2, config), filled(whole, 3, 16, config)
    for name in FIELDS:
        if name == "following":
            continue
        if name in ("slab_ready", "slab_surprise", "part_surprise"):
            assert float(getattr(long, name).sum()) == pytest.approx(float(getattr(short, name).sum()), rel=1e-5)
            continue
        one, many = held(getattr(long, name), 1), held(getattr(short, name), 16)
        np.testing.assert_allclose(many.astype(np.float32), one.astype(np.float32), atol=1e-6, err_msg=name)
    assert int(long.slab_ready.sum()) > 50


@pytest.mark.usefixtures("quick_compile")
def test_the_oldest_slab_goes_first_and_what_is_drawn_is_what_was_played() -> None:
    moves, slabs, added = 4, 7, 12
    whole = play(2, moves * added, 5)
    ring = filled(whole, moves, slabs)
    np.testing.assert_array_equal(held(ring.state, added), marks((moves * added, 5))[-moves * slabs :])
    rows = take(ring, CONFIG, BATCH, 0, (added - 1) % slabs, slabs)
    index = read_marks(rows)
    ready = by_hand(whole).ready
    ready[: -moves * slabs] = False  # overwritten
    assert set(index.tolist()) == set(np.flatnonzero(ready).tolist())
    assert_rows(rows, whole, index)


def assert_rows(rows: Rows, whole: Trajectory, index: np.ndarray) -> None:
    """Every field of rows that were drawn, among them the opponent's reply."""
    wanted, lanes = by_hand(whole), whole.action.shape[1]
    t, lane = index // lanes, index % lanes
    np.testing.assert_array_equal(rows.actions, whole.actions[t, lane])
    np.testing.assert_array_equal(rows.policy, whole.policy[t, lane])
    np.testing.assert_array_equal(rows.has_policy, whole.searched[t, lane])
    np.testing.assert_array_equal(rows.has_value, wanted.has_value[t, lane])
    has = wanted.has_value[t, lane]
    np.testing.assert_array_equal(np.asarray(rows.target)[has, 0], wanted.target[t, lane][has])
    goes_on = ~(whole.ended | whole.truncated)[t, lane]
    after = np.minimum(t + 1, len(whole.action) - 1)
    replies = goes_on & (whole.to_play[after, lane] != whole.to_play[t, lane]) & whole.searched[after, lane]
    replies &= ~whole.random[t, lane]
    np.testing.assert_array_equal(
        rows.reply_actions, np.where(replies[:, None], whole.actions[after, lane], -1).astype(np.int16)
    )
    np.testing.assert_array_equal(
        rows.reply_policy, np.where(replies[:, None], whole.policy[after, lane], 0).astype(np.float16)
    )
    # All the ways not to have a reply are among them, and some have one.
    assert replies.any()
    assert (~goes_on).any()
    assert (goes_on & (whole.to_play[after, lane] == whole.to_play[t, lane])).any()
    assert (goes_on & (whole.to_play[after, lane] != whole.to_play[t, lane]) & ~whole.searched[after, lane]).any()


# ---- cost


def large(slabs: int) -> Ring:
    """Narrow rows in slabs of a thousand."""
    shapes = jax.eval_shape(lambda: make_ring(like(4, 250, packed=1, width=1), slabs))
    surprise = np.random.default_rng(0).random(shapes.surprise.shape, np.float32)
    ring = replace(
        jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes),
        surprise=surprise,
        exists=np.ones(shapes.exists.shape, bool),
        slab_ready=np.full(slabs, 1000, np.int32),
        slab_surprise=surprise.reshape(slabs, -1).sum(-1),
        part_surprise=surprise.reshape(slabs, parts_of(4, 250), -1).sum(-1),
    )
    return jax.tree.map(jnp.array, ring)  # copies: what is donated must not be numpy's


def fastest(function: Callable[[int], Any], times: int = 15) -> float:
    jax.block_until_ready(function(0))
    taken = []
    for number in range(times):
        start = time.perf_counter()
        jax.block_until_ready(function(number))
        taken.append(time.perf_counter() - start)
    return min(taken)


def copies(program: Any, slabs: int) -> list[str]:
    """The instructions that copy something with so many slabs in front: a field of the ring."""
    lines = [line.strip() for line in program.as_text().splitlines()]
    return [line for line in lines if re.search(rf"= \w+\[{slabs}[,\]]\S* copy(-start)?\(", line)]


def test_a_slab_is_written_without_a_copy_of_the_ring() -> None:
    slab = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), like(4, 250, packed=1, width=1))
    taken = {}
    for slabs in (100, 4000):
        ring = large(slabs)
        slots = np.arange(reach_of(4), dtype=np.int32)
        program: Any = put.lower(ring, slab, slots, TargetConfig()).compile()
        # Every field of the ring is written where it lies; nothing of its size is made beside it.
        aliased = re.findall(r"\{(\d+)\}: \((\d+), \{\}", program.as_text().splitlines()[0])
        assert [(int(out), int(argument)) for out, argument in aliased] == [(i, i) for i in range(len(FIELDS))]
        assert copies(program, slabs) == []
        memory, ring_bytes = program.memory_analysis(), sum(leaf.nbytes for leaf in jax.tree.leaves(ring))
        assert memory.alias_size_in_bytes == ring_bytes
        assert memory.temp_size_in_bytes < ring_bytes / 4
        old, ring = ring, program(ring, slab, slots)
        assert all(leaf.is_deleted() for leaf in jax.tree.leaves(old))

        def write(number: int, program: Any = program, slots: Any = slots) -> Ring:
            nonlocal ring
            ring = program(ring, slab, slots + np.int32(number))
            return ring

        taken[slabs] = fastest(write)
    assert taken[4000] < 4 * taken[100]  # a copy of the large one would take some forty times as long


def test_that_a_copy_would_be_seen() -> None:
    write = jax.jit(lambda ring: ring.at[0].set(1.0))
    program = write.lower(jax.ShapeDtypeStruct((4000, 4, 250), jnp.float32)).compile()
    assert len(copies(program, 4000)) == 1


def test_how_surprise_is_spread_costs_nothing() -> None:
    """A network that is hardly ever surprised is no hang; neither is one row that surprises more than all others."""
    even = 0.25 + np.random.default_rng(0).random((4, 8, 16)).astype(np.float32)
    single = 1e-6 * even
    single[1, 2, 3] = 1e3
    seconds = {}
    for name, surprise in (("even", even), ("small", 1e-6 * even), ("single", single)):
        ring = ring_of(surprise)
        jax.block_until_ready(take(ring, ReplayConfig(surprise=1.0), 1024, 0, 3, 4))
        each = []
        for number in range(30):
            began = time.perf_counter()
            jax.block_until_ready(take(ring, ReplayConfig(surprise=1.0), 1024, number, 3, 4))
            each.append(time.perf_counter() - began)
        seconds[name] = min(each)  # whatever else the machine does
    assert max(seconds["small"], seconds["single"]) < 4 * seconds["even"]
