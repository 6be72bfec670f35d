"""Opinions: whose they are, what they are worth, and how a search's value moves one."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.core.game import WIN_DRAW_LOSS, WIN_LOSS, GameSpec, Outcome
from aleazero.core.opinions import certain, expected_value, other_side, points_table, seen_by_seat, tilt
from aleazero.games.tictactoe import TicTacToe

# Mine first, then yours, so that the mirror image is not the list read backwards.
SIX = tuple(Outcome(f"{points:+}", float(points)) for points in (1, 2, 3, -1, -2, -3))
SPECS = {
    name: dataclasses.replace(TicTacToe.spec, outcomes=outcomes)
    for name, outcomes in {"wdl": WIN_DRAW_LOSS, "wl": WIN_LOSS, "six": SIX, "scalar": ()}.items()
}
DISTRIBUTIONS = ("wdl", "wl", "six")
COMMON = settings(max_examples=60, deadline=None, derandomize=True)

tilt_quickly = jax.jit(tilt, static_argnums=0)


def points_of(spec: GameSpec) -> np.ndarray:
    return np.array([outcome.points for outcome in spec.outcomes])


def worth(spec: GameSpec, opinion: np.ndarray) -> np.ndarray:
    """The expected value, as in the definition."""
    if opinion.shape[-1] == 1:
        return np.asarray(opinion, np.float64)[..., 0]
    points = points_of(spec)
    return np.asarray(opinion, np.float64) @ (points / np.abs(points).max())


def mirrored(spec: GameSpec, opinion: np.ndarray) -> np.ndarray:
    """The opponent's probability of an outcome is mine of the one with the opposite points."""
    if opinion.shape[-1] == 1:
        return -opinion
    mine = dict(zip(points_of(spec).tolist(), np.moveaxis(opinion, -1, 0), strict=True))
    return np.stack([mine[-points] for points in points_of(spec).tolist()], -1)


@st.composite
def opinions(draw: st.DrawFn) -> tuple[GameSpec, np.ndarray]:
    name = draw(st.sampled_from(sorted(SPECS)))
    spec = SPECS[name]
    if name == "scalar":
        return spec, np.array([draw(st.floats(-1, 1, width=32))], np.float32)
    count = len(spec.outcomes)
    weights = draw(st.lists(st.integers(0, 1000), min_size=count, max_size=count).filter(any))
    return spec, (np.array(weights) / sum(weights)).astype(np.float32)


@COMMON
@given(opinions())
def test_the_other_side_of_the_other_side_is_this_one(case: tuple[GameSpec, np.ndarray]) -> None:
    spec, opinion = case
    there = other_side(spec, jnp.asarray(opinion))
    np.testing.assert_array_equal(there, mirrored(spec, opinion))
    np.testing.assert_array_equal(other_side(spec, there), opinion)


@COMMON
@given(opinions())
def test_what_is_good_for_one_is_as_bad_for_the_other(case: tuple[GameSpec, np.ndarray]) -> None:
    spec, opinion = case
    here = float(expected_value(spec, jnp.asarray(opinion)))
    assert here == pytest.approx(float(worth(spec, opinion)), abs=1e-6)
    assert float(expected_value(spec, other_side(spec, jnp.asarray(opinion)))) == pytest.approx(-here, abs=1e-6)


def test_points_are_over_the_largest() -> None:
    assert points_table(SPECS["wdl"]).tolist() == [1.0, 0.0, -1.0]
    np.testing.assert_allclose(points_table(SPECS["six"]), np.array([1, 2, 3, -1, -2, -3]) / 3, rtol=1e-6)
    assert points_table(SPECS["six"]).dtype == np.float32


def random_opinions(spec: GameSpec, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if not spec.outcomes:
        return rng.uniform(-1, 1, (*shape, 1)).astype(np.float32)
    return rng.dirichlet(np.ones(len(spec.outcomes)), shape).astype(np.float32)


@pytest.mark.parametrize("name", sorted(SPECS))
def test_seats_see_their_own_side(name: str) -> None:
    spec = SPECS[name]
    opinion = random_opinions(spec, (4, 3))
    seat = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 1]], np.int8)
    seen = np.asarray(seen_by_seat(spec, jnp.asarray(opinion), jnp.asarray(seat)))
    for place in np.ndindex(4, 3):
        wanted = mirrored(spec, opinion[place]) if seat[place] else opinion[place]
        np.testing.assert_array_equal(seen[place], wanted)
    back = seen_by_seat(spec, jnp.asarray(seen), jnp.asarray(seat))
    np.testing.assert_array_equal(back, opinion)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_one_who_knows_the_points_is_certain(name: str) -> None:
    spec = SPECS[name]
    count = len(spec.outcomes)
    known = certain(spec, jnp.asarray(points_of(spec), jnp.float32), count)
    np.testing.assert_array_equal(known, np.eye(count))
    np.testing.assert_allclose(expected_value(spec, known), points_of(spec) / spec.scale, rtol=1e-6)
    turned = certain(spec, -jnp.asarray(points_of(spec), jnp.float32), count)
    np.testing.assert_array_equal(turned, other_side(spec, known))


def test_a_certain_number_is_the_points_over_the_largest() -> None:
    points = jnp.array([[3.0, -2.0], [0.0, 1.0]])
    assert certain(SPECS["six"], points, 1).shape == (2, 2, 1)
    np.testing.assert_allclose(certain(SPECS["six"], points, 1)[..., 0], points / 3, rtol=1e-6)
    # Where a game has no outcomes, its points are its values.
    np.testing.assert_array_equal(certain(SPECS["scalar"], points / 4, 1)[..., 0], points / 4)


