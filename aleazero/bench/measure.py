"""Measures a kind at one batch size, at several, or at those where the best one must be.

A size that does not fit, or cannot be timed in the time given, is reported as such; the others are measured all the
same. Knows no kind in particular, no profile and no report.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Sequence

import jax

from aleazero.bench import memory
from aleazero.bench.cases import Case, Cases, Kind, Setup
from aleazero.bench.timing import Timing, TooShort, interleave
from aleazero.core.devices import lanes_step

SECONDS = 5.0  # of timing at each size, if nobody says
GROWS = 0.10  # a doubling that brings less than this more is flat
FLAT = 2  # so many flat doublings in a row end a discovery
ENOUGH = 0.95  # of the best throughput: the smallest size that has it is the best size
_LARGEST = 1 << 24


@dataclasses.dataclass(frozen=True)
class Rate:
    """How fast one case was."""

    unit: str
    per_second: float
    low: float  # of the median's 95 % interval
    high: float
    steady: bool  # the interval is narrow enough
    rounds: int
    compile_seconds: float


@dataclasses.dataclass(frozen=True)
class Ratio:
    """How many times as fast as another: a peer, or the limit."""

    peer: str
    ratio: float
    low: float  # of the median's 95 % interval
    high: float


@dataclasses.dataclass(frozen=True)
class Size:
    """What came of one batch size."""

    batch: int
    rates: dict[str, Rate] = dataclasses.field(default_factory=dict)  # by case, the one it is about first
    shares: dict[str, Ratio] = dataclasses.field(default_factory=dict)  # of their limits, by case
    ratios: dict[str, Ratio] = dataclasses.field(default_factory=dict)  # to their peers, by case
    facts: dict[str, float] = dataclasses.field(default_factory=dict)
    memory: memory.Memory | None = None
    peak_is_bound: bool = False  # the peak is an earlier size's: this one's is no higher
    problem: str | None = None  # why it was not measured

    @property
    def rate(self) -> Rate:
        """Of what the benchmark is about."""
        return next(iter(self.rates.values()))


Say = Callable[[str], None]


def measure(kind: Kind, setup: Setup, batch: int) -> Size:
    """One batch size."""
    gc.collect()  # what the size before compiled and held
    jax.clear_caches()
    before = memory.read()
    try:
        return _timed(kind.build(setup, batch), batch, setup.options.duration, before)
    except (memory.DoesNotFit, TooShort) as error:
        return Size(batch, problem=str(error))
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        if not memory.ran_out(error):
            raise
        said = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
        advice = "take a smaller batch, or let --discover find the largest that fits"
        return Size(batch, problem=f"batch {batch} ran out of memory ({said}): {advice}")


def measure_all(kind: Kind, setup: Setup, sizes: Sequence[int], say: Say) -> list[Size]:
    """Several, from the smallest on."""
    found = []
    for batch in sorted(set(sizes)):
        found.append(measure(kind, setup, batch))
        say(in_words(found[-1]))
    return found


def discover(kind: Kind, setup: Setup, say: Say) -> list[Size]:
    """Doubles until throughput is flat or memory runs out, then looks around the knee. Sizes in order."""
    many = lanes_step()
    batch = many * (8 if jax.default_backend() == "cpu" else 64)
    found: dict[int, Size] = {}
    flat, base = 0, memory.read().in_use
    while flat < FLAT and batch <= _LARGEST:
        _try(kind, setup, batch, found, base, say)
        if found[batch].problem:
            break
        earlier = max((size.rate.per_second for size in found.values() if size.batch < batch), default=0.0)
        flat = flat + 1 if found[batch].rate.per_second < (1 + GROWS) * earlier else 0
        batch *= 2
    knee = best_size(list(found.values()))
    if knee is not None:
        for nearby in (knee.batch * 3 // 4, knee.batch * 3 // 2):
            if nearby >= many and nearby % many == 0 and nearby not in found:
                _try(kind, setup, nearby, found, base, say)
    return [found[batch] for batch in sorted(found)]


def best_size(sizes: Sequence[Size]) -> Size | None:
    """The smallest whose throughput is nearly the best; None where none was measured."""
    measured = [size for size in sizes if size.problem is None]
    if not measured:
        return None
    most = max(size.rate.per_second for size in measured)
    return min((s for s in measured if s.rate.per_second >= ENOUGH * most), key=lambda size: size.batch)


def in_words(size: Size) -> str:
    """A line."""
    if size.problem:
        return size.problem if size.problem.startswith("batch ") else f"batch {size.batch}: {size.problem}"
    rate = size.rate
    noise = "" if rate.steady else " (not steady)"
    return f"batch {size.batch}: {rate.per_second:,.0f} {rate.unit}/s in {rate.rounds} rounds{noise}"


def _try(kind: Kind, setup: Setup, batch: int, found: dict[int, Size], base: int, say: Say) -> None:
    """Measures a size, unless what the others needed says that it cannot fit."""
    smaller = [size for size in found.values() if size.memory and size.batch < batch]
    size = None
    if smaller:
        last = max(smaller, key=lambda size: size.batch)
        assert last.memory is not None
        expected = base + max(last.memory.peak - base, 0) * batch // last.batch
        try:
            setup.room.check(f"batch {batch}", expected)
        except memory.DoesNotFit as error:
            size = Size(batch, problem=str(error))
    found[batch] = size or measure(kind, setup, batch)
    say(in_words(found[batch]))


def _timed(built: Cases, batch: int, duration: float | None, before: memory.Memory) -> Size:
    calls = {case.name: case.call for case in built.cases}
    # Unless somebody says how long it may take, slow cases get the rounds they need.
    seconds, strict = (SECONDS, False) if duration is None else (duration, True)
    timings = interleave(calls, seconds=seconds, strict=strict, once_warm=memory.forget_peak)
    used = memory.read()
    return Size(
        batch,
        rates={case.name: _rate(case, timings[case.name]) for case in built.cases},
        shares={case.name: _ratio(case, case.limit, built, timings) for case in built.cases if case.limit},
        ratios={case.name: _ratio(case, case.peer, built, timings) for case in built.cases if case.peer},
        facts=built.facts(timings),
        memory=used,
        peak_is_bound=used.source == "device" and used.peak == before.peak,
    )


def _rate(case: Case, timing: Timing) -> Rate:
    fast, slow = timing.interval
    return Rate(
        unit=case.unit,
        per_second=case.work / timing.median,
        low=case.work / slow,
        high=case.work / fast,
        steady=timing.steady,
        rounds=len(timing.seconds),
        compile_seconds=timing.compile_seconds if case.compile_seconds is None else case.compile_seconds,
    )


def _ratio(case: Case, name: str, built: Cases, timings: dict[str, Timing]) -> Ratio:
    """To what another case does in the same time."""
    other = next(other for other in built.cases if other.name == name)
    scale = case.work / other.work
    return Ratio(name, *(scale * ratio for ratio in timings[case.name].ratio_to(timings[name])))
