"""Exact judges: what every move of a position is really worth, in the games that are solved.

Joins the solvers, which know no project code, to the games' own states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from aleazero.core.game import Game
from aleazero.games.connect_four import ConnectFour
from aleazero.games.pig import Pig
from aleazero.games.tictactoe import TicTacToe

Judge = Callable[[Any], np.ndarray]
"""`judge(states [n])` -> `[n, A]`: the value of every action for to_play, in points; NaN where it is illegal."""


def exact_judge(game: Game) -> Judge | None:
    """The judge of a solved game; None where there is none."""
    return _JUDGES.get(type(game))


def lost_value(judge: Judge, states: Any, actions: np.ndarray) -> np.ndarray:
    """`[n]`: what each action gives away against the best one, in points."""
    values = judge(states)
    return np.nanmax(values, -1) - np.take_along_axis(values, actions[:, None], -1)[:, 0]


def _tictactoe(states: Any) -> np.ndarray:
    from aleazero.solvers.tictactoe import solve_moves

    return solve_moves(np.asarray(states.board))


def _pig(states: Any) -> np.ndarray:
    from aleazero.solvers.pig import solve_moves

    states = jax.tree.map(np.asarray, states)
    me = states.to_play[:, None].astype(int)
    mine, yours = (np.take_along_axis(states.scores, who, -1)[:, 0].astype(int) for who in (me, 1 - me))
    return solve_moves(mine, yours, states.turn_points.astype(int))


def _connect_four(states: Any) -> np.ndarray:
    from aleazero.solvers.connect_four import solve_moves

    values = solve_moves(np.asarray(states.board)).astype(np.float32)
    return np.where(values < -1, np.nan, values)


_JUDGES: dict[type[Game], Judge] = {TicTacToe: _tictactoe, Pig: _pig, ConnectFour: _connect_four}
