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

GAME = Backgammon(chunk=64)
NOBODY: Side = (0,) * 26
BLOCK = 512  # states looked at in one call


def side(**places: int) -> Side:
    """Checkers by place: `side(p6=5, bar=1)`."""
    return plus(NOBODY, [place for name, n in places.items() for place in [BAR if name == "bar" else int(name[1:])] * n])


def facing(mine: Side, *points: int) -> Position:
    """A position where the other one holds these points of the mover, two checkers each."""
    return mine, plus(NOBODY, [25 - point for point in points for _ in range(2)])


def one(states: Any, row: int = 0) -> Any:
    return jax.tree.map(lambda x: x[row], states)


def at(position: Position, *dice: int, seat: int = 0) -> Any:
    """One state; the dice left to play, larger first."""
    shown = (dice[0], dice[0]) if len(dice) > 2 else (*dice, 0)[:2]
    return one(reference.states([position] * 2, [shown] * 2, [len(dice)] * 2), seat)


def moves(position: Position, *dice: int) -> list[str]:
    return [name.rstrip("*") for name in legal_moves(GAME, at(position, *dice))]


# ---- beside the reference


def test_random_games_follow_the_reference():
    assert assert_follows(wander(GAME, lanes=12, plies=400, seed=1), reference.Game) > 6


def test_keeps_the_contract():
    report = check_game(GAME, lanes=16, plies=320)
    assert report.games > 5
    assert report.warnings == ()


def test_it_is_in_the_registry():
    game = make_game("backgammon")
    assert isinstance(game, Backgammon)
    assert game.spec == GAME.spec


@pytest.mark.parametrize("kind", KINDS)
def test_legal_moves_are_those_of_the_reference(kind: str):
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


@functools.cache
def compiled_fan() -> Any:
    """Each state's legal actions, and the states after them."""

    def fan(state: Any) -> Any:
        actions = GAME.legal_list(state)
        after = jax.vmap(GAME.apply_action, (None, 0))(state, jnp.maximum(actions, 0))
        return actions >= 0, after, jax.vmap(GAME.pack)(after)

    return jax.jit(jax.vmap(fan))


@pytest.fixture(scope="module", autouse=True)
def forget() -> Any:
    yield
    for kept in (compiled_batch, compiled_fan):
        kept.cache_clear()


def ends_by_actions(states: Any) -> list[set[bytes]]:
    """The packed states at the ends of all sequences of actions."""
    ends: list[set[bytes]] = [set() for _ in states.to_play]
    met: set[tuple[int, bytes]] = set()
    lanes, waiting = np.arange(len(ends)), jax.tree.map(np.asarray, states)
    while len(lanes):
        filled = np.resize(np.arange(min(len(lanes), BLOCK)), BLOCK)
        may, after, packed = jax.tree.map(np.asarray, compiled_fan()(jax.tree.map(lambda x, f=filled: x[f], waiting)))
        may[len(lanes) :] = False
        fresh = []
        for row, place in np.argwhere(may):
            lane, name = int(lanes[row]), packed[row, place].tobytes()
            if after.is_chance[row, place] or after.terminated[row, place]:
                ends[lane].add(name)
            elif (lane, name) not in met:
                met.add((lane, name))
                fresh.append((row, place))
        rows, places = np.array(fresh, int).reshape(-1, 2).T
        joined = [(x[BLOCK:], y[rows, places]) for x, y in zip(*map(jax.tree.leaves, (waiting, after)), strict=True)]
        lanes = np.concatenate([lanes[BLOCK:], lanes[rows]])
        waiting = jax.tree.unflatten(jax.tree.structure(waiting), [np.concatenate(pair) for pair in joined])
    return ends


def test_whole_turns_are_what_sequences_of_actions_lead_to():
    rng = random.Random(3)
    positions, dice = [drawn(rng, KINDS[i % 6]) for i in range(BLOCK)], rolls(rng, BLOCK)
    states = reference.states(positions, dice)
    found: list[list[bytes]] = [[] for _ in range(BLOCK)]
    cursor, done = jax.jit(GAME.plays_start)(states), False
    step = jax.jit(lambda states, cursor: (plays := GAME.plays(states, cursor), jax.vmap(GAME.pack)(plays.afterstates)))
    while not done:
        chunk, packed = step(states, cursor)
        cursor, done = chunk.cursor, bool(chunk.done)
        for owner, row in zip(np.asarray(chunk.owner)[: int(chunk.count)], np.asarray(packed), strict=False):
            found[owner].append(row.tobytes())
    for lane, ends in enumerate(ends_by_actions(states)):
        assert len(found[lane]) == len(ends), f"{dice[lane]} in {positions[lane]}"
        assert set(found[lane]) == ends


# ---- which dice must be played (rules that look at one die alone allow more than these moves)


@pytest.mark.parametrize(
    ("position", "dice", "names"),
    [
        pytest.param(facing(side(p24=1), 13), (6, 5), ["24/18"], id="either die but not both: the higher"),
        pytest.param(facing(side(p24=1), 13, 18), (6, 5), ["24/19"], id="only the lower can be played"),
        pytest.param(facing(side(p24=1), 18, 19), (6, 5), ["pass"], id="neither"),
        pytest.param(facing(side(p24=1), 18), (6, 5), ["24/19"], id="the lower first, then the higher"),
        pytest.param(facing(side(p24=1), 19), (6, 5), ["24/18"], id="the higher first, then the lower"),
        pytest.param(
            facing(side(p20=1, p8=1), 9, 14, 15, 3), (6, 5), ["8/2"], id="the higher alone, from another checker"
        ),
        pytest.param(
            facing(side(p14=1, p7=1), 9, 3), (6, 5), ["7/1", "7/2"], id="no two moves, and both dice from one checker"
        ),
        pytest.param(
            facing(side(p13=1, p7=1), 8, 2), (6, 5), ["13/7"], id="a six that would leave no five is not allowed"
        ),
        pytest.param(facing(side(bar=1, p6=2), 21, 2), (6, 4), ["bar/19"], id="the bar by the only open point"),
        pytest.param(facing(side(bar=1), 15), (6, 4), ["bar/19"], id="from the bar either die but not both"),
        pytest.param(facing(side(bar=1), 19, 21), (6, 4), ["pass"], id="shut out with two dice"),
        pytest.param(facing(side(bar=2, p6=2), 19), (6, 4), ["bar/21"], id="one of two on the bar enters"),
        pytest.param(facing(side(p6=1, p1=1)), (6, 5), ["6/off", "6/1"], id="off by the six, or a five first"),
        pytest.param(facing(side(p6=1)), (6, 1), ["6/5"], id="the last checker plays both dice too"),
        pytest.param(facing(side(p4=1)), (6, 5), ["4/off:6"[:5]], id="the last checker, off by the higher alone"),
        pytest.param(facing(side(p7=1, p1=1)), (6, 1), ["7/1", "1/off", "7/6"][::2], id="home first, then off"),
        pytest.param(facing(side(p5=1, p2=1), 1), (4, 3), ["5/2"], id="a four is blocked until a three is played"),
    ],
)
def test_as_many_dice_as_possible_are_played(position: Position, dice: tuple[int, int], names: list[str]):
    assert sorted(moves(position, *dice)) == sorted(names)
