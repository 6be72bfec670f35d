"""Sizes are measured, refused or given up for the right reasons, and the best one is found. The cases are made up."""

from __future__ import annotations

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.bench import memory
from aleazero.bench.cases import Case, Cases, Kind, Options, Setup, game_of
from aleazero.bench.measure import Rate, Size, best_size, discover, in_words, measure, measure_all
from aleazero.bench.memory import Room
from aleazero.bench.timing import Timing

Build = Callable[[Setup, int], Cases]


def setup(room: Room | None = None, **options: object) -> Setup:
    return Setup(Options("toy", **options), game_of("tictactoe"), room or memory.room(None))  # type: ignore[arg-type]


def kind(build: Build) -> Kind:
    return Kind("toy", "nothing", "a unit", (), (), lambda setup: (1,), lambda setup: None, build)


def sleeping(seconds: Callable[[int], float]) -> Build:
    def build(setup: Setup, batch: int) -> Cases:
        return Cases((Case("toy", "units", batch, lambda number: time.sleep(seconds(batch))),))

    return build


def test_rates_shares_ratios_and_facts() -> None:
    cases = (
        Case("ours", "units", 10, lambda number: time.sleep(0.02), limit="best", peer="theirs"),
        Case("theirs", "units", 5, lambda number: time.sleep(0.04), 1.5),
        Case("best", "units", 40, lambda number: time.sleep(0.02)),
    )
    size = measure(kind(lambda setup, batch: Cases(cases, lambda timings: {"cases": float(len(timings))})), setup(), 4)
    assert size.problem is None
    assert list(size.rates) == ["ours", "theirs", "best"]
    assert size.rate is size.rates["ours"]
    assert size.rate.per_second == pytest.approx(500, rel=0.2)
    assert size.rate.low <= size.rate.per_second <= size.rate.high
    assert size.rates["theirs"].compile_seconds == 1.5
    assert size.shares["ours"].ratio == pytest.approx(0.25, rel=0.2)
    assert size.shares["ours"].low <= size.shares["ours"].ratio <= size.shares["ours"].high
    assert {name: found["ours"].peer for name, found in (("limit", size.shares), ("peer", size.ratios))} == {
        "limit": "best",
        "peer": "theirs",
    }
    assert size.ratios["ours"].ratio == pytest.approx(4.0, rel=0.2)
    assert size.ratios["ours"].low <= size.ratios["ours"].ratio <= size.ratios["ours"].high
    assert size.facts == {"cases": 3.0}
    assert size.memory is not None
    assert size.memory.source == "resident set"
    assert in_words(size).startswith(f"batch 4: {size.rate.per_second:,.0f} units/s in 7 rounds")


def test_a_size_that_runs_out_of_memory_is_reported_and_the_next_is_measured() -> None:
    def build(setup: Setup, batch: int) -> Cases:
        held = jnp.zeros(1 << (45 if batch == 3 else 4), jnp.uint8)  # 32 TB: the backend refuses
        return Cases((Case("toy", "units", batch, lambda number: held + 1),))

    told: list[str] = []
    sizes = measure_all(kind(build), setup(), [3, 1, 2, 1], told.append)
    assert [size.batch for size in sizes] == [1, 2, 3]
    assert [size.problem is None for size in sizes] == [True, True, False]
    assert "ran out of memory" in str(sizes[2].problem)
    assert "smaller batch" in str(sizes[2].problem)
    assert len(told) == 3


def test_running_out_in_the_middle_of_a_measurement_is_caught_too() -> None:
    def call(number: int) -> object:
        if number == 5:
            raise MemoryError
        return time.sleep(0.02)

    size = measure(kind(lambda setup, batch: Cases((Case("toy", "units", 1, call),))), setup(), 1)
    assert "ran out of memory (MemoryError)" in str(size.problem)


