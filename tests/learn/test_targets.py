"""Value targets against a reference that adds up, move by move and in plain loops, what the definition says.

Games here have random lengths, random openings, players who move twice, ends by the rules and by us, and tails that
are still being played; before them lie rows that hold nothing, with flags left over in them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.game import GameSpec, Outcome
from aleazero.core.struct import replace
from aleazero.games.tictactoe import TicTacToe
from aleazero.learn import targets
from aleazero.learn.targets import Span, TargetConfig, Targets, opinions, value_targets

# Mine, neither's and yours: the mirror image is not the list read backwards, and one outcome is its own.
SEVEN = tuple(Outcome(f"{points:+}", float(points)) for points in (1, 2, 3, 0, -1, -2, -3))
SPECS = {
    "shares": dataclasses.replace(TicTacToe.spec, outcomes=SEVEN),
    "number": dataclasses.replace(TicTacToe.spec, outcomes=SEVEN),  # points up to three, one number to say it with
    "open": dataclasses.replace(TicTacToe.spec, outcomes=()),  # no finite set of outcomes
}
MOVES, LANES = 16, 16


class Games(NamedTuple):
    """T moves of B games as they were played; fields as in `core.records.Trajectory`."""

    exists: np.ndarray
    to_play: np.ndarray
    ended: np.ndarray
    truncated: np.ndarray
    random: np.ndarray
    points: np.ndarray
    opinion: np.ndarray
    value: np.ndarray
    predicted: np.ndarray


@pytest.fixture(autouse=True, scope="module")
def quick_compile() -> Iterator[None]:
    """Many small programs run once each: XLA without its expensive passes."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


think = jax.jit(opinions, static_argnums=(0, 1))


def width_of(name: str) -> int:
    return 1 if name in ("number", "open") else len(SPECS[name].outcomes)


def play(name: str, seed: int = 0) -> Games:
    rng = np.random.default_rng(seed)
    shape = (MOVES, LANES)
    exists, (ended, truncated, opening) = np.ones(shape, bool), np.zeros((3, *shape), bool)
    points = np.zeros(shape, np.float32)
    possible = [outcome.points for outcome in SPECS[name].outcomes] or [-0.5, 0.25, 1.0]
    for lane in range(LANES):
        begin = 0 if lane < 2 else int(rng.integers(0, 6))
        exists[:begin, lane] = False
        ended[:begin, lane], truncated[:begin, lane] = rng.random((2, begin)) < 0.5
        at = begin
        while at < MOVES:
            opening[at : at + int(rng.integers(0, 3)), lane] = True
            at += int(rng.integers(1, 9))
            if at < MOVES and rng.random() < 0.2:  # a stray in the middle of a game
                opening[at - 1, lane] = True
                at += int(rng.integers(0, 4))
            if at > MOVES - (lane != 0):  # only lane 0's last game is surely over
                break
            stopped = rng.random() < 0.3
            (truncated if stopped else ended)[at - 1, lane] = True
            points[at - 1, lane] = 0 if stopped else rng.choice(possible)
    if not truncated[-1, 0]:
        ended[-1, 0], points[-1, 0] = True, rng.choice(possible)
    width = width_of(name)
    dense = rng.uniform(-1, 1, (*shape, 1)) if width == 1 else rng.dirichlet(np.ones(width), shape)
    return Games(
        exists=exists,
        to_play=rng.integers(0, 2, shape).astype(np.int8),  # as likely the same player again as not
        ended=ended,
        truncated=truncated,
        random=opening,
        points=points,
        opinion=dense.astype(np.float16),
        value=rng.uniform(-0.9, 0.9, shape).astype(np.float32),
        predicted=rng.uniform(-1, 1, shape).astype(np.float32),
    )


