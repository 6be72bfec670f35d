"""What the games of a match say of strength: intervals, Elo and a sequential test, with pairs of games as the unit.

The two games of a pair share the opening and the chance draws, with the seats swapped, and so they depend on each
other. An opening that favours one seat favours each player once, and the games of the pair tend to end differently; an
opening that one player understands better is won twice. An interval that takes games for independent is too wide in
the first case and too narrow in the second. Here only pairs are taken for independent. All intervals are 95 %.

Arrays of a match are [P, 2]: P pairs, the player's points or result in both games, NaN for a truncated game. Such a
game has no result and is left out; its pair counts with the other game. Knows no game, no player and no search.
"""

from __future__ import annotations

import dataclasses
import math
from statistics import NormalDist
from typing import Literal

import numpy as np

from aleazero.core.errors import ConfigError

_TAIL = 0.975  # the quantile that leaves 5 % outside on the two sides together
_Z = NormalDist().inv_cdf(_TAIL)


@dataclasses.dataclass(frozen=True)
class Interval:
    """An estimate and the 95 % interval around it."""

    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Tally:
    """How many games ended how, for the player."""

    wins: int
    draws: int
    losses: int
    truncated: int  # stopped before their end: no result


@dataclasses.dataclass(frozen=True)
class SprtResult:
    """Where a sequential test stands."""

    llr: float  # log of the likelihood ratio, elo1 over elo0
    lower: float  # at or below: elo0 is accepted
    upper: float  # at or above: elo1 is accepted
    verdict: Literal["accept", "reject", "continue"]  # of elo1


@dataclasses.dataclass(frozen=True)
class _Sample:
    """The mean over games, and how far it may be off by the luck of which pairs were played."""

    pairs: int  # with a game that ended
    games: int  # that ended
    mean: float  # over these games
    variance: float  # of the mean; 0 where a single pair shows no spread
    alike: float  # variance of the mean over that of independent games, if the games of a pair always ended alike


def _as_pairs(array: np.ndarray, what: str, allowed: tuple[float, ...] | None = None) -> np.ndarray:
    """The array as float64 [P, 2], or ValueError."""
    pairs = np.asarray(array, np.float64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"{what} have shape {pairs.shape}; they must be [pairs, 2], both games of a pair in a row")
    known = pairs[~np.isnan(pairs)]
    wrong = known[~(np.isfinite(known) if allowed is None else np.isin(known, allowed))]
    if wrong.size:
        values = "finite numbers" if allowed is None else ", ".join(f"{value:g}" for value in allowed)
        raise ValueError(f"{what} hold {wrong[0]:g}; allowed: {values}, and NaN for a truncated game")
    return pairs


def _as_results(results: np.ndarray) -> np.ndarray:
    return _as_pairs(results, "results", (0.0, 0.5, 1.0))


def _sample(pairs: np.ndarray) -> _Sample:
    """The mean of a match by the ratio estimator, its variance by leaving out one pair at a time.

    Pairs may have one game or two, so the number of games is random too and the mean is a ratio of two sums. Where all
    pairs are whole, the variance is that of a plain mean over the pairs' means. Where some are not, this jackknife
    tends to the wide side, whichever way the games of a pair depend on each other.
    """
    counts = (~np.isnan(pairs)).sum(axis=1)
    sums = np.nansum(pairs, axis=1)[counts > 0]
    counts = counts[counts > 0]
    num_games = int(counts.sum())
    if num_games == 0:
        raise ValueError(f"no game of {len(pairs)} pairs has a result; play games to their end before rating them")
    mean, variance = _ratio(sums, counts)
    return _Sample(len(counts), num_games, mean, variance, alike=float((counts**2).sum()) / num_games)


