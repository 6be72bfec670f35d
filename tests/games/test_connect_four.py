"""Connect Four against plain Python, and what that does not know: notation, symmetries, encoding."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from aleazero.core.errors import NotationError
from aleazero.games.conformance import check_game
from aleazero.games.connect_four import ConnectFour
from aleazero.games.wander import wander
from tests.games.follow import assert_equal_states, assert_follows, compiled, legal_moves, play

GAME = ConnectFour()
NOTATION = GAME.notation
LANES, PLIES = 24, 60
pytestmark = pytest.mark.usefixtures("quick_compile")
EMPTY = "/".join(["......."] * 6)
FULL = "XXOOXXO/OOXXOOX/XXOOXXO/OOXXOOX/XXOOXXO/OOXXOOX"


class Reference:
    """Columns of stones from the bottom up; four in a row are looked for from every stone in every direction."""

    rolling = False

    def __init__(self) -> None:
        self.columns: list[list[int]] = [[] for _ in range(7)]
        self.mover = 0
        self.final: list[float] | None = None

    def legal(self) -> set[int]:
        return set() if self.final else {c for c in range(7) if len(self.columns[c]) < 6}

    def act(self, action: int) -> None:
        self.columns[action].append(self.mover)
        self.mover = 1 - self.mover
        self.final = self.look()

    def roll(self, outcome: int) -> None:
        raise AssertionError("nothing is rolled here")

    def at(self, x: int, y: int) -> int:
        return self.columns[x][y] if 0 <= x < 7 and 0 <= y < len(self.columns[x]) else -1

    def points(self) -> list[float] | None:
        return self.final

    def look(self) -> list[float] | None:
        for x in range(7):
            for y in range(6):
                for right, up in ((1, 0), (0, 1), (1, 1), (1, -1)):
                    line = {self.at(x + i * right, y + i * up) for i in range(4)}
                    if line in ({0}, {1}):
                        return [1.0, -1.0] if line == {0} else [-1.0, 1.0]
        return [0.0, 0.0] if all(len(column) == 6 for column in self.columns) else None

    def fields(self) -> dict[str, list[list[int]]]:
        return {"board": [[self.at(x, y) for x in range(7)] for y in range(6)]}


def test_random_games_follow_the_reference():
    steps = wander(GAME, lanes=LANES, plies=PLIES)
    assert assert_follows(steps, Reference) > LANES
    winners = np.asarray(steps.after.returns)[np.asarray(steps.after.terminated)][:, 0]
    assert {-1.0, 1.0} <= set(winners.tolist())


@pytest.mark.slow
def test_keeps_the_contract():
    report = check_game(GAME, lanes=LANES, plies=PLIES)
    assert report.games > LANES
    assert report.warnings == ()


@pytest.mark.parametrize(
    ("moves", "returns"),
    [
        ("1122334", [1, -1]),  # along the bottom, from the left edge
        ("7766554", [1, -1]),  # and from the right
        ("777777", None),  # a column of both seats
        ("1212121", [1, -1]),  # up a column
        ("12121232", [-1, 1]),
        ("12233434464", [1, -1]),  # rising
        ("76655454424", [1, -1]),  # falling
        ("112233", None),  # three are not enough
    ],
)
def test_four_in_a_row_wins(moves, returns):
    state = NOTATION.parse_state(moves)
    assert bool(state.terminated) == (returns is not None)
    assert state.returns.tolist() == (returns or [0, 0])
    assert (legal_moves(GAME, state) == []) == (returns is not None)


def test_a_row_does_not_go_round_the_edge():
    state = NOTATION.parse_state("......./......./......./......./XXO..../OOXO.XX")
    assert not bool(state.terminated)  # X ends row 1 and begins row 2
    column = NOTATION.parse_state(".....X./.....X./.....O./.....X./.....OX/O....OX")
    assert not bool(column.terminated)  # X ends column 6 and begins column 7


def test_a_full_board_is_a_draw():
    before = NOTATION.parse_state(FULL.replace("XXOO", "XX.O", 1))
    assert legal_moves(GAME, before) == ["3"]
    assert not bool(before.terminated)
    state = play(GAME, before, "3")
    assert NOTATION.format_state(state) == FULL
    assert bool(state.terminated)
    assert state.returns.tolist() == [0, 0]


def test_a_full_column_is_closed():
    state = NOTATION.parse_state("111111")
    assert legal_moves(GAME, state) == ["2", "3", "4", "5", "6", "7"]


def test_a_stone_falls_to_the_lowest_free_row():
    state = play(GAME, NOTATION.parse_state(EMPTY), "4", "4", "2")
    assert NOTATION.format_state(state) == "......./......./......./......./...O.../.X.X..."


def test_the_player_to_play_sees_own_stones_first():
    state = NOTATION.parse_state("443")
    seen = np.asarray(compiled(GAME, "observe")(state))
    assert np.argwhere(seen[..., 0]).tolist() == [[1, 3]]
    assert np.argwhere(seen[..., 1]).tolist() == [[0, 2], [0, 3]]


@pytest.mark.parametrize("text", [EMPTY, FULL, "......./......./......./......./...O.../..XXO.."])
def test_positions_round_trip(text):
    state = NOTATION.parse_state(text)
    assert NOTATION.format_state(state) == text
    assert_equal_states(NOTATION.parse_state(" " + text.lower()), state)


def test_moves_and_rows_name_the_same_position():
    rows = NOTATION.parse_state("......./......./......./......./...O.../..XXO..")
    assert_equal_states(NOTATION.parse_state("4435"), rows)


def test_columns_are_counted_from_one():
    state = GAME.init(jax.random.key(0))
    names = [NOTATION.format_action(state, action) for action in range(7)]
    assert names == list("1234567")
    assert [NOTATION.parse_action(state, name) for name in names] == list(range(7))


def test_drawing():
    lines = NOTATION.draw(NOTATION.parse_state("4435")).splitlines()
    assert lines[0] == ". . . . . . ."
    assert lines[-3:] == [". . . O . . .", ". . X X O . .", "1 2 3 4 5 6 7"]
    assert "4453" in NOTATION.explain()


@pytest.mark.parametrize(
    ("position", "move", "why"),
    [
        (EMPTY, "0", "move '0' is not a column: write 1 to 7"),
        (EMPTY, "8", "move '8' is not a column"),
        (EMPTY, "a", "move 'a' is not a column"),
        ("111111", "1", "move '1' is not possible: column 1 is full"),
        ("1122334", "7", "move '7' is not possible: the game is over"),
    ],
)
def test_moves_that_are_refused(position, move, why):
    with pytest.raises(NotationError, match=why):
        NOTATION.parse_action(NOTATION.parse_state(position), move)


@pytest.mark.parametrize(
    ("position", "why"),
    [
        ("......./.......", "write 6 rows of 7"),
        (EMPTY.replace(".", "", 1), "write 6 rows of 7"),
        (EMPTY.replace(".", "Z", 1), "write 6 rows of 7"),
        ("1111111", "at move 7: move '1' is not possible: column 1 is full"),
        ("11223344", "at move 8: move '4' is not possible: the game is over"),
        ("4480", "at move 3: move '8' is not a column"),
        (EMPTY[:-1] + "O", "as many stones as O or one more; here X has 0 and O has 1"),
        (EMPTY[:-2] + "XX", "here X has 2 and O has 0"),
        ("......./......./......./......./..X..../.......", "a stone floats in column 3"),
        ("......./......./......./......./O....../XXXXOOO", "cannot arise: X has four in a row and it is X's move"),
        ("......./......./......./......./XX...../OOOOXXX", "cannot arise: O has four in a row and it is O's move"),
        ("......./......./......./......./OOOO.../XXXX..X", "cannot arise: O has four in a row and it is O's move"),
        ("......./......./......./......./OOOO.../XXXX...", "cannot arise: X has four in a row and it is X's move"),
    ],
)
def test_positions_that_are_refused(position, why):
    with pytest.raises(NotationError, match=why) as caught:
        NOTATION.parse_state(position)
    assert repr(position) in str(caught.value)


def test_symmetries_turn_the_board_as_they_say():
    reflection, seats = GAME.symmetries
    state = NOTATION.parse_state("4435")
    assert NOTATION.format_state(reflection.turn(state)) == "......./......./......./......./...O.../..OXX.."
    assert reflection.actions == (6, 5, 4, 3, 2, 1, 0)
    swapped = seats.turn(NOTATION.parse_state("443"))
    assert swapped.board[0].tolist() == [-1, -1, 1, 1, -1, -1, -1]
    assert int(swapped.to_play) == 0
    assert seats.turn(NOTATION.parse_state("1122334")).returns.tolist() == [-1, 1]
