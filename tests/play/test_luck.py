"""Luck: zero in the mean whatever the judge says, all that there is to a game where it is exact; how much comes off."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import Array

from aleazero.games.tictactoe import TicTacToe
from aleazero.play import luck as module
from aleazero.play.luck import luck, take_off
from aleazero.play.match import MatchResult, Rolls, play_match
from aleazero.players import RandomPlayer
from tests.games.conftest import quick_compile  # noqa: F401
from tests.play.test_turns import Toss

pytestmark = pytest.mark.usefixtures("quick_compile")

GAME = Toss(16)


# ---- a game between two players who always move their first token that may move, gone through completely


@functools.cache
def compiled(name: str) -> Any:
    return jax.jit(getattr(GAME, name))


def on_host(state: Any) -> Any:
    return jax.tree.map(np.asarray, state)


def first_token(state: Any) -> int:
    return 0 if state.tokens[int(state.to_play), 0] < 3 else 1


def after_turn(state: Any) -> Any:
    while not state.is_chance and not state.terminated:
        state = on_host(compiled("apply_action")(state, jnp.int32(first_token(state))))
    return state


@functools.cache
def following(key: bytes) -> tuple[tuple[int, float, bytes], ...]:
    """The outcomes that are possible, their probabilities and the positions after the turns they lead to."""
    state = STATES[key]
    found = []
    for outcome, chance in enumerate(np.asarray(compiled("chance_probs")(state)).tolist()):
        if chance:
            after = after_turn(on_host(compiled("apply_chance")(state, jnp.int32(outcome))))
            found.append((outcome, chance, known(after)))
    return tuple(found)


STATES: dict[bytes, Any] = {}


def known(state: Any) -> bytes:
    key = np.asarray(compiled("pack")(state)).tobytes()
    STATES[key] = state
    return key


@functools.cache
def value(key: bytes) -> float:
    """Seat 0's expected points."""
    state = STATES[key]
    if state.terminated:
        return float(state.returns[0])
    return sum(chance * value(after) for _, chance, after in following(key))


def start() -> bytes:
    return known(on_host(compiled("init")(jax.random.key(0))))


Line = list[tuple[bytes, int]]


@functools.cache
def all_lines() -> list[tuple[float, float, Line]]:
    """Every game there can be: its probability, seat 0's points, and what nature did where."""
    found = []
    waiting: list[tuple[float, bytes, Line]] = [(1.0, start(), [])]
    while waiting:
        chance, key, line = waiting.pop()
        if STATES[key].terminated:
            found.append((chance, float(STATES[key].returns[0]), line))
        else:
            waiting += [(chance * p, after, [*line, (key, outcome)]) for outcome, p, after in following(key)]
    return found


def all_games() -> tuple[np.ndarray, MatchResult]:
    """Probabilities and a match of every game there can be; the player has seat 0, and in the same game seat 1."""
    lines = all_lines()
    games = [(2 * row + seat, line) for row, (_, _, line) in enumerate(lines) for seat in (0, 1)]
    flat = [(key, outcome, number) for number, line in games for key, outcome in line]
    order = np.random.default_rng(0).permutation(len(flat))  # nobody says that they are sorted
    rolls = Rolls(
        states=np.array([np.frombuffer(flat[i][0], np.uint8) for i in order]),
        outcome=np.array([flat[i][1] for i in order]),
        game=np.array([flat[i][2] for i in order]),
    )
    points = np.array([[won, -won] for _, won, _ in lines])
    chances = np.array([chance for chance, _, _ in lines])
    return chances, MatchResult("a", "b", points, np.zeros(points.shape, int), rolls)


def exact(states: Any) -> np.ndarray:
    """What rolls are worth to seat 0; what cannot be rolled is worth nonsense."""
    found = np.full((len(states.to_play), 4), np.nan)
    for row, packed in enumerate(np.asarray(jax.jit(jax.vmap(GAME.pack))(states))):
        for outcome, _, after in following(known(jax.tree.map(lambda x, at=row: np.asarray(x[at]), states))):
            found[row, outcome] = value(after)
        assert packed.tobytes() in STATES
    return found


def noisy(scale: float, exactly: float = 1.0, seed: int = 0) -> Any:
    """The exact judge, more or less, and an error that is a function of the position."""

    def judge(states: Any) -> np.ndarray:
        rows = np.asarray(jax.jit(jax.vmap(GAME.pack))(states))
        errors = [np.random.default_rng([seed, *row.tolist()]).normal(size=4) for row in rows]
        return exactly * np.nan_to_num(exact(states)) + scale * np.array(errors)

    return judge


def test_there_is_something_to_be_lucky_in() -> None:
    chances = [chance for chance, _, _ in all_lines()]
    assert sum(chances) == pytest.approx(1)
    assert len(chances) > 40
    assert {len(line) for _, _, line in all_lines()} >= {4, 5}
    assert abs(value(start())) < 1e-9  # the toss is fair


@pytest.mark.parametrize("judge", [exact, noisy(1.0, exactly=0.0), noisy(0.3), lambda s: np.full((len(s.die), 4), 7.0)])
def test_luck_is_nothing_in_the_mean_whoever_judges(judge: Any) -> None:
    chances, result = all_games()
    found = luck(GAME, result, judge)
    assert found.shape == result.points.shape
    np.testing.assert_allclose(chances @ found, [0, 0], atol=1e-6)
    np.testing.assert_allclose(found[:, 0], -found[:, 1], atol=1e-6)  # the other seat's luck is the opposite


