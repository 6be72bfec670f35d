"""The replay as a running part: counts, windows, and batches that are the same wherever and whenever they are drawn."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aleazero.core.records import Rows, Trajectory
from aleazero.learn.targets import Span, TargetConfig, Targets, value_targets
from aleazero.replay import store
from aleazero.replay.ring import ReplayConfig, _rows
from aleazero.replay.store import QUANTILES, Replay
from tests.games.conftest import quick_compile  # noqa: F401
from tests.replay.test_ring import SPEC, by_hand, fastest, filled, large, like, play, read_marks

pytestmark = pytest.mark.usefixtures("quick_compile")

MOVES, LANES = 5, 6
ROWS = MOVES * LANES
SLABS = 10
CONFIG = ReplayConfig(capacity_rows=SLABS * ROWS, surprise=0.5, importance=0.5)


def think(slab: Trajectory) -> tuple[Array, Array]:
    opinion = slab.opinion.astype(jnp.float32)
    return opinion, opinion[..., 0]


def make_targets(span: dict[str, Array], td_lambda: Array) -> Targets:
    return value_targets(SPEC, TargetConfig(opinion="network"), Span(**span), td_lambda)


def build(config: ReplayConfig = CONFIG, batch_size: int = 64) -> Replay:
    return Replay(
        config,
        like(MOVES, LANES),
        max_plies=SPEC.max_plies,
        batch_size=batch_size,
        seed=3,
        think=think,
        make_targets=make_targets,
        td_lambda=lambda rows: 1.0,
    )


@functools.cache
def built(place: str) -> Replay:
    return build(dataclasses.replace(CONFIG, place=place))  # type: ignore[arg-type]


def make(place: str = "device", **window: Any) -> Replay:
    """An empty replay; its programs are shared, and these know nothing of windows and prefetching."""
    replay = copy.copy(built(place))
    replay.config = dataclasses.replace(replay.config, **window)
    replay.ring = jax.device_put(jax.tree.map(np.array, replay.ring), replay._home)
    replay._ahead = collections.deque()
    replay._games = collections.deque(maxlen=replay.slabs)
    replay.sources = {}
    return replay


@functools.cache
def history() -> Trajectory:
    return play(4, 16 * MOVES, LANES)


def up_to(slabs: int) -> Trajectory:
    return jax.tree.map(lambda x: x[: slabs * MOVES], history())


def add(replay: Replay, *numbers: int) -> None:
    for number in numbers:
        replay.add(jax.tree.map(lambda x, n=number: x[n * MOVES : (n + 1) * MOVES], history()))


def assert_same(one: Rows, two: Rows) -> None:
    for field in dataclasses.fields(Rows):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(two, field.name), err_msg=field.name)


def test_it_holds_as_many_slabs_as_fit_and_no_fewer_than_a_game_needs() -> None:
    assert make().slabs == SLABS
    # A game of nine moves may touch three slabs of five moves: they and the one being written must be there.
    small = build(dataclasses.replace(CONFIG, capacity_rows=1))
    assert (small.reach, small.slabs) == (3, 4)


def test_counts_of_rows() -> None:
    replay = make()
    assert (replay.rows_played, replay.rows_held, replay.window_slabs, replay.count_ready()) == (0, 0, 0, 0)
    for number in range(16):
        add(replay, number)
        assert replay.num_slabs == number + 1
        assert replay.rows_played == (number + 1) * ROWS
        assert replay.rows_held == min(number + 1, SLABS) * ROWS
        assert replay.window_slabs == min(number + 1, SLABS)
        wanted, newest = by_hand(up_to(number + 1)), slice(max(number + 1 - SLABS, 0) * MOVES, None)
        assert replay.count_ready() == wanted.ready[newest].sum()
    surprise = wanted.surprise[newest]
    known, over = surprise[surprise >= 0], np.asarray(history().ended | history().truncated)[newest]
    held = replay.held()
    assert (int(held.ready), int(held.games)) == (replay.count_ready(), over.sum())
    assert float(held.mean_surprise) == pytest.approx(known.mean(), rel=1e-5)
    np.testing.assert_allclose(held.surprise, np.quantile(known, QUANTILES), rtol=1e-5)
    empty = make().held()
    assert (int(empty.games), empty.surprise.tolist()) == (0, [0.0] * len(QUANTILES))


def test_surprise_of_a_large_ring_is_told_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SAMPLED", 32)
    replay = make()
    for number in range(16):
        add(replay, number)
    ring = np.asarray(replay.ring.surprise).reshape(-1)
    stride = -(-ring.size // 32) | 1
    some = ring[::stride]
    assert 16 < some.size <= 32
    found = store._held.__wrapped__(replay.ring).surprise
    np.testing.assert_allclose(found, np.quantile(some[some >= 0], QUANTILES), rtol=1e-5)


def test_a_window_holds_no_more_games_than_asked_for() -> None:
    over = np.asarray(history().ended | history().truncated).reshape(16, -1).sum(1)
    most = int(over.mean() * 4)
    replay = make(capacity_games=most)
    for number in range(16):
        add(replay, number)
        sums = np.cumsum(over[max(number + 1 - SLABS, 0) : number + 1][::-1])
        assert replay.window_slabs == max(int((sums <= most).sum()), 1)
    again = make(capacity_games=most)
    again.restore(jax.tree.map(np.array, replay.ring), replay.num_slabs, replay.sources)
    assert again.window_slabs == replay.window_slabs < SLABS
    assert make(capacity_games=1)._games == collections.deque()


def test_the_games_of_several_sources_do_not_mix() -> None:
    """Slabs of three sources come in any order: every row is what it would be in a replay of its source alone."""
    games = {7: play(4, 5 * MOVES, LANES), 0: play(9, 5 * MOVES, LANES), 2**40: play(5, 5 * MOVES, LANES)}
    order = [7, 0, 0, 7, 2**40, 7, 0, 2**40, 2**40, 0, 7]
    together, alone = make(), {source: make() for source in games}
    slots: dict[int, list[int]] = {source: [] for source in games}
    for number, source in enumerate(order):
        start = len(slots[source]) * MOVES
        slab = jax.tree.map(lambda x, s=start: x[s : s + MOVES], games[source])
        together.add(slab, source)
        alone[source].add(slab)
        slots[source].append(number % SLABS)
    assert len(order) == SLABS + 1  # the first slab of all is gone
    for source, places in slots.items():
        mine = range(len(places)) if source != order[0] else range(1, len(places))
        for name in ("target", "has_value", "surprise", "slab_ready"):
            one, other = np.asarray(getattr(together.ring, name)), np.asarray(getattr(alone[source].ring, name))
            for place in mine:
                np.testing.assert_array_equal(one[places[place]], other[place], err_msg=f"{name} of source {source}")
        following = np.asarray(together.ring.following)
        assert [int(following[places[place]]) for place in mine] == [*places[mine[0] + 1 :], SLABS]
    again = make()
    again.restore(jax.tree.map(np.array, together.ring), together.num_slabs, together.sources)
    assert_same(again.sample(3, 1), together.sample(3, 1))
    for replay in (together, again):
        replay.add(jax.tree.map(lambda x: x[4 * MOVES :], games[7]), 7)
    np.testing.assert_array_equal(together.ring.target, again.ring.target)


def test_the_newest_move_has_no_reply_yet() -> None:
    """Not the one that lies behind it in the ring: that is another time's."""
    whole = play(4, (SLABS + 2) * MOVES, LANES)
    replay = make()
    for number in range(SLABS + 2):
        replay.add(jax.tree.map(lambda x, n=number: x[n * MOVES : (n + 1) * MOVES], whole))
    newest = (replay.num_slabs - 1) % SLABS
    assert np.asarray(replay.ring.following)[newest] == SLABS
    last = newest * ROWS + (MOVES - 1) * LANES + np.arange(LANES)
    ring = jax.tree.map(jnp.asarray, replay.ring)
    assert (np.asarray(_rows(ring, jnp.asarray(last), jnp.ones(LANES)).reply_actions) == -1).all()


