"""Medians, their intervals and ratios mean what they say; variants take turns, and the time given is kept."""

from __future__ import annotations

import itertools
import math
import random
import statistics
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aleazero.bench.timing import LEAST_ROUNDS, Timing, TooShort, interleave, median_interval


def test_variants_take_turns_and_warm_up_is_apart() -> None:
    order: list[str] = []

    def variant(name: str, seconds: float):  # type: ignore[no-untyped-def]
        def call(number: int) -> None:
            order.append(name)
            time.sleep(0.05 if order.count(name) == 1 else seconds)

        return call

    warm: list[int] = []
    variants = {"a": variant("a", 0.021), "b": variant("b", 0.004)}
    timings = interleave(variants, rounds=3, once_warm=lambda: warm.append(len(order)))
    assert warm == [4]  # each once to compile, once to settle
    assert "".join(order[:4]) == "abab"
    turns = "".join(name for name, _ in itertools.groupby(order[4:]))
    assert turns == "ab" * 3
    assert order[4:].count("a") == 3
    assert order[4:].count("b") % 3 == 0
    assert order[4:].count("b") > 3  # too short for a clock, so several calls make one time
    assert [len(timing.seconds) for timing in timings.values()] == [3, 3]
    assert 0.004 <= timings["b"].median < timings["a"].median
    assert 0.03 < timings["b"].compile_seconds < 0.2


def test_every_call_has_its_own_number() -> None:
    seen: list[int] = []
    interleave({"a": lambda number: (seen.append(number), time.sleep(0.009))}, rounds=3)
    assert seen[0:2] == [0, 1]
    assert sorted(seen) == list(range(len(seen)))


def test_ratio_is_theirs_over_ours_round_by_round() -> None:
    ours, theirs = Timing("ours", 0.0, (1.0, 2.0, 4.0)), Timing("theirs", 0.0, (3.0, 4.0, 20.0))
    assert ours.ratio_to(theirs) == (3.0, 2.0, 5.0)


@pytest.mark.parametrize("count", [6, 7, 9, 20, 50, 200, 1000])
def test_an_interval_holds_the_median_in_95_of_100_cases_and_no_shorter_one_does(count: int) -> None:
    low, high = median_interval(list(range(count)))
    outside = int(low)
    assert high == count - 1 - outside

    def misses(outside: int) -> float:  # that more than so many values lie on one side of the true median
        return 2 * sum(math.comb(count, k) for k in range(outside + 1)) / 2**count

    assert misses(outside) <= 0.05
    assert misses(outside + 1) > 0.05


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=40), st.randoms())
def test_an_interval_holds_the_sample_median_in_any_order(values: list[float], shuffler: random.Random) -> None:
    low, high = median_interval(values)
    assert min(values) <= low <= statistics.median(values) <= high <= max(values)
    shuffler.shuffle(values)
    assert median_interval(values) == (low, high)


def test_steady_is_within_five_percent() -> None:
    assert Timing("", 0.0, (1.0, 1.02, 1.04)).steady
    wide = Timing("", 0.0, (1.0, 1.02, 1.06))
    assert wide.spread == pytest.approx(0.06 / 1.02)
    assert not wide.steady


def test_a_time_too_short_says_how_long_it_takes() -> None:
    with pytest.raises(TooShort, match=r"0\.05 s are too short.*--duration \d+ or more") as caught:
        interleave({"slow": lambda number: time.sleep(0.1)}, seconds=0.05)
    assert caught.value.needed == pytest.approx(LEAST_ROUNDS * 0.1, rel=0.5)
    timings = interleave({"slow": lambda number: time.sleep(0.02)}, seconds=0.05, strict=False)
    assert len(timings["slow"].seconds) == LEAST_ROUNDS


def test_the_time_given_is_used() -> None:
    timings = interleave({"a": lambda number: time.sleep(0.02)}, seconds=0.6)
    assert LEAST_ROUNDS < len(timings["a"].seconds) <= 30