def test_a_game_is_its_luck_where_the_judge_is_exact() -> None:
    chances, result = all_games()
    found = luck(GAME, result, exact)
    np.testing.assert_allclose(result.points - found, 0, atol=1e-6)
    # With a judge that is nearly right most of the variance goes; with a wrong one it grows.
    raw, less, more = (
        chances @ (result.points[:, 0] - lucky) ** 2
        for lucky in (0, luck(GAME, result, noisy(0.1))[:, 0], luck(GAME, result, noisy(1.0, exactly=0.0))[:, 0])
    )
    assert less < 0.1 * raw < raw < more


@pytest.mark.parametrize("batch", [1, 8, 4096])
def test_rolls_are_judged_in_batches_of_one_shape(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _, result = all_games()
    assert result.rolls is not None
    few = dataclasses.replace(result, rolls=Rolls(**{k: v[:21] for k, v in vars(result.rolls).items()}))
    wanted = luck(GAME, few, exact)
    sizes = set()

    def judge(states: Any) -> np.ndarray:
        sizes.add(len(states.to_play))
        return exact(states)

    monkeypatch.setattr(module, "BATCH", batch)
    np.testing.assert_allclose(luck(GAME, few, judge), wanted, atol=1e-12)
    assert sizes == {min(batch, 32)}


# ---- real matches


@dataclasses.dataclass(frozen=True)
class FirstToken:
    """Plays as above, an action at a time."""

    name: str = "first"

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        mine = np.asarray(states.tokens)[np.arange(len(lanes)), np.asarray(states.to_play)]
        return jnp.asarray(np.where(mine[:, 0] < 3, 0, 1))


def test_every_roll_of_a_match_is_recorded_once() -> None:
    """Or else what is left of a game without its luck would not be nothing."""
    result = play_match(GAME, FirstToken(), FirstToken(), pairs=12, seed=0, record=True)
    found = luck(GAME, result, exact)
    assert {-1.0, 1.0} == set(result.points.ravel().tolist())
    np.testing.assert_allclose(result.points, found, atol=1e-6)
    adjusted, share = take_off(result.points, found + np.array([[0.5, 0.5]]))
    # The games of a pair are the same from both sides here: their mean never varies, and so nothing is taken off.
    assert share == 0
    np.testing.assert_array_equal(adjusted, result.points)


def test_a_match_that_was_not_recorded_has_no_luck() -> None:
    result = play_match(GAME, FirstToken(), FirstToken(), pairs=12, seed=0)
    assert result.rolls is None
    with pytest.raises(ValueError, match="without record=True"):
        luck(GAME, result, exact)


def test_where_nothing_is_rolled_there_is_no_luck() -> None:
    game = TicTacToe()
    result = play_match(game, RandomPlayer(game), RandomPlayer(game), pairs=3, seed=0, record=True)
    assert result.rolls is not None
    assert len(result.rolls.game) == 0

    def judge(states: Any) -> np.ndarray:
        raise AssertionError("nothing is there to be judged")

    np.testing.assert_array_equal(luck(game, result, judge), np.zeros((3, 2)))


# ---- how much is taken off


@given(
    st.integers(3, 40),
    st.floats(-3, 3).filter(lambda share: abs(share) > 0.01),
    st.floats(-2, 2),
    st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=60)
def test_what_is_due_to_luck_is_all_taken_off(pairs: int, share: float, mean: float, seed: int) -> None:
    """Also from a few pairs."""
    lucky = np.random.default_rng(seed).normal(size=(pairs, 2))
    adjusted, found = take_off(mean + share * lucky, lucky)
    assert found == pytest.approx(share, rel=1e-6)
    np.testing.assert_allclose(adjusted, mean, atol=1e-6)


def test_as_much_is_taken_off_as_makes_pairs_vary_least() -> None:
    rng = np.random.default_rng(1)
    lucky, rest = rng.normal(size=(2, 50, 2))
    points = 0.6 * lucky + rest
    adjusted, share = take_off(points, lucky)
    assert 0.4 < share < 0.8
    np.testing.assert_array_equal(adjusted, points - share * lucky)
    least = adjusted.mean(-1).var()
    for other in (share - 0.01, share + 0.01, 0.0, 1.0):
        assert (points - other * lucky).mean(-1).var() > least


def test_little_is_taken_off_where_luck_is_only_noise() -> None:
    rng = np.random.default_rng(2)
    points, lucky = rng.choice([-1.0, 1.0], (4000, 2)), rng.normal(size=(4000, 2))
    assert abs(take_off(points, lucky)[1]) < 4 / 4000**0.5


def test_games_without_a_result_do_not_count() -> None:
    rng = np.random.default_rng(3)
    lucky = rng.normal(size=(30, 2))
    points = 0.5 * lucky + 0.1
    stopped = rng.random((30, 2)) < 0.3
    points[stopped] = np.nan
    lucky[stopped] *= 100  # whatever happened there
    adjusted, share = take_off(points, lucky)
    assert share == pytest.approx(0.5)
    np.testing.assert_array_equal(np.isnan(adjusted), stopped)
    np.testing.assert_allclose(adjusted[~stopped], 0.1, atol=1e-9)


@pytest.mark.parametrize(
    ("points", "lucky"),
    [
        (np.full((5, 2), np.nan), np.ones((5, 2))),
        (np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([[0.5, 0.1], [0.2, 0.3]])),  # two pairs always lie on a line
        (np.array([[1.0, -1.0], [1.0, 1.0], [-1, 1]]), np.zeros((3, 2))),
        (np.zeros((0, 2)), np.zeros((0, 2))),
    ],
)
def test_nothing_is_taken_off_where_nothing_is_known(points: np.ndarray, lucky: np.ndarray) -> None:
    adjusted, share = take_off(points, lucky)
    assert share == 0
    np.testing.assert_array_equal(adjusted, points)