def span_of(name: str, config: TargetConfig, games: Games) -> Span:
    alike = TargetConfig(0.5 if config.needs_opinions else 1.0, opinion=config.opinion)  # thinks the same
    thought = think(SPECS[name], alike, games.opinion, games.value)
    names = ("exists", "to_play", "ended", "truncated", "random", "points", "predicted")
    fields: dict[str, Any] = {field: getattr(games, field) for field in names}
    return Span(**fields, settled=np.zeros_like(games.ended), opinion=thought)


def found_by(name: str, config: TargetConfig, games: Games) -> Targets:
    span = jax.tree.map(jnp.asarray, span_of(name, config, games))
    return jax.tree.map(np.asarray, value_targets(SPECS[name], config, span))


# ---- the reference


def over_largest(spec: GameSpec) -> np.ndarray:
    return np.array([outcome.points for outcome in spec.outcomes]) / max(o.points for o in spec.outcomes)


def worth(spec: GameSpec, opinion: np.ndarray) -> float:
    return float(opinion[0] if len(opinion) == 1 else opinion @ over_largest(spec))


def mirrored(spec: GameSpec, opinion: np.ndarray) -> np.ndarray:
    if len(opinion) == 1:
        return -opinion
    points = [outcome.points for outcome in spec.outcomes]
    return np.array([opinion[points.index(-p)] for p in points])


def known(spec: GameSpec, points: float, width: int) -> np.ndarray:
    if width == 1:
        return np.array([points / max((o.points for o in spec.outcomes), default=1.0)])
    return np.array([float(outcome.points == points) for outcome in spec.outcomes])


def tilted(spec: GameSpec, opinion: np.ndarray, value: float) -> np.ndarray:
    if len(opinion) == 1:
        return np.array([value])
    low, high = -100.0, 100.0
    for _ in range(80):
        slope = (low + high) / 2
        powers = np.log(np.maximum(opinion, 1e-6)) + slope * over_largest(spec)
        found = np.exp(powers - powers.max()) / np.exp(powers - powers.max()).sum()
        low, high = (slope, high) if worth(spec, found) < value else (low, slope)
    return found


@functools.cache
def searched(name: str) -> np.ndarray:
    """What the search thinks of each position, to_play's side."""
    games = play(name)
    found = games.opinion.astype(np.float64)
    for place in np.ndindex(MOVES, LANES):
        found[place] = tilted(SPECS[name], found[place], float(games.value[place]))
    return found


def target_of(
    spec: GameSpec, config: TargetConfig, games: Games, thought: np.ndarray, t: int, lane: int
) -> tuple[bool, np.ndarray | None]:
    """Whether the game is over, and the target, if there is one.

    The definition, forwards: later opinions fade by lambda, and what is left is the end's.
    """
    over = games.ended[t:, lane] | games.truncated[t:, lane]
    if not over.any():
        return False, None
    if games.random[t, lane]:  # what followed says nothing of it; its own search does
        searches = config.opinion == "search" and (config.td_lambda < 1 or config.search_mix > 0)
        return True, thought[t, lane] if searches else None
    end = t + int(over.argmax())
    mine = games.to_play[t, lane]

    def seen(u: int) -> np.ndarray:
        return thought[u, lane] if games.to_play[u, lane] == mine else mirrored(spec, thought[u, lane])

    total = np.zeros(thought.shape[-1])
    for u in range(t + 1, end + 1):
        total += (1 - config.td_lambda) * config.td_lambda ** (u - t - 1) * seen(u)
        if games.random[u, lane] and config.opinion == "search" and config.td_lambda < 1:
            total += config.td_lambda ** (u - t) * seen(u)  # what follows a random move is not this position's doing
            return True, (1 - config.search_mix) * total + config.search_mix * thought[t, lane]
    if games.ended[end, lane]:
        points = float(games.points[end, lane]) * (1 if mine == 0 else -1)
        last = known(spec, points, thought.shape[-1])
    elif config.td_lambda == 1:
        return True, None
    else:
        last = seen(end)
    total += config.td_lambda ** (end - t) * last
    return True, (1 - config.search_mix) * total + config.search_mix * thought[t, lane]


