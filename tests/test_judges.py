"""Exact judges: states in, values of moves out, from the side of whoever is to play."""

from __future__ import annotations

import copy
import random
from typing import Any

import jax
import numpy as np

from aleazero.core.game import Game
from aleazero.games.connect_four import ConnectFour, ConnectFourState
from aleazero.games.pig import Pig, PigState
from aleazero.games.registry import make_game
from aleazero.games.tictactoe import TicTacToe, TicTacToeState
from aleazero.judges import Judge, exact_judge, lost_value
from aleazero.solvers import pig as pig_solver
from aleazero.solvers import tictactoe as tictactoe_solver
from tests.games.test_connect_four import Reference


def judge_of(game: Game) -> Judge:
    judge = exact_judge(game)
    assert judge is not None
    return judge


def going_on(to_play: np.ndarray) -> dict[str, Any]:
    """The fields that all games have, of decisions `[n]`, as numpy arrays."""
    nothing, unpaid = np.zeros(len(to_play), bool), np.zeros((len(to_play), 2), np.float32)
    return {"to_play": to_play, "is_chance": nothing, "terminated": nothing, "rewards": unpaid, "returns": unpaid}


def tictactoe_states(boards: np.ndarray) -> Any:
    return TicTacToeState(**going_on((boards >= 0).sum(-1) % 2), board=boards)  # type: ignore[arg-type]


def pig_states(*rows: tuple[int, int, int, int]) -> Any:
    """From the first player's score, the second's, the turn's points and who is to play."""
    table = np.array(rows)
    return PigState(**going_on(table[:, 3]), scores=table[:, :2], turn_points=table[:, 2])  # type: ignore[arg-type]


def boards_of(*texts: str) -> np.ndarray:
    return np.array([["XO.".index(mark) if mark != "." else -1 for mark in text.replace("/", "")] for text in texts])


def test_tictactoe() -> None:
    judge = judge_of(TicTacToe())
    found = judge(tictactoe_states(boards_of("XX./OO./...", "XX./OO./X..")))
    # Whoever is to play wins in the own row, holds the draw by stopping the other's, and loses otherwise.
    assert np.where(np.isnan(found), -9, found).tolist() == [
        [-9, -9, 1, -9, -9, 0, -1, -1, -1],
        [-9, -9, 0, -9, -9, 1, -9, -1, -1],
    ]
    boards = tictactoe_solver.reachable()
    boards = boards[~np.isnan(judge(tictactoe_states(boards))).all(-1)]
    assert len(boards) == 4520  # decisions: 5,478 positions, less 958 in which the game is over
    values = judge(tictactoe_states(boards))
    np.testing.assert_array_equal(~np.isnan(values), boards < 0)
    np.testing.assert_array_equal(np.nanmax(values, -1), tictactoe_solver.solve(boards))


def test_pig() -> None:
    judge = judge_of(Pig())
    found = judge(
        pig_states((90, 10, 0, 0), (10, 90, 0, 1), (90, 10, 12, 0), (10, 95, 5, 1), (90, 10, 4, 1), (10, 90, 4, 0))
    )
    # A turn begins with a roll; a turn that wins is held; the judge sees with the eyes of whoever is to play.
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
    values = judge(pig_states(*zip(*scores.T.tolist(), turn.tolist(), seat.tolist(), strict=True)))
    mine = np.where(seat == 0, scores[:, 0], scores[:, 1])
    np.testing.assert_array_equal(~np.isnan(values), np.stack([mine + turn < 100, turn > 0], -1))


def late_positions(count: int, stones: int) -> list[Reference]:
    """Connect Four after so many random moves, where nobody has won: few are left to look at."""
    choose = random.Random(0)
    found: list[Reference] = []
    while len(found) < count:
        game = Reference()
        while game.points() is None and sum(map(len, game.columns)) < stones:
            game.act(choose.choice(sorted(game.legal())))
        if game.points() is None:
            found.append(game)
    return found


def test_connect_four() -> None:
    games = late_positions(8, 33)
    boards = np.array([game.fields()["board"] for game in games], np.int8)
    movers = np.array([game.mover for game in games])
    found = judge_of(ConnectFour())(ConnectFourState(**going_on(movers), board=boards))  # type: ignore[arg-type]
    ends = 0
    for game, values in zip(games, found, strict=True):
        assert set(np.flatnonzero(~np.isnan(values)).tolist()) == game.legal()
        assert set(values[~np.isnan(values)].tolist()) <= {-1.0, 0.0, 1.0}
        for action in game.legal():
            after = copy.deepcopy(game)
            after.act(action)
            points = after.points()
            if points is not None:  # a move that ends the game is worth what the game then pays
                assert values[action] == points[game.mover]
                ends += 1
    assert ends > 2
    assert np.isnan(found).any()  # full columns
    assert len(set(found[~np.isnan(found)].tolist())) > 1


def test_what_is_lost_is_the_distance_from_the_best() -> None:
    judge = judge_of(TicTacToe())
    states = tictactoe_states(boards_of("XX./OO./...", "XX./OO./...", ".../.../...", "XX./OO./X.."))
    lost = lost_value(judge, states, np.array([2, 5, 0, 8]))
    assert lost.tolist() == [0.0, 1.0, 0.0, 2.0]
    # A move that cannot be played is worth nothing that can be compared.
    assert np.isnan(lost_value(judge, jax.tree.map(lambda x: x[:1], states), np.array([0]))).all()


def test_a_game_that_is_not_solved_has_no_judge() -> None:
    game = make_game("quoridor")
    assert isinstance(game, Game)
    assert exact_judge(game) is None
