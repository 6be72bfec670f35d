"""Connect Four: seven columns, six rows, four in a row wins.

The action is the column, 0 to 6 from the left; people write 1 to 7. The board is `[6, 7]` with row 0 at the bottom.
Positions are written from the top row down, `......./......./......./......./...O.../..XXO..`; X moves first.
A string of digits is read as the moves that lead there: `4453`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import NotationError
from aleazero.core.game import WIN_DRAW_LOSS, Game, GameSpec, Notation, Symmetry
from aleazero.core.struct import replace, struct

ROWS, COLUMNS = 6, 7
_EMPTY = -1
_MARKS = "XO."  # index -1 is the dot


@struct
class ConnectFourState:
    """A position; fields as in `core.game.State`, and the board."""

    to_play: Array
    is_chance: Array
    terminated: Array
    rewards: Array
    returns: Array
    board: Array  # [6, 7] int8, row 0 at the bottom: -1 empty, else the seat whose stone it is


class ConnectFour(Game):
    """The rules."""

    spec = GameSpec(
        name="connect_four",
        version=1,
        num_players=2,
        num_actions=COLUMNS,
        max_legal=COLUMNS,
        observation_shape=(ROWS, COLUMNS, 2),
        outcomes=WIN_DRAW_LOSS,
        max_plies=ROWS * COLUMNS,
    )

    def init(self, key: Array) -> ConnectFourState:
        """The empty board."""
        return _state(jnp.full((ROWS, COLUMNS), _EMPTY, jnp.int8), jnp.int8(0))

    def legal_list(self, state: ConnectFourState) -> Array:
        """The columns that are not full, each in its own place."""
        free = (state.board[-1] == _EMPTY) & ~state.terminated
        return jnp.where(free, jnp.arange(COLUMNS, dtype=jnp.int16), jnp.int16(-1))

    def apply_action(self, state: ConnectFourState, action: Array) -> ConnectFourState:
        """Drops a stone: it lands on the lowest free row of its column."""
        free = state.board == _EMPTY
        lowest = free & jnp.concatenate([jnp.ones((1, COLUMNS), bool), ~free[:-1]])
        board = jnp.where(lowest & (jnp.arange(COLUMNS) == action)[None], state.to_play, state.board)
        return _state(board, 1 - state.to_play)

    def observe(self, state: ConnectFourState) -> Array:
        """My stones and yours."""
        mine = state.board == state.to_play
        yours = state.board == 1 - state.to_play
        return jnp.stack([mine, yours], -1).astype(jnp.float32)

    @property
    def notation(self) -> Notation:
        """Columns 1 to 7."""
        return ConnectFourNotation()

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:  # type: ignore[override]
        """Left-right reflection, and the players' seats."""
        columns = tuple(reversed(range(COLUMNS)))
        return (
            Symmetry("reflection", lambda state: replace(state, board=state.board[:, ::-1]), columns),
            Symmetry("seats", _swap_seats, tuple(range(COLUMNS)), swaps_seats=True),
        )


def _state(board: Array, to_play: Array) -> ConnectFourState:
    """The state of a board: whether it has ended is read from the board."""
    won = [_has_four(board == seat) for seat in (0, 1)]
    returns = won[0].astype(jnp.float32) - won[1].astype(jnp.float32)
    returns = jnp.stack([returns, -returns])
    return ConnectFourState(
        to_play=to_play.astype(jnp.int8),
        is_chance=jnp.bool_(False),
        terminated=won[0] | won[1] | (board[-1] != _EMPTY).all(),
        rewards=returns,
        returns=returns,
        board=board,
    )


def _has_four(stones: Array) -> Array:
    """Whether stones `[6, 7]` hold four in a row: pairs first, then pairs of pairs."""
    found = jnp.bool_(False)
    for rows, columns in ((0, 1), (1, 0), (1, 1), (1, -1)):
        pairs = stones & _shift(stones, rows, columns)
        found |= (pairs & _shift(pairs, 2 * rows, 2 * columns)).any()
    return found


