"""Tic-tac-toe, three in a row on nine squares:

    0 | 1 | 2
    3 | 4 | 5
    6 | 7 | 8

The action is the square. Positions are written row by row, `X.O/.X./..O`; X moves first.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import NotationError
from aleazero.core.game import WIN_DRAW_LOSS, Game, GameSpec, Notation, Symmetry
from aleazero.core.struct import replace, struct

_LINES = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]])
_SQUARES = np.arange(9).reshape(3, 3)
_EMPTY = -1


@struct
class TicTacToeState:
    """A position; fields as in `core.game.State`, and the board."""

    to_play: Array
    is_chance: Array
    terminated: Array
    rewards: Array
    returns: Array
    board: Array  # [9] int8: -1 empty, else the seat whose mark it is


class TicTacToe(Game):
    """The rules."""

    spec = GameSpec(
        name="tictactoe",
        version=1,
        num_players=2,
        num_actions=9,
        max_legal=9,
        observation_shape=(3, 3, 2),
        outcomes=WIN_DRAW_LOSS,
        max_plies=9,
    )

    def init(self, key: Array) -> TicTacToeState:
        """The empty board."""
        return _state(jnp.full(9, _EMPTY, jnp.int8), jnp.int8(0))

    def legal_list(self, state: TicTacToeState) -> Array:
        """The free squares, each in its own place."""
        free = (state.board == _EMPTY) & ~state.terminated
        return jnp.where(free, jnp.arange(9, dtype=jnp.int16), jnp.int16(-1))

    def apply_action(self, state: TicTacToeState, action: Array) -> TicTacToeState:
        """Puts a mark."""
        board = jnp.where(jnp.arange(9) == action, state.to_play, state.board)
        return _state(board, 1 - state.to_play)

    def observe(self, state: TicTacToeState) -> Array:
        """My marks and yours."""
        mine = state.board == state.to_play
        yours = state.board == 1 - state.to_play
        return jnp.stack([mine, yours], -1).reshape(3, 3, 2).astype(jnp.float32)

    @property
    def notation(self) -> Notation:
        """Squares a1 to c3."""
        return TicTacToeNotation()

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:  # type: ignore[override]
        """A quarter turn, a reflection, and the players' seats; they generate all sixteen."""
        return (
            _board_symmetry("quarter turn", np.rot90(_SQUARES).reshape(-1)),
            _board_symmetry("reflection", np.fliplr(_SQUARES).reshape(-1)),
            Symmetry("seats", _swap_seats, tuple(range(9)), swaps_seats=True),
        )


def _state(board: Array, to_play: Array) -> TicTacToeState:
    """The state of a board: whether it has ended is read from the board."""
    lines = board[_LINES]  # [8, 3]
    won = [(lines == seat).all(-1).any() for seat in (0, 1)]
    returns = won[0].astype(jnp.float32) - won[1].astype(jnp.float32)
    returns = jnp.stack([returns, -returns])
    terminated = won[0] | won[1] | (board != _EMPTY).all()
    return TicTacToeState(
        to_play=to_play.astype(jnp.int8),
        is_chance=jnp.bool_(False),
        terminated=terminated,
        rewards=returns,
        returns=returns,
        board=board,
    )


def _board_symmetry(name: str, source: np.ndarray) -> Symmetry:
    """The symmetry whose turned board takes square `source[i]` to square `i`."""
    inverse = np.argsort(source)
    return Symmetry(name, lambda state: replace(state, board=state.board[source]), tuple(inverse.tolist()))


def _swap_seats(state: TicTacToeState) -> TicTacToeState:
    board = jnp.where(state.board == _EMPTY, state.board, 1 - state.board)
    return _state(board, 1 - state.to_play)


class TicTacToeNotation(Notation):
    """Squares are a1 (bottom left) to c3 (top right); positions read from the top row down."""

    def format_action(self, state: Any, action: int) -> str:
        """`b2` is the centre."""
        return "abc"[action % 3] + "321"[action // 3]

    def parse_action(self, state: Any, text: str) -> int:
        """A free square."""
        word = text.strip().lower()
        if len(word) != 2 or word[0] not in "abc" or word[1] not in "123":
            raise NotationError(f"move {text!r} is not a square: write a1 to c3, as in b2")
        action = "abc".index(word[0]) + 3 * "321".index(word[1])
        if bool(state.terminated):
            raise NotationError(f"move {text!r} is not possible: the game is over")
        if int(state.board[action]) != _EMPTY:
            raise NotationError(f"move {text!r} is not possible: the square is taken")
        return action

    def format_state(self, state: Any) -> str:
        """Three rows, `X.O/.X./..O`."""
        marks = "".join("XO."[int(c)] for c in np.asarray(state.board))
        return "/".join(marks[i : i + 3] for i in (0, 3, 6))

    def parse_state(self, text: str) -> TicTacToeState:
        """Three rows of X, O and dots; X has as many marks as O or one more."""
        rows = text.strip().upper().split("/")
        if len(rows) != 3 or any(len(row) != 3 or set(row) - set("XO.") for row in rows):
            raise NotationError(f"position {text!r}: write three rows of X, O and dots, as in X.O/.X./..O")
        cells = "".join(rows)
        extra = cells.count("X") - cells.count("O")
        if extra not in (0, 1):
            raise NotationError(
                f"position {text!r} cannot arise: X moves first, so it has as many marks as O or one more; "
                f"here X has {cells.count('X')} and O has {cells.count('O')}"
            )
        board = np.array(["XO.".index(c) if c != "." else _EMPTY for c in cells], np.int8)
        won = [bool((board[_LINES] == seat).all(-1).any()) for seat in (0, 1)]
        if (won[0] and extra != 1) or (won[1] and extra != 0):
            winner = "X" if won[0] and extra != 1 else "O"
            raise NotationError(
                f"position {text!r} cannot arise: {winner} has three in a row and it is {winner}'s move"
            )
        return _state(jnp.asarray(board), jnp.int8(extra))

    def draw(self, state: Any) -> str:
        """The board with coordinates."""
        marks = ["XO."[int(c)] for c in np.asarray(state.board)]
        rows = [f"{3 - r} " + " ".join(marks[3 * r : 3 * r + 3]) for r in range(3)]
        return "\n".join([*rows, "  a b c"])

    def explain(self) -> str:
        """Squares."""
        return "Moves are squares, a1 (bottom left) to c3 (top right). Positions are rows from the top: X.O/.X./..O"
