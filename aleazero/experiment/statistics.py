"""What several seeds show together: mean curves and differences, with 95 % intervals.

Seeds are the unit: an interval is Student's t over them, a difference is taken seed by seed. Knows series of numbers;
neither runs nor files.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal

import numpy as np

from aleazero.play.ratings import Interval, t_quantile

Axis = Literal["rows", "seconds"]
Verdict = Literal["helps", "hurts", "no difference shown"]
Bounds = tuple[float, float]
Measured = tuple[np.ndarray, np.ndarray]  # values and their noise, [S, ...] of S seeds

_Z = NormalDist().inv_cdf(0.975)
ANYTHING: Bounds = (-math.inf, math.inf)


@dataclasses.dataclass(frozen=True)
class Series:
    """One run by one measure; every field `[n]` float64, n at least 1."""

    rows: np.ndarray  # increasing
    seconds: np.ndarray  # not decreasing
    value: np.ndarray
    low: np.ndarray  # of the measurement itself, 95 %; infinite where it says nothing
    high: np.ndarray

    @property
    def noise(self) -> np.ndarray:
        """The standard error of the measurements themselves."""
        return (self.high - self.low) / (2 * _Z)

    @property
    def last(self) -> Interval:
        """The last measurement."""
        return Interval(float(self.value[-1]), float(self.low[-1]), float(self.high[-1]))


@dataclasses.dataclass(frozen=True)
class Band:
    """The mean of several runs with its interval; every field `[g]`, empty if no point was reached by all of them."""

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def over_seeds(values: np.ndarray, noise: np.ndarray, bounds: Bounds = ANYTHING) -> tuple[np.ndarray, ...]:
    """Mean, low and high `[...]` over seeds of `values` `[S, ...]`, cut off at what is possible at all.

    Student's t, but never narrower than the measurements' own `noise` (standard errors `[S, ...]`) leaves the mean:
    a few seeds that happen to agree, as scores near 0 and 1 do, would otherwise claim to know it exactly. One seed
    says nothing of the others: its interval is all that is possible.
    """
    count = len(values)
    mean = values.mean(0)
    if count == 1:
        half = np.full_like(mean, math.inf)
    else:
        spread = t_quantile(count - 1) * values.std(0, ddof=1) / math.sqrt(count)
        half = np.maximum(spread, _Z * np.sqrt((noise**2).sum(0)) / count)
    return mean, np.maximum(mean - half, bounds[0]), np.minimum(mean + half, bounds[1])


def common_grid(xs: Sequence[np.ndarray]) -> np.ndarray:
    """Every point at which any series was measured, within the range that all of them reached."""
    points = np.unique(np.concatenate(xs))
    return points[(points >= max(x[0] for x in xs)) & (points <= min(x[-1] for x in xs))]


def mean_curve(series: Sequence[Series], axis: Axis, bounds: Bounds = ANYTHING) -> Band:
    """The mean of runs along rows or seconds; of one run alone its own curve, with its measurements' intervals."""
    if len(series) == 1:
        return Band(getattr(series[0], axis), series[0].value, series[0].low, series[0].high)
    grid = common_grid([getattr(each, axis) for each in series])
    return Band(grid, *over_seeds(*_at(series, axis, grid), bounds))


def final(series: Sequence[Series], bounds: Bounds = ANYTHING) -> Interval:
    """The mean of the last measurements; of one run alone its own."""
    return series[0].last if len(series) == 1 else _interval(over_seeds(*_at_end(series), bounds))


def final_difference(series: Sequence[Series], baseline: Sequence[Series]) -> Interval:
    """How much more the last measurements are than the baseline's, seed by seed (the same seeds in both)."""
    return _difference(_at_end(series), _at_end(baseline))


def difference_in_time(series: Sequence[Series], baseline: Sequence[Series]) -> tuple[float, Interval] | None:
    """The difference at the last second that every run of both reached, and that second; None if there is none."""
    everything = [*series, *baseline]
    end = min(float(each.seconds[-1]) for each in everything)
    if end < max(float(each.seconds[0]) for each in everything):
        return None
    return end, _difference(*(_at(side, "seconds", np.float64(end)) for side in (series, baseline)))


def verdict(difference: Interval, more_is_better: bool) -> Verdict:
    """What a difference allows to be said: nothing, if its interval holds 0."""
    if not (difference.low > 0 or difference.high < 0):
        return "no difference shown"
    return "helps" if (difference.low > 0) == more_is_better else "hurts"


def _at(series: Sequence[Series], axis: Axis, x: np.ndarray | np.float64) -> Measured:
    """On straight lines between measurements; x lies within every series' range."""
    values = [np.interp(x, getattr(each, axis), each.value) for each in series]
    noise = [np.interp(x, getattr(each, axis), each.noise) for each in series]
    return np.stack(values), np.stack(noise)


def _at_end(series: Sequence[Series]) -> Measured:
    return np.array([each.value[-1] for each in series]), np.array([each.noise[-1] for each in series])


def _difference(mine: Measured, theirs: Measured) -> Interval:
    return _interval(over_seeds(mine[0] - theirs[0], np.hypot(mine[1], theirs[1])))


def _interval(numbers: Sequence[np.ndarray]) -> Interval:
    return Interval(*(float(number) for number in numbers))
