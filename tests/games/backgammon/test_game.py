"""Backgammon checker by checker: random games beside plain Python, the dice that must be played, dice, scoring."""

from __future__ import annotations

import functools
import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.game import outcome_index
from aleazero.games.backgammon.game import PASS, Backgammon
from aleazero.games.conformance import check_game
from aleazero.games.registry import make_game
from aleazero.games.wander import random_ply, wander
from tests.games.backgammon import reference
from tests.games.backgammon.reference import BAR, KINDS, ROLLS, START, Position, Side, dice_of, drawn, plus, rolls
from tests.games.follow import assert_follows, compiled, legal_moves

GAME: Any = Backgammon(chunk=64)
NOBODY: Side = (0,) * 26
pytestmark = pytest.mark.usefixtures("quick_compile")
BLOCK = 512  # states looked at in one call


def side(**places: int) -> Side:
    """Checkers by place: `side(p6=5, bar=1)`."""
    numbers = {BAR if name == "bar" else int(name[1:]): number for name, number in places.items()}
    return tuple(numbers.get(place, 0) for place in range(26))


def facing(mine: Side, *points: int) -> Position:
    """A position where the other one holds these points of the mover, two checkers each."""
    return mine, plus(NOBODY, [25 - point for point in points for _ in range(2)])


def one(states: Any, row: int = 0) -> Any:
    return jax.tree.map(lambda x: x[row], states)


def at(position: Position, *dice: int, seat: int = 0) -> Any:
    """One state; the dice left to play, larger first."""
    shown = dice[0], dice[1] if len(dice) > 1 else 0
    return one(reference.states([position] * 2, [shown] * 2, [len(dice)] * 2), seat)


def moves(position: Position, *dice: int) -> list[str]:
    return [name.rstrip("*") for name in legal_moves(GAME, at(position, *dice))]


# ---- beside the reference


def test_random_games_follow_the_reference() -> None:
    steps = wander(GAME, lanes=24, plies=400, seed=1)
    assert assert_follows(jax.tree.map(lambda x: np.asarray(x)[:, :12], steps), reference.Game) > 6


@pytest.mark.slow
def test_keeps_the_contract() -> None:
    game: Any = Backgammon()
    game.plays, game.plays_start = jax.jit(game.plays), jax.jit(game.plays_start)
    report = check_game(game, lanes=24, plies=400)
    assert report.games > 5
    assert report.warnings == ()


def test_it_is_in_the_registry() -> None:
    game = make_game("backgammon")
    assert isinstance(game, Backgammon)
    assert game.spec == GAME.spec


@pytest.mark.parametrize("kind", KINDS)
def test_legal_moves_are_those_of_the_reference(kind: str) -> None:
    rng = random.Random(KINDS.index(kind))
    positions = [drawn(rng, kind) for _ in range(BLOCK)]
    dice = rolls(rng, BLOCK)
    lists = np.asarray(compiled_batch("legal_list")(reference.states(positions, dice)))
    for position, roll, actions in zip(positions, dice, lists, strict=True):
        steps = reference.legal(position, dice_of(*roll))
        expected = sorted((source - 1) * 6 + die - 1 for source, die in steps) or [PASS]
        assert sorted(actions[actions >= 0].tolist()) == expected, f"{roll} in {position}"


@functools.cache
def compiled_batch(name: str) -> Any:
    return jax.jit(jax.vmap(getattr(GAME, name)))


# ---- which dice must be played