@pytest.mark.parametrize("name", sorted(SPECS))
@pytest.mark.parametrize("whose", ["network", "search"])
@pytest.mark.parametrize("mix", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("td_lambda", [0.0, 0.3, 0.9, 1.0])
def test_targets_are_those_of_the_definition(name: str, whose: Any, mix: float, td_lambda: float) -> None:
    spec, games = SPECS[name], play(name)
    config = TargetConfig(td_lambda=td_lambda, opinion=whose, search_mix=mix)
    thought = searched(name) if whose == "search" else games.opinion.astype(np.float64)
    found = found_by(name, config, games)
    target, surprise = found.target.astype(np.float64), np.zeros((MOVES, LANES))
    ready, has_value = np.zeros((2, MOVES, LANES), bool)
    for place in zip(*np.nonzero(games.exists), strict=True):
        ready[place], wanted = target_of(spec, config, games, thought, *place)
        if wanted is not None:
            has_value[place], target[place] = True, wanted
            surprise[place] = abs(games.predicted[place] - worth(spec, wanted))
    assert found.target.dtype == np.float32
    np.testing.assert_array_equal(found.ready, ready)
    np.testing.assert_array_equal(found.has_value, has_value)
    np.testing.assert_allclose(found.target, target, atol=2e-4)
    np.testing.assert_allclose(found.surprise, surprise, atol=3e-4)
    # There was something of every kind to be wrong about.
    assert (games.exists & ~ready).sum() > 10
    assert has_value.sum() > 60
    assert (games.random & has_value).any() == (whose == "search" and (td_lambda < 1 or mix > 0))
    assert ((ready & ~has_value).sum() > 10) == (td_lambda == 1 or whose == "network")


# ---- what must hold, whatever the reference says


@pytest.mark.parametrize("mix", [0.0, 0.4, 1.0])
def test_a_game_we_stopped_is_never_labelled_by_its_outcome(mix: float) -> None:
    games = play("shares")
    stopped = np.zeros((MOVES, LANES), bool)
    for t, lane in np.ndindex(MOVES, LANES):
        over = games.ended[t:, lane] | games.truncated[t:, lane]
        stopped[t, lane] = over.any() and games.truncated[t + over.argmax(), lane] and games.exists[t, lane]
    assert stopped.sum() > 10
    found = found_by("shares", TargetConfig(td_lambda=1.0, search_mix=mix), games)
    assert found.ready[stopped].all()
    assert not found.has_value[stopped & ~games.random].any()
    # Whatever stands where the points of an outcome would stand is not looked at.
    odd = games._replace(points=np.where(games.truncated, np.float32(1), games.points))
    for config in (TargetConfig(0.7, search_mix=mix), TargetConfig(1.0, search_mix=mix)):
        one, other = found_by("shares", config, games), found_by("shares", config, odd)
        jax.tree.map(lambda x, y: np.testing.assert_array_equal(x[games.exists], y[games.exists]), one, other)
    leaning = found_by("shares", TargetConfig(td_lambda=0.99, search_mix=mix), games)
    assert leaning.has_value[stopped].all()


@pytest.mark.parametrize("mix", [0.0, 0.4])
@pytest.mark.parametrize("td_lambda", [0.7, 1.0])
def test_what_follows_a_random_move_says_nothing_of_the_position_before_it(td_lambda: float, mix: float) -> None:
    games = play("shares")
    found = found_by("shares", TargetConfig(td_lambda, opinion="search", search_mix=mix), games)
    opening = games.random & found.ready
    assert opening.sum() > 10
    assert found.has_value[opening].all() == found.has_value[opening].any() == (td_lambda < 1 or mix > 0)
    if found.has_value[opening].any():
        np.testing.assert_allclose(found.target[opening], searched("shares")[opening], atol=1e-4)
    network = found_by("shares", TargetConfig(td_lambda, opinion="network", search_mix=mix), games)
    assert not network.has_value[opening].any()


def test_what_is_not_over_is_not_ready_whatever_lambda() -> None:
    games = play("shares")
    over = games.ended | games.truncated
    waits = ~np.flip(np.logical_or.accumulate(np.flip(over, 0), 0), 0)
    assert waits[:, 1:].any(0).sum() > 3
    for td_lambda in (0.0, 0.5, 1.0):
        found = found_by("shares", TargetConfig(td_lambda=td_lambda), games)
        assert not found.ready[waits].any()
        assert not found.has_value[waits].any()
        assert found.ready[~waits & games.exists].all()


def test_rows_that_hold_nothing_are_never_ready() -> None:
    games = play("shares")
    assert (~games.exists).sum() > 5
    assert (games.ended | games.truncated)[~games.exists].any()
    found = found_by("shares", TargetConfig(td_lambda=0.5), games)
    assert not found.ready[~games.exists].any()
    nothing = found_by("shares", TargetConfig(), games._replace(exists=np.zeros((MOVES, LANES), bool)))
    assert not nothing.ready.any()
    assert not nothing.has_value.any()
    assert (nothing.surprise == 0).all()


@pytest.mark.parametrize("name", sorted(SPECS))
def test_players_who_change_seats_learn_the_same(name: str) -> None:
    games = play(name)
    swapped = games._replace(to_play=1 - games.to_play, points=-games.points)
    config = TargetConfig(td_lambda=0.8, search_mix=0.2)
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x[games.exists], y[games.exists], atol=1e-6),
        found_by(name, config, games),
        found_by(name, config, swapped),
    )
    # Only the points swapped is another game.
    other = found_by(name, config, games._replace(points=-games.points))
    assert np.abs(other.target - found_by(name, config, games).target).max() > 0.3


