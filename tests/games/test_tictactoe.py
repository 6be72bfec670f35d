"""Tic-tac-toe against plain Python, and what that does not know: notation, symmetries, encoding."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.errors import NotationError
from aleazero.games.conformance import check_game
from aleazero.games.tictactoe import TicTacToe
from aleazero.games.wander import wander
from tests.games.follow import assert_equal_states, assert_follows, compiled, legal_moves, play

GAME = TicTacToe()
NOTATION = GAME.notation
LANES, PLIES = 24, 30
pytestmark = pytest.mark.usefixtures("quick_compile")


class Reference:
    """Marks by column and row; a line is three squares that differ by the same step."""

    rolling = False

    def __init__(self) -> None:
        self.marks: dict[tuple[int, int], int] = {}
        self.mover = 0

    def legal(self) -> set[int]:
        over = self.points() is not None
        return set() if over else {3 * y + x for x in range(3) for y in range(3) if (x, y) not in self.marks}

    def act(self, action: int) -> None:
        self.marks[action % 3, action // 3] = self.mover
        self.mover = 1 - self.mover

    def roll(self, outcome: int) -> None:
        raise AssertionError("nothing is rolled here")

    def points(self) -> list[float] | None:
        for x, y in self.marks:
            for right, down in ((1, 0), (0, 1), (1, 1), (1, -1)):
                line = {self.marks.get((x + i * right, y + i * down)) for i in range(3)}
                if len(line) == 1 and None not in line:
                    return [1.0, -1.0] if line == {0} else [-1.0, 1.0]
        return [0.0, 0.0] if len(self.marks) == 9 else None

    def fields(self) -> dict[str, list[int]]:
        return {"board": [self.marks.get((i % 3, i // 3), -1) for i in range(9)]}


def test_random_games_follow_the_reference():
    steps = wander(GAME, lanes=LANES, plies=PLIES)
    assert assert_follows(steps, Reference) > LANES


@pytest.mark.slow
def test_keeps_the_contract():
    report = check_game(GAME, lanes=LANES, plies=PLIES)
    assert report.positions == LANES * PLIES
    assert report.games > LANES
    assert report.warnings == ()


@pytest.mark.parametrize(
    ("moves", "final", "returns"),
    [
        ("a3 a1 b3 b1 c3", "XXX/.../OO.", [1, -1]),
        ("a1 b3 a2 b2 c3 b1", ".OX/XO./XO.", [-1, 1]),
        ("a3 b3 b2 c3 c1", "XOO/.X./..X", [1, -1]),
        ("b2 c3 a1 a3 c1 b3", "OOO/.X./X.X", [-1, 1]),
        ("a3 b2 c1 a1 c3 c2 a2 b3 b1", "XOX/XOO/OXX", [0, 0]),
        ("a3 a2 b3 a1 b2 c2 b1", "XX./OXO/OX.", [1, -1]),
    ],
)
def test_a_game_ends(moves, final, returns):
    state = play(GAME, GAME.init(jax.random.key(0)), *moves.split())
    assert NOTATION.format_state(state) == final
    assert bool(state.terminated)
    assert state.returns.tolist() == returns
    assert state.rewards.tolist() == returns
    assert legal_moves(GAME, state) == []


def test_the_last_square_can_win():
    full = play(GAME, NOTATION.parse_state("XOX/OXO/OX."), "c1")
    assert bool((full.board >= 0).all())
    assert full.returns.tolist() == [1, -1]


def test_the_player_to_play_sees_own_marks_first():
    state = NOTATION.parse_state("X../.O./..X")
    assert int(state.to_play) == 1
    seen = np.asarray(compiled(GAME, "observe")(state))
    assert np.argwhere(seen[..., 0]).tolist() == [[1, 1]]
    assert np.argwhere(seen[..., 1]).tolist() == [[0, 0], [2, 2]]
    assert seen.sum() == 3


@pytest.mark.parametrize("text", [".../.../...", "X../.../...", "X.O/.X./..O", "XXX/OO./...", "XOX/XOO/OXX"])
def test_positions_round_trip(text):
    state = NOTATION.parse_state(text)
    assert NOTATION.format_state(state) == text
    assert_equal_states(NOTATION.parse_state(text.lower() + " "), state)


def test_a_position_read_is_the_position_played():
    played = play(GAME, GAME.init(jax.random.key(0)), "b2", "c3", "a1")
    assert_equal_states(NOTATION.parse_state("..O/.X./X.."), played)


def test_squares_are_named_as_on_a_chess_board():
    state = NOTATION.parse_state(".../.../...")
    names = [NOTATION.format_action(state, action) for action in range(9)]
    assert names == ["a3", "b3", "c3", "a2", "b2", "c2", "a1", "b1", "c1"]
    assert [NOTATION.parse_action(state, name.upper()) for name in names] == list(range(9))


def test_drawing():
    assert NOTATION.draw(NOTATION.parse_state("X.O/.X./..O")) == "3 X . O\n2 . X .\n1 . . O\n  a b c"
    assert "a1" in NOTATION.explain()


@pytest.mark.parametrize(
    ("position", "move", "why"),
    [
        (".../.../...", "d1", "move 'd1' is not a square: write a1 to c3"),
        (".../.../...", "a0", "move 'a0' is not a square"),
        (".../.../...", "", "move '' is not a square"),
        ("X../.../...", "a3", "move 'a3' is not possible: the square is taken"),
        ("XXX/OO./...", "c1", "move 'c1' is not possible: the game is over"),
    ],
)
def test_moves_that_are_refused(position, move, why):
    with pytest.raises(NotationError, match=why):
        NOTATION.parse_action(NOTATION.parse_state(position), move)


@pytest.mark.parametrize(
    ("position", "why"),
    [
        ("X.O/.X.", "write three rows of X, O and dots"),
        ("X.O/.X./..O/...", "write three rows"),
        ("X.O/.X/..O", "write three rows"),
        ("X.O/.Z./..O", "write three rows"),
        ("XX./.../...", "as many marks as O or one more; here X has 2 and O has 0"),
        ("O../.../...", "here X has 0 and O has 1"),
        ("XXX/OOO/...", "cannot arise: X has three in a row and it is X's move"),
        ("XXX/OO./O..", "cannot arise: X has three in a row and it is X's move"),
        ("XX./OOO/X.X", "cannot arise: O has three in a row and it is O's move"),
        ("XXX/OOO/X..", "cannot arise: O has three in a row and it is O's move"),
    ],
)
def test_positions_that_are_refused(position, why):
    with pytest.raises(NotationError, match=why) as caught:
        NOTATION.parse_state(position)
    assert repr(position) in str(caught.value)


def test_symmetries_turn_the_board_as_they_say():
    turn, reflection, seats = GAME.symmetries
    state = NOTATION.parse_state("XO./.X./..O")
    assert NOTATION.format_state(turn.turn(state)) == "..O/OX./X.."  # a quarter anticlockwise
    assert NOTATION.format_state(reflection.turn(state)) == ".OX/.X./O.."
    for symmetry in (turn, reflection):
        for action in range(9):
            turned = symmetry.turn(compiled(GAME, "apply_action")(GAME.init(jax.random.key(0)), jnp.int32(action)))
            assert int(turned.board.argmax()) == symmetry.actions[action], symmetry.name
    swapped = seats.turn(state)
    assert swapped.board.tolist() == [1, 0, -1, -1, 1, -1, -1, -1, 0]
    assert int(swapped.to_play) == 1
    assert seats.swaps_seats


def test_symmetries_generate_all_eight_of_the_square():
    turn, reflection, _ = (symmetry.actions for symmetry in GAME.symmetries)
    group = {tuple(range(9))}
    for _ in range(8):
        group |= {tuple(move[a] for a in known) for known in group for move in (turn, reflection)}
    assert len(group) == 8
    thrice = tuple(turn[turn[turn[a]]] for a in range(9))
    assert tuple(turn[a] for a in thrice) == tuple(range(9)) != thrice