def test_counts_go_on_beyond_what_32_bits_hold() -> None:
    long, short = make(), make()
    long.num_slabs = begin = SLABS * 2**40
    short.num_slabs = SLABS
    for replay in (long, short):
        add(replay, *range(9))
        assert replay.rows_held == SLABS * ROWS
        assert replay.window_slabs == SLABS
    assert long.rows_played == (begin + 9) * ROWS > 2**47
    assert_same(long.sample(2**40 + 7, 2), short.sample(7, 2))
    grown = make(window="power", window_start=ROWS, window_power=0.5, window_growth=1e-7)
    grown.num_slabs = begin
    assert 1 < grown.window_slabs < SLABS


def test_the_window_in_slabs_is_rounded_up() -> None:
    replay = make(window="power", window_start=2 * ROWS, window_power=1.0, window_growth=0.3)
    for number in range(12):
        add(replay, number)
        rows = replay.config.window_rows(replay.rows_played)
        assert (replay.window_slabs - 1) * ROWS < rows <= replay.window_slabs * ROWS
    assert replay.window_slabs == 5  # 2 and 0.3 of the other 10
    slabs = set((read_marks(replay.sample(0, 2)) // ROWS).ravel().tolist())
    ready = by_hand(up_to(12)).ready.reshape(12, -1).any(-1)
    assert slabs == set(np.flatnonzero(ready).tolist()) & set(range(7, 12))


def test_a_number_names_a_batch() -> None:
    one, two = make(), make()
    add(one, *range(8))
    add(two, *range(8))
    both = one.sample(0, 2)
    assert both.state.shape == (2, 64, 4)
    assert (read_marks(both)[0] != read_marks(both)[1]).any()
    second: Rows = jax.tree.map(lambda x: x[1:], both)
    assert_same(two.sample(1, 1), second)  # whatever was drawn before, and with what
    assert_same(one.sample(0, 2), both)
    add(one, 8)
    assert (read_marks(one.sample(0, 2)) != read_marks(both)).any()


def test_on_the_host_the_same_rows_are_drawn() -> None:
    device, host = make(), make("host")
    for number in range(12):
        add(device, number)
        add(host, number)
        if number >= 4:
            assert_same(device.sample(number, 2), host.sample(number, 2))


def away(prefetch: int) -> Replay:
    """A replay on the host that believes in an accelerator, so that it draws ahead."""
    replay = make("host", prefetch=prefetch)
    replay._away = True
    return replay


@pytest.mark.parametrize("prefetch", [1, 3])
def test_batches_drawn_ahead_are_those_drawn_in_time(prefetch: int) -> None:
    plain, ahead = make(), away(prefetch)
    number = 0
    for slab in range(9):
        add(plain, slab)
        add(ahead, slab)
        if slab >= 4:
            for _ in range(4):
                assert_same(plain.sample(number, 2), ahead.sample(number, 2))
                number += 2
    # Not the number, or not as many, as it was ready for.
    for first, count in ((number + 7, 2), (2, 2), (4, 2), (6, 1), (7, 1), (8, 2)):
        assert_same(plain.sample(first, count), ahead.sample(first, count))


def test_batches_are_drawn_before_they_are_asked_for_and_forgotten_when_rows_come_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replay = away(prefetch=3)
    add(replay, *range(6))
    drawn: list[int] = []
    draw_now = replay._draw_now

    def watched(number: int, count: int) -> Rows:
        drawn.append(number)
        return draw_now(number, count)

    monkeypatch.setattr(replay, "_draw_now", watched)
    replay.sample(0, 2)
    assert drawn == [0, 2, 4]
    replay.sample(2, 2)
    assert drawn == [0, 2, 4, 6]
    add(replay, 6)
    replay.sample(4, 2)
    assert drawn == [0, 2, 4, 6, 4, 6, 8]


def test_what_is_drawn_is_ready_and_the_ring_is_written_in_place() -> None:
    replay = make()
    before = replay.ring
    add(replay, 0)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(before))
    add(replay, *range(1, 16))
    ready = by_hand(history()).ready
    ready[: -SLABS * MOVES] = False
    index = np.concatenate([read_marks(replay.sample(number, 2)).ravel() for number in range(0, 120, 2)])
    assert set(index.tolist()) == set(np.flatnonzero(ready).tolist())


def test_targets_are_made_with_the_lambda_of_the_rows_played() -> None:
    replay, asked = make(), []

    def td_lambda(rows: int) -> float:
        asked.append(rows)
        return 0.5

    replay._td_lambda = td_lambda
    add(replay, *range(8))
    assert asked == [number * ROWS for number in range(8)]
    wanted = filled(up_to(8), MOVES, SLABS, TargetConfig(td_lambda=0.5, opinion="network"))
    np.testing.assert_array_equal(replay.ring.has_value, wanted.has_value)
    np.testing.assert_allclose(replay.ring.target, wanted.target, atol=1e-6)
    plain = make()
    add(plain, *range(8))
    assert (np.asarray(plain.ring.target) != np.asarray(replay.ring.target)).any()


def test_a_weighted_batch_costs_the_same_from_millions_of_rows() -> None:
    jax.config.update("jax_disable_most_optimizations", False)  # as it runs outside of these tests
    replay = build(ReplayConfig(capacity_rows=1, surprise=0.5), batch_size=1024)

    def cost(slabs: int) -> float:
        replay.ring, replay.slabs, replay.num_slabs = large(slabs), slabs, slabs
        assert np.asarray(replay.sample(0, 1).weight).tolist() == [[1.0] * 1024]  # no power: no weights
        return fastest(lambda number: replay.sample(number, 1))

    assert cost(4000) < 3 * cost(100)


def test_each_program_is_compiled_once() -> None:
    replay = make()
    programs: tuple[Any, ...] = (replay._insert, replay._draw)
    add(replay, *range(6))
    replay.sample(0, 2)
    before = [program._cache_size() for program in programs]
    for number in range(0, 8, 2):
        replay.sample(number, 2)
        add(replay, 6 + number // 2)
    assert [program._cache_size() for program in programs] == before


# ---- rows that do not wait for their games to end


def test_rows_that_do_not_wait_are_ready_at_once_and_final() -> None:
    config = TargetConfig(td_lambda=0.7, opinion="network", wait=False)
    replay = Replay(
        dataclasses.replace(CONFIG, capacity_rows=1),
        like(MOVES, LANES),
        max_plies=None,
        batch_size=64,
        seed=3,
        think=think,
        make_targets=lambda span, td_lambda: value_targets(SPEC, config, Span(**span), td_lambda),
        td_lambda=lambda rows: 0.7,
    )
    assert (replay.reach, replay.slabs) == (1, 2)
    slabs = [jax.tree.map(lambda x, n=n: x[n * MOVES : (n + 1) * MOVES], history()) for n in range(3)]
    ready = []
    for number, slab in enumerate(slabs):
        replay.add(slab)
        names = ("to_play", "ended", "settled", "truncated", "random", "points")
        fields: Any = {name: getattr(slab, name) for name in names}
        opinion, predicted = think(slab)
        span = Span(exists=jnp.ones((MOVES, LANES), bool), opinion=opinion, predicted=predicted, **fields)
        wanted = value_targets(SPEC, config, jax.tree.map(jnp.asarray, span))
        slot = number % 2
        np.testing.assert_array_equal(replay.ring.surprise[slot] >= 0, wanted.ready)
        np.testing.assert_array_equal(replay.ring.has_value[slot], wanted.has_value)
        np.testing.assert_allclose(replay.ring.target[slot], wanted.target, atol=1e-6)
        assert np.asarray(wanted.ready)[:-1].all()
        ready.append(int(wanted.ready.sum()))
        assert replay.count_ready() == sum(ready[-2:])  # the slab before is as it was