@pytest.mark.parametrize(
    ("position", "dice", "names"),
    [
        pytest.param(facing(side(p24=1), 13), (6, 5), "24/18", id="either die but not both: the higher"),
        pytest.param(facing(side(p24=1), 13, 18), (6, 5), "24/19", id="only the lower can be played"),
        pytest.param(facing(side(p24=1), 18, 19), (6, 5), "pass", id="neither"),
        pytest.param(facing(side(p24=1), 18), (6, 5), "24/19", id="the lower first, then the higher"),
        pytest.param(facing(side(p24=1), 19), (6, 5), "24/18", id="the higher first, then the lower"),
        pytest.param(facing(side(p24=1, p8=1), 19, 3), (6, 5), "24/18", id="no six that leaves no five"),
        pytest.param(facing(side(p24=1, p8=1), 18, 2), (6, 5), "24/19", id="no five that leaves no six"),
        pytest.param(facing(side(p24=2, p8=1), 13, 19, 3), (6, 5), "24/18 8/2", id="no five at all: any six"),
        pytest.param(facing(side(p24=1, p8=1), 19, 13, 2), (6, 5), "24/18 8/3", id="one checker each, in either order"),
        pytest.param(facing(side(bar=1, p6=2), 21, 2), (6, 4), "bar/19", id="onto the only open point"),
        pytest.param(facing(side(bar=1), 15), (6, 4), "bar/19", id="from the bar either die but not both"),
        pytest.param(facing(side(bar=1, p8=1), 21, 15, 4), (6, 4), "bar/19", id="nothing else while one is on the bar"),
        pytest.param(facing(side(bar=1, p8=1), 19, 21), (6, 4), "pass", id="shut out"),
        pytest.param(facing(side(bar=2, p6=2), 19), (6, 4), "bar/21", id="one of two on the bar enters"),
        pytest.param(facing(side(p6=1, p1=1)), (6, 5), "6/off 6/1", id="off by the six, or a five first"),
        pytest.param(facing(side(p6=1)), (6, 1), "6/5", id="the last checker plays both dice too"),
        pytest.param(facing(side(p4=1)), (6, 5), "4/off", id="the last checker needs one die"),
        pytest.param(facing(side(p4=1, p2=1)), (6, 5), "4/off 4/off:6", id="either die takes it off"),
        pytest.param(facing(side(p7=1, p1=1)), (6, 1), "7/1 7/6", id="home first, then off"),
        pytest.param(facing(side(p7=1, p6=1), 1, 5), (6, 1), "7/6", id="off by the six once the last one is home"),
        pytest.param(facing(side(p5=1, p2=1), 1), (4, 3), "5/2", id="a four when the five-point is empty"),
        pytest.param(facing(side(p5=1, p3=1)), (4, 1), "5/1 5/4 3/2", id="a lower checker stays while one is above"),
    ],
)
def test_as_many_dice_as_possible_are_played(position: Position, dice: tuple[int, int], names: str) -> None:
    assert sorted(moves(position, *dice)) == sorted(names.split())


@pytest.mark.parametrize(
    ("position", "left", "names"),
    [
        pytest.param(facing(side(p24=1), 9), 4, "24/19", id="as far as it goes"),
        pytest.param(facing(side(p24=1), 19), 4, "pass", id="nowhere"),
        pytest.param(facing(side(bar=2, p6=1), 3), 4, "bar/20", id="the bar first"),
        pytest.param(facing(side(p6=1, p3=2)), 4, "6/1", id="none off while one is above"),
        pytest.param(facing(side(p5=2, p3=2)), 3, "5/off", id="from the five-point"),
        pytest.param(facing(side(p4=1, p3=2)), 1, "4/off", id="the highest by more than it needs"),
        pytest.param(facing(side(p7=1, p5=1), 2), 2, "pass", id="none off while one is outside"),
    ],
)
def test_doubles(position: Position, left: int, names: str) -> None:
    state = one(reference.states([position], [(5, 5)], [left]))
    assert sorted(legal_moves(GAME, state)) == sorted(names.split())


# ---- turns


def after(state: Any, *words: str) -> Any:
    for word in words:
        state = compiled(GAME, "apply_action")(state, jnp.int32(GAME.notation.parse_action(state, word)))
    return state


def summary(state: Any) -> dict[str, Any]:
    """What is to be played, by whom."""
    return {
        "seat": int(state.to_play),
        "dice": np.asarray(state.dice).tolist(),
        "left": int(state.left),
        "nature": bool(state.is_chance),
        "over": bool(state.terminated),
    }


@pytest.mark.parametrize("seat", [0, 1])
def test_a_turn_goes_on_until_the_dice_are_played(seat: int) -> None:
    state = at((START, START), 3, 1, seat=seat)
    for word, dice in (("8/5", [1, 0]), ("6/5", [0, 0])):
        state = after(state, word)
        assert summary(state) == {
            "seat": seat, "dice": dice, "left": dice.count(1), "nature": dice == [0, 0], "over": False,
        }  # fmt: skip
    state = at((START, START), 3, 3, 3, 3, seat=seat)
    for word, left in (("24/21", 3), ("24/21", 2), ("13/10", 1), ("13/10", 0)):
        state = after(state, word)
        dice = [3, 3] if left else [0, 0]
        assert summary(state) == {"seat": seat, "dice": dice, "left": left, "nature": left == 0, "over": False}


