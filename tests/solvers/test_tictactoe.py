"""Tic-tac-toe is a draw, and the solver knows all 5,478 positions."""

from __future__ import annotations

import jax
import numpy as np

from aleazero.games.tictactoe import TicTacToe
from aleazero.solvers.tictactoe import reachable, solve, solve_moves


def board(text: str) -> np.ndarray:
    return np.array([["XO.".index(c) if c != "." else -1 for c in text.replace("/", "")]], np.int8)


def test_known_positions() -> None:
    assert solve(board(".../.../...")).tolist() == [0]
    assert solve(board("XX./OO./...")).tolist() == [1]  # X wins at once
    assert solve(board("X../.../...")).tolist() == [0]
    assert solve(board("XO./X../...")).tolist() == [-1]  # O must block and X forks
    values = solve_moves(board("X../.../..."))[0]  # only the centre holds the draw
    assert values[4] == 0
    assert (values[[1, 2, 3, 5, 6, 7, 8]] == -1).all()
    assert np.isnan(values[0])


def test_value_is_the_best_move() -> None:
    positions = reachable()
    assert len(positions) == 5478
    values, moves = solve(positions), solve_moves(positions)
    goes_on = ~np.isnan(moves).all(-1)
    np.testing.assert_array_equal(values[goes_on], np.nanmax(moves[goes_on], -1))


def test_agrees_with_the_rules_on_who_has_won() -> None:
    """The game and the solver share no code: each position's end is the same in both."""
    game, positions = TicTacToe(), reachable()
    rows = [game.notation.parse_state(_text(row)) for row in positions[::37]]
    states = jax.tree.map(lambda *x: np.stack(x), *rows)
    over = np.isnan(solve_moves(positions[::37])).all(-1)
    np.testing.assert_array_equal(over, states.terminated)
    mover = np.take_along_axis(states.returns, states.to_play[:, None].astype(int), -1)[:, 0]
    np.testing.assert_array_equal(solve(positions[::37])[over], mover[over])


def _text(row: np.ndarray) -> str:
    marks = "".join("XO."[int(c)] for c in row)
    return "/".join(marks[i : i + 3] for i in (0, 3, 6))