@pytest.mark.parametrize("name", ["shares", "number"])
def test_a_later_window_gives_the_same_targets(name: str) -> None:
    config = TargetConfig(td_lambda=1.0, td_lambda_end=0.6, search_mix=0.3)
    games = play(name)
    compute = jax.jit(functools.partial(value_targets, SPECS[name], config))

    def targets_within(window: slice, td_lambda: float) -> Targets:
        span = jax.tree.map(lambda x: np.asarray(x)[window], span_of(name, config, games))
        return jax.tree.map(np.asarray, compute(span, td_lambda=jnp.float32(td_lambda)))

    for td_lambda, (begin, end) in itertools.product((0.6, 1.0), ((0, 11), (3, 14), (5, MOVES))):
        whole, part = targets_within(slice(None), td_lambda), targets_within(slice(begin, end), td_lambda)
        both = part.ready & whole.ready[begin:end]
        assert both.sum() > 20
        assert not (part.ready & ~whole.ready[begin:end]).any()
        np.testing.assert_array_equal(part.has_value[both], whole.has_value[begin:end][both])
        np.testing.assert_allclose(part.target[both], whole.target[begin:end][both], atol=1e-6)
        np.testing.assert_allclose(part.surprise[both], whole.surprise[begin:end][both], atol=1e-6)
        if end == MOVES:
            np.testing.assert_array_equal(part.ready, whole.ready[begin:])


@pytest.mark.parametrize("td_lambda", [0.0, 0.7, 1.0])
def test_lanes_do_not_meet(td_lambda: float) -> None:
    config = TargetConfig(td_lambda=td_lambda)
    span = span_of("shares", config, play("shares"))
    other = span_of("shares", config, play("shares", seed=1))
    lanes = np.arange(LANES) == 3
    mixed = jax.tree.map(lambda x, y: jnp.where(lanes.reshape(1, -1, *[1] * (x.ndim - 2)), x, y), span, other)
    one, two = (value_targets(SPECS["shares"], config, s) for s in (span, mixed))
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x[:, 3], y[:, 3]), one, two)


