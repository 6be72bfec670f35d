"""Whole turns at 0-ply against plain enumeration: the best play, the first of equals, exact ends, plays drawn by lot.

Compiling is what costs here: backgammon's tests share two programs for batches of one size, and say by the weights how
the network judges. What any game shows is shown in TurnDash.
"""

from __future__ import annotations

import functools
import itertools
import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aleazero.core.game import Game
from aleazero.core.records import Knowledge
from aleazero.core.struct import where_lanes
from aleazero.doctor.evaluators import OPINIONATED, hashed
from aleazero.games.backgammon import bearoff
from aleazero.games.backgammon.boards import afterstates, rolled, to_boards
from aleazero.games.backgammon.game import ROLLS, Backgammon
from aleazero.games.wander import wander
from aleazero.search.expectimax import Expectimax, Turn
from tests.games.backgammon import reference
from tests.games.backgammon.reference import KINDS, START, Position, dice_of, drawn, rolls
from tests.games.tiny import MOVES, TurnDash

SMALL, LARGE = Backgammon(chunk=1), Backgammon(chunk=16)
LANES = 64  # in every batch of backgammon


class Dashes(TurnDash):
    """TurnDash that is another game where it is cut into other chunks."""

    def __init__(self, chunk: int) -> None:
        super().__init__(chunk)
        self.kind = f"dashes {chunk}"


# ---- networks that have learned nothing


def judging(flat: float = 0.0, loud: float = 1.0, levels: int = 2**20) -> Knowledge:
    """Opinions round `flat`, of so many `levels`; few make many equal."""
    return Knowledge({"flat": jnp.float32(flat), "loud": jnp.float32(loud), "levels": jnp.float32(levels)})


ANY = judging()


@functools.cache
def opine_by(width: int, game: Game = LARGE) -> Any:
    """Opinions of so many numbers, a function of the observation, the same bit for bit in any batch."""
    evaluate = [hashed(game, seed) for seed in range(width)]

    def opine(weights: Any, observations: Array) -> Array:
        said = jnp.stack([one(jnp.asarray(OPINIONATED), observations).value for one in evaluate], -1)
        said = weights["loud"] * jnp.floor(said * weights["levels"]) / weights["levels"]
        return said + weights["flat"] if width == 1 else (said + 1) / (said + 1).sum(-1, keepdims=True)

    return opine


def worth(game: Game, opinion: np.ndarray, after: Any) -> np.ndarray:
    """`[n]`: what afterstates are worth to who has moved, worked out apart from the search."""
    points = np.array([outcome.points for outcome in game.spec.outcomes])
    value = opinion[:, 0] if opinion.shape[1] == 1 else opinion @ points / points.max()
    won = np.asarray(after.returns)[np.arange(len(value)), np.asarray(after.to_play)] / points.max()
    return np.where(np.asarray(after.terminated), won, value)


@functools.cache
def said_of(game: Game, width: int) -> Any:
    """What the network says of states; compiled."""
    opine = opine_by(width, game)
    return jax.jit(lambda knowledge, states: opine(knowledge.weights, jax.vmap(game.observe)(states)))


@functools.cache
def best(game: Game, width: int = 1, lots: bool = False) -> Any:
    search = Expectimax(game, opine_by(width, LARGE if isinstance(game, Backgammon) else game))
    found = search.best if lots else lambda weights, states: search.best(weights, states)
    return jax.jit(lambda *args: found(*args))


def best_of_all(states: Any, weights: Any = ANY) -> Any:
    """By the program without lots and large chunks."""
    return on_host(best(LARGE)(weights, states))


def by_lot(states: Any, lots: np.ndarray, weights: Any = ANY) -> Any:
    """By the program with lots and chunks as small as can be."""
    return on_host(best(SMALL, lots=True)(weights, states, jnp.asarray(lots)))


NO_LOTS = np.zeros(LANES, np.uint32)


def some_lots(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 2**32, LANES, dtype=np.uint64).astype(np.uint32)


# ---- states


def on_host(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)


def some(states: Any, rows: Any) -> Any:
    return jax.tree.map(lambda x: x[rows], states)


def assert_equal(one: Any, two: Any) -> None:
    for (path, a), b in zip(jax.tree_util.tree_flatten_with_path(one)[0], jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=jax.tree_util.keystr(path))


