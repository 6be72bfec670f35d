"""How people write Quoridor.

Squares are `a1` to `i9`, columns from the left and rows from the side of player 1, who is seat 0 and starts
on e1. A wall is the lower left of the four squares it touches, and `h` or `v`: `e3h` lies above e3 and f3,
`e3v` stands to the right of e3 and e4. Names are of the board as it lies on the table, whoever is to move.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.core.errors import NotationError
from aleazero.core.game import Notation
from aleazero.games.quoridor import rules
from aleazero.games.quoridor.rules import SQUARES, WALLS, WALLS_EACH, State

_COLUMNS = "abcdefghi"
_UP, _RIGHT, _DOWN, _LEFT = range(4)  # the ways of rules.shut_off
_GOAL_ROWS = (9, 1)

_legal_list = jax.jit(rules.legal_list)
_cuts_off = jax.jit(rules.cuts_off)
_shut_off = jax.jit(rules.shut_off)
_position = jax.jit(rules.position)


class QuoridorNotation(Notation):
    """`e2` moves the pawn, `e3h` places a wall; a position is `e1 e9 9 9 a3h,e5v 1`."""

    def format_action(self, state: Any, action: int) -> str:
        """Where the pawn goes, or the wall."""
        return _name(_turned_for(state, int(action)))

    def parse_action(self, state: Any, text: str) -> int:
        """The legal move of a name, in lower or upper case."""
        place = _PLACES.get(text.strip().lower())
        if place is None:
            raise NotationError(
                f"move {text!r} is neither a square nor a wall: write a square a1 to i9, as in e2, or a wall "
                "a1h to h8h or a1v to h8v, as in e3h"
            )
        action = _turned_for(state, place)
        if action not in np.asarray(_legal_list(state)):
            raise NotationError(f"move {text!r} is not possible: {_why_not(state, place)}")
        return action

    def format_state(self, state: Any) -> str:
        """Both pawns, the walls each player has left, the walls in place or `-`, and the player to move."""
        pawns = [_name(int(square)) for square in np.asarray(state.pawns)]
        left = [str(count) for count in np.asarray(state.walls_left)]
        walls = [_name(SQUARES + int(wall)) for wall in np.flatnonzero(np.asarray(state.walls))]
        return " ".join([*pawns, *left, ",".join(walls) or "-", str(int(state.to_play) + 1)])

    def parse_state(self, text: str) -> State:
        """A position that keeps the rules; it is not asked whether play can lead there."""
        try:
            return _read_state(text)
        except NotationError as error:
            raise NotationError(f"position {text!r}: {error}") from None

    def draw(self, state: Any) -> str:
        """The board as player 1 sees it, with coordinates, and what each player has left."""
        walls = np.asarray(state.walls)
        shut = np.asarray(_shut_off(walls)).reshape(4, 9, 9)
        marks = np.full(SQUARES, " . ")
        marks[np.asarray(state.pawns)] = [" 1 ", " 2 "]
        lines = []
        for row in reversed(range(9)):
            bars = np.where(shut[_RIGHT, row], "|", " ")[:8]
            lines.append(f"{row + 1} " + _weave(marks.reshape(9, 9)[row], bars))
            if row > 0:
                dashes = np.where(shut[_DOWN, row], "---", "   ")
                middles = np.where(walls[0, row - 1], "-", np.where(walls[1, row - 1], "|", " "))
                lines.append("  " + _weave(dashes, middles))
        lines.append("   " + "   ".join(_COLUMNS))
        left = np.asarray(state.walls_left)
        turn = "game over" if bool(state.terminated) else f"player {int(state.to_play) + 1} to move"
        lines.append(f"walls left: {left[0]} and {left[1]}; {turn}")
        return "\n".join(line.rstrip() for line in lines)

    def explain(self) -> str:
        """Squares, walls and positions."""
        return (
            "A pawn move is the square it goes to, a1 to i9; a wall is the lower left of the four squares it "
            "touches and h or v, as in e3h. Positions: both pawns, the walls each player has left, the walls "
            "in place or -, the player to move (1 or 2), as in e1 e9 9 9 a3h,e5v 1"
        )


def _turned_for(state: Any, place: int) -> int:
    """From a place on the table to the mover's action there, or back: seat 1 turns the board by half."""
    if int(state.to_play) == 0:
        return place
    if place < SQUARES:
        return SQUARES - 1 - place
    orientation, wall = divmod(place - SQUARES, 64)
    return SQUARES + 64 * orientation + 63 - wall


def _name(place: int) -> str:
    """The name of a square or a wall, numbered on the table as seat 0's actions are."""
    if place < SQUARES:
        return f"{_COLUMNS[place % 9]}{place // 9 + 1}"
    orientation, wall = divmod(place - SQUARES, 64)
    return f"{_COLUMNS[wall % 8]}{wall // 8 + 1}{'hv'[orientation]}"


_PLACES = {_name(place): place for place in range(rules.NUM_ACTIONS)}


