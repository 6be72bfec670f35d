"""Ratings: known values, what must hold for any match, and how often the truth lies where they say."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.core.errors import ConfigError
from aleazero.play.ratings import (
    Interval,
    SprtResult,
    Tally,
    clustered_interval,
    elo,
    elo_interval,
    expected_score,
    mean_interval,
    results_from_points,
    score_interval,
    sprt,
    t_quantile,
    tally,
    wilson,
)

NAN = math.nan
Z = 1.959963984540054
UNHURRIED = settings(deadline=None)


def matches(*values: float, min_pairs: int = 1) -> st.SearchStrategy[np.ndarray]:
    """Matches [P, 2] of some of these values, with at least one game that ended."""
    game = st.sampled_from(values)
    rows = st.lists(st.tuples(game, game), min_size=min_pairs, max_size=25)
    return rows.map(lambda pairs: np.array(pairs, float)).filter(lambda array: not np.isnan(array).all())


RESULTS = matches(1.0, 0.5, 0.0, NAN)
POINTS = matches(-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, NAN)


def close(a: Interval, b: Interval) -> None:
    np.testing.assert_allclose([a.value, a.low, a.high], [b.value, b.low, b.high], rtol=1e-9, atol=1e-9)


def repeated(pair: tuple[float, float], count: int) -> np.ndarray:
    return np.tile(np.array(pair), (count, 1))


def correlated(rng: np.random.Generator, shape: tuple[int, ...], correlation: float) -> np.ndarray:
    """Normal numbers [..., 2] with this correlation between the two games of a pair."""
    games = rng.standard_normal((*shape, 2))
    games[..., 1] = correlation * games[..., 0] + math.sqrt(1 - correlation**2) * games[..., 1]
    return games


def played(rng: np.random.Generator, shape: tuple[int, ...], correlation: float, score: float) -> np.ndarray:
    """Results [..., 2] without draws of a player who is to make this score."""
    return (correlated(rng, shape, correlation) < NormalDist().inv_cdf(score)).astype(float)


def covered(intervals: list[Interval], truth: float) -> float:
    return float(np.mean([interval.low <= truth <= interval.high for interval in intervals]))


# Student's t


@pytest.mark.parametrize(
    ("dof", "published"),
    [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (4, 2.776),
        (5, 2.571),
        (7, 2.365),
        (10, 2.228),
        (15, 2.131),
        (20, 2.086),
        (29, 2.045),
        (60, 2.000),
        (120, 1.980),
    ],
)
def test_t_quantile_is_the_published_one(dof: int, published: float) -> None:
    assert round(t_quantile(dof), 3) == published


def test_t_quantile_has_its_closed_forms_and_its_limit() -> None:
    assert t_quantile(1) == pytest.approx(math.tan(0.475 * math.pi), rel=1e-12)
    assert t_quantile(2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)), rel=1e-12)
    for dof in (10**4, 10**6):  # the expansion around the normal quantile; what it leaves out is below 1e-7
        assert t_quantile(dof) == pytest.approx(Z + (Z**3 + Z) / (4 * dof), abs=1e-7)
    with pytest.raises(ValueError, match="0"):
        t_quantile(0)


# Points per game


def test_mean_interval_of_whole_pairs_is_students_over_pair_means() -> None:
    points = np.array([[2.0, 0.0], [-1.0, 3.0], [1.0, 1.0], [4.0, 2.0]])  # means of pairs: 1, 1, 1, 3
    interval = mean_interval(points)
    assert interval.value == 1.5
    assert interval.high == pytest.approx(1.5 + 3.182446305 * 1.0 / math.sqrt(4))
    assert interval.low == pytest.approx(1.5 - 3.182446305 * 1.0 / math.sqrt(4))


def test_mean_interval_with_truncated_games_leaves_one_pair_out_at_a_time() -> None:
    points = np.array([[2.0, -1.0], [NAN, 3.0], [1.0, NAN], [NAN, NAN], [-2.0, -1.0]])
    kept = points[[0, 1, 2, 4]]
    without = [np.nanmean(np.delete(kept, pair, axis=0)) for pair in range(4)]
    mean = np.nanmean(points)
    half = t_quantile(3) * math.sqrt(3 / 4 * sum((other - mean) ** 2 for other in without))
    close(mean_interval(points), Interval(mean, mean - half, mean + half))


def test_a_single_pair_says_nothing_of_the_spread() -> None:
    assert mean_interval(np.array([[2.0, 1.0]])) == Interval(1.5, -math.inf, math.inf)
    assert mean_interval(np.array([[NAN, NAN], [NAN, 2.0]])) == Interval(2.0, -math.inf, math.inf)


def test_pairs_that_even_out_leave_no_doubt_about_the_mean() -> None:
    assert mean_interval(repeated((2.0, -2.0), 5)) == Interval(0.0, 0.0, 0.0)


# Clusters


@given(POINTS, st.randoms(use_true_random=False))
@UNHURRIED
def test_games_clustered_by_pairs_have_the_interval_of_pairs(points: np.ndarray, rng) -> None:  # type: ignore[no-untyped-def]
    pairs = np.repeat(np.arange(len(points)) * 7 - 20, 2)
    order = rng.sample(
        [i for i, value in enumerate(points.ravel()) if not np.isnan(value)], int((points == points).sum())
    )
    close(clustered_interval(points.ravel()[order], pairs[order]), mean_interval(points))


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=30), st.integers(2, 5))
@UNHURRIED
def test_saying_the_same_again_in_a_cluster_adds_nothing(values: list[float], times: int) -> None:
    once = clustered_interval(np.array(values), np.arange(len(values)))
    half = t_quantile(len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    close(once, Interval(float(np.mean(values)), np.mean(values) - half, np.mean(values) + half))
    close(clustered_interval(np.repeat(values, times), np.repeat(np.arange(len(values)), times)), once)


def test_a_single_cluster_says_nothing_and_no_value_is_an_error() -> None:
    assert clustered_interval(np.array([1.0, 2.0]), np.array([4, 4])) == Interval(1.5, -math.inf, math.inf)
    with pytest.raises(ValueError, match="no values"):
        clustered_interval(np.zeros(0), np.zeros(0, int))


def test_the_mean_of_correlated_values_is_inside_95_percent() -> None:
    """Clusters of different sizes, whose members are half alike; taken for independent it would be far less often."""
    rng = np.random.default_rng(7)
    intervals, naive = [], []
    for _ in range(1500):
        clusters = np.repeat(np.arange(40), rng.integers(1, 12, 40))
        values = rng.standard_normal(40)[clusters] + rng.standard_normal(len(clusters))
        intervals.append(clustered_interval(values, clusters))
        naive.append(clustered_interval(values, np.arange(len(values))))
    assert 0.93 < covered(intervals, 0.0) < 0.97
    assert covered(naive, 0.0) < 0.8


@pytest.mark.parametrize("rate", [mean_interval, score_interval])
def test_no_game_with_a_result_is_an_error(rate) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="no game of 0 pairs has a result"):
        rate(np.zeros((0, 2)))
    with pytest.raises(ValueError, match="no game of 3 pairs has a result"):
        rate(np.full((3, 2), NAN))


def test_arrays_that_are_no_match_are_refused() -> None:
    for shape in ((4,), (4, 1), (2, 3), (2, 2, 2)):
        with pytest.raises(ValueError, match="must be \\[pairs, 2\\]"):
            mean_interval(np.zeros(shape))
    with pytest.raises(ValueError, match="points hold inf"):
        mean_interval(np.array([[1.0, math.inf], [0.0, 0.0]]))
    points = np.array([[1.0, -1.0], [2.0, 0.0]])
    for rate in (score_interval, tally, lambda results: sprt(results, 0, 5)):
        with pytest.raises(ValueError, match=r"results hold -1; allowed: 0, 0\.5, 1, and NaN"):
            rate(points)


@UNHURRIED
@given(POINTS)
def test_mean_is_over_games_and_inside_its_interval(points: np.ndarray) -> None:
    interval = mean_interval(points)
    assert interval.value == pytest.approx(np.nanmean(points))
    assert interval.low <= interval.value <= interval.high


@UNHURRIED
@given(POINTS)
def test_the_opponents_points_have_the_mirrored_interval(points: np.ndarray) -> None:
    ours, theirs = mean_interval(points), mean_interval(-points)
    close(theirs, Interval(-ours.value, -ours.high, -ours.low))


@UNHURRIED
@given(matches(-2.0, -1.0, 1.0, 4.0, NAN, min_pairs=2), st.floats(0.1, 10.0), st.floats(-5.0, 5.0))
def test_points_on_another_scale_have_the_interval_on_that_scale(points: np.ndarray, unit: float, shift: float) -> None:
    ours, other = mean_interval(points), mean_interval(points * unit + shift)
    values = [number * unit + shift for number in (ours.value, ours.low, ours.high)]
    close(other, Interval(*values))


@UNHURRIED
@given(POINTS, st.randoms(use_true_random=False), st.integers(2, 5))
def test_order_changes_nothing_and_more_of_the_same_narrows(points: np.ndarray, rng, times: int) -> None:  # type: ignore[no-untyped-def]
    shuffled = points[rng.sample(range(len(points)), len(points))]
    close(mean_interval(shuffled), mean_interval(points))
    close(mean_interval(points[:, ::-1]), mean_interval(points))
    interval, more = mean_interval(points), mean_interval(np.tile(points, (times, 1)))
    assert more.value == pytest.approx(interval.value)
    assert more.high - more.low <= (interval.high - interval.low) * math.sqrt(1 / (times - 0.5)) + 1e-12


# Score


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [  # the last two: Newcombe (1998), table I, method 3
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
    ],
)
def test_wilson_has_textbook_values(successes: int, trials: int, low: float, high: float) -> None:
    interval = wilson(successes, trials)
    assert interval.value == successes / trials
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


@UNHURRIED
@given(st.integers(1, 10**6).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_wilson_solves_its_equation_inside_bounds(case: tuple[int, int]) -> None:
    successes, trials = case
    interval = wilson(successes, trials)
    assert 0.0 <= interval.low <= interval.value <= interval.high <= 1.0
    assert (interval.low == 0.0) == (successes == 0)
    assert (interval.high == 1.0) == (successes == trials)
    for bound in (interval.low, interval.high):
        assert abs(interval.value - bound) == pytest.approx(Z * math.sqrt(bound * (1 - bound) / trials), abs=1e-9)
    mirrored = wilson(trials - successes, trials)
    close(mirrored, Interval(1 - interval.value, 1 - interval.high, 1 - interval.low))


@UNHURRIED
@given(st.integers(1, 500).flatmap(lambda trials: st.tuples(st.integers(0, trials - 1), st.just(trials))))
def test_wilson_rises_with_successes_and_narrows_with_trials(case: tuple[int, int]) -> None:
    successes, trials = case
    interval, better, longer = (
        wilson(successes, trials),
        wilson(successes + 1, trials),
        wilson(3 * successes, 3 * trials),
    )
    assert interval.low < better.low
    assert interval.high < better.high
    assert longer.high - longer.low < interval.high - interval.low


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_impossible_counts(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match=f"{successes} successes in {trials} trials"):
        wilson(successes, trials)


@pytest.mark.parametrize("count", [1, 2, 10, 500])
def test_all_wins_count_as_one_game_a_pair(count: int) -> None:
    close(score_interval(repeated((1.0, 1.0), count)), wilson(count, count))
    close(score_interval(repeated((0.0, 0.0), count)), wilson(0, count))
    assert score_interval(repeated((1.0, 1.0), count)).high == 1.0
    assert score_interval(repeated((0.0, 0.0), count)).low == 0.0
    close(score_interval(repeated((1.0, NAN), count)), wilson(count, count))


def test_score_interval_is_wilsons_for_the_effective_number_of_games() -> None:
    """Large matches, so that what is added against too little spread does not matter."""
    alike = np.concatenate([repeated((1.0, 1.0), 30000), repeated((0.0, 0.0), 20000)])
    one_each = np.concatenate([repeated((1.0, 0.0), 48000), repeated((1.0, 1.0), 12000), repeated((0.0, 0.0), 2000)])
    independent = np.concatenate(
        [repeated(pair, count) for pair, count in (((1, 1), 18000), ((1, 0), 24000), ((0, 0), 8000))]
    )
    half_played = np.concatenate([repeated((1.0, NAN), 30000), repeated((NAN, 0.0), 20000)])
    for results, successes, trials in (
        (alike, 30000, 50000),
        (independent, 60000, 100000),
        (half_played, 30000, 50000),
    ):
        interval, expected = score_interval(results), wilson(successes, trials)
        assert interval.value == pytest.approx(0.6)
        assert interval.low == pytest.approx(expected.low, abs=1e-6)
        assert interval.high == pytest.approx(expected.high, abs=1e-6)
    between = np.std(one_each.mean(axis=1)) / math.sqrt(len(one_each))
    interval = score_interval(one_each)
    assert (interval.high - interval.low) / 2 == pytest.approx(Z * between, rel=1e-3)


@pytest.mark.parametrize("pair", [(1.0, 0.0), (0.5, 0.5)])
@pytest.mark.parametrize(("count", "worth"), [(2, 4), (10, 60), (100, 5100)])
def test_pairs_that_all_even_out_leave_room_for_one_that_does_not(
    pair: tuple[float, float], count: int, worth: int
) -> None:
    """At most 3.7 / P of all pairs can be of a kind never seen in P, with 97.5 %; each moves the score by a half."""
    interval = score_interval(repeated(pair, count))
    close(interval, wilson(worth // 2, worth))
    assert interval.high - 0.5 < 0.5 * 3.7 / count


@UNHURRIED
@given(RESULTS)
def test_score_is_over_games_and_its_interval_inside_bounds(results: np.ndarray) -> None:
    interval, counts = score_interval(results), tally(results)
    games = counts.wins + counts.draws + counts.losses
    assert interval.value == pytest.approx((counts.wins + counts.draws / 2) / games)
    assert 0.0 <= interval.low <= interval.value <= interval.high <= 1.0
    assert interval.low < interval.high
    assert (interval.low == 0.0) == (interval.value == 0.0)
    assert (interval.high == 1.0) == (interval.value == 1.0)


@UNHURRIED
@given(RESULTS)
def test_the_opponents_results_have_the_mirrored_interval(results: np.ndarray) -> None:
    ours, theirs = score_interval(results), score_interval(1.0 - results)
    close(theirs, Interval(1 - ours.value, 1 - ours.high, 1 - ours.low))


@UNHURRIED
@given(RESULTS, st.randoms(use_true_random=False), st.integers(2, 5))
def test_order_changes_no_score_and_more_of_the_same_narrows(results: np.ndarray, rng, times: int) -> None:  # type: ignore[no-untyped-def]
    shuffled = results[rng.sample(range(len(results)), len(results))]
    close(score_interval(shuffled), score_interval(results))
    close(score_interval(results[:, ::-1]), score_interval(results))
    interval, more = score_interval(results), score_interval(np.tile(results, (times, 1)))
    assert more.value == pytest.approx(interval.value)
    assert more.high - more.low < interval.high - interval.low


@UNHURRIED
@given(matches(1.0, 0.5, 0.0))
def test_a_pair_won_twice_instead_of_lost_twice_raises_the_score(results: np.ndarray) -> None:
    lost, won = (np.concatenate([results, [[result, result]]]) for result in (0.0, 1.0))
    assert score_interval(won).value > score_interval(lost).value
    assert score_interval(won).low > score_interval(lost).low
    assert score_interval(won).high > score_interval(lost).high


@UNHURRIED
@given(RESULTS)
def test_truncated_pairs_change_nothing(results: np.ndarray) -> None:
    longer = np.concatenate([[[NAN, NAN]], results, [[NAN, NAN]]])
    close(score_interval(longer), score_interval(results))
    close(mean_interval(longer), mean_interval(results))
    assert sprt(longer, -10, 10) == sprt(results, -10, 10)


# How often the truth is inside

NUM_MATCHES = 2000


def per_game(match: np.ndarray) -> Interval:
    """What would be said if games were independent."""
    half = Z * match.std(ddof=1) / math.sqrt(match.size)
    return Interval(match.mean(), match.mean() - half, match.mean() + half)


@pytest.mark.parametrize(("correlation", "naive"), [(0.95, (0.0, 0.88)), (0.0, (0.93, 0.97)), (-0.8, (0.985, 1.0))])
@pytest.mark.parametrize("num_pairs", [12, 100])
def test_mean_is_inside_95_percent_however_pairs_correlate(
    correlation: float, naive: tuple[float, float], num_pairs: int
) -> None:
    """Points as in backgammon; per-game intervals fail wherever pairs correlate."""
    rng = np.random.default_rng(5)
    values = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    chances = np.array([0.01, 0.14, 0.3, 0.4, 0.14, 0.01])
    bounds = [NormalDist().inv_cdf(below) for below in np.cumsum(chances)[:-1]]
    points = values[np.searchsorted(bounds, correlated(rng, (NUM_MATCHES, num_pairs), correlation))]
    truth = float(values @ chances)
    assert 0.93 <= covered([mean_interval(match) for match in points], truth) <= 0.97
    low, high = naive
    assert low <= covered([per_game(match) for match in points], truth) <= high


@pytest.mark.parametrize("correlation", [0.95, 0.0, -0.8])
def test_mean_is_inside_95_percent_with_truncated_games(correlation: float) -> None:
    rng = np.random.default_rng(6)
    points = 3.0 * played(rng, (NUM_MATCHES, 40), correlation, 0.6) - 1.0
    points[rng.random(points.shape) < 0.3] = NAN
    assert 0.93 <= covered([mean_interval(match) for match in points], 0.8) <= 0.97


@pytest.mark.parametrize("correlation", [0.95, 0.0, -0.8])
@pytest.mark.parametrize("score", [0.5, 0.7, 0.9])
def test_score_is_inside_95_percent_however_pairs_correlate(correlation: float, score: float) -> None:
    rng = np.random.default_rng(7)
    results = played(rng, (NUM_MATCHES, 150), correlation, score)
    assert 0.93 <= covered([score_interval(match) for match in results], score) <= 0.97
    naive = covered([wilson(int(match.sum()), match.size) for match in results], score)
    if correlation > 0:
        assert naive < 0.9
    if correlation < 0 and score < 0.9:  # where losses are few, two in a pair are rare anyway
        assert naive > 0.98


@pytest.mark.parametrize("correlation", [0.95, -0.8])
@pytest.mark.parametrize("score", [0.5, 0.97])
def test_score_of_few_pairs_or_an_extreme_one_is_not_oversold(correlation: float, score: float) -> None:
    rng = np.random.default_rng(8)
    for num_pairs in (8, 30):
        results = played(rng, (NUM_MATCHES, num_pairs), correlation, score)
        assert covered([score_interval(match) for match in results], score) >= 0.93


def test_draws_narrow_the_interval_rightly() -> None:
    rng = np.random.default_rng(9)
    games = rng.random((NUM_MATCHES, 150, 2))
    results = np.where(games < 0.2, 1.0, np.where(games < 0.9, 0.5, 0.0))  # a score of 0.55
    intervals = [score_interval(match) for match in results]
    assert 0.93 <= covered(intervals, 0.55) <= 0.97
    assert np.mean([interval.high - interval.low for interval in intervals]) < 0.6 * (
        wilson(165, 300).high - wilson(165, 300).low
    )


# Elo


def test_elo_has_known_values() -> None:
    assert elo(0.75) == pytest.approx(190.8485, abs=1e-4)
    assert elo(0.5) == 0.0
    assert elo(10 / 11) == pytest.approx(400.0)
    assert (elo(1.0), elo(0.0)) == (math.inf, -math.inf)
    assert expected_score(0.0) == 0.5
    assert expected_score(400.0) == pytest.approx(10 / 11)
    assert (expected_score(math.inf), expected_score(-math.inf)) == (1.0, 0.0)
    assert (expected_score(1e9), expected_score(-1e9)) == (1.0, 0.0)
    for wrong in (-0.01, 1.01, NAN):
        with pytest.raises(ValueError, match="between 0 and 1"):
            elo(wrong)


@UNHURRIED
@given(st.floats(-2000, 2000), st.floats(-2000, 2000))
def test_elo_and_expected_score_undo_and_mirror_each_other(one: float, other: float) -> None:
    assert elo(expected_score(one)) == pytest.approx(one, abs=1e-6)
    assert expected_score(-one) == pytest.approx(1 - expected_score(one), abs=1e-15)
    assert elo(1 - expected_score(one)) == pytest.approx(-one, abs=1e-6)
    if one < other - 1e-6:
        assert expected_score(one) < expected_score(other)


def test_elo_interval_takes_over_all_three_numbers() -> None:
    interval = elo_interval(score_interval(repeated((1.0, 1.0), 20)))
    assert (interval.value, interval.high) == (math.inf, math.inf)
    assert interval.low == pytest.approx(400 * math.log10(20 / Z**2))
    close(elo_interval(Interval(0.5, 0.25, 0.75)), Interval(0.0, -elo(0.75), elo(0.75)))


# Counting


def test_results_come_from_the_sign_of_points() -> None:
    points = np.array([[3.0, -2.0], [0.0, NAN], [-0.0, 0.5]])
    np.testing.assert_array_equal(results_from_points(points), [[1.0, 0.0], [0.5, NAN], [0.5, 1.0]])
    np.testing.assert_array_equal(results_from_points(np.array([-1, 0, 1])), [0.0, 0.5, 1.0])


def test_tally_counts_every_game_once() -> None:
    assert tally(np.array([[1.0, 0.0], [0.5, NAN], [1.0, 1.0], [NAN, NAN]])) == Tally(3, 1, 1, 3)
    assert tally(np.zeros((0, 2))) == Tally(0, 0, 0, 0)


# The sequential test


def test_sprt_has_walds_bounds_and_starts_undecided() -> None:
    result = sprt(np.zeros((0, 2)), 0.0, 5.0, alpha=0.05, beta=0.1)
    assert result == SprtResult(0.0, math.log(0.1 / 0.95), math.log(0.9 / 0.05), "continue")
    assert sprt(np.full((2, 2), NAN), 0.0, 5.0).llr == 0.0


def test_sprt_of_a_small_match_by_hand() -> None:
    """Three pairs of scores 1, 0.5, 0.75 and one of 0.75, and two imagined ones of 1 and 0 around a half."""
    results = np.array([[1.0, 1.0], [0.0, 1.0], [0.5, 1.0], [1.0, 0.5]])
    between = (0.25**2 + 0.25**2) / 3 + 2 * 0.5**2 / 4
    low, high = 0.5, 10 / 11
    expected = 4 / 2 * math.log((between + (0.75 - low) ** 2) / (between + (0.75 - high) ** 2))
    assert sprt(results, 0.0, 400.0).llr == pytest.approx(expected)


def test_sprt_of_a_long_match_is_the_usual_approximation() -> None:
    rng = np.random.default_rng(10)
    results = played(rng, (4000,), 0.5, 0.51)
    scores = results.mean(axis=1)
    low, high = expected_score(0.0), expected_score(10.0)
    usual = (high - low) * (2 * scores.mean() - low - high) / (2 * scores.var() / len(scores))
    assert sprt(results, 0.0, 10.0).llr == pytest.approx(usual, rel=0.01)


def test_sprt_does_not_decide_from_next_to_nothing() -> None:
    """Pairs of one win each say "exactly even" only when there are enough of them."""
    for pair in ((1.0, 0.0), (0.5, 0.5)):
        assert sprt(repeated(pair, 20), 0.0, 10.0).verdict == "continue"
        assert sprt(repeated(pair, 1000), 0.0, 10.0).verdict == "reject"
    for count in (1, 3):
        assert sprt(repeated((1.0, 1.0), count), 0.0, 10.0).verdict == "continue"
    assert sprt(repeated((1.0, 1.0), 500), 0.0, 10.0).verdict == "accept"
    assert sprt(repeated((0.0, 0.0), 500), 0.0, 10.0).verdict == "reject"


@UNHURRIED
@given(RESULTS, st.floats(-300, 300), st.floats(1, 300), st.floats(0.001, 0.499), st.floats(0.001, 0.499))
def test_sprt_seen_by_the_opponent_is_mirrored(
    results: np.ndarray, elo0: float, more: float, alpha: float, beta: float
) -> None:
    ours = sprt(results, elo0, elo0 + more, alpha, beta)
    theirs = sprt(1.0 - results, -elo0 - more, -elo0, beta, alpha)
    np.testing.assert_allclose([theirs.llr, theirs.lower, theirs.upper], [-ours.llr, -ours.upper, -ours.lower])
    assert ours.lower < 0 < ours.upper
    assert (ours.verdict == "accept") == (ours.llr >= ours.upper)
    assert (ours.verdict == "reject") == (ours.llr <= ours.lower)


@UNHURRIED
@given(RESULTS, st.randoms(use_true_random=False))
def test_sprt_does_not_depend_on_the_order_of_pairs(results: np.ndarray, rng) -> None:  # type: ignore[no-untyped-def]
    shuffled = results[rng.sample(range(len(results)), len(results))]
    assert sprt(shuffled, 0, 50).llr == pytest.approx(sprt(results, 0, 50).llr, rel=1e-9, abs=1e-9)


def stopped(rng: np.random.Generator, correlation: float, difference: float, rate: float) -> tuple[str, int]:
    """A match played until the test of 0 against 80 Elo decides, asked after every second pair: verdict and length."""
    results = played(rng, (1000,), correlation, expected_score(difference))
    for length in range(2, 1001, 2):
        result = sprt(results[:length], 0.0, 80.0, rate, rate)
        if result.verdict != "continue":
            return result.verdict, length
    return "continue", 1000


@pytest.mark.parametrize("correlation", [0.95, 0.0])
def test_sprt_errs_about_as_often_as_it_may(correlation: float) -> None:
    rng = np.random.default_rng(11)
    rate, count = 0.1, 300
    weak = [stopped(rng, correlation, 0.0, rate) for _ in range(count)]
    strong = [stopped(rng, correlation, 80.0, rate) for _ in range(count)]
    accepted = sum(verdict == "accept" for verdict, _ in weak) / count
    rejected = sum(verdict == "reject" for verdict, _ in strong) / count
    assert 0.04 <= accepted <= 0.13
    assert 0.04 <= rejected <= 0.13
    assert "continue" not in {verdict for verdict, _ in weak + strong}


def test_sprt_gains_from_pairs_that_even_out() -> None:
    """The same player needs fewer pairs where the luck of the opening cancels, and errs no more often."""
    rng = np.random.default_rng(12)
    independent, swapped = ([stopped(rng, correlation, 0.0, 0.05) for _ in range(150)] for correlation in (0.0, -0.8))
    assert np.mean([length for _, length in swapped]) < 0.7 * np.mean([length for _, length in independent])
    assert sum(verdict == "accept" for verdict, _ in swapped) / 150 <= 0.05


def test_sprt_reports_all_wrong_settings_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        sprt(np.zeros((3, 2)), 5.0, 5.0, alpha=0.0, beta=0.5)
    lines = str(raised.value).splitlines()
    assert [line.split(" is ")[0] for line in lines] == ["sprt.elo0", "sprt.alpha", "sprt.beta"]
    assert "5.0" in lines[0]
    assert "0.5" in lines[2]
    for elo0, elo1 in ((-math.inf, 0.0), (0.0, math.inf), (NAN, 1.0), (10.0, 0.0)):
        with pytest.raises(ConfigError, match="elo0 must be below elo1"):
            sprt(np.zeros((3, 2)), elo0, elo1)