def test_one_compiled_program_serves_every_lambda() -> None:
    """A run may change it as it goes on; what it is at the moment counts, and not what the config says."""
    games = play("shares")
    moving = TargetConfig(td_lambda=1.0, td_lambda_end=0.5, search_mix=0.2)
    compute = jax.jit(functools.partial(value_targets, SPECS["shares"], moving))
    span = span_of("shares", moving, games)
    for td_lambda in (0.0, 0.8, 1.0):
        found = compute(span, td_lambda=jnp.float32(td_lambda))
        wanted = found_by("shares", TargetConfig(td_lambda, search_mix=0.2), games)
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-6), found, wanted)
    assert compute._cache_size() == 1  # type: ignore[attr-defined]


def test_lambda_goes_evenly_to_its_end() -> None:
    assert [TargetConfig(0.8).td_lambda_at(row, 100) for row in (0, 50, 100)] == [0.8] * 3
    moving = TargetConfig(0.8, 0.4)
    assert [moving.td_lambda_at(row, 100) for row in (0, 25, 100, 200)] == pytest.approx([0.8, 0.7, 0.4, 0.4])


def test_half_precision_opinions_do_not_make_half_precision_targets() -> None:
    config = TargetConfig(td_lambda=0.8, search_mix=0.3)
    span = span_of("shares", config, play("shares"))
    half = value_targets(SPECS["shares"], config, replace(span, opinion=span.opinion.astype(jnp.float16)))
    assert half.target.dtype == jnp.float32
    full = value_targets(SPECS["shares"], config, span)
    np.testing.assert_allclose(half.target, full.target, atol=2e-3)


def test_the_greatest_surprise() -> None:
    """Sure of a loss, and won: two."""
    span = Span(
        exists=jnp.ones((2, 1), bool),
        to_play=jnp.array([[0], [1]], jnp.int8),
        ended=jnp.array([[False], [True]]),
        settled=jnp.zeros((2, 1), bool),
        truncated=jnp.zeros((2, 1), bool),
        random=jnp.zeros((2, 1), bool),
        points=jnp.array([[0.0], [3.0]]),
        opinion=jnp.zeros((2, 1, 1)),
        predicted=jnp.array([[-1.0], [-1.0]]),
    )
    found = jax.jit(functools.partial(value_targets, SPECS["number"], TargetConfig()))(span)
    assert found.surprise[:, 0].tolist() == [2.0, 0.0]
    assert found.target[:, 0].tolist() == [[1.0], [-1.0]]


# ---- targets that do not wait for the end of a game


@pytest.mark.parametrize("name", sorted(SPECS))
@pytest.mark.parametrize(
    ("whose", "td_lambda", "mix"), [("network", 0.0, 0.0), ("network", 0.6, 0.0), ("search", 0.9, 0.4)]
)
def test_without_waiting_the_last_opinion_stands_for_the_rest(
    name: str, whose: Any, td_lambda: float, mix: float
) -> None:
    """As if every game still going on were stopped with the last row, of which itself nothing is known."""
    spec, games = SPECS[name], play(name)
    games = games._replace(exists=np.ones_like(games.exists))
    config = TargetConfig(td_lambda=td_lambda, opinion=whose, search_mix=mix, wait=False)
    thought = searched(name) if whose == "search" else games.opinion.astype(np.float64)
    found = found_by(name, config, games)
    cut = games._replace(truncated=games.truncated.copy())
    cut.truncated[-1] = ~games.ended[-1]
    target, surprise = found.target.astype(np.float64), np.zeros((MOVES, LANES))
    has_value = np.zeros((MOVES, LANES), bool)
    ready = np.ones((MOVES, LANES), bool)
    ready[-1] = games.ended[-1]
    for place in zip(*np.nonzero(ready), strict=True):
        over, wanted = target_of(spec, config, cut, thought, *place)
        assert over
        if wanted is not None:
            has_value[place], target[place] = True, wanted
            surprise[place] = abs(games.predicted[place] - worth(spec, wanted))
    np.testing.assert_array_equal(found.ready, ready)
    np.testing.assert_array_equal(found.has_value, has_value)
    np.testing.assert_allclose(found.target[has_value], target[has_value], atol=2e-4)
    np.testing.assert_allclose(found.surprise, surprise, atol=3e-4)
    assert games.ended[-1].any()
    assert not games.ended[-1].all()


