"""Pig against plain Python: who acts after a roll, what is forced, what a one loses; then notation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.errors import NotationError
from aleazero.games.conformance import check_game
from aleazero.games.pig import Pig
from aleazero.games.wander import wander
from tests.games.follow import assert_equal_states, assert_follows, compiled, legal_moves, play

GAME = Pig()
NOTATION = GAME.notation
LANES, PLIES = 48, 300
pytestmark = pytest.mark.usefixtures("quick_compile")


class Reference:
    """Scores, the turn's points and who throws."""

    def __init__(self) -> None:
        self.scores, self.turn, self.mover, self.rolling = [0, 0], 0, 0, False

    def legal(self) -> set[int]:
        if self.rolling or max(self.scores) >= 100:
            return set()
        if self.turn == 0:
            return {0}
        return {1} if self.scores[self.mover] + self.turn >= 100 else {0, 1}

    def act(self, action: int) -> None:
        if action == 0:
            self.rolling = True
        else:
            self.scores[self.mover] += self.turn
            self.pass_on()

    def roll(self, outcome: int) -> None:
        face, self.rolling = outcome + 1, False
        if face == 1:
            self.pass_on()
        else:
            self.turn += face

    def pass_on(self) -> None:
        self.turn, self.mover = 0, 1 - self.mover

    def points(self) -> list[float] | None:
        if max(self.scores) < 100:
            return None
        return [1.0, -1.0] if self.scores[0] >= 100 else [-1.0, 1.0]

    def fields(self) -> dict[str, list[int] | int]:
        return {"scores": self.scores, "turn_points": self.turn}


def after_roll(position: str, face: int) -> str:
    """The position that a face of the die leaves."""
    state = NOTATION.parse_state(position)
    return NOTATION.format_state(compiled(GAME, "apply_chance")(state, jnp.int32(face - 1)))


def test_random_games_follow_the_reference():
    assert assert_follows(wander(GAME, lanes=LANES, plies=PLIES), Reference) > 5


def test_keeps_the_contract():
    report = check_game(GAME, lanes=LANES, plies=PLIES)
    assert report.games > 5
    assert report.warnings == ()


def test_a_turn_begins_with_a_roll():
    assert legal_moves(GAME, GAME.init(jax.random.key(0))) == ["roll"]
    assert legal_moves(GAME, NOTATION.parse_state("34-50+0 2")) == ["roll"]
    assert legal_moves(GAME, NOTATION.parse_state("34-50+2 2")) == ["roll", "hold"]


def test_while_the_die_is_in_the_air_nobody_acts():
    state = play(GAME, NOTATION.parse_state("34-50+12 2"), "roll")
    assert NOTATION.format_state(state) == "34-50+12 2?"
    assert bool(state.is_chance)
    assert int(state.to_play) == 1  # the one who threw
    assert legal_moves(GAME, state) == []


@pytest.mark.parametrize("face", range(2, 7))
def test_the_same_player_goes_on_after_a_roll(face):
    assert after_roll("34-50+12 2?", face) == f"34-50+{12 + face} 2"


def test_a_one_loses_the_turn_and_its_points():
    assert after_roll("34-50+12 1?", 1) == "34-50+0 2"
    assert after_roll("34-50+12 2?", 1) == "34-50+0 1"


def test_the_die_is_fair():
    probs = np.asarray(GAME.chance_probs(NOTATION.parse_state("0-0+0 1?")))
    assert probs.tolist() == pytest.approx([1 / 6] * 6)


def test_holding_keeps_the_points_and_hands_over():
    assert NOTATION.format_state(play(GAME, NOTATION.parse_state("34-50+12 1"), "hold")) == "46-50+0 2"
    assert NOTATION.format_state(play(GAME, NOTATION.parse_state("34-50+12 2"), "hold")) == "34-62+0 1"


@pytest.mark.parametrize(("turn", "moves"), [(65, ["roll", "hold"]), (66, ["hold"]), (71, ["hold"])])
def test_whoever_has_enough_must_hold(turn, moves):
    assert legal_moves(GAME, NOTATION.parse_state(f"34-50+{turn} 1")) == moves


@pytest.mark.parametrize(
    ("position", "final", "returns"),
    [
        ("34-50+66 1", "100-50+0 2", [1, -1]),
        ("34-99+6 2", "34-105+0 1", [-1, 1]),
        ("0-0+105 1", "105-0+0 2", [1, -1]),
    ],
)
def test_a_hundred_or_more_wins(position, final, returns):
    state = play(GAME, NOTATION.parse_state(position), "hold")
    assert NOTATION.format_state(state) == final
    assert bool(state.terminated)
    assert state.rewards.tolist() == state.returns.tolist() == returns
    assert legal_moves(GAME, state) == []
    assert_equal_states(NOTATION.parse_state(final), state)