@functools.cache
def positions() -> tuple[Any, list[Position], list[tuple[int, int]]]:
    """Rolled states of every kind, and the plain positions and dice they are of."""
    rng = random.Random(4)
    found: list[Position] = [(START, START)] * 5
    dice = [(3, 1), (6, 5), (2, 1), (6, 6), (1, 1)]
    kinds = itertools.cycle(kind for kind in KINDS if kind != "blots")  # hundreds of plays each
    for roll in rolls(rng, LANES - len(dice)):
        found.append(drawn(rng, next(kinds)))
        dice.append(roll)
    return on_host(reference.states(found, dice)), found, dice


@functools.cache
def listed() -> tuple[np.ndarray, Any]:
    """Every play of those positions in the order they are streamed: owners and afterstates."""
    states = positions()[0]
    assert LARGE.plays is not None
    assert LARGE.plays_start is not None
    step, cursor, done, parts = jax.jit(LARGE.plays), jax.jit(LARGE.plays_start)(states), False, []
    while not done:
        chunk = step(states, cursor)
        count, cursor, done = int(chunk.count), chunk.cursor, bool(chunk.done)
        parts.append(jax.tree.map(lambda x, n=count: np.asarray(x)[:n], (chunk.owner, chunk.afterstates)))
    owner, after = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    return owner, after


# ---- the best play


@pytest.mark.slow
def test_the_best_play_is_that_of_plain_enumeration() -> None:
    states, found, dice = positions()
    turn = best_of_all(states)
    ends = [sorted(reference.plays(position, dice_of(*roll))) for position, roll in zip(found, dice, strict=True)]
    owner = np.repeat(np.arange(LANES), [len(plays) for plays in ends])
    sides = np.array([end for plays in ends for end in plays])[:, :, 1:]  # [n, 2, 25]: mover, opponent
    after = afterstates(sides[:, ::-1], states.to_play[owner])
    values = worth(LARGE, np.asarray(said_of(LARGE, 1)(ANY, after)), after)
    chosen = reference.positions(turn.afterstates)
    for lane, plays in enumerate(ends):
        mine = values[owner == lane]
        assert chosen[lane] in plays, lane
        assert plays.index(chosen[lane]) == mine.argmax(), f"lane {lane}: a better play is passed over"
        assert turn.value[lane] == pytest.approx(mine.max(), abs=1e-6), lane
    assert (turn.afterstates.is_chance != turn.afterstates.terminated).all()
    np.testing.assert_array_equal(turn.afterstates.to_play, states.to_play)
    np.testing.assert_array_equal(turn.opinion[:, 0], turn.value)
    assert turn.afterstates.terminated.sum() >= 3  # some games end with the turn
    assert {len(plays) for plays in ends} >= {1, 2}
    assert max(len(plays) for plays in ends) > 60


@pytest.mark.slow
def test_turns_found_checker_by_checker_are_the_same() -> None:
    """By the notation: another way to all turns. Lanes 32 on: a first checker has moved, so the rest is chosen."""
    states = positions()[0]
    moved = jax.jit(jax.vmap(LARGE.apply_action))(states, jax.jit(jax.vmap(LARGE.legal_list))(states).max(-1))
    going = np.asarray(~moved.is_chance & ~moved.terminated)
    begun = where_lanes(jnp.asarray(going & (np.arange(LANES) >= 32)), moved, jax.tree.map(jnp.asarray, states))
    turn = best_of_all(begun)
    lanes = [0, 2, 7, 32 + int(going[32:].argmax()), 63 - int(going[::-1].argmax())]
    ends = [[end for _, end in LARGE.notation.turns(some(begun, lane))] for lane in lanes]
    flat: Any = jax.tree.map(lambda *x: jnp.stack(x), *itertools.chain(*ends))
    values = worth(LARGE, np.asarray(said_of(LARGE, 1)(ANY, flat)), flat)
    for lane, plays in zip(lanes, ends, strict=True):
        mine, values = np.split(values, [len(plays)])
        assert_equal(some(turn.afterstates, lane), plays[int(mine.argmax())])
    assert int(begun.left[lanes[-1]]) in (1, 3)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [2**20, 2])