# ---- tilt


def awkward_opinions(spec: GameSpec) -> np.ndarray:
    """`[N, O]`: even, uneven and certain ones."""
    count = len(spec.outcomes)
    rng = np.random.default_rng(1)
    return np.concatenate([rng.dirichlet(np.full(count, share), 12) for share in (5.0, 1.0, 0.05)] + [np.eye(count)])


def everywhere(spec: GameSpec, opinion: np.ndarray, values: np.ndarray) -> np.ndarray:
    """`[N, M, O]`: N opinions tilted to each of M values."""
    each = np.broadcast_to(opinion[:, None], (len(opinion), len(values), opinion.shape[-1])).astype(np.float32)
    wanted = np.broadcast_to(values, each.shape[:2]).astype(np.float32)
    return np.asarray(tilt_quickly(spec, each, wanted))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_tilted_opinion_is_worth_what_was_asked(name: str) -> None:
    spec, values = SPECS[name], np.linspace(-1, 1, 41)
    found = everywhere(spec, awkward_opinions(spec), values)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(worth(spec, found), np.broadcast_to(values, found.shape[:2]), atol=1e-3)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_value_that_fits_already_changes_nothing(name: str) -> None:
    spec = SPECS[name]
    opinion = (0.9 * random_opinions(spec, (50,), 2) + 0.1 / len(spec.outcomes)).astype(np.float32)
    found = tilt_quickly(spec, opinion, worth(spec, opinion).astype(np.float32))
    np.testing.assert_allclose(found, opinion, atol=1e-4)


def relative_entropy(q: np.ndarray, p: np.ndarray) -> np.ndarray:
    return np.where(q > 0, q * (np.log(np.maximum(q, 1e-300)) - np.log(p)), 0).sum(-1)


@pytest.mark.parametrize("name", ["wdl", "six"])
def test_no_opinion_of_that_value_is_nearer(name: str) -> None:
    """Steps in every direction that keeps the sum and the value lead away; tested without knowing the solution."""
    spec, values = SPECS[name], np.linspace(-0.9, 0.9, 13)
    opinion = awkward_opinions(spec)[:24]
    opinion = np.maximum(opinion, 1e-3) / np.maximum(opinion, 1e-3).sum(-1, keepdims=True)
    found = everywhere(spec, opinion, values).astype(np.float64)
    kept = np.stack([np.ones(len(spec.outcomes)), points_of(spec)])
    directions = np.linalg.svd(kept)[2][2:]  # the null space
    assert len(directions) == len(spec.outcomes) - 2
    here = relative_entropy(found, opinion[:, None])
    tried = 0
    for direction in np.concatenate([directions, -directions]):
        for size in (0.02, 0.1):
            there = found + size * direction
            inside = (there >= 0).all(-1)
            assert (relative_entropy(there, opinion[:, None]) >= here - 1e-7)[inside].all()
            tried += inside.sum()
    assert tried > 100


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_nearest_opinion_by_trying_every_slope(name: str) -> None:
    spec, values = SPECS[name], np.linspace(-0.95, 0.95, 9)
    opinion = random_opinions(spec, (6,), 3).astype(np.float64)
    opinion = np.maximum(opinion, 1e-3) / np.maximum(opinion, 1e-3).sum(-1, keepdims=True)
    found = everywhere(spec, opinion, values)
    slopes = np.linspace(-40, 40, 20_001)
    points = points_of(spec) / np.abs(points_of(spec)).max()
    for i, row in enumerate(opinion):
        powers = np.log(row) + slopes[:, None] * points
        tried = np.exp(powers - powers.max(-1, keepdims=True))
        tried /= tried.sum(-1, keepdims=True)
        best = np.abs(tried @ points - values[:, None]).argmin(-1)
        np.testing.assert_allclose(found[i], tried[best], atol=2e-3)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_higher_value_never_makes_a_better_outcome_less_likely(name: str) -> None:
    """The chance of at least so many points grows with the value, for every number of points."""
    spec = SPECS[name]
    found = everywhere(spec, awkward_opinions(spec), np.linspace(-1, 1, 41))
    best_first = found[..., np.argsort(-points_of(spec))]
    at_least = np.cumsum(best_first, -1)[..., :-1]
    assert (np.diff(at_least, axis=1) >= -1e-5).all()
    assert (at_least[:, -1] > at_least[:, 0] + 0.9).all()


def test_a_number_is_replaced_by_the_value() -> None:
    opinion = jnp.array([[0.5], [-0.25]])
    np.testing.assert_array_equal(tilt(SPECS["six"], opinion, jnp.array([0.25, -1.0])), [[0.25], [-1.0]])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_an_impossible_outcome_can_come_back(dtype: type) -> None:
    """Half precision rounds small probabilities to nothing; a search may still find the win."""
    opinion: np.ndarray = np.array([[0, 0, 1], [1, 0, 0]], dtype)
    found = np.asarray(tilt_quickly(SPECS["wdl"], opinion, jnp.array([1.0, -1.0])))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[1, 0, 0], [0, 0, 1]], atol=1e-3)


def test_a_value_beyond_the_range_is_the_end_of_it() -> None:
    opinion = random_opinions(SPECS["six"], (2,), 4)
    found = np.asarray(tilt_quickly(SPECS["six"], opinion, jnp.array([1.001, -1.001])))
    np.testing.assert_allclose(found[:, [2, 5]], [[1, 0], [0, 1]], atol=1e-3)