def _read_state(text: str) -> State:
    words = text.lower().split()
    if len(words) != 6:
        _refuse(
            f"it has {len(words)} words; write six: both pawns, the walls each player has left, the walls in "
            "place or -, the player to move (1 or 2), as in e1 e9 9 9 a3h,e5v 1"
        )
    for word in words[:2]:
        if _PLACES.get(word, SQUARES) >= SQUARES:
            _refuse(f"{word!r} is not a square: write a1 to i9")
    pawns = [_PLACES[word] for word in words[:2]]
    if pawns[0] == pawns[1]:
        _refuse(f"both pawns are on {words[0]}")
    if not all(re.fullmatch("[0-9]|10", word) for word in words[2:4]):
        _refuse(f"walls left are {words[2]!r} and {words[3]!r}; a player has 0 to {WALLS_EACH}")
    left = [int(word) for word in words[2:4]]
    walls = _read_walls(words[4])
    if walls.sum() + sum(left) != 2 * WALLS_EACH:
        _refuse(f"{walls.sum()} walls are in place, {left[0]} and {left[1]} are left; the sum must be 20")
    if words[5] not in ("1", "2"):
        _refuse(f"the player to move is {words[5]!r}; write 1 or 2")
    to_play = jnp.int8(int(words[5]) - 1)
    state: State = _position(jnp.array(pawns), jnp.asarray(walls), jnp.array(left), to_play)
    _check_goals(state)
    return state


def _refuse(why: str) -> NoReturn:
    raise NotationError(why)


def _read_walls(text: str) -> np.ndarray:
    """Walls `[2, 8, 8]`, put on the board one by one where they fit."""
    walls = np.zeros(WALLS, bool)
    for word in text.split(",") if text != "-" else []:
        wall = _PLACES.get(word, 0) - SQUARES
        if wall < 0:
            _refuse(f"{word!r} is not a wall: write a1h to h8v, with commas between them, or - for none")
        if (trouble := _why_no_fit(walls, wall)) is not None:
            _refuse(f"wall {word} {trouble}")
        walls[wall] = True
    return walls.reshape(2, 8, 8)


def _check_goals(state: State) -> None:
    """Refuses a position in which play should have stopped, or a player cannot arrive."""
    arrived = [int(state.pawns[0]) >= SQUARES - 9, int(state.pawns[1]) < 9]
    player = int(state.to_play)
    if all(arrived):
        _refuse("both pawns are on their goal rows, but the first to arrive ends the game")
    if arrived[player]:
        _refuse(f"the pawn of player {player + 1} has arrived, so it is not player {player + 1}'s move")
    for seat, cuts in enumerate(np.asarray(_cuts_off(state.walls, state.pawns))):
        if (cuts & np.asarray(state.walls)).any():
            _refuse(f"the walls cut player {seat + 1} off from row {_GOAL_ROWS[seat]}")


def _why_no_fit(walls: np.ndarray, wall: int) -> str | None:
    """What stands in the way of a wall, if something does."""
    if walls[wall]:
        return "is there already"
    across = (wall + 64) % WALLS
    if walls[across]:
        return f"would cross wall {_name(SQUARES + across)}"
    orientation, place = divmod(wall, 64)
    along, step = (place % 8, 1) if orientation == 0 else (place // 8, 8)
    for other, on_board in ((wall - step, along > 0), (wall + step, along < 7)):
        if on_board and walls[other]:
            return f"would overlap wall {_name(SQUARES + other)}"
    return None


def _why_not(state: State, place: int) -> str:
    """Why the player to move cannot move to a square, or place a wall."""
    if bool(state.terminated):
        return "the game is over"
    return _why_no_step(state, place) if place < SQUARES else _why_no_wall(state, place - SQUARES)


def _why_no_wall(state: State, wall: int) -> str:
    player = int(state.to_play)
    if int(state.walls_left[player]) == 0:
        return f"player {player + 1} has no walls left"
    if (trouble := _why_no_fit(np.asarray(state.walls).reshape(WALLS), wall)) is not None:
        return f"the wall {trouble}"
    cuts = np.asarray(_cuts_off(state.walls, state.pawns)).reshape(2, WALLS)[:, wall]
    cut_off = [f"player {seat + 1} off from row {_GOAL_ROWS[seat]}" for seat in np.flatnonzero(cuts)]
    return f"the wall would cut {' and '.join(cut_off)}"


def _why_no_step(state: State, to: int) -> str:
    player = int(state.to_play)
    me, you = int(state.pawns[player]), int(state.pawns[1 - player])
    if to == me:
        return "the pawn stands there already"
    if to == you:
        return "the other pawn stands there"
    if _way(me, to) is not None:
        return "a wall is in the way"
    first, second = _way(me, you), _way(you, to)
    if first is None or second is None:
        return f"{_name(to)} is not next to {_name(me)}, nor is it a jump over the other pawn"
    shut = np.asarray(_shut_off(state.walls))
    if shut[first, me] or shut[second, you]:
        return "a wall is in the way of the jump"
    return "the other pawn can be jumped straight, and then not to the side"


def _way(start: int, to: int) -> int | None:
    """Which of the four ways leads from a square to the next, if one does."""
    rows, columns = to // 9 - start // 9, to % 9 - start % 9
    return {(1, 0): _UP, (0, 1): _RIGHT, (-1, 0): _DOWN, (0, -1): _LEFT}.get((rows, columns))


def _weave(cells: np.ndarray, gaps: np.ndarray) -> str:
    """Nine cells with eight gaps between them."""
    return "".join(cell + gap for cell, gap in zip(cells, [*gaps, ""], strict=True))
