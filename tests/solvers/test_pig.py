"""Pig's table satisfies its own equations, and the facts published of optimal play."""

from __future__ import annotations

import numpy as np

from aleazero.solvers.pig import GOAL, solve, solve_moves, win_table


def test_the_first_player_wins_as_often_as_published() -> None:
    """Neller and Presser (2004): 53.06 %."""
    assert abs(win_table()[0, 0, 0] - 0.5306) < 5e-5


def test_at_the_start_optimal_play_holds_at_21() -> None:
    turn = np.arange(2, 60)
    moves = solve_moves(np.zeros_like(turn), np.zeros_like(turn), turn)
    holds = moves[:, 1] > moves[:, 0]
    assert turn[holds].min() == 21
    assert holds[turn >= 21].all()


def test_the_table_satisfies_bellman() -> None:
    """Checked one state at a time, apart from the sweeps that made it."""
    table, rng = win_table(), np.random.default_rng(0)
    for _ in range(500):
        mine, yours = (int(n) for n in rng.integers(0, GOAL, 2))
        turn = int(rng.integers(0, GOAL - mine))
        after_one = 1 - table[yours, mine, 0]
        rolls = [1.0 if mine + turn + face >= GOAL else table[mine, yours, turn + face] for face in range(2, 7)]
        roll = (after_one + sum(rolls)) / 6
        hold = 1 - table[yours, mine + turn, 0] if turn else -1.0
        assert abs(table[mine, yours, turn] - max(roll, hold)) < 1e-9


def test_value_is_the_best_move_in_points() -> None:
    rng = np.random.default_rng(1)
    mine, yours = rng.integers(0, GOAL, (2, 300))
    turn = rng.integers(0, GOAL + 5 - mine)
    turn = np.where(turn == 1, 2, turn)
    moves = solve_moves(mine, yours, turn)
    np.testing.assert_allclose(np.nanmax(moves, -1), solve(mine, yours, turn), atol=1e-9)
    wins = mine + turn >= GOAL
    assert (solve(mine, yours, turn)[wins] == 1).all()
    assert np.isnan(moves[wins, 0]).all()
    assert np.isnan(moves[turn == 0, 1]).all()
