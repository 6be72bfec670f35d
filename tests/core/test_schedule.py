"""Schedules: warm-up, the way from start to end, and settings that make none."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.core.schedule import Schedule

TOTAL = 1000


def test_without_an_end_it_stays_where_it_starts() -> None:
    schedule = Schedule(0.3)
    assert [schedule.at(row, TOTAL) for row in (0, 1, 500, TOTAL, 10 * TOTAL)] == [0.3] * 5


def test_a_warm_up_rises_in_equal_steps_and_never_stands_still() -> None:
    schedule = Schedule(2.0, warmup_rows=4)
    assert [schedule.at(row, TOTAL) for row in range(6)] == [0.5, 1.0, 1.5, 2.0, 2.0, 2.0]


def test_a_line_over_the_run() -> None:
    schedule = Schedule(1.0, 0.2)
    found = [schedule.at(row, TOTAL) for row in (0, 250, 500, 750, 1000)]
    assert found == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2])


def test_a_cosine_over_the_run() -> None:
    schedule = Schedule(1.0, 0.2, shape="cosine")
    assert schedule.at(0, TOTAL) == pytest.approx(1.0)
    assert schedule.at(250, TOTAL) == pytest.approx(0.6 + 0.4 * math.cos(math.pi / 4))
    assert schedule.at(500, TOTAL) == pytest.approx(0.6)
    assert schedule.at(750, TOTAL) == pytest.approx(0.6 - 0.4 * math.cos(math.pi / 4))
    assert schedule.at(1000, TOTAL) == pytest.approx(0.2)
    # Flat at both ends, unlike a line.
    assert 1.0 - schedule.at(10, TOTAL) < 0.001
    assert schedule.at(990, TOTAL) - 0.2 < 0.001


@pytest.mark.parametrize("shape", ["linear", "cosine"])
def test_the_way_begins_where_the_warm_up_ends(shape: Any) -> None:
    schedule = Schedule(1.0, 0.0, shape=shape, warmup_rows=200)
    assert schedule.at(199, TOTAL) == schedule.at(200, TOTAL) == 1.0
    assert schedule.at(201, TOTAL) < 1.0
    assert schedule.at(600, TOTAL) == pytest.approx(0.5)
    assert schedule.at(1000, TOTAL) == pytest.approx(0.0)


@pytest.mark.parametrize("shape", ["linear", "cosine"])
def test_its_own_rows_count_and_not_the_runs(shape: Any) -> None:
    schedule = Schedule(1.0, 0.5, rows=100, shape=shape)
    for total in (10, 100, TOTAL):
        assert schedule.at(50, total) == pytest.approx(0.75)
        assert schedule.at(100, total) == schedule.at(101, total) == schedule.at(10**9, total) == 0.5


def test_it_may_rise() -> None:
    assert [Schedule(0.0, 2.0).at(row, TOTAL) for row in (0, 500, 1000)] == [0.0, 1.0, 2.0]


def test_a_warm_up_longer_than_the_run_is_followed_by_the_end() -> None:
    schedule = Schedule(1.0, 0.1, warmup_rows=50)
    assert schedule.at(49, 10) == 1.0
    assert schedule.at(51, 10) == pytest.approx(0.1)


@settings(max_examples=300, deadline=None)
@given(
    start=st.floats(0, 10),
    end=st.floats(0, 10),
    rows=st.integers(0, 500),
    shape=st.sampled_from(["linear", "cosine"]),
    warmup=st.integers(0, 300),
    total=st.integers(1, 600),
)
def test_it_goes_one_way_and_stays_between_its_ends(
    start: float, end: float, rows: int, shape: Any, warmup: int, total: int
) -> None:
    schedule = Schedule(start, end, rows, shape, warmup)
    found = [schedule.at(row, total) for row in range(warmup, 1000, 7)]
    low, high = min(start, end), max(start, end)
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in found)
    towards = 1 if end >= start else -1
    assert all(towards * (b - a) >= -1e-9 for a, b in itertools.pairwise(found))
    assert schedule.at(max(rows or total, warmup + 1), total) == pytest.approx(end)


def test_a_sound_schedule_has_no_problems() -> None:
    assert Schedule(0.0).problems() == []
    assert Schedule(1e-3, 0.0, 10, "cosine", 5).problems() == []


@pytest.mark.parametrize(
    ("schedule", "found"),
    [
        (Schedule(-1.0), ["start is -1.0; it must be a finite number that is not negative"]),
        (Schedule(math.nan), ["start is nan; it must be a finite number that is not negative"]),
        (Schedule(1.0, math.inf), ["end is inf; it must be a finite number that is not negative"]),
        (Schedule(1.0, -0.5), ["end is -0.5; it must be a finite number that is not negative"]),
        (Schedule(1.0, rows=-1), ["rows is -1; it must not be negative"]),
        (Schedule(1.0, warmup_rows=-2), ["warmup_rows is -2; it must not be negative"]),
    ],
)
def test_each_problem_is_named(schedule: Schedule, found: list[str]) -> None:
    assert schedule.problems() == found


def test_all_problems_are_reported_at_once() -> None:
    found = Schedule(-1.0, math.nan, -1, "linear", -1).problems()
    assert [text.split()[0] for text in found] == ["rows", "warmup_rows", "start", "end"]
