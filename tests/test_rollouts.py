"""Rollouts: true where the truth is known, far less noisy than plain ones, the same whatever is beside them."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.errors import ConfigError
from aleazero.games.backgammon import bearoff
from aleazero.games.backgammon.boards import afterstates
from aleazero.games.backgammon.game import OUTCOMES, Backgammon
from aleazero.models.build import ModelConfig, build_model
from aleazero.players import RandomPlayer, TurnNetworkPlayer, make_player
from aleazero.rollouts import EVENLY, Rollouts, make_rollouts
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compile")]

GAME = Backgammon()
POINTS = np.array([outcome.points for outcome in OUTCOMES])
MIDGAME = "XGID=-----BDBBaB-cB---d-bb-bAa-:0:0:1:62:0:0:0:0:0"


@functools.cache
def network(value: str = "outcomes", seed: int = 5) -> TurnNetworkPlayer:
    """Knows nothing: its opinions are noise, and what rolls are worth by it is too."""
    model = build_model(ModelConfig(width=16, blocks=1, policy=False, value=value), GAME.spec)  # type: ignore[arg-type]
    return TurnNetworkPlayer(GAME, model, jax.jit(model.init)(jax.random.key(seed)), "noise")


@functools.cache
def rollouts(games: int = EVENLY, plies: int | None = None, lanes: int = 16, seed: int = 0) -> Rollouts:
    return dataclasses.replace(make_rollouts(network(), games, plies, seed), lanes=lanes)


def home(*sides: tuple[dict[int, int], dict[int, int]]) -> Any:
    """States where the mover has left its checkers (first) and the other rolls with its own; by points."""
    boards = np.zeros((len(sides), 2, 25), int)
    for board, (moved, on_roll) in zip(boards, sides, strict=True):
        for row, checkers in ((1, moved), (0, on_roll)):
            for point, number in checkers.items():
                board[row, point - 1] = number
    return afterstates(boards, np.zeros(len(sides), int))


def midgame(count: int = 3) -> Any:
    """What the first plays of a position with contact leave."""
    state = GAME.notation.parse_state(MIDGAME)
    turns = GAME.notation.turns(state)[:count]
    return jax.tree.map(lambda *x: jnp.stack(x), *(after for _, after in turns))


def points(counts: dict[int, int]) -> np.ndarray:
    return np.array([counts.get(point, 0) for point in range(1, 7)])


# ---- the truth


def test_both_estimates_are_true_where_the_exact_value_is_known() -> None:
    """Checkers on the last point alone: nothing is left to choose, so the tables' best play is any play."""
    sides = [({1: 4}, {1: 4}), ({1: 5}, {1: 6}), ({1: 2}, {1: 3}), ({1: 3}, {1: 2})]
    exact = bearoff.load().after_roll(*(np.stack([points(side[i]) for side in sides]) for i in (0, 1))).moved
    found = rollouts(3 * EVENLY).run(home(*sides), np.arange(len(sides)))
    assert found.games.shape == found.raw_games.shape == (len(sides), 3 * EVENLY)
    assert (found.raw_error[:3] > 0.01).all()  # dice decide
    for equity, error in ((found.equity, found.error), (found.raw_equity, found.raw_error)):
        assert (np.abs(equity - exact @ POINTS) <= 4 * error + 1e-6).all()
    assert found.chances is not None
    np.testing.assert_allclose(found.chances.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(found.chances @ POINTS, found.equity, atol=1e-5)
    np.testing.assert_allclose(found.chances, exact, atol=0.15)


def test_a_position_one_roll_before_the_end() -> None:
    """A checker on the 6-point is off with 27 rolls of 36; else the other side's last one surely is.

    First rolls come exactly as often as they should, so nothing is left to chance.
    """
    found = rollouts().run(home(({1: 1}, {6: 1}), ({1: 1}, {1: 2}), ({1: 15}, {1: 2})))
    np.testing.assert_allclose(found.equity, [-0.5, -1, -2], atol=1e-5)
    np.testing.assert_allclose(found.raw_equity, [-0.5, -1, -2], atol=1e-6)
    assert found.chances is not None
    np.testing.assert_allclose(found.chances[0], [0.25, 0, 0, 0.75, 0, 0], atol=1e-5)
    np.testing.assert_allclose(found.chances[2], [0, 0, 0, 0, 1, 0], atol=1e-5)
    assert sorted(found.raw_games[0].tolist()) == [-1] * 27 + [1] * 9
    np.testing.assert_allclose(found.error[1:], 0, atol=1e-6)


def test_what_is_over_or_known_is_not_rolled_out() -> None:
    won = rollouts().run(home(({}, {1: 3}), ({}, {1: 15}), ({}, {20: 15})))
    assert won.equity.tolist() == [1, 2, 3]
    assert won.error.tolist() == [0, 0, 0]
    tables = bearoff.load()
    knowing = dataclasses.replace(network(), endings=tables.arrays())
    sides = [({3: 2, 6: 1}, {2: 3}), ({1: 6}, {1: 5})]
    exact = tables.after_roll(*(np.stack([points(side[i]) for side in sides]) for i in (0, 1))).moved
    found = dataclasses.replace(make_rollouts(knowing, EVENLY, None), lanes=16).run(home(*sides))
    np.testing.assert_allclose(found.equity, exact @ POINTS, atol=1e-6)
    assert found.error.tolist() == [0, 0]


def test_cut_after_one_roll_it_is_the_opinion_at_one_ply() -> None:
    """All that happened was luck: nothing is left of it in any game."""
    states = midgame()
    found = rollouts(plies=1).run(states)
    deeper = dataclasses.replace(network(), ply=1).weigh(states)
    np.testing.assert_allclose(found.equity, 3 * np.asarray(deeper.value), atol=1e-5)
    assert found.chances is not None
    np.testing.assert_allclose(found.chances, deeper.opinion, atol=1e-5)
    np.testing.assert_allclose(found.raw_equity, found.equity, atol=1e-5)
    assert (found.error < 1e-6).all()
    assert (found.raw_error > 1e-4).all()


def test_either_seat_may_have_left_a_position() -> None:
    boards = np.zeros((2, 2, 25), int)
    boards[:, 1, 3], boards[:, 0, 5] = 3, 2
    found = rollouts(2 * EVENLY).run(afterstates(boards, np.array([0, 1])))
    np.testing.assert_allclose(found.games[0], found.games[1], atol=1e-5)
    np.testing.assert_allclose(found.raw_games[0], found.raw_games[1], atol=1e-6)


def test_a_network_with_one_number_has_no_chances() -> None:
    found = make_rollouts(network("scalar"), EVENLY).run(home(({}, {1: 3}), ({}, {20: 15})))
    assert found.chances is None
    assert found.equity.tolist() == found.raw_equity.tolist() == pytest.approx([1, 3])


# ---- the noise


def test_luck_taken_off_leaves_less_than_a_third_of_the_variance() -> None:
    """By a network that knows the game: some hundredth is left."""
    player = make_player("bundled", GAME)
    found = dataclasses.replace(make_rollouts(player, EVENLY, 2), lanes=EVENLY).run(midgame(1))
    assert found.raw_error[0] > 0.02
    assert found.error[0] ** 2 < found.raw_error[0] ** 2 / 3
    assert abs(found.equity[0] - found.raw_equity[0]) < 4 * found.raw_error[0]


def test_the_error_is_that_of_a_mean() -> None:
    found = rollouts().run(home(*[({1: 4}, {1: 4})] * 15), np.arange(15))
    for games, error in ((found.games, found.error), (found.raw_games, found.raw_error)):
        np.testing.assert_allclose(error, np.std(games, axis=-1, ddof=1) / 6)
        # Even first rolls make it less than independent ones would.
        assert 0.3 * error.mean() < games.mean(-1).std() < 1.3 * error.mean()


# ---- what it depends on


def test_the_seed_and_the_stream_name_the_dice() -> None:
    states = home(({1: 4, 3: 2}, {1: 4, 2: 2}), ({1: 4, 3: 2}, {1: 4, 2: 2}), ({1: 4, 3: 2}, {1: 4, 2: 2}))
    found = rollouts().run(states, np.array([7, 7, 8]))
    again = rollouts().run(states, np.array([7, 7, 8]))
    for name in ("games", "raw_games"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
        np.testing.assert_array_equal(getattr(found, name)[0], getattr(found, name)[1])
        assert (getattr(found, name)[0] != getattr(found, name)[2]).any()
    other = rollouts(seed=1).run(states, np.array([7, 7, 8]))
    assert (other.raw_games != found.raw_games).any()


def test_what_is_beside_it_does_not_matter() -> None:
    sides = [({1: 2, 3: 1}, {1: 2}), ({}, {1: 1}), ({2: 1}, {6: 2}), ({5: 3}, {4: 2}), ({6: 2}, {6: 3})]
    sides += [({1: 1 + n % 2}, {1 + n % 6: 1}) for n in range(26)]
    streams = np.arange(len(sides))
    assert rollouts().room < len(sides) - 1  # one is over: the others are more than one queue has room for
    whole = rollouts().run(home(*sides), streams)
    for rows in ([3], [30, 0, 4], [2, 1, 3]):
        part = rollouts().run(home(*(sides[row] for row in rows)), streams[rows])
        np.testing.assert_allclose(part.games, whole.games[rows], atol=1e-5)
        np.testing.assert_allclose(part.raw_games, whole.raw_games[rows], atol=1e-5)


# ---- misuse


@pytest.mark.parametrize(
    ("games", "plies", "player", "problems"),
    [
        (35, 7, network, ["games is 35; it must be a multiple of 36, as in 324"]),
        (0, 0, network, ["games is 0; it must be a multiple", "plies is 0; it must be at least 1"]),
        (100, None, network, ["games is 100; it must be a multiple of 36"]),
        (36, None, lambda: RandomPlayer(GAME), ["player 'random' is no network that plays whole turns"]),
        (
            36,
            None,
            lambda: dataclasses.replace(network(), ply=2),
            ["player 'noise' plays at 2 plies; rollouts play at"],
        ),
    ],
)
def test_all_that_is_wrong_is_said(games: int, plies: int | None, player: Any, problems: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        make_rollouts(player(), games, plies)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(problems)
    for line, problem in zip(lines, problems, strict=True):
        assert line.startswith("rollout: ")
        assert problem in line
