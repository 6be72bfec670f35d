"""Timing that can be believed: warm-up apart, variants interleaved, medians with their spread.

Knows nothing of what it times.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds of repeated calls of one variant."""

    name: str
    compile_seconds: float  # first call less the median: tracing and compiling
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median call."""
        return statistics.median(self.seconds)

    def ratio_to(self, other: Timing) -> tuple[float, float, float]:
        """How many times slower the other is: median, least and greatest over the interleaved rounds."""
        ratios = sorted(theirs / ours for ours, theirs in zip(self.seconds, other.seconds, strict=True))
        return statistics.median(ratios), ratios[0], ratios[-1]


def interleave(variants: Mapping[str, Callable[[int], Any]], *, rounds: int) -> dict[str, Timing]:
    """Times every variant once a round; `variant(round)` returns arrays, which are waited for."""
    first = {name: _seconds(call, 0) for name, call in variants.items()}
    for call in variants.values():  # the second call may still settle buffers
        _seconds(call, 0)
    spent: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(rounds):
        for name, call in variants.items():
            spent[name].append(_seconds(call, number))
    return {name: Timing(name, first[name] - statistics.median(times), tuple(times)) for name, times in spent.items()}


def _seconds(call: Callable[[int], Any], number: int) -> float:
    start = time.perf_counter()
    jax.block_until_ready(call(number))
    return time.perf_counter() - start
