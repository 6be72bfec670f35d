"""The contract's own helpers: masks, outcomes, signs, specifications and the notation of games without one."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.core.errors import GameContractError, NotationError
from aleazero.core.game import (
    WIN_DRAW_LOSS,
    WIN_LOSS,
    GameSpec,
    IndexNotation,
    Outcome,
    State,
    legal_mask,
    outcome_index,
    seat_sign,
)
from aleazero.games.tictactoe import TicTacToe

GAME = TicTacToe()
NOTATION = IndexNotation(GAME)
SPEC = GAME.spec


def after(*actions: int) -> Any:
    state = GAME.init(jax.random.key(0))
    for action in actions:
        state = GAME.apply_action(state, jnp.int32(action))
    return state


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.integers(-1, 6), min_size=4, max_size=4), min_size=3, max_size=3))
def test_a_mask_holds_what_its_list_names(lists):
    mask = np.asarray(legal_mask(jnp.array(lists, jnp.int16), 7))
    assert mask.shape == (3, 7)
    assert [set(np.flatnonzero(row).tolist()) for row in mask] == [set(row) - {-1} for row in lists]


def test_a_mask_of_one_state_and_of_a_grid():
    assert legal_mask(jnp.array([2, -1, 0], jnp.int16), 4).tolist() == [True, False, True, False]
    assert legal_mask(jnp.full((2, 5, 3), -1, jnp.int16), 4).shape == (2, 5, 4)
    assert not legal_mask(jnp.full(3, -1, jnp.int16), 4).any()


def test_a_mask_of_the_largest_action():
    mask = legal_mask(jnp.array([32766], jnp.int16), 32767)
    assert np.flatnonzero(mask).tolist() == [32766]


@pytest.mark.parametrize(
    ("outcomes", "points", "expected"),
    [
        (WIN_DRAW_LOSS, [1.0, 0.0, -1.0], [0, 1, 2]),
        (WIN_LOSS, [-1.0, 1.0], [1, 0]),
        (WIN_DRAW_LOSS, [0.4, 0.6, -0.9], [1, 0, 2]),  # the nearest
    ],
)
def test_outcomes_by_points(outcomes, points, expected):
    index = outcome_index(dataclasses.replace(SPEC, outcomes=outcomes), jnp.array(points))
    assert index.tolist() == expected
    assert index.dtype == jnp.int32


def test_outcomes_of_a_batch_and_of_one():
    assert outcome_index(SPEC, jnp.array([[1.0, -1.0], [0.0, 0.0]])).tolist() == [[0, 2], [1, 1]]
    assert int(outcome_index(SPEC, jnp.float32(-1.0))) == 2


def test_the_sign_of_a_seat():
    assert seat_sign(jnp.array([0, 1, 0], jnp.int8)).tolist() == [1.0, -1.0, 1.0]
    assert seat_sign(jnp.int8(1)).dtype == jnp.float32


def test_a_state_has_the_fields_of_the_contract():
    assert isinstance(after(), State)
    assert not isinstance(SPEC, State)


# ---- specifications


def test_every_problem_of_a_specification_is_reported_at_once():
    with pytest.raises(GameContractError) as caught:
        GameSpec(
            name="bad",
            version=1,
            num_players=3,
            num_actions=40_000,
            max_legal=50_000,
            observation_shape=(1,),
            outcomes=(Outcome("nothing", 0.0),),
            max_plies=1,
            chance="explicit",
        )
    assert caught.value.law == "spec"
    for part in (
        "game 'bad'",
        "num_players is 3; 1 or 2 are supported",
        "max_legal is 50000; it must be in 1..num_actions (40000)",
        "num_actions is 40000; actions are int16",
        "chance is 'explicit' but num_chance_outcomes is 0",
        "every outcome has zero points",
    ):
        assert part in caught.value.message


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"num_players": 0}, "num_players is 0"),
        ({"max_legal": 0}, "max_legal is 0"),
        ({"num_chance_outcomes": 6}, "chance is 'none' but num_chance_outcomes is 6"),
        ({"chance": "sampled", "num_chance_outcomes": 6}, "chance is 'sampled' but num_chance_outcomes is 6"),
    ],
)
def test_a_problem_alone_is_reported_alone(changes, why):
    with pytest.raises(GameContractError, match=why) as caught:
        dataclasses.replace(SPEC, **changes)
    assert ";" not in caught.value.message.replace("; 1 or 2", "").replace("; it must", "")


def test_a_specification_at_its_limits():
    edge = dataclasses.replace(SPEC, num_players=1, num_actions=32767, max_legal=32767)
    assert edge.max_legal == 32767
    assert dataclasses.replace(SPEC, chance="explicit", num_chance_outcomes=1).num_chance_outcomes == 1


def test_the_scale_is_the_largest_number_of_points():
    assert SPEC.scale == 1.0
    assert dataclasses.replace(SPEC, outcomes=(Outcome("a", 1.0), Outcome("b", -3.0))).scale == 3.0
    assert dataclasses.replace(SPEC, outcomes=()).scale == 1.0


# ---- what a game has by default


@pytest.mark.parametrize("name", ["chance_probs", "apply_chance"])
def test_a_game_without_dice_says_so(name):
    arguments = (after(),) if name == "chance_probs" else (after(), jnp.int32(0))
    with pytest.raises(GameContractError, match="game 'tictactoe' has no explicit chance") as caught:
        getattr(GAME, name)(*arguments)
    assert caught.value.law == name


def test_reseeding_a_game_without_chance_changes_nothing():
    state = after(4)
    assert GAME.reseed(state, jax.random.key(1)) is state


def test_a_game_of_sampled_chance_must_be_reseeded():
    class Sampled(TicTacToe):
        spec = dataclasses.replace(SPEC, chance="sampled")

    with pytest.raises(GameContractError, match="'tictactoe' samples chance but cannot be reseeded") as caught:
        Sampled().reseed(after(4), jax.random.key(1))
    assert caught.value.law == "reseed"


def test_the_size_of_a_row_is_that_of_its_pack():
    class Twice(TicTacToe):
        def pack(self, state):
            return jnp.tile(super().pack(state), 2)

    row = GAME.pack(after(4))
    assert GAME.packed_size == len(row) == 1 + 4 * 4 + 9 + 1  # to_play, points, board, two bits
    assert Twice().packed_size == 2 * len(row)


# ---- the notation of games that bring none


def test_numbers_and_rows_round_trip():
    state = after(4, 0, 8)
    text = NOTATION.format_state(state)
    assert text == bytes(np.asarray(GAME.pack(state))).hex()
    back = NOTATION.parse_state(f" {text.upper()} ")
    for one, two in zip(jax.tree.leaves(state), jax.tree.leaves(back), strict=True):
        assert (one.dtype, one.tolist()) == (two.dtype, two.tolist())
    legal = [1, 2, 3, 5, 6, 7]
    assert [NOTATION.parse_action(state, NOTATION.format_action(state, action)) for action in legal] == legal
    assert NOTATION.parse_action(state, " 7 ") == 7
    assert NOTATION.format_chance(state, 3) == "3"


@pytest.mark.parametrize("move", ["4", "9", "-1", "b2", "", "1.0", "²"])
def test_moves_that_are_refused(move):
    with pytest.raises(NotationError) as caught:
        NOTATION.parse_action(after(4, 0, 8), move)
    assert str(caught.value) == f"move {move!r} is not legal here: legal are 1, 2, 3, 5, 6, 7"


def test_at_the_end_no_move_is_legal():
    with pytest.raises(NotationError, match="legal are none"):
        NOTATION.parse_action(after(0, 3, 1, 4, 2), "8")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("xyz", "position 'xyz' is not hexadecimal"),
        ("abc", "position 'abc' is not hexadecimal"),
        ("00ff", "position has 2 bytes; tictactoe needs 27"),
        ("", "position has 0 bytes; tictactoe needs 27"),
    ],
)
def test_positions_that_are_refused(text, why):
    with pytest.raises(NotationError, match=why):
        NOTATION.parse_state(text)


def test_drawing_goes_field_by_field():
    lines = NOTATION.draw(after(4)).splitlines()
    assert [line.split(":")[0] for line in lines] == [field.name for field in dataclasses.fields(after())]
    assert lines[0] == "to_play: 1"
    assert lines[-1] == "board: [-1, -1, -1, -1, 0, -1, -1, -1, -1]"
    nested = NOTATION.draw({"here": {"there": jnp.arange(2)}})
    assert nested == "here.there: [0, 1]"


def test_the_notation_explains_itself():
    assert "hexadecimal" in NOTATION.explain()