def _ratio(sums: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """The mean over all members of independent groups, and its variance; 0 where a single group shows no spread."""
    total, groups = int(counts.sum()), len(counts)
    mean = float(sums.sum()) / total
    if groups == 1:
        return mean, 0.0
    moved = (sums - mean * counts) / (total - counts)  # how far the mean moves without each group
    return mean, float((moved**2).sum()) * (groups - 1) / groups


def t_quantile(dof: int) -> float:
    """Return the 97.5 % quantile of Student's t with `dof` degrees of freedom."""
    if dof < 1:
        raise ValueError(f"degrees of freedom are {dof}; they must be at least 1")
    from scipy.special import stdtrit  # 0.1 s, and few commands rate anything

    return float(stdtrit(dof, _TAIL))


def mean_interval(pairs: np.ndarray) -> Interval:
    """Points per game: the mean over games, and Student's t around it with one degree of freedom less than pairs.

    A single pair says nothing of the spread: its interval is (-inf, inf). Pairs that all brought the same show no
    spread, and the interval has no width; points have no known bounds to widen it by (`score_interval` has).

    Args:
        pairs: [P, 2] points of the player; NaN for a truncated game.

    Raises:
        ValueError: no game has a result, or the array is not one of points.
    """
    sample = _sample(_as_pairs(pairs, "points"))
    return _student(sample.mean, sample.variance, sample.pairs)


def clustered_interval(values: np.ndarray, clusters: np.ndarray) -> Interval:
    """The mean of values `[n]` where only those of different clusters `[n]` are independent: Student's t over clusters.

    As for `mean_interval`: a single cluster says nothing of the spread.
    """
    values = np.asarray(values, np.float64)
    if not len(values):
        raise ValueError("there are no values to take the mean of")
    _, place = np.unique(clusters, return_inverse=True)
    counts = np.bincount(place)
    mean, variance = _ratio(np.bincount(place, values), counts)
    return _student(mean, variance, len(counts))


def _student(mean: float, variance: float, groups: int) -> Interval:
    if groups == 1:
        return Interval(mean, -math.inf, math.inf)
    half = t_quantile(groups - 1) * math.sqrt(variance)
    return Interval(mean, mean - half, mean + half)


def _wilson_low(share: float, trials: float) -> float:
    # The smaller root of Wilson's equation, as the product of both over the larger: exactly 0 for a share of 0.
    room = _Z**2 / (2 * trials)
    return share**2 / (share + room + _Z * math.sqrt(share * (1 - share) / trials + _Z**2 / (4 * trials**2)))


def _wilson(share: float, trials: float) -> Interval:
    return Interval(share, _wilson_low(share, trials), 1.0 - _wilson_low(1.0 - share, trials))


def wilson(successes: int, trials: int) -> Interval:
    """Wilson's interval for a probability, from independent trials."""
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials; allowed: 1 or more trials, 0 to all successful")
    return _wilson(successes / trials, trials)


def _spread(sample: _Sample) -> float:
    """Squared deviations of the pairs' sums, plus what two more pairs would add: one won twice and one lost twice.

    Pairs that all ended the same way show no spread, and a few that nearly did show too little: that one ends
    otherwise is then only a matter of time. Two pairs more keep the variance honest there, and no longer matter where
    the others differ. (The interval of Agresti and Coull adds two wins and two losses for the same reason.)
    """
    return sample.variance * sample.games**2 + sample.alike


def score_interval(results: np.ndarray) -> Interval:
    """Wins and half the draws over games: Wilson's interval for as many independent games as the pairs are worth.

    The design effect is the variance of the score between pairs over that of independent games without draws. It is 2
    where both games of a pair always end alike, 1 where they are independent, below 1 where draws or swapped seats
    even them out; the games over it are the effective number. Where there is no spread to measure, `_spread` decides:
    P pairs won twice give the interval of P wins in P games, from P / (P + 3.84) to 1, and P pairs that all even out
    give 0.5 with about 1.4 / P on either side.

    Args:
        results: [P, 2] the player's 1, 0.5 or 0; NaN for a truncated game.

    Raises:
        ValueError: no game has a result, or the array is not one of results.
    """
    sample = _sample(_as_results(results))
    independent = sample.games * sample.mean * (1.0 - sample.mean) + 1.0  # with the four games that `_spread` adds
    return _wilson(sample.mean, sample.games * independent / _spread(sample))


def elo(score: float) -> float:
    """The Elo difference at which `score` is expected; infinite at 0 and 1."""
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"score is {score}; it must be between 0 and 1")
    if score in (0.0, 1.0):
        return math.copysign(math.inf, score - 0.5)
    return 400.0 * (math.log10(score) - math.log10(1.0 - score))


