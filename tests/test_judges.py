"""Exact judges: states in, values of moves out, from the side of whoever is to play."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.game import Game
from aleazero.core.struct import replace
from aleazero.games.connect_four import ConnectFour
from aleazero.games.pig import Pig
from aleazero.games.registry import make_game
from aleazero.games.tictactoe import TicTacToe
from aleazero.games.wander import wander
from aleazero.judges import exact_judge, lost_value
from aleazero.solvers import pig as pig_solver
from aleazero.solvers import tictactoe as tictactoe_solver
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")


def positions(game: Game, *texts: str) -> Any:
    return jax.tree.map(lambda *x: np.stack(x), *[game.notation.parse_state(text) for text in texts])


def values(game: Game, *texts: str) -> list[list[float]]:
    judge = exact_judge(game)
    assert judge is not None
    return np.where(np.isnan(found := judge(positions(game, *texts))), -9, found).tolist()


def met(game: Game, plies: int) -> tuple[Any, np.ndarray]:
    """Decisions of random games, and which actions are legal there, by the game itself."""
    steps = wander(game, lanes=8, plies=plies)
    decides = np.asarray(~steps.state.terminated & ~steps.state.is_chance).reshape(-1)
    states = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:])[decides], steps.state)
    listed = np.asarray(steps.legal).reshape(-1, steps.legal.shape[-1])[decides]
    legal = np.zeros((len(listed), game.spec.num_actions), bool)
    rows, places = np.nonzero(listed >= 0)
    legal[rows, listed[rows, places]] = True
    return states, legal


def take(states: Any, rows: Any) -> Any:
    return jax.tree.map(lambda x: x[rows], states)


def test_tictactoe() -> None:
    game = TicTacToe()
    # Whoever is to play wins in the own row, holds the draw by stopping the other's, and loses otherwise.
    assert values(game, "XX./OO./...", "XX./OO./X..") == [
        [-9, -9, 1, -9, -9, 0, -1, -1, -1],
        [-9, -9, 0, -9, -9, 1, -9, -1, -1],
    ]
    states, legal = met(game, 20)
    judge = exact_judge(game)
    assert judge is not None
    found = judge(states)
    np.testing.assert_array_equal(~np.isnan(found), legal)
    np.testing.assert_array_equal(np.nanmax(found, -1), tictactoe_solver.solve(states.board))


def test_pig() -> None:
    game = Pig()
    judge = exact_judge(game)
    assert judge is not None
    # A turn begins with a roll; a turn that wins is held; the judge sees with the eyes of whoever is to play.
    found = judge(positions(game, "90-10+0 1", "10-90+0 2", "90-10+12 1", "10-95+5 2", "90-10+4 2", "10-90+4 1"))
    assert np.isnan(found).tolist() == [[False, True]] * 2 + [[True, False]] * 2 + [[False, False]] * 2
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[4], found[5])
    assert found[0, 0] > 0.5  # far ahead
    assert found[4].max() < -0.5  # far behind
    assert (found[2, 1], found[3, 1]) == (1.0, 1.0)
    table = pig_solver.win_table()
    hold, roll = 1 - table[90, 14, 0], ((1 - table[90, 10, 0]) + table[10, 90, 6:11].sum()) / 6
    np.testing.assert_allclose(found[4], [2 * roll - 1, 2 * hold - 1])
    # Rolling is legal until the turn wins, holding from the first points on.
    rng = np.random.default_rng(0)
    scores, turn, seat = rng.integers(0, 100, (500, 2)), rng.choice([0, 2, 20], 500), rng.integers(0, 2, 500)
    states = replace(positions(game, "0-0+0 1"), scores=scores, turn_points=turn, to_play=seat)
    mine = np.where(seat == 0, scores[:, 0], scores[:, 1])
    np.testing.assert_array_equal(~np.isnan(judge(states)), np.stack([mine + turn < 100, turn > 0], -1))


def test_connect_four() -> None:
    game = ConnectFour()
    judge = exact_judge(game)
    assert judge is not None
    # Random games that have gone on for long: few stones are left to play, and some columns are full.
    states, legal = met(game, 80)
    late = np.flatnonzero((states.board >= 0).sum((1, 2)) >= 33)[:6]
    assert len(late) == 6
    found = judge(take(states, late))
    np.testing.assert_array_equal(~np.isnan(found), legal[late])
    assert set(found[~np.isnan(found)].tolist()) <= {-1.0, 0.0, 1.0}
    assert (~legal[late]).any()
    # A move that ends the game is worth what the game then pays.
    step = jax.jit(game.apply_action)
    ends = 0
    for row, place in enumerate(late):
        state = take(states, place)
        for action in np.flatnonzero(legal[place]):
            after = step(jax.tree.map(jnp.asarray, state), jnp.int32(action))
            if bool(after.terminated):
                assert found[row, action] == float(after.returns[int(state.to_play)])
                ends += 1
    assert ends > 0


def test_what_is_lost_is_the_distance_from_the_best() -> None:
    game = TicTacToe()
    judge = exact_judge(game)
    assert judge is not None
    states = positions(game, "XX./OO./...", "XX./OO./...", ".../.../...", "XX./OO./X..")
    lost = lost_value(judge, states, np.array([2, 5, 0, 8]))
    assert lost.tolist() == [0.0, 1.0, 0.0, 2.0]
    # A move that cannot be played is worth nothing that can be compared.
    assert np.isnan(lost_value(judge, take(states, slice(1)), np.array([0]))).all()


def test_a_game_that_is_not_solved_has_no_judge() -> None:
    game = make_game("quoridor")
    assert isinstance(game, Game)
    assert exact_judge(game) is None
