"""Who is welcome: one start of a worker at a time, by ages and durations alone."""

from __future__ import annotations

from aleazero.runtimes.redis.beats import Beat
from aleazero.runtimes.redis.registry import DEAD_SECONDS, TAKE_OVER_SECONDS, Registry


def beat(instance: str, age: float = 0.0, host: str = "here", **more: object) -> Beat:
    return Beat(age, {"instance": instance, "host": host, "kind": "game", **more})


def test_the_first_is_welcome_and_stays_so() -> None:
    registry = Registry()
    for now in range(0, 60, 2):
        assert registry.see("laptop", beat("a"), now) == ("a", "welcome", "here")
    assert list(registry.alive(60)) == ["laptop"]


def test_a_second_start_is_refused_while_the_first_is_alive() -> None:
    registry = Registry()
    registry.see("laptop", beat("a", host="there"), 0.0)
    assert registry.see("laptop", beat("b"), 1.0) is None, "the first may have ended: it is waited for"
    registry.see("laptop", beat("a"), 2.0)
    said = registry.see("laptop", beat("b"), 3.0)
    assert said is not None
    assert said[:2] == ("b", "refused")
    assert "in use by a worker on here" in said[2]
    assert registry.seats["laptop"].instance == "a"


def test_a_second_start_takes_over_when_the_first_is_silent() -> None:
    registry = Registry()
    registry.see("laptop", beat("a"), 0.0)
    now = 1.0
    while registry.see("laptop", beat("b"), now) is None:
        now += 0.5
        assert now < 20
    assert TAKE_OVER_SECONDS < now < TAKE_OVER_SECONDS + 1
    assert registry.seats["laptop"].instance == "b"
    assert registry.see("laptop", beat("a"), now + 1) is None, "and the first must wait in its turn"


def test_a_start_after_a_good_end_need_not_wait() -> None:
    registry = Registry()
    registry.see("laptop", beat("a"), 0.0)
    registry.see("laptop", beat("a", leaving=True), 1.0)
    assert registry.alive(1.0) == {}
    assert registry.see("laptop", beat("b"), 1.5) == ("b", "welcome", "here")
    registry.free("laptop")
    assert registry.see("laptop", beat("c"), 2.0) == ("c", "welcome", "here")


def test_a_frozen_worker_is_dead_and_comes_back() -> None:
    registry = Registry()
    registry.see("laptop", beat("a"), 0.0)
    for now in range(1, 91):
        said = registry.see("laptop", beat("a", age=float(now)), float(now))
        assert said == ("a", "welcome", "here")
        assert bool(registry.alive(now)) == (now <= DEAD_SECONDS)
    registry.see("laptop", beat("a"), 91.0)
    assert list(registry.alive(91.0)) == ["laptop"]
    assert list(registry.alive(91.0, "eval")) == []


def test_no_other_machine_s_clock_counts() -> None:
    """What a worker says of the time is not looked at, and ages are the server's."""
    registry = Registry()
    for hour in (-3600, 3600):
        assert registry.see("laptop", beat("a", time=1e9 + hour, clock=hour), 5.0) == ("a", "welcome", "here")
    assert registry.seats["laptop"].age(5.0) == 0.0


def test_a_sign_of_life_without_a_name_is_nobody_s() -> None:
    assert Registry().see("laptop", Beat(0.0, {"instance": 7}), 0.0) is None
    assert Registry().see("laptop", Beat(0.0, {}), 0.0) is None