def test_chunks_do_not_matter_and_the_first_of_equals_is_played(levels: int) -> None:
    weights, states = judging(levels=levels), positions()[0]
    turn = best_of_all(states, weights)
    assert_equal(turn, by_lot(states, NO_LOTS, weights))
    owner, after = listed()
    values = worth(LARGE, np.asarray(said_of(LARGE, 1)(weights, after)), after)
    ties = 0
    for lane in range(LANES):
        rows = np.flatnonzero(owner == lane)
        ties += int((values[rows] == values[rows].max()).sum() > 1)
        assert_equal(some(turn.afterstates, lane), some(after, rows[values[rows].argmax()]))
    assert (ties > 20) == (levels == 2)


# ---- in a game of few plays


@functools.cache
def dashing() -> Any:
    """States of TurnDash at the start of a turn, some of them a turn from the end."""
    steps = wander(Dashes(4), lanes=8, plies=60, seed=2)
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), steps.state)
    begins = np.flatnonzero(~flat.is_chance & ~flat.terminated & (flat.moves_left == MOVES))
    return some(flat, begins[:96])


@functools.cache
def turns_of_dash(lane: int) -> Any:
    """Every turn of one of those states, action by action: what it leaves, each once, in the order of the actions."""
    game, state = Dashes(4), some(dashing(), lane)
    ends: dict[bytes, Any] = {}
    for first in _legal(game, state):
        once = _act(game, state, first)
        for end in [once] if once.terminated else [_act(game, once, second) for second in _legal(game, once)]:
            ends.setdefault(np.asarray(_jitted("pack")(end)).tobytes(), end)
    return jax.tree.map(lambda *x: np.stack(x), *ends.values())


@functools.cache
def _jitted(name: str) -> Any:
    return jax.jit(getattr(Dashes(4), name))


def _legal(game: Game, state: Any) -> list[int]:
    return [int(a) for a in np.asarray(_jitted("legal_list")(state)) if a >= 0]


def _act(game: Game, state: Any, action: int) -> Any:
    return on_host(_jitted("apply_action")(state, jnp.int32(action)))


@pytest.mark.parametrize(("chunk", "width"), [(1, 2), (7, 1)])
def test_a_game_of_few_plays(chunk: int, width: int) -> None:
    game, states = Dashes(chunk), dashing()
    turn = on_host(best(game, width)(ANY, states))
    ends = [turns_of_dash(lane) for lane in range(len(states.to_play))]
    flat = jax.tree.map(lambda *x: np.concatenate(x), *ends)
    opinion = np.asarray(said_of(game, width)(ANY, flat))
    values = worth(game, opinion, flat)
    first = 0
    for lane, end in enumerate(ends):
        here = slice(first, first + len(end.to_play))
        row = first + int(values[here].argmax())
        assert_equal(some(turn.afterstates, lane), some(flat, row))
        assert turn.value[lane] == pytest.approx(values[row], abs=1e-6)
        if not flat.terminated[row]:
            np.testing.assert_allclose(turn.opinion[lane], opinion[row], atol=1e-6)
        first = here.stop
    assert turn.afterstates.terminated.sum() > 5
    assert {len(end.to_play) for end in ends} >= {1, 3}


def test_it_runs_inside_a_loop_on_the_device() -> None:
    """Three turns in a row with given rolls, as a rollout has them, equal three calls."""
    game, states = Dashes(7), some(dashing(), np.arange(len(dashing().to_play)) % 8)  # far from the end
    search = Expectimax(game, opine_by(1, game))

    def turn(state: Any, roll: Array) -> tuple[Any, Turn]:
        found = search.best(ANY, state)
        return jax.vmap(game.apply_chance, (0, None))(found.afterstates, roll), found

    outcomes = jnp.array([0, 1, 0])
    _, turns = jax.jit(lambda s: jax.lax.scan(turn, s, outcomes))(states)
    for number, outcome in enumerate(outcomes):
        found = best(game)(ANY, states)
        assert_equal(on_host(found), on_host(some(turns, number)))
        states = jax.jit(jax.vmap(game.apply_chance, (0, None)))(found.afterstates, outcome)
    assert len(np.unique(turns.afterstates.tokens[-1], axis=0)) > 1


# ---- finished games


