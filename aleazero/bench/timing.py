"""Timing that can be believed: warm-up apart, variants interleaved, medians with their 95 % intervals.

Knows nothing of what it times.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from aleazero.core.errors import AleaError

LEAST_ROUNDS = 7  # six are the fewest with a 95 % interval; of an odd number the median is one of them
MOST_ROUNDS = 1000
STEADY = 0.05  # an interval no wider than this share of its median: two quiet runs then agree within it
_SHORTEST, _MOST_CALLS = 0.02, 1000  # seconds of one variant in a round, and the calls that may take


class TooShort(AleaError):  # noqa: N818 - the name says what is wrong with the time given
    """The time given is not enough to measure."""

    def __init__(self, seconds: float, needed: float) -> None:
        super().__init__(
            f"{seconds:g} s are too short to measure: {LEAST_ROUNDS} rounds take about {needed:.1f} s; "
            f"give --duration {math.ceil(needed)} or more, or a smaller batch"
        )
        self.needed = needed


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds of repeated calls of one variant, one mean for each round."""

    name: str
    compile_seconds: float  # first call less the median: tracing and compiling, if that call did
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median call."""
        return statistics.median(self.seconds)

    @property
    def interval(self) -> tuple[float, float]:
        """The median's 95 % interval."""
        return median_interval(self.seconds)

    @property
    def spread(self) -> float:
        """The interval's width over the median."""
        low, high = self.interval
        return (high - low) / self.median

    @property
    def steady(self) -> bool:
        """Whether the median can be relied on."""
        return self.spread <= STEADY

    def ratio_to(self, other: Timing) -> tuple[float, float, float]:
        """How many times slower the other is: the median over the interleaved rounds, and its interval."""
        ratios = [theirs / ours for ours, theirs in zip(self.seconds, other.seconds, strict=True)]
        return statistics.median(ratios), *median_interval(ratios)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The median's 95 % interval by ranks, whatever the distribution; of fewer than six values, all of them."""
    ranked, count = sorted(values), len(values)
    outside = 0  # values at either end that the interval can do without
    tail = 0.0
    while True:
        tail += math.comb(count, outside) / 2.0**count  # that at most `outside` values lie on one side of the median
        if 2 * tail > 0.05 or 2 * (outside + 1) >= count:
            break
        outside += 1
    outside = max(outside - 1, 0)
    return ranked[outside], ranked[-1 - outside]


def interleave(
    variants: Mapping[str, Callable[[int], Any]],
    *,
    seconds: float | None = None,
    rounds: int = LEAST_ROUNDS,
    strict: bool = True,
    once_warm: Callable[[], object] = lambda: None,
) -> dict[str, Timing]:
    """Times every variant in every round; `variant(number)` returns arrays, which are waited for.

    Without `seconds` there are `rounds` rounds. With them there are as many as fit, and at least `rounds`; where those
    do not fit, TooShort says how long they would take, or they take so long if not `strict`. A variant that is over at
    once is called several times a round. `once_warm` is called when everything is compiled and has run twice.
    """
    first = {name: _seconds(call, 0) for name, call in variants.items()}
    again = {name: _seconds(call, 1) for name, call in variants.items()}  # the second call may still settle buffers
    calls = {name: min(max(1, math.ceil(_SHORTEST / max(once, 1e-9))), _MOST_CALLS) for name, once in again.items()}
    spent: dict[str, list[float]] = {name: [] for name in variants}
    once_warm()
    began = time.perf_counter()
    number = 0
    while True:
        for name, call in variants.items():
            times = [_seconds(call, 2 + number * calls[name] + i) for i in range(calls[name])]
            spent[name].append(statistics.fmean(times))
        number += 1
        elapsed = time.perf_counter() - began
        if strict and seconds is not None and elapsed > seconds and number < rounds:
            raise TooShort(seconds, elapsed / number * rounds)
        if number >= rounds and (seconds is None or elapsed * (1 + 1 / number) > seconds or number >= MOST_ROUNDS):
            break
    return {
        name: Timing(name, max(first[name] - statistics.median(times), 0.0), tuple(times))
        for name, times in spent.items()
    }


def _seconds(call: Callable[[int], Any], number: int) -> float:
    start = time.perf_counter()
    jax.block_until_ready(call(number))
    return time.perf_counter() - start