def expected_score(elo_difference: float) -> float:
    """The score that a player of `elo_difference` above the opponent is expected to make."""
    odds = 10.0 ** (-abs(elo_difference) / 400.0)  # of the weaker side, so that nothing overflows
    return (1.0 if elo_difference >= 0 else odds) / (1.0 + odds)


def elo_interval(score: Interval) -> Interval:
    """A score and its bounds as Elo differences; infinite where the score or a bound is 0 or 1."""
    return Interval(elo(score.value), elo(score.low), elo(score.high))


def results_from_points(points: np.ndarray) -> np.ndarray:
    """1 for points won, 0.5 for none, 0 for points lost, NaN for NaN; of any shape."""
    return (np.sign(np.asarray(points, np.float64)) + 1.0) / 2.0


def tally(results: np.ndarray) -> Tally:
    """Counts the games of `results` [P, 2] by how they ended."""
    games = _as_results(results)
    wins, draws, losses = (int((games == result).sum()) for result in (1.0, 0.5, 0.0))
    return Tally(wins, draws, losses, truncated=int(np.isnan(games).sum()))


def sprt(results: np.ndarray, elo0: float, elo1: float, alpha: float = 0.05, beta: float = 0.05) -> SprtResult:
    """A sequential test of elo1 against elo0, to be asked again after every few pairs until it decides.

    The generalised SPRT with a normal approximation: pairs' scores are normal with a variance that is not known, and
    each hypothesis takes the one that suits it best. For many pairs and close hypotheses this is the
    (s1 - s0) (2 s - s0 - s1) / (2 var(s)) of engine-testing frameworks, which for few pairs, or pairs all alike,
    decides from next to nothing; this one does not. Far from an even score the approximation is coarser: between 200
    and 300 Elo, elo1 may be accepted twice as often as `alpha` allows. No game with a result: the ratio is 1.

    Args:
        results: [P, 2] the player's 1, 0.5 or 0; NaN for a truncated game.
        elo0: the player is no more than this above the opponent; accepted by the verdict "reject".
        elo1: the player is this much above the opponent; accepted by the verdict "accept".
        alpha: how often elo1 may be accepted where elo0 is true.
        beta: how often elo0 may be accepted where elo1 is true.

    Raises:
        ConfigError: settings that cannot be, all at once.
        ValueError: the array is not one of results.
    """
    problems = []
    if not -math.inf < elo0 < elo1 < math.inf:
        problems.append(f"sprt.elo0 is {elo0} and sprt.elo1 is {elo1}; elo0 must be below elo1, both finite")
    for name, rate in (("alpha", alpha), ("beta", beta)):
        if not 0.0 < rate < 0.5:
            problems.append(f"sprt.{name} is {rate}; it must be above 0 and below 0.5")
    if problems:
        raise ConfigError("\n".join(problems))
    games = _as_results(results)
    llr = 0.0
    if not np.isnan(games).all():
        sample = _sample(games)
        of_a_pair = sample.pairs * _spread(sample) / sample.games**2  # variance of a pair's score
        away0, away1 = (sample.mean - expected_score(difference) for difference in (elo0, elo1))
        llr = sample.pairs / 2 * math.log((of_a_pair + away0**2) / (of_a_pair + away1**2))
    lower, upper = math.log(beta / (1.0 - alpha)), math.log((1.0 - beta) / alpha)
    verdict: Literal["accept", "reject", "continue"] = "continue"
    if llr >= upper:
        verdict = "accept"
    elif llr <= lower:
        verdict = "reject"
    return SprtResult(llr, lower, upper, verdict)