def test_other_errors_are_not_taken_for_it() -> None:
    def call(number: int) -> object:
        raise jax.errors.JaxRuntimeError("INTERNAL: a bug")

    with pytest.raises(jax.errors.JaxRuntimeError, match="a bug"):
        measure(kind(lambda setup, batch: Cases((Case("toy", "units", 1, call),))), setup(), 1)


def test_what_a_program_needs_is_known_before_it_runs() -> None:
    def build(given: Setup, batch: int) -> Cases:
        shape = jax.ShapeDtypeStruct((batch, 1000), jnp.float32)
        program = given.compile(f"batch {batch}", lambda x: x @ x.T, shape)
        return Cases((Case("toy", "units", batch, lambda number: program.run(jnp.ones((batch, 1000)))),))

    small = setup(Room(10**8, given=True))
    assert measure(kind(build), small, 100).problem is None
    refused = measure(kind(build), small, 10_000)
    assert "batch 10000 needs about 0.44 GB, and --memory-limit allows 0.1 GB" in str(refused.problem)


def test_a_duration_too_short_to_measure_says_so() -> None:
    size = measure(kind(sleeping(lambda batch: 0.05)), setup(duration=0.1), 7)
    assert "0.1 s are too short to measure" in str(size.problem)
    assert in_words(size).startswith("batch 7: 0.1 s")


def test_discovery_stops_where_throughput_is_flat_and_finds_the_knee(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is constant up to 64 and then grows with the batch."""

    def clock(calls: dict[str, Callable[[int], float]], **how: object) -> dict[str, Timing]:
        return {name: Timing(name, 0.0, (call(0),) * 7) for name, call in calls.items()}

    monkeypatch.setattr("aleazero.bench.measure.interleave", clock)

    def build(setup: Setup, batch: int) -> Cases:
        return Cases((Case("toy", "units", batch, lambda number: 0.02 * max(batch / 64, 1.0)),))

    sizes = discover(kind(build), setup(Room(None, given=False)), lambda line: None)
    assert [size.batch for size in sizes] == [8, 16, 32, 48, 64, 96, 128, 256]
    best = best_size(sizes)
    assert best is not None
    assert best.batch == 64


def test_discovery_ends_where_memory_does_and_looks_just_below() -> None:
    def build(setup: Setup, batch: int) -> Cases:
        if batch >= 32:
            jax.block_until_ready(jnp.zeros(1 << 45, jnp.uint8))
        return sleeping(lambda batch: 0.02)(setup, batch)

    sizes = discover(kind(build), setup(), lambda line: None)
    assert [size.batch for size in sizes] == [8, 12, 16, 24, 32]
    assert "ran out of memory" in str(sizes[-1].problem)
    best = best_size(sizes)
    assert best is not None
    assert best.batch == 24


def test_discovery_does_not_try_what_cannot_fit() -> None:
    tried: list[int] = []

    def build(setup: Setup, batch: int) -> Cases:
        tried.append(batch)
        held = np.ones((batch, 10**6 // 2))  # 4 MB a lane
        return Cases((Case("toy", "units", batch, lambda number: time.sleep(0.02 + 0 * held[0, 0])),))

    limit = Room(memory.read().in_use + 200 * 10**6, given=True)
    sizes = discover(kind(build), setup(limit), lambda line: None)
    refused = [size for size in sizes if size.problem]
    assert refused
    assert all("--memory-limit allows" in str(size.problem) for size in refused)
    assert not {size.batch for size in refused} & set(tried)
    assert max(tried) * 4 * 10**6 < 210 * 10**6


def test_the_best_size_is_the_smallest_that_is_nearly_as_fast() -> None:
    def size(batch: int, speed: float) -> Size:
        return Size(batch, {"toy": Rate("units", speed, speed, speed, True, 7, 0.0)})

    sizes = [size(8, 100.0), size(16, 190.0), size(32, 196.0), size(64, 200.0), Size(128, problem="too large")]
    assert best_size(sizes) is sizes[1]
    assert best_size(sizes[:1]) is sizes[0]
    assert best_size(sizes[4:]) is None