def side(**points: int) -> list[int]:
    own = [0] * 25
    for name, number in points.items():
        own[24 if name == "bar" else int(name[1:]) - 1] = number
    return own


FINISHED = [  # what the opponent has, and what a win is then worth
    (side(p1=3), 1),
    (side(p7=10, p8=5), 2),
    (side(p7=10, p8=4, p24=1), 3),
    (side(p7=10, p8=4, bar=1), 3),
]


def nearly_off(dice: tuple[int, int]) -> Any:
    """Batches of two checkers to take off, from both seats and against all of those opponents."""
    boards = np.array([[opponent, side(p1=1, p2=1)] for opponent, _ in FINISHED] * (LANES // 4))
    return on_host(rolled(boards, np.array([dice] * LANES), np.arange(LANES) // 4 % 2))


def test_finished_games_are_worth_what_they_bring() -> None:
    hopeless = judging(flat=-0.9, loud=0.0)  # whatever is not over is all but lost
    states = nearly_off((2, 1))
    turn = best_of_all(states, hopeless)
    points = np.array([points for _, points in FINISHED] * (LANES // 4))
    assert turn.afterstates.terminated.all()
    np.testing.assert_allclose(turn.value, points / 3, rtol=1e-6)
    np.testing.assert_allclose(turn.opinion[:, 0], points / 3, rtol=1e-6)
    np.testing.assert_array_equal(turn.afterstates.returns[np.arange(LANES), states.to_play], points)


def test_a_win_is_not_taken_where_more_is_expected() -> None:
    """A single game is a third of the largest: the end is a value among others. 2-1 need not take both off."""
    turn = best_of_all(nearly_off((2, 1)), judging(flat=0.5, loud=0.0))
    assert turn.afterstates.terminated.reshape(-1, 4).tolist() == [[False, True, True, True]] * (LANES // 4)
    assert turn.value.reshape(-1, 4)[:, 0].tolist() == [0.5] * (LANES // 4)


def test_outcomes_of_finished_games_are_certain() -> None:
    search = Expectimax(LARGE, opine_by(6))
    after = best_of_all(nearly_off((6, 5))).afterstates
    going = listed()[1]
    mixed = jax.tree.map(lambda over, on: np.concatenate([over[:8], on[:56]]), after, going)
    turn = on_host(jax.jit(search.judge)(ANY, mixed))
    points = np.array([points for _, points in FINISHED] * 2)
    np.testing.assert_array_equal(turn.opinion[:8], np.eye(6, dtype=np.float32)[points - 1])
    said = np.asarray(said_of(LARGE, 6)(ANY, mixed))
    still = ~mixed.terminated
    assert still.sum() > 30
    np.testing.assert_allclose(turn.opinion[still], said[still], rtol=1e-6)
    np.testing.assert_allclose(turn.value, worth(LARGE, turn.opinion, mixed), atol=1e-6)


# ---- plays drawn by lot


def test_lots_draw_every_play_equally_often() -> None:
    calls = 20
    states = jax.tree.map(lambda x: np.repeat(x[2:3], LANES, 0), positions()[0])  # 2-1 at the start
    owner, after = listed()
    plays = some(after, owner == 2)
    found = [by_lot(states, some_lots(seed)) for seed in range(calls)]
    drawn_boards = np.concatenate([turn.afterstates.mine for turn in found])
    counts = (drawn_boards[:, None] == plays.mine[None]).all(-1).sum(0)
    assert (len(plays.to_play), counts.sum()) == (15, calls * LANES)
    share = calls * LANES / 15
    assert ((counts - share) ** 2 / share).sum() < 42.6  # chi-square with 14 degrees of freedom, p = 1e-4
    # The value is that of the play drawn, not of the best.
    values = worth(LARGE, np.asarray(said_of(LARGE, 1)(ANY, plays)), plays)
    by_board = {row.tobytes(): value for row, value in zip(plays.mine, values, strict=True)}
    wanted = [by_board[row.tobytes()] for row in drawn_boards]
    np.testing.assert_allclose(np.concatenate([turn.value for turn in found]), wanted, atol=1e-6)


def test_lots_depend_on_nothing_beside_the_lane() -> None:
    states, lots = positions()[0], some_lots(99)
    lots[::5] = 0
    turn = by_lot(states, lots)
    plain = best_of_all(states)
    assert_equal(some(turn, slice(None, None, 5)), some(plain, slice(None, None, 5)))  # no lot: the best
    assert (turn.value < plain.value).sum() > 20
    order = np.random.default_rng(2).permutation(LANES)
    assert_equal(by_lot(some(states, order), lots[order]), some(turn, order))
    other = by_lot(states, np.where(lots > 0, some_lots(98), 0))
    assert (other.afterstates.mine != turn.afterstates.mine).any(-1).sum() > 20


def test_lots_do_not_depend_on_chunks() -> None:
    states = dashing()
    lots = np.random.default_rng(0).integers(0, 2**32, len(states.to_play), dtype=np.uint64).astype(np.uint32)
    turns = [on_host(best(game, lots=True)(ANY, states, lots)) for game in (Dashes(1), Dashes(500))]
    # Another network draws the same.
    turns.append(on_host(best(Dashes(500), lots=True)(judging(loud=-1.0), states, lots)))
    assert_equal(turns[0], turns[1])
    assert_equal(turns[0].afterstates, turns[2].afterstates)


# ---- known endings


@functools.cache
def tables() -> Any:
    return jax.device_put(LARGE.ending_tables())


@pytest.mark.slow
def test_endings_are_believed_and_not_the_network() -> None:
    keys = jax.vmap(jax.random.key)(jnp.arange(48))
    boards = jax.jit(jax.vmap(LARGE.starts["bearoff"]))(keys)
    going = jax.tree.map(lambda x: jnp.asarray(x[:16]), listed()[1])
    mixed = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), boards, going)
    judge = jax.jit(Expectimax(LARGE, opine_by(6)).judge)
    plain, informed = judge(ANY, mixed), judge(Knowledge(ANY.weights, tables()), mixed)
    assert informed.known[:48].all()
    known = bearoff.load()
    sides = np.asarray(to_boards(boards))
    exact = known.after_roll(sides[:, 1, :6], sides[:, 0, :6]).moved
    np.testing.assert_allclose(informed.opinion[:48], exact, atol=1e-5)
    points = np.array([outcome.points for outcome in LARGE.spec.outcomes]) / LARGE.spec.scale
    np.testing.assert_allclose(informed.value[:48], exact @ points, atol=1e-5)
    assert np.abs(plain.opinion[:48] - exact).max() > 0.1  # the network knows nothing
    others = ~np.asarray(informed.known)
    assert others.sum() > 8
    np.testing.assert_array_equal(np.asarray(informed.opinion)[others], np.asarray(plain.opinion)[others])


@pytest.mark.slow
def test_bearoffs_are_played_as_the_tables_say() -> None:
    keys = jax.vmap(jax.random.key)(jnp.arange(LANES))
    rolls = jnp.arange(LANES, dtype=jnp.int32) % 21
    states = jax.jit(jax.vmap(lambda key, roll: LARGE.apply_chance(LARGE.starts["bearoff"](key), roll)))(keys, rolls)
    turn = on_host(jax.jit(Expectimax(LARGE, opine_by(6)).best)(Knowledge(ANY.weights, tables()), states))
    before, after = np.asarray(to_boards(on_host(states))), np.asarray(to_boards(turn.afterstates))
    known = bearoff.load()
    for lane in range(0, LANES, 4):
        _, best = known.best_play(before[lane, 1, :6], before[lane, 0, :6], ROLLS[int(rolls[lane])])
        left = known.after_roll(after[lane, 1, :6], after[lane, 0, :6]) if after[lane, 1].any() else best
        worth = [np.asarray(x.moved) @ [1, 2, 3, -1, -2, -3] for x in (left, best)]
        assert worth[0] == pytest.approx(worth[1], abs=1e-5)


def test_a_network_of_one_number_judges_endings_itself() -> None:
    boards = jax.jit(jax.vmap(LARGE.starts["bearoff"]))(jax.vmap(jax.random.key)(jnp.arange(48)))
    judge = jax.jit(Expectimax(LARGE, opine_by(1)).judge)
    plain, informed = judge(ANY, boards), judge(Knowledge(ANY.weights, tables()), boards)
    jax.tree.map(np.testing.assert_array_equal, plain, informed)
    assert not informed.known.any()
