"""Moves and positions as text: what players write, GNU Backgammon's position IDs, XGIDs, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.core.errors import NotationError
from aleazero.games.backgammon.game import Backgammon
from aleazero.games.backgammon.notation import from_position_id, position_id, read
from aleazero.games.wander import wander
from tests.games.backgammon import reference
from tests.games.backgammon.reference import KINDS, ROLLS, START, Position, drawn, plus
from tests.games.follow import assert_equal_states, compiled

pytestmark = pytest.mark.usefixtures("quick_compile")
GAME = Backgammon()
NOTATION = GAME.notation
NOBODY = (0,) * 26

OPENING = "-b----E-C---eE---c-e----B-"  # X below moves from 24 to 1
START_ID = "4HPwATDgc/ABMA"


def xgid(board: str, turn: int = 1, dice: str = "00", rest: str = "") -> str:
    return f"XGID={board}:0:0:{turn}:{dice}:0:0:0:0:0{rest}"


def state(board: str, dice: str, turn: int = 1, rest: str = "") -> Any:
    return NOTATION.parse_state(xgid(board, turn, dice, rest))


def board(**places: str) -> str:
    """The board of an XGID by place: `board(p6="E", p0="a")`."""
    return "".join(places.get(f"p{place}", "-") for place in range(26))


def apply(here: Any, actions: list[int]) -> Any:
    for action in actions:
        here = compiled(GAME, "apply_action")(here, jnp.int32(action))
    return here


def position(here: Any) -> Position:
    (found,) = reference.positions(jax.tree.map(lambda x: x[None], here))
    return found


def rows(states: Any, picked: Any) -> list[Any]:
    """Chosen states of a batch, one by one."""
    host = jax.tree.map(np.asarray, states)
    return [jax.tree.map(lambda x, row=row: jnp.asarray(x[row]), host) for row in picked]


def attempt(parse: Any, *arguments: Any) -> tuple[Any, str]:
    """What is read, or why it is refused; any other error is a failure."""
    try:
        return parse(*arguments), ""
    except NotationError as error:
        return None, str(error)


@pytest.fixture(scope="module")
def met() -> Any:
    """States of random games, one after the other, and those that followed."""
    steps = wander(GAME, lanes=24, plies=400, seed=2)
    return jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), (steps.state, steps.after))


# ---- positions


def test_the_start_has_the_names_everyone_gives_it() -> None:
    start = GAME.init(jax.random.key(0))
    assert NOTATION.format_state(start) == xgid(OPENING, 0)
    assert position_id(np.array(START[1:]), np.array(START[1:])) == START_ID
    for seat, outcome in ((0, 1), (1, 16)):
        rolled = compiled(GAME, "apply_chance")(start, jnp.int32(outcome))
        assert NOTATION.format_state(rolled) == xgid(OPENING, (1, -1)[seat], "31")
    assert_equal_states(NOTATION.parse_state(f"{START_ID}:31"), state(OPENING, "31"))
    assert_equal_states(NOTATION.parse_state(f" {START_ID} "), state(OPENING, "00"))


def test_the_player_above_counts_points_from_the_other_side() -> None:
    """8/5 6/5 by O: the same play, on the upper half of an XGID."""
    after = apply(state(OPENING, "31", -1), NOTATION.parse_moves(state(OPENING, "31", -1), "8/5 6/5"))
    assert NOTATION.format_state(after) == xgid("-b----E-C---eE---b-db---B-", 1)
    assert position(after)[1] == START
    assert position(after)[0] == reference.moved(reference.moved((START, START), 8, 3), 6, 1)[0]


def test_bars_of_an_xgid() -> None:
    """The first sign is the bar of the player above, the last one the bar of the player below."""
    here = state(board(p0="b", p25="C", p6="E"), "31")
    assert position(here) == (plus(NOBODY, [25] * 3 + [6] * 5), plus(NOBODY, [25] * 2))
    there = state(board(p0="b", p25="C", p6="E"), "31", -1)
    assert position(there) == position(here)[::-1]
    assert int(there.to_play) == 1


def test_after_a_turn_it_is_the_other_players_roll() -> None:
    here = state(OPENING, "00", 1)  # X is to roll, so O moved last
    assert bool(here.is_chance)
    assert int(here.to_play) == 1
    assert int(compiled(GAME, "apply_chance")(here, jnp.int32(0)).to_play) == 0


def test_every_state_of_play_is_read_back_leaf_for_leaf(met: Any) -> None:
    states, after = met
    whole = np.where(after.dice[:, 0] == after.dice[:, 1], 4, 2)
    kinds = {
        "opening": states.opening,
        "roll": states.is_chance & ~states.opening,
        "decision": (states.left > 0) & (states.left == np.where(states.dice[:, 0] == states.dice[:, 1], 4, 2)),
        "mid-turn": (after.left > 0) & (after.left < whole),
        "over": after.terminated,
    }
    numbers = {"opening": 2, "roll": 40, "decision": 40, "mid-turn": 80, "over": 12}
    for kind, holds in kinds.items():
        found = np.flatnonzero(holds)
        assert len(found) >= numbers[kind], kind
        picked = np.random.default_rng(1).choice(found, numbers[kind], replace=False)
        for here in rows(after if kind in ("mid-turn", "over") else states, picked):
            text = NOTATION.format_state(here)
            assert_equal_states(NOTATION.parse_state(text), here)
            assert (" +" in text) == (kind == "mid-turn"), text
    assert set(after.left[kinds["mid-turn"]].tolist()) == {1, 2, 3}


def test_all_kinds_of_positions_are_read_back() -> None:
    rng = random.Random(3)
    positions = [drawn(rng, KINDS[i % len(KINDS)]) for i in range(140)]
    dice = [ROLLS[i % 21] for i in range(140)]
    states = reference.states(positions, dice)
    for i, here in enumerate(rows(states, range(140))):
        assert_equal_states(NOTATION.parse_state(NOTATION.format_state(here)), here)
        mine, theirs = (np.array(side[1:]) for side in positions[i])
        back = NOTATION.parse_state(f"{position_id(mine, theirs)}:{dice[i][1]}{dice[i][0]}")
        assert position(back) == positions[i]
        assert (back.dice.tolist(), int(back.left), int(back.to_play)) == (list(dice[i]), int(here.left), 0)


def test_position_ids_are_those_of_gnubg() -> None:
    gnubg = pytest.importorskip("gnubg_nn")
    rng = random.Random(4)
    for i in range(3000):
        mine, theirs = drawn(rng, KINDS[i % len(KINDS)])
        text = position_id(np.array(mine[1:]), np.array(theirs[1:]))
        assert text == gnubg.position_id([list(theirs[1:]), list(mine[1:])])
        back = from_position_id(text)
        assert [side.tolist() for side in back] == [list(mine[1:]), list(theirs[1:])]
        assert gnubg.board_from_position_id(text) == [list(theirs[1:]), list(mine[1:])]


@pytest.mark.parametrize("turn", [1, -1])
def test_a_finished_game(turn: int) -> None:
    """Whoever has no checkers left has won, whatever the turn."""
    won = NOTATION.parse_state(xgid(board(p19="o"), turn))  # X is off; O has fifteen at home
    assert bool(won.terminated)
    assert won.returns.tolist() == [2, -2]
    lost = NOTATION.parse_state(xgid(board(p19="A", p6="N"), turn))
    assert lost.returns.tolist() == [-3, 3]
    assert_equal_states(NOTATION.parse_state(NOTATION.format_state(won)), won)
    assert_equal_states(NOTATION.parse_state(NOTATION.format_state(lost)), lost)


def test_a_finished_game_by_position_id() -> None:
    fifteen, nobody = np.array([0] * 5 + [15] + [0] * 19), np.zeros(25, int)
    assert NOTATION.parse_state(position_id(nobody, fifteen)).returns.tolist() == [2, -2]
    assert NOTATION.parse_state(position_id(fifteen, nobody)).returns.tolist() == [-2, 2]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (xgid(board(p6="J", p8="F"), dice="31"), "X has 16 checkers; there are 15"),
        (xgid(board(p6="A", p8="j", p9="j"), dice="31"), "O has 20 checkers; there are 15"),
        (xgid(board(p0="A", p6="B", p20="b"), dice="31"), "X has a checker on the other player's bar"),
        (xgid(board(p25="a", p6="B", p20="b"), dice="31"), "O has a checker on the other player's bar"),
        (xgid(board(p25="a", p6="B", p20="b"), -1), "O has a checker on the other player's bar"),
        (xgid(board(), dice="31"), "both players have borne off all checkers"),
        (xgid(board()), "both players have borne off all checkers"),
        (xgid(board(p6="a"), dice="31"), "X has won: there are no dice to play"),
        (xgid(board(p6="A"), dice="31"), "O has won: there are no dice to play"),
        (xgid(OPENING[:-1], dice="31"), "the board of an XGID has 26 of the signs -, A to O and a to o"),
        (xgid(OPENING + "-", dice="31"), "the board of an XGID has 26 of the signs"),
        (xgid(board(p6="P"), dice="31"), "the board of an XGID has 26 of the signs"),
        (xgid(board(p6="3"), dice="31"), "the board of an XGID has 26 of the signs"),
        (xgid(OPENING, dice="71"), "dice '71' are not two numbers from 1 to 6, as in 31"),
        (xgid(OPENING, dice="30"), "dice '30' are not two numbers from 1 to 6"),
        (xgid(OPENING, dice="03"), "dice '03' are not two numbers from 1 to 6"),
        (xgid(OPENING, dice="3"), "dice '3' are not two numbers from 1 to 6"),
        (xgid(OPENING, dice="311"), "dice '311' are not two numbers from 1 to 6"),
        (xgid(OPENING, dice="D"), "dice 'D' are not two numbers from 1 to 6"),
        (xgid(OPENING, turn=2, dice="31"), "the turn of an XGID is 1 or -1, not '2'"),
        (xgid(OPENING, turn=0, dice="31"), "before the opening roll there are no dice"),
        (xgid(OPENING, turn=0, dice="33", rest=" +3"), "before the opening roll there are no dice"),
        (xgid(board(p6="B", p20="a"), turn=0), "before the opening roll the position is the same for both players"),
        (xgid(OPENING, dice="31", rest=" +1"), r"\+1: it follows a double, as in 33 \+2, or one die and a zero"),
        (xgid(OPENING, dice="33", rest=" +4"), r"\+4: it follows a double"),
        (xgid(OPENING, dice="33", rest=" +0"), r"\+0: it follows a double"),
        (xgid(OPENING, dice="50", rest=" +2"), r"\+2: it follows a double"),
        (xgid(OPENING, dice="00", rest=" +1"), r"\+1: it follows a double"),
        (xgid(OPENING, dice="33", rest=" +x"), r"\+x: it follows a double"),
        (f"XGID={OPENING}:0:0:1", "an XGID has at least five fields: board, cube, owner, turn, dice"),
        ("", "a position ID has 14 letters, digits, \\+ and /"),
        ("hello", "a position ID has 14 letters"),
        (START_ID[:-1], "a position ID has 14 letters"),
        (START_ID + "A", "a position ID has 14 letters"),
        (START_ID[:-1] + "?", "a position ID has 14 letters"),
        (START_ID[:-1] + "B", "its last letter holds more than the ten bytes"),
        ("//////////////", "it does not hold two sides of 25 places"),
        ("AAAAAAAAAAAAEA", "it does not hold two sides of 25 places"),
        ("AAAAAAAAAAAAAA", "both players have borne off all checkers"),
        (f"{START_ID}:70", "dice '70' are not two numbers from 1 to 6"),
        (f"{START_ID}:cIkqAAAAAAAA", "dice 'cIkqAAAAAAAA' are not two numbers from 1 to 6"),
    ],
)
def test_positions_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(NotationError, match=why) as caught:
        NOTATION.parse_state(text)
    assert f"position {text!r}: " in str(caught.value)


def test_position_ids_of_impossible_positions_are_refused() -> None:
    many, some = np.array([0] * 5 + [16] + [0] * 19), np.array([0] * 5 + [3] + [0] * 19)
    with pytest.raises(NotationError, match="X has 16 checkers; there are 15"):
        NOTATION.parse_state(position_id(many, some) + ":31")
    with pytest.raises(NotationError, match="O has 16 checkers; there are 15"):
        NOTATION.parse_state(position_id(some, many))
    same_point = np.array([0] * 18 + [2] + [0] * 6)
    with pytest.raises(NotationError, match="both players have checkers on point 6"):
        NOTATION.parse_state(position_id(some, same_point) + ":31")


@settings(deadline=None, max_examples=150)
@given(
    st.one_of(
        st.text("XGID=:-+aBoO019 /", max_size=60),
        st.text("ABCDabcd0123+/", min_size=14, max_size=14),
        st.tuples(
            st.text("-aBoO", min_size=26, max_size=26), st.sampled_from("01"), st.sampled_from(["00", "31", "66"])
        ).map(lambda parts: xgid(parts[0], int(parts[1]), parts[2])),
    )
)
def test_any_text_is_read_or_refused(text: str) -> None:
    found, refusal = attempt(NOTATION.parse_state, text)
    if refusal:
        assert refusal.startswith(f"position {text!r}: ")
    else:
        assert read(found).problems() == []
        assert_equal_states(NOTATION.parse_state(NOTATION.format_state(found)), found)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(NotationError, match="X has 16 checkers; there are 15; O has 30 checkers; there are 15"):
        NOTATION.parse_state(xgid(board(p6="J", p8="F", p9="o", p10="o"), dice="31"))


# ---- one checker

ON_THE_BAR = board(p25="A", p22="a", p6="B", p1="b")
TWO_ON_THE_BAR = board(p25="B", p22="a", p6="B", p1="b")
LAST_TWO = board(p6="A", p3="A", p24="b")


@pytest.mark.parametrize(
    ("checkers", "dice", "names"),
    [
        pytest.param(OPENING, "31", "24/21 24/23 13/10 8/5 8/7 6/3 6/5", id="the start"),
        pytest.param(ON_THE_BAR, "31", "bar/22* bar/24", id="a hit from the bar"),
        pytest.param(LAST_TWO, "61", "6/off 6/5 3/2", id="off"),
        pytest.param(board(p4="A", p3="A", p24="b"), "65", "4/off:6 4/off", id="off by either die"),
        pytest.param(board(p4="A", p24="b"), "65", "4/off", id="off by either die, where nothing follows"),
        pytest.param(board(p25="A", p24="b", p22="b", p6="A"), "31", "pass", id="nothing"),
    ],
)
def test_one_checker(checkers: str, dice: str, names: str) -> None:
    here = state(checkers, dice)
    actions = [int(a) for a in np.asarray(compiled(GAME, "legal_list")(here)) if a >= 0]
    written = [NOTATION.format_action(here, action) for action in actions]
    assert sorted(written) == sorted(names.split())
    assert [NOTATION.parse_action(here, name) for name in written] == actions


@pytest.mark.parametrize("text", ["bar/22*", "bar/22", " BAR/22 ", "25/22"])
def test_ways_to_write_a_checker(text: str) -> None:
    assert NOTATION.parse_action(state(ON_THE_BAR, "31"), text) == 24 * 6 + 2


def test_off_has_a_number_too() -> None:
    here = state(LAST_TWO, "61")
    assert NOTATION.parse_action(here, "6/0") == NOTATION.parse_action(here, "6/off") == 5 * 6 + 5


@pytest.mark.parametrize(
    ("checkers", "dice", "text", "why"),
    [
        (OPENING, "31", "hello", "move 'hello' is not written as one checker's move, as in 8/5, bar/22 or 6/off"),
        (OPENING, "31", "8-5", "move '8-5' is not written as one checker's move"),
        (OPENING, "31", "", "move '' is not written as one checker's move"),
        (OPENING, "31", "8/", "move '8/' is not written as one checker's move"),
        (OPENING, "31", "8/bar", "move '8/bar' is not written as one checker's move"),
        (OPENING, "31", "8/5 and 6/5", "move '8/5 and 6/5' is not written as one checker's move"),
        (OPENING, "31", "pass", "move 'pass' is not possible here; possible: 6/5, 6/3, 8/7, 8/5, 13/10, 24/23, 24/21"),
        (OPENING, "31", "99/98", "move '99/98' is not possible here; possible: 6/5, 6/3"),
        (OPENING, "00", "8/5", "move '8/5' is not possible: roll first"),
        (OPENING, "00", "8/5 6/5", "move '8/5 6/5' is not possible: roll first"),
        (board(p19="o"), "00", "8/5", "move '8/5' is not possible: the game is over"),
        (board(p19="o"), "00", "8/5 6/5", "move '8/5 6/5' is not possible: the game is over"),
    ],
)
def test_moves_that_are_refused(checkers: str, dice: str, text: str, why: str) -> None:
    for parse in (NOTATION.parse_action, NOTATION.parse_moves):
        with pytest.raises(NotationError) as caught:
            parse(state(checkers, dice), text)
        assert str(caught.value).startswith(why)


@pytest.mark.parametrize(
    ("checkers", "dice", "text", "possible"),
    [
        pytest.param(OPENING, "31", "8/4", "6/5, 6/3, 8/7, 8/5, 13/10, 24/23, 24/21", id="a run is two moves"),
        pytest.param(OPENING, "31", "5/8", "6/5, 6/3, 8/7, 8/5, 13/10, 24/23, 24/21", id="backwards"),
        pytest.param(OPENING, "51", "13/12", "6/5, 8/7, 8/3, 13/8, 24/23", id="held by the other one"),
        pytest.param(board(p24="A", p13="b"), "65", "24/19", "24/18", id="the lower die where only one can be played"),
        pytest.param(ON_THE_BAR, "31", "6/5", "bar/24, bar/22*", id="with a checker on the bar"),
        pytest.param(LAST_TWO, "61", "3/off", "3/2, 6/5, 6/off", id="off below the last one"),
        pytest.param(LAST_TWO, "61", "6/off:6", "3/2, 6/5, 6/off", id="only one die takes it off"),
    ],
)
def test_moves_that_are_not_legal(checkers: str, dice: str, text: str, possible: str) -> None:
    with pytest.raises(NotationError) as caught:
        NOTATION.parse_action(state(checkers, dice), text)
    assert str(caught.value).startswith(f"move {text!r} is not possible here; possible: {possible}")


# ---- whole turns and parts of them

TARGETS = board(p24="A", p18="a", p13="A", p10="a", p6="B", p5="a", p1="b")


@pytest.mark.parametrize(
    ("checkers", "dice", "text", "actions"),
    [
        pytest.param(OPENING, "31", "8/5 6/5", "8/5 6/5", id="two checkers"),
        pytest.param(OPENING, "31", "6/5 8/5", "8/5 6/5", id="in the other order"),
        pytest.param(OPENING, "31", "8/5,6/5", "8/5 6/5", id="with a comma"),
        pytest.param(OPENING, "65", "24/13", "24/18 18/13", id="a run"),
        pytest.param(OPENING, "65", "24/18/13", "24/18 18/13", id="a run with its stop"),
        pytest.param(TARGETS, "65", "24/18*/13", "24/18* 18/13", id="a run that hits"),
        pytest.param(TARGETS, "65", "24/18/13", "24/18* 18/13", id="a hit that is not written"),
        pytest.param(TARGETS, "65", "24/13", "24/19 19/13", id="a run that need not hit"),
        pytest.param(TARGETS, "31", "13/10*/9", "13/10* 10/9", id="a hit with the larger die"),
        pytest.param(TARGETS, "31", "6/5* 13/10*", "6/5* 13/10*", id="two hits"),
        pytest.param(TARGETS, "11", "6/5*(2)", "6/5* 6/5", id="two onto a blot, and two moves left"),
        pytest.param(OPENING, "66", "24/18(2) 13/7(2)", "24/18 24/18 13/7 13/7", id="a double"),
        pytest.param(OPENING, "66", "13/7(2)", "13/7 13/7", id="half of a double"),
        pytest.param(OPENING, "66", "24/18", "24/18", id="a quarter of one"),
        pytest.param(OPENING, "33", "13/4 24/21", "24/21 13/10 10/7 7/4", id="three quarters by one checker"),
        pytest.param(OPENING, "22", "13/9(2)", "13/11 11/9 13/11 11/9", id="two runs"),
        pytest.param(OPENING, "31", "13/10", "13/10", id="one die of two"),
        pytest.param(TWO_ON_THE_BAR, "31", "bar/22* bar/24", "bar/22* bar/24", id="both enter"),
        pytest.param(ON_THE_BAR, "31", "bar/21", "bar/24 24/21", id="from the bar and on, without the hit"),
        pytest.param(ON_THE_BAR, "31", "bar/22*/21", "bar/22* 22/21", id="from the bar and on, with it"),
        pytest.param(LAST_TWO, "61", "6/off 3/2", "6/off 3/2", id="one off"),
        pytest.param(LAST_TWO, "61", "6/off", "6/off", id="off by one die"),
        pytest.param(LAST_TWO, "61", "6/5/off", "6/5 5/off", id="off by two"),
        pytest.param(board(p6="A", p24="b"), "61", "6/off", "6/5 5/off", id="the last one off by two, as it must"),
        pytest.param(board(p4="B", p24="b"), "65", "4/off(2)", "4/off 4/off", id="two off"),
        pytest.param(board(p25="A", p24="b", p22="b", p6="A"), "31", "pass", "pass", id="nothing"),
    ],
)
def test_turns_are_read(checkers: str, dice: str, text: str, actions: str) -> None:
    """`actions` are the same moves checker by checker, in any order that is possible."""
    here = state(checkers, dice)
    found = NOTATION.parse_moves(here, text)
    expected = here
    for word in actions.split():
        expected = apply(expected, [NOTATION.parse_action(expected, word)])
    assert len(found) == len(actions.split())
    assert_equal_states(apply(here, found), expected)


@pytest.mark.parametrize(
    ("checkers", "dice", "text"),
    [
        pytest.param(OPENING, "31", "8/5 8/5", id="one die twice"),
        pytest.param(OPENING, "31", "8/5(2)", id="one die twice, in short"),
        pytest.param(OPENING, "31", "8/5 6/5 24/23", id="too many"),
        pytest.param(OPENING, "61", "24/17 8/7", id="too far"),
        pytest.param(OPENING, "65", "24/18/12", id="six and six"),
        pytest.param(board(p24="A", p18="b", p6="B"), "65", "24/18/13", id="by way of a held point"),
        pytest.param(TARGETS, "65", "24/18*/12", id="no such die"),
        pytest.param(board(p24="A", p8="A", p19="b", p3="b"), "65", "8/2 24/18", id="one six, no five after it"),
        pytest.param(OPENING, "66", "24/18(3)", id="more checkers than there are"),
        pytest.param(OPENING, "66", "24/6(2)", id="more moves than four"),
    ],
)
def test_turns_that_are_not_legal(checkers: str, dice: str, text: str) -> None:
    with pytest.raises(NotationError) as caught:
        NOTATION.parse_moves(state(checkers, dice), text)
    assert str(caught.value).startswith(f"turn {text!r} is not possible here; possible: ")


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet="12345678/*() baroff,", max_size=24), st.sampled_from(["31", "22"]))
def test_any_text_of_a_turn_is_read_or_refused(text: str, dice: str) -> None:
    here = state(OPENING, dice)
    found, refusal = attempt(NOTATION.parse_moves, here, text)
    if refusal:
        assert repr(text) in refusal
    else:
        assert 1 <= len(found) <= int(here.left)
        assert len(NOTATION.parse_moves(here, NOTATION.format_turn(here, found))) == len(found)


def test_a_text_that_moves_everything_is_refused() -> None:
    spread = [3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18, 20, 21, 23, 24]
    here = state("a" + "".join("A" if place in spread else "-" for place in range(1, 26)), "11")
    text = " ".join(f"{place}/{place - 1}" for place in spread)
    with pytest.raises(NotationError, match=r"and 2218 more$"):
        NOTATION.parse_moves(here, text)


def test_a_refused_turn_shows_some_that_are_possible() -> None:
    with pytest.raises(NotationError, match=r"possible: 6/4 6/2(, [0-9/]+ [0-9/]+){7} and \d+ more$"):
        NOTATION.parse_moves(state(OPENING, "42"), "8/5 8/5")
    with pytest.raises(NotationError, match=r"possible: 24/18$"):
        NOTATION.parse_moves(state(board(p24="A", p13="b"), "65"), "24/13")


@pytest.mark.parametrize(
    ("checkers", "dice", "text"),
    [
        (OPENING, "31", "8/5 6/5"),
        (OPENING, "65", "24/13"),
        (TARGETS, "65", "24/18*/13"),
        (TARGETS, "11", "13/12 6/5*/4 6/5"),
        (TARGETS, "31", "13/10* 6/5*"),
        (OPENING, "66", "24/18(2) 13/7(2)"),
        (OPENING, "22", "13/9(2)"),
        (TWO_ON_THE_BAR, "31", "bar/24 bar/22*"),
        (ON_THE_BAR, "31", "bar/22*/21"),
        (LAST_TWO, "61", "6/off 3/2"),
        (LAST_TWO, "61", "6/5/off"),
        (board(p10="A", p24="b"), "64", "10/off"),
        (board(p4="B", p24="b"), "65", "4/off(2)"),
        (board(p25="A", p24="b", p22="b", p6="A"), "31", "pass"),
    ],
)
def test_turns_are_written(checkers: str, dice: str, text: str) -> None:
    here = state(checkers, dice)
    assert NOTATION.format_turn(here, NOTATION.parse_moves(here, text)) == text


def test_written_turns_are_read_back() -> None:
    """Every turn of many positions: the text leads to the same state."""
    rng, seen = random.Random(5), 0
    positions = [drawn(rng, KINDS[i % len(KINDS)]) for i in range(84)]
    dice = [ROLLS[i % 21] for i in range(84)]
    for here in rows(reference.states(positions, dice), range(84)):
        turns = NOTATION.turns(here)
        texts: dict[str, list[int]] = {}
        for actions, after in rng.sample(turns, min(len(turns), 8)):
            text = NOTATION.format_turn(here, actions)
            assert_equal_states(apply(here, NOTATION.parse_moves(here, text)), after)
            assert texts.setdefault(text, actions) == actions, f"two turns are both {text}"
            seen += 1
    assert seen > 300


def test_turns_are_the_plays_of_the_reference() -> None:
    rng = random.Random(6)
    positions = [drawn(rng, KINDS[i % 6]) for i in range(42)]
    dice = [ROLLS[(5 * i) % 21] for i in range(42)]
    for i, here in enumerate(rows(reference.states(positions, dice), range(42))):
        ends = [position(after) for _, after in NOTATION.turns(here)]
        assert sorted(ends) == sorted(reference.plays(positions[i], reference.dice_of(*dice[i])))


# ---- words


def test_the_drawing_is_from_the_side_of_the_player_to_play() -> None:
    """Whoever plays has point 1 below on the right; bars are in the middle."""
    here = board(p0="a", p25="B", p1="G", p13="c", p24="b")
    assert NOTATION.draw(state(here, "31")).splitlines() == [
        " 13 14 15 16 17 18      19 20 21 22 23 24 ",
        "| O                | O |                O |",
        "| O                |   |                O |",
        "| O                |   |                  |",
        "|                  |   |                  |",
        "|                  |   |                  |",
        "|                  |BAR|                  |",
        "|                  |   |                7 |",
        "|                  |   |                X |",
        "|                  |   |                X |",
        "|                  | X |                X |",
        "|                  | X |                X |",
        " 12 11 10  9  8  7       6  5  4  3  2  1 ",
        "X: 57 pips, 6 off   O: 63 pips, 9 off",
        "X to play 3 1",
    ]
    above = NOTATION.draw(state(here, "33", -1, rest=" +3")).splitlines()
    assert above[1] == "|                  | X |                X |"
    assert above[12].endswith("1 ")
    assert above[-2:] == ["O: 63 pips, 9 off   X: 57 pips, 6 off", "O to play 3 3 3"]
    assert NOTATION.draw(GAME.init(jax.random.key(0))).endswith("the opening roll decides who starts")


def test_the_notation_explains_itself() -> None:
    for word in ("8/5 6/5", "bar/22", "6/off", "XGID", "position ID"):
        assert word in NOTATION.explain()


def test_a_state_is_read_as_plain_numbers() -> None:
    found = read(state(ON_THE_BAR, "33", -1, rest=" +2"))
    assert (found.to_play, found.dice, found.left, found.opening) == (1, (3, 3), 2, False)
    assert found.mine.tolist() == list(plus(NOBODY, [3, 24, 24]))
    assert found.theirs.tolist() == list(plus(NOBODY, [25, 6, 6])[::-1])
    assert found.problems() == []