def test_a_turn_ends_early_where_nothing_more_moves() -> None:
    state = after(at(facing(side(p24=1), 14), 5, 5, 5, 5), "24/19")
    assert summary(state) == {"seat": 0, "dice": [0, 0], "left": 0, "nature": True, "over": False}
    state = after(at(facing(side(bar=2, p6=2), 19), 6, 4), "bar/21")
    assert summary(state) == {"seat": 0, "dice": [0, 0], "left": 0, "nature": True, "over": False}


def test_who_cannot_move_passes_and_nothing_changes() -> None:
    position = facing(side(bar=1, p6=3), *range(19, 25))
    for dice in ((6, 5), (2, 2, 2, 2)):
        state = at(position, *dice, seat=1)
        assert legal_moves(GAME, state) == ["pass"]
        passed = after(state, "pass")
        assert reference.positions(jax.tree.map(lambda x: x[None], passed)) == [position]
        assert summary(passed) == {"seat": 1, "dice": [0, 0], "left": 0, "nature": True, "over": False}
        rolled = compiled(GAME, "apply_chance")(passed, jnp.int32(0))
        assert int(rolled.to_play) == 0
        assert reference.positions(jax.tree.map(lambda x: x[None], rolled)) == [position[::-1]]


# ---- nature


def test_the_opening_roll_is_no_double_and_decides_who_starts() -> None:
    start = GAME.init(jax.random.key(0))
    assert bool(start.is_chance)
    assert bool(start.opening)
    assert np.asarray(GAME.chance_probs(start)).tolist() == pytest.approx([1 / 30] * 30)
    seen = {}
    for outcome in range(30):
        state = compiled(GAME, "apply_chance")(start, jnp.int32(outcome))
        seat, (larger, smaller) = int(state.to_play), np.asarray(state.dice).tolist()
        seen[seat, larger, smaller] = GAME.notation.format_chance(start, outcome)
        assert larger > smaller
        assert int(state.left) == 2
        assert not bool(state.opening | state.is_chance)
        assert reference.positions(jax.tree.map(lambda x: x[None], state)) == [(START, START)]
    assert seen == {
        (seat, a, b): f"{a}{b}, {'XO'[seat]} starts" for seat in (0, 1) for a in range(1, 7) for b in range(1, a)
    }


@pytest.mark.parametrize("seat", [0, 1])
def test_later_rolls_are_two_fair_dice_for_the_other_player(seat: int) -> None:
    state = after(at((START, START), 3, 1, seat=seat), "8/5", "6/5")
    moved = reference.moved(reference.moved((START, START), 8, 3), 6, 1)
    probs = np.asarray(GAME.chance_probs(state))
    assert probs.tolist() == pytest.approx([2 / 36] * 15 + [1 / 36] * 6 + [0] * 9)
    for outcome, (larger, smaller) in enumerate(ROLLS):
        rolled = compiled(GAME, "apply_chance")(state, jnp.int32(outcome))
        assert GAME.notation.format_chance(state, outcome) == f"{larger}{smaller}"
        left = 4 if larger == smaller else 2
        assert summary(rolled) == {
            "seat": 1 - seat, "dice": [larger, smaller], "left": left, "nature": False, "over": False,
        }  # fmt: skip
        assert reference.positions(jax.tree.map(lambda x: x[None], rolled)) == [moved[::-1]]


# ---- the end

HOME15 = side(p1=2, p2=2, p3=2, p4=3, p5=3, p6=3)


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize(
    ("theirs", "points"),
    [
        pytest.param(side(p1=14), 1, id="one off"),
        pytest.param(side(p1=13, p24=1), 1, id="one off, one in the winner's home"),
        pytest.param(side(p1=13, bar=1), 1, id="one off, one on the bar"),
        pytest.param(HOME15, 2, id="none off, all at home"),
        pytest.param(side(p1=14, p18=1), 2, id="none off, the last one just outside the winner's home"),
        pytest.param(side(p1=14, p19=1), 3, id="the last one on the winner's six-point"),
        pytest.param(side(p1=14, p24=1), 3, id="the last one on the winner's ace-point"),
        pytest.param(side(p1=14, bar=1), 3, id="the last one on the bar"),
        pytest.param(side(bar=15), 3, id="all on the bar"),
    ],
)
def test_points(theirs: Side, points: int, seat: int) -> None:
    state = after(at((side(p2=1), theirs), 6, 5, seat=seat), "2/off")
    assert summary(state) == {"seat": seat, "dice": [0, 0], "left": 0, "nature": False, "over": True}
    assert legal_moves(GAME, state) == []
    for paid in (state.rewards, state.returns):
        assert paid.tolist() == ([points, -points] if seat == 0 else [-points, points])
    names = [GAME.spec.outcomes[int(i)].name for i in outcome_index(GAME.spec, state.returns)]
    kind = ("", "single", "gammon", "backgammon")[points]
    assert names[seat] == f"{kind} won"
    assert names[1 - seat] == f"{kind} lost"