def _shift(stones: Array, rows: int, columns: int) -> Array:
    """Stones moved down by `rows` and left by `columns` (right if negative); nothing wraps round."""
    left, right = max(columns, 0), max(-columns, 0)
    padded = jnp.pad(stones, ((0, rows), (right, left)))
    return jax.lax.slice(padded, (rows, left), (rows + ROWS, left + COLUMNS))


def _swap_seats(state: ConnectFourState) -> ConnectFourState:
    board = jnp.where(state.board == _EMPTY, state.board, 1 - state.board)
    return _state(board, 1 - state.to_play)


class ConnectFourNotation(Notation):
    """Columns are 1 to 7; positions are rows from the top, or the moves from the start."""

    def format_action(self, state: Any, action: int) -> str:
        """The column, counted from one."""
        return str(int(action) + 1)

    def parse_action(self, state: Any, text: str) -> int:
        """A column with room."""
        word = text.strip()
        if word not in {str(c) for c in range(1, COLUMNS + 1)}:
            raise NotationError(f"move {text!r} is not a column: write 1 to {COLUMNS}")
        if bool(state.terminated):
            raise NotationError(f"move {text!r} is not possible: the game is over")
        if int(state.board[-1, int(word) - 1]) != _EMPTY:
            raise NotationError(f"move {text!r} is not possible: column {word} is full")
        return int(word) - 1

    def format_state(self, state: Any) -> str:
        """Six rows from the top."""
        return "/".join("".join(_MARKS[int(c)] for c in row) for row in np.asarray(state.board)[::-1])

    def parse_state(self, text: str) -> ConnectFourState:
        """Six rows from the top, or a string of columns played from the start."""
        word = text.strip().upper()
        if word.isdigit():
            return self._play(word)
        rows = word.split("/")
        if len(rows) != ROWS or any(len(row) != COLUMNS or set(row) - set(_MARKS) for row in rows):
            raise NotationError(
                f"position {text!r}: write {ROWS} rows of {COLUMNS} from X, O and dots joined by '/', top row first, "
                "or the moves from the start as in 4453"
            )
        board = np.array([[_EMPTY if c == "." else _MARKS.index(c) for c in row] for row in rows[::-1]], np.int8)
        to_play = _check_board(text, board)
        return _state(jnp.asarray(board), jnp.int8(to_play))

    def draw(self, state: Any) -> str:
        """The board with column numbers."""
        rows = [" ".join(_MARKS[int(c)] for c in row) for row in np.asarray(state.board)[::-1]]
        return "\n".join([*rows, " ".join(str(c + 1) for c in range(COLUMNS))])

    def explain(self) -> str:
        """Columns."""
        return "Moves are columns, 1 (left) to 7. Positions are rows from the top, or the moves so far: 4453"

    def _play(self, moves: str) -> ConnectFourState:
        game = ConnectFour()
        state = game.init(jax.random.key(0))
        for number, move in enumerate(moves, 1):
            try:
                action = self.parse_action(state, move)
            except NotationError as error:
                raise NotationError(f"position {moves!r}: at move {number}: {error}") from error
            state = game.apply_action(state, jnp.int32(action))
        return state


def _check_board(text: str, board: np.ndarray) -> int:
    """Who is to play on a board, or why it cannot arise."""
    counts = [int((board == seat).sum()) for seat in (0, 1)]
    extra = counts[0] - counts[1]
    if extra not in (0, 1):
        raise NotationError(
            f"position {text!r} cannot arise: X moves first, so it has as many stones as O or one more; "
            f"here X has {counts[0]} and O has {counts[1]}"
        )
    filled = board != _EMPTY
    if (filled[1:] & ~filled[:-1]).any():
        column = int((filled[1:] & ~filled[:-1]).any(0).argmax()) + 1
        raise NotationError(f"position {text!r} cannot arise: a stone floats in column {column}")
    won = [bool(_has_four(jnp.asarray(board == seat))) for seat in (0, 1)]
    if (won[0] and extra != 1) or (won[1] and extra != 0):
        winner = _MARKS[0 if won[0] and extra != 1 else 1]
        raise NotationError(f"position {text!r} cannot arise: {winner} has four in a row and it is {winner}'s move")
    return extra