def test_targets_without_waiting_by_hand() -> None:
    """One game going on, one that ends inside, one that ends with the last row, one that is stopped inside."""
    ends = jnp.array([[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], bool)
    span = Span(
        exists=jnp.ones((3, 4), bool),
        to_play=jnp.tile(jnp.array([[0], [1], [0]], jnp.int8), (1, 4)),
        ended=ends,
        settled=jnp.zeros((3, 4), bool),
        truncated=jnp.zeros((3, 4), bool).at[1, 3].set(True),
        random=jnp.zeros((3, 4), bool),
        points=jnp.array([[0.0, 0, 0, 0], [0, 3, 0, 0], [0, 0, -3, 0]]),  # seat 0's, of three
        opinion=jnp.tile(jnp.array([[0.1], [0.2], [-0.4]]), (1, 4))[..., None],  # whoever plays thinks
        predicted=jnp.zeros((3, 4)),
    )
    config = TargetConfig(td_lambda=0.5, opinion="network", wait=False)
    found = jax.tree.map(np.asarray, value_targets(SPECS["number"], config, span))
    assert found.ready.tolist() == [[True] * 4, [True] * 4, [False, False, True, False]]
    np.testing.assert_array_equal(found.has_value, found.ready)
    # Seat 0 thinks 0.1, -0.2, -0.4 in turn; the second row is seat 1's.
    np.testing.assert_allclose(found.target[0, :, 0], [-0.3, 0.4, -0.45, -0.2], atol=1e-6)
    np.testing.assert_allclose(found.target[1, :, 0], [0.4, -1.0, 0.7, 0.2], atol=1e-6)
    assert found.target[2, 2, 0] == -1.0


def test_without_waiting_the_outcome_alone_cannot_be_learned() -> None:
    said = "wait is false; td_lambda must then stay below 1: games cut at a slab's end have no outcome"
    assert TargetConfig(td_lambda=1.0, wait=False).problems() == [said]
    assert TargetConfig(td_lambda=0.5, td_lambda_end=1.0, wait=False).problems() == [said]
    assert TargetConfig(td_lambda=1.0, td_lambda_end=0.5, wait=False).problems() == [said]
    assert TargetConfig(td_lambda=0.99, td_lambda_end=0.5, wait=False).problems() == []
    assert TargetConfig(td_lambda=0.0, wait=False).problems() == []


# ---- whose opinion


def test_the_networks_opinion_is_left_alone() -> None:
    games = play("shares")
    found = think(SPECS["shares"], TargetConfig(0.5, opinion="network"), games.opinion, games.value)
    assert found.dtype == jnp.float32
    np.testing.assert_array_equal(found, games.opinion.astype(np.float32))


@pytest.mark.parametrize("config", [TargetConfig(0.5), TargetConfig(search_mix=0.1), TargetConfig(1.0, 0.9)])
def test_the_searchs_opinion_is_worth_the_searchs_value(config: TargetConfig) -> None:
    games = play("shares")
    found = np.asarray(think(SPECS["shares"], config, games.opinion, games.value))
    np.testing.assert_allclose(found @ over_largest(SPECS["shares"]), games.value, atol=1e-3)


def test_opinions_that_are_not_needed_are_not_worked_out() -> None:
    assert not TargetConfig(td_lambda=1.0, search_mix=0.0).needs_opinions
    assert TargetConfig(td_lambda=0.99).needs_opinions
    assert TargetConfig(search_mix=0.01).needs_opinions
    assert TargetConfig(search_mix=0.01).searches
    assert TargetConfig(td_lambda=1.0, td_lambda_end=0.9).needs_opinions
    assert not TargetConfig(td_lambda=1.0, td_lambda_end=1.0).needs_opinions
    assert not TargetConfig(0.5, opinion="network").searches
    assert not TargetConfig().searches
    games = play("shares")
    found = think(SPECS["shares"], TargetConfig(), games.opinion, games.value)
    np.testing.assert_array_equal(found, games.opinion.astype(np.float32))


# ---- the settings


def test_sound_settings_have_no_problems() -> None:
    assert TargetConfig().problems() == []
    assert TargetConfig(0.0, 1.0, "network", 1.0).problems() == []


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_every_problem_is_named(bad: float) -> None:
    assert TargetConfig(td_lambda=bad, td_lambda_end=bad, search_mix=bad).problems() == [
        f"td_lambda is {bad}; it must be in 0..1",
        f"search_mix is {bad}; it must be in 0..1",
        f"td_lambda_end is {bad}; it must be in 0..1",
    ]


def test_a_settled_game_ends_with_the_truth_and_not_with_the_points_drawn() -> None:
    """Two games of three rows; the first is settled in its second row, the second ends there by the rules."""
    over = jnp.array([[0, 0], [1, 1], [0, 0]], bool)
    span = Span(
        exists=jnp.ones((3, 2), bool),
        to_play=jnp.tile(jnp.array([[0], [1], [0]], jnp.int8), (1, 2)),
        ended=over,
        settled=over.at[1, 1].set(False),
        truncated=jnp.zeros((3, 2), bool),
        random=jnp.zeros((3, 2), bool),
        points=jnp.array([[0.0, 0], [3, 3], [0, 0]]),
        opinion=jnp.tile(jnp.array([[0.1], [0.2], [-0.4]]), (1, 2))[..., None],
        predicted=jnp.zeros((3, 2)),
    )
    config = TargetConfig(td_lambda=0.5, opinion="network", wait=False)
    found = jax.tree.map(np.asarray, value_targets(SPECS["number"], config, span))
    # Settled: seat 1 knows it is 0.2, and seat 0 sees half of that as the next opinion and half as the outcome.
    np.testing.assert_allclose(found.target[:2, 0, 0], [-0.2, 0.2], atol=1e-6)
    np.testing.assert_allclose(found.target[:2, 1, 0], [0.5 * -0.2 + 0.5 * 1.0, -1.0], atol=1e-6)
    assert found.has_value[:2].all()
    alone = jax.tree.map(np.asarray, value_targets(SPECS["number"], TargetConfig(), span))
    np.testing.assert_allclose(alone.target[:2, 0, 0], [-0.2, 0.2], atol=1e-6)  # it has an outcome: it was not stopped
    assert alone.has_value[:2].all()


@pytest.mark.parametrize("moves", [3, 64, 65, 200])
def test_few_rows_and_many_are_summed_alike(moves: int) -> None:
    rng = np.random.default_rng(moves)
    keep, given = rng.random((moves, 3, 1), np.float32), rng.normal(size=(moves, 3, 2)).astype(np.float32)
    later, wanted = np.zeros((3, 2)), np.zeros((moves, 3, 2))
    for t in reversed(range(moves)):
        later = wanted[t] = keep[t] * later + given[t]
    np.testing.assert_allclose(targets._recur(jnp.asarray(keep), jnp.asarray(given)), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("wait", [True, False])
def test_moves_left_are_counted_to_an_end_by_the_rules(wait: bool) -> None:
    games, config = play("shares"), TargetConfig(td_lambda=0.7, wait=wait)
    found = np.asarray(found_by("shares", config, games).moves_left)
    for lane in range(LANES):
        for move in range(MOVES):
            over = [later for later in range(move, MOVES) if games.ended[later, lane] or games.truncated[later, lane]]
            known = games.exists[move, lane] and over and games.ended[over[0], lane]
            assert found[move, lane] == (over[0] - move if known else -1), (move, lane)
    assert (found > 2).any()
    assert (found < 0).any()