def test_the_game_ends_in_the_middle_of_a_double() -> None:
    state = after(at((side(p1=2), HOME15), 4, 4, 4, 4), "1/off", "1/off")
    assert summary(state) == {"seat": 0, "dice": [0, 0], "left": 0, "nature": False, "over": True}


def test_random_games_are_far_from_the_limit_of_plies() -> None:
    lanes, limit = 128, 1400

    @jax.jit
    def ends(key: Any) -> Any:
        def ply(carry: Any, key: Any) -> Any:
            state, length = carry
            step = jax.vmap(functools.partial(random_ply, GAME))(state, jax.random.split(key, lanes))
            return (step.after, length + ~state.terminated), None

        start = jax.vmap(GAME.init)(jax.random.split(key, lanes)), jnp.zeros(lanes, jnp.int32)
        return jax.lax.scan(ply, start, jax.random.split(key, limit))[0]

    state, length = ends(jax.random.key(1))
    assert bool(state.terminated.all())
    assert 250 < float(length.mean()) < 350
    assert limit < GAME.spec.max_plies
    assert {abs(points) for points in np.asarray(state.returns)[:, 0].tolist()} == {1, 2, 3}


# ---- what networks see, and rows of bytes


def test_packed_states_come_back() -> None:
    rng = random.Random(4)
    positions = [drawn(rng, KINDS[i % len(KINDS)]) for i in range(BLOCK)]
    dice = [(roll[0], 0) if i % 5 == 0 and roll[0] != roll[1] else roll for i, roll in enumerate(rolls(rng, BLOCK))]
    left = [rng.randint(1, 4) if a == b else 1 if b == 0 else 2 for a, b in dice]
    states = reference.states(positions, dice, left)
    back = jax.jit(jax.vmap(lambda state: GAME.unpack(GAME.pack(state))))(states)
    for old, new in zip(jax.tree.leaves(states), jax.tree.leaves(back), strict=True):
        assert old.dtype == new.dtype
        assert np.array_equal(old, new)


def observed(positions: list[Position], dice: list[tuple[int, int]], left: list[int] | None = None) -> np.ndarray:
    number, filled = len(positions), np.resize(np.arange(len(positions)), 1024)  # one size, compiled once
    states = jax.tree.map(lambda x: x[filled], reference.states(positions, dice, left))
    return np.asarray(compiled_batch("observe")(states))[:number]


def test_observations_are_numbers_from_the_side_of_the_player_to_play() -> None:
    rng = random.Random(5)
    positions, dice = [drawn(rng, KINDS[i % len(KINDS)]) for i in range(64)], rolls(rng, 64)
    seen = observed(
        [p for p in positions for _ in range(2)], [d for d in dice for _ in range(2)]
    )  # seat 0, then seat 1
    assert seen.shape == (128, *GAME.spec.observation_shape)
    assert np.isfinite(seen).all()
    assert np.array_equal(seen[::2], seen[1::2])


def test_observations_tell_dice_and_moves_left_apart() -> None:
    shown = [(roll, len(dice_of(*roll))) for roll in ROLLS]
    shown += [((die, die), left) for die in range(1, 7) for left in (1, 2, 3)]
    shown += [((0, 0), 0)]
    dice, left = map(list, zip(*shown, strict=True))
    seen = observed([(START, START)] * len(shown), dice, left)
    assert len({row.tobytes() for row in seen}) == len(shown)


def test_observations_tell_positions_apart() -> None:
    """Every checker counts, wherever it stands."""
    places = [*range(1, 26)]
    positions = [(plus(NOBODY, [place] * n), plus(NOBODY, [25])) for place in places for n in range(1, 16)]
    positions += [(plus(NOBODY, [25]), plus(NOBODY, [place] * n)) for place in places for n in range(1, 16)]
    seen = observed(positions, [(2, 1)] * len(positions))
    assert len({row.tobytes() for row in seen}) == len(set(positions))