def test_a_hundred_in_the_turn_has_not_won_yet():
    state = NOTATION.parse_state("34-50+66 1")
    assert not bool(state.terminated)
    assert state.returns.tolist() == [0, 0]


def test_the_player_to_play_sees_own_score_first():
    seen = np.asarray(compiled(GAME, "observe")(NOTATION.parse_state("34-50+12 2")))
    scores, to_go = [0.5, 0.34, 0.12, 0.62], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert seen.tolist() == pytest.approx([*scores, *to_go, 12 / 25, 0.0])
    seen = np.asarray(compiled(GAME, "observe")(NOTATION.parse_state("34-50+66 1")))
    assert seen.tolist() == pytest.approx([0.34, 0.5, 0.66, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    seen = np.asarray(compiled(GAME, "observe")(NOTATION.parse_state("85-92+3 1")))
    to_go = [15 / 30, 8 / 30, 12 / 30, 1.0, 8 / 10, 1.0]
    assert seen.tolist() == pytest.approx([0.85, 0.92, 0.03, 0.88, *to_go, 3 / 25, 0.0])


@pytest.mark.parametrize("text", ["0-0+0 1", "0-0+0 1?", "34-50+12 2", "99-98+0 1?", "99-0+6 1", "105-99+0 2"])
def test_positions_round_trip(text):
    assert NOTATION.format_state(NOTATION.parse_state(f" {text} ")) == text


def test_words():
    state = NOTATION.parse_state("34-50+12 1")
    assert [NOTATION.format_action(state, action) for action in (0, 1)] == ["roll", "hold"]
    assert [NOTATION.parse_action(state, word) for word in ("roll", " R ", "HOLD", "h")] == [0, 0, 1, 1]
    assert [NOTATION.format_chance(state, outcome) for outcome in range(6)] == list("123456")
    assert "roll" in NOTATION.explain()


@pytest.mark.parametrize(
    ("position", "words"),
    [
        ("34-50+12 2", "player 2 to play; the turn has brought 12"),
        ("34-50+12 2?", "player 2 has thrown the die; the turn has brought 12"),
        ("34-103+0 1", "player 2 has won"),
        ("100-50+0 2", "player 1 has won"),
    ],
)
def test_drawing(position, words):
    scores, now = NOTATION.draw(NOTATION.parse_state(position)).splitlines()
    one, two = position.split("+")[0].split("-")
    assert scores == f"player 1: {one}   player 2: {two}"
    assert now == words


@pytest.mark.parametrize(
    ("position", "move", "why"),
    [
        ("0-0+0 1", "pass", "move 'pass' is neither roll nor hold"),
        ("0-0+0 1", "hold", "hold is not possible: the turn has brought nothing yet, so roll"),
        ("34-50+66 1", "roll", "roll is not possible: the points of this turn win, so hold"),
        ("34-50+12 1?", "hold", "move 'hold' is not possible: the die is in the air"),
        ("100-50+0 2", "roll", "move 'roll' is not possible: the game is over"),
    ],
)
def test_moves_that_are_refused(position, move, why):
    with pytest.raises(NotationError, match=why):
        NOTATION.parse_action(NOTATION.parse_state(position), move)


@pytest.mark.parametrize(
    ("position", "why"),
    [
        ("34-50", "write scores, turn and player as in"),
        ("34-50+12 3", "write scores, turn and player as in"),
        ("-4-50+12 1", "write scores, turn and player as in"),
        ("100-50+0 1", "a player with 100 points has won and the game is over"),
        ("34-100+2 1", "a player with 100 points has won and the game is over"),
        ("34-100+0 1?", "a player with 100 points has won and the game is over"),
        ("34-50+72 1", "a turn stops at 100 points, 105 at the most"),
        ("106-50+0 2", "a turn stops at 100 points, 105 at the most"),
        ("34-50+1 1", "a one loses the turn, so it cannot have brought 1 point"),
        ("34-50+66 1?", "with 100 points the turn wins by holding"),
    ],
)
def test_positions_that_are_refused(position, why):
    with pytest.raises(NotationError, match=why) as caught:
        NOTATION.parse_state(position)
    assert repr(position) in str(caught.value)


def test_the_seats_can_be_swapped():
    (seats,) = GAME.symmetries
    assert seats.swaps_seats
    assert seats.actions == (0, 1)
    assert NOTATION.format_state(seats.turn(NOTATION.parse_state("34-50+12 2?"))) == "50-34+12 1?"
    assert seats.turn(NOTATION.parse_state("100-50+0 2")).returns.tolist() == [-1, 1]
