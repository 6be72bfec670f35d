from __future__ import annotations

import pytest

from aleazero.games.balatro import engine, measure, observe


def test_rates_threads_and_memory_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "LANES", 6)
    monkeypatch.setattr(measure, "cores", lambda: 2)
    before = engine.spread
    report = measure.two_threads(0.05, 1)
    assert engine.spread is before
    assert observe.spread is before
    for row in report.values():
        assert row["decisions_per_second"] > 0
        assert row["cores_factor_by_processor_time"] > 0
        assert row["mean_ante"] >= 1
    room = measure.memory()
    assert room["games"] == 6
    assert 6 * 6e-3 < room["megabytes"] < 6 * 8e-3  # six records and six masks of a thousand
    assert room["with_observation_megabytes"] > room["megabytes"]


def test_the_longest_way_is_that_of_the_slowest_thread() -> None:
    def work(low: int, high: int) -> int:
        return sum(i * i for i in range(200_000 if low == 0 else 2_000_000))

    clock = measure._Threads()
    assert len(clock.spread(work, 2, 2)) == 2
    longest = clock.longest
    clock.spread(work, 2, 1)
    assert clock.longest == longest > 0.01


def test_runs_an_hour_are_counted() -> None:
    report = measure.runs_per_hour({"random": 2}, 1)
    assert report["random"]["games_per_hour"] > 0
    assert report["random"]["mean_ante"] == 1
