"""The device rollout: lanes followed by hand, openings, budgets, and what games must not depend on."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.game import Game
from aleazero.core.keys import Role, lane_keys
from aleazero.core.records import Trajectory
from aleazero.doctor.evaluators import OPINIONATED, hashed
from aleazero.doctor.recount import recount
from aleazero.games.connect_four import ConnectFour
from aleazero.games.pig import Pig
from aleazero.games.tictactoe import TicTacToe
from aleazero.play.rollout import Games, Pace, Rollout, SelfPlayConfig, improved_value
from aleazero.search.build import build_search
from aleazero.search.reuse import Reusing
from aleazero.search.settings import SearchConfig, make_knobs
from tests.games import test_connect_four, test_pig, test_tictactoe
from tests.games.conftest import quick_compile  # noqa: F401
from tests.games.follow import Reference, assert_same
from tests.games.tiny import GOAL, Dash

pytestmark = pytest.mark.usefixtures("quick_compile")

ROOT = Path(__file__).parents[2]
FIELDS = [field.name for field in dataclasses.fields(Trajectory) if field.name != "resign"]
SIMULATIONS = 6
PUCT = SearchConfig(kind="puct", max_simulations=SIMULATIONS)
GUMBEL = SearchConfig(kind="gumbel", max_simulations=SIMULATIONS)
DIRECT = SearchConfig(kind="direct")
KEEPING = SearchConfig(max_simulations=10, reuse=True, max_nodes=256)  # never full here


class ShortDash(Dash):
    """Dash that is stopped after 13 plies, dice included: few games are over by then."""

    kind = "short dash"
    spec = dataclasses.replace(Dash.spec, max_plies=13)


@dataclasses.dataclass(frozen=True)
class Machine:
    """A compiled rollout."""

    rollout: Rollout
    start: Any
    run: Any


@functools.cache
def machine(game: type[Game], search: SearchConfig, moves: int, random_plies: int = 0, epsilon: float = 0.0) -> Machine:
    made = game()
    evaluate = hashed(made)
    rollout = Rollout(
        game=made,
        search=Reusing(build_search(made, search)) if search.reuse else build_search(made, search),
        evaluate=evaluate,
        opine=lambda weights, observations: evaluate(weights, observations).value[:, None],
        moves=moves,
        random_plies=random_plies,
        epsilon=epsilon,
    )
    return Machine(rollout, jax.jit(rollout.start), jax.jit(rollout.run))


def pace(search: SearchConfig = PUCT, **changes: Any) -> Pace:
    plain = {"fast_simulations": 2, "full_search_fraction": 1.0, "temperature_plies": 1000}
    numbers = {name: changes.pop(name, value) for name, value in plain.items()}
    knobs = make_knobs(search, **{"temperature": 1.0, **changes})
    return Pace(
        knobs,
        jnp.int32(numbers["fast_simulations"]),
        jnp.float32(numbers["full_search_fraction"]),
        jnp.int32(numbers["temperature_plies"]),
    )


def play(
    made: Machine, calls: int, lanes: list[int], how: Pace, seed: int = 1, first: int = 0
) -> tuple[Games, Trajectory]:
    """So many calls, one after the other, as one trajectory of numpy arrays."""
    numbers = jnp.array(lanes, jnp.uint32)
    games, slabs = made.start(jnp.uint32(seed), numbers), []
    for call in range(calls):
        move = jnp.uint32(first + call * made.rollout.moves)
        games, slab = made.run(jnp.asarray(OPINIONATED), games, how, jnp.uint32(seed), move, numbers)
        slabs.append(jax.tree.map(np.asarray, slab))
    return games, jax.tree.map(lambda *parts: np.concatenate(parts), *slabs)


@functools.cache
def unpacking(game: type[Game]) -> Callable[[Any], Any]:
    return jax.jit(jax.vmap(jax.vmap(game().unpack)))


def states_of(game: type[Game], slab: Trajectory) -> Any:
    return jax.tree.map(np.asarray, unpacking(game)(slab.state))


def assert_equal(one: Any, two: Any) -> None:
    for (path, a), b in zip(jax.tree_util.tree_flatten_with_path(one)[0], jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=jax.tree_util.keystr(path))


# ---- the rules


def face_shown(game: Any, following: Any) -> int:
    """Which outcome of Pig's die led from where it was thrown to the next decision."""
    return 0 if int(following.to_play) != game.mover else int(following.turn_points) - game.turn - 1


def follow(game: type[Game], slab: Trajectory, start: Callable[[], Reference]) -> tuple[int, dict[Any, int]]:
    """Plays every lane again by plain Python; the games that ended, and every line of play with its fingerprint."""
    states, ended = states_of(game, slab), 0
    lines: dict[Any, int] = {}
    line: tuple[int, ...]
    for lane in range(slab.action.shape[1]):
        reference, line = start(), ()
        for t in range(len(slab.action)):
            where = f"move {t} of lane {lane}"
            assert_same(jax.tree.map(lambda x, at=(t, lane): x[at], states), reference, where)
            assert slab.to_play[t, lane] == reference.mover, where
            kept = slab.actions[t, lane] >= 0
            assert sorted(slab.actions[t, lane][kept].tolist()) == sorted(reference.legal()), where
            assert (slab.policy[t, lane][~kept] == 0).all(), where
            assert slab.policy[t, lane].sum(dtype=np.float32) == pytest.approx(1, abs=2e-3), where
            assert abs(slab.value[t, lane]) <= 1
            action = int(slab.action[t, lane])
            assert action in reference.legal(), where
            reference.act(action)
            line = (*line, action)
            if reference.rolling:
                if t + 1 == len(slab.action):
                    break  # the die lies in the next slab
                outcome = face_shown(reference, jax.tree.map(lambda x, at=(t + 1, lane): x[at], states))
                assert outcome in range(6), where
                reference.roll(outcome)
                line = (*line, -1 - outcome)
            points = reference.points()
            assert slab.ended[t, lane] == (points is not None), where
            assert slab.points[t, lane] == (points[0] if points else 0), where
            assert lines.setdefault(line, int(slab.fingerprint[t, lane])) == slab.fingerprint[t, lane], where
            if points is not None:
                reference, line = start(), ()
                ended += 1
    assert not slab.truncated.any()
    return ended, lines


CASES: list[Any] = [
    pytest.param(TicTacToe, test_tictactoe.Reference, PUCT, 10, 4, 30, id="tictactoe"),
    pytest.param(ConnectFour, test_connect_four.Reference, DIRECT, 20, 3, 8, id="connect_four"),
    pytest.param(Pig, test_pig.Reference, PUCT, 60, 4, 8, id="pig"),
]


@pytest.mark.parametrize(("game", "reference", "search", "moves", "calls", "least"), CASES)
def test_lanes_are_games(
    game: type[Game], reference: Any, search: SearchConfig, moves: int, calls: int, least: int
) -> None:
    _, slab = play(machine(game, search, moves), calls, list(range(16)), pace(search))
    ended, lines = follow(game, slab, reference)
    assert ended >= least
    assert len(set(lines.values())) == len(lines)  # other moves, or other dice: another fingerprint
    assert slab.searched.all()
    assert not slab.random.any()


def test_the_opinion_is_the_networks_before_the_search() -> None:
    made = machine(TicTacToe, PUCT, 10)
    _, slab = play(made, 1, list(range(16)), pace())
    seen = jax.jit(jax.vmap(made.rollout.game.observe))(
        jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), states_of(TicTacToe, slab))
    )
    said = made.rollout.opine(jnp.asarray(OPINIONATED), seen)
    np.testing.assert_allclose(slab.opinion, np.asarray(said).reshape(slab.opinion.shape), atol=1e-3)  # float16


def test_shapes_and_types() -> None:
    _, slab = play(machine(TicTacToe, PUCT, 10), 1, list(range(16)), pace())
    wanted = "uint8 int8 int16 float16 int16 float16 float32 bool bool bool bool bool float32 uint32"
    assert [str(getattr(slab, name).dtype) for name in FIELDS] == wanted.split()
    assert all(getattr(slab, name).shape[:2] == (10, 16) for name in FIELDS)


# ---- games of dice, turns of two moves, stops and restarts


@functools.cache
def dashes() -> tuple[Games, Trajectory]:
    """Games with everything: an opening roll, turns of two moves, random openings, two budgets, stops."""
    how = pace(GUMBEL, full_search_fraction=0.5)
    return play(machine(ShortDash, GUMBEL, 24, 2), 1, [0, 1, 2, 3, 4, 5], how)


def test_a_game_that_lasts_too_long_is_stopped_without_a_result() -> None:
    _, slab = dashes()
    states = states_of(ShortDash, slab)
    stopped = 0
    for lane in range(6):
        plies = 1  # the roll before the first move
        for t in range(24):
            where = f"move {t} of lane {lane}"
            fresh = states.tokens[t, lane].sum() == 0 and states.moves_left[t, lane] == 2
            assert plies > 1 or fresh, where
            mine = states.tokens[t, lane, slab.to_play[t, lane]].copy()
            action, die = slab.action[t, lane], states.die[t, lane]
            assert mine[action] < GOAL, where
            mine[action] = min(mine[action] + die, GOAL)
            wins = bool((mine == GOAL).all())
            rolls = not wins and states.moves_left[t, lane] == 1
            plies += 1 + rolls
            assert slab.ended[t, lane] == wins, where
            assert slab.truncated[t, lane] == (not wins and plies >= 13), where
            assert slab.points[t, lane] == (0 if not wins else 1 if slab.to_play[t, lane] == 0 else -1), where
            stopped += int(slab.truncated[t, lane])
            if wins or plies >= 13:
                plies = 1
            elif t + 1 < 24:
                assert states.to_play[t + 1, lane] == (1 - slab.to_play[t, lane] if rolls else slab.to_play[t, lane])
                wanted = states.tokens[t, lane].copy()
                wanted[slab.to_play[t, lane]] = mine
                np.testing.assert_array_equal(states.tokens[t + 1, lane], wanted, where)
    assert stopped >= 4
    assert slab.ended.any()


def test_games_depend_neither_on_the_moves_of_a_call_nor_on_the_games_beside_them() -> None:
    games, slab = dashes()
    alone = play(machine(ShortDash, GUMBEL, 8, 2), 3, [3], pace(GUMBEL, full_search_fraction=0.5))
    assert_equal(jax.tree.map(lambda x: x[:, 3:4], slab), alone[1])
    assert_equal(jax.tree.map(lambda x: x[3:4], games), alone[0])


def test_lanes_seeds_and_moves_have_randomness_of_their_own() -> None:
    _, slab = dashes()
    assert len({slab.action[:, lane].tobytes() + slab.state[:, lane].tobytes() for lane in range(6)}) == 6
    how = pace(GUMBEL, full_search_fraction=0.5)
    for other in (
        play(machine(ShortDash, GUMBEL, 24, 2), 1, list(range(6)), how, seed=2),
        play(machine(ShortDash, GUMBEL, 24, 2), 1, list(range(6)), how, first=24),
    ):
        assert (slab.action != other[1].action).any()
        assert (slab.state != other[1].state).any()


# ---- trees that are kept

KEPT_MOVES = 12


@functools.cache
def keeping() -> tuple[Machine, Trajectory]:
    """Two calls in which trees are kept: turns of two moves, dice, games that end or are stopped, random openings."""
    made = machine(ShortDash, KEEPING, KEPT_MOVES, 1)
    return made, play(made, 2, [0, 1, 2, 3, 4, 5], pace(KEEPING))[1]


def visits_after(tree: Any, lane: int, action: int, outcome: int) -> float:
    """How often a tree has visited the position behind an action and an outcome (-1: none)."""
    node = 0
    for edge in [int(np.argmax(tree.actions[0, lane] == action)), *([outcome] if outcome >= 0 else [])]:
        node = int(tree.children[node, lane, edge])
        if node <= 0:
            return 0.0
    return float(tree.stats[node, lane, 0])


def dice_words(tree: Any) -> set[int]:
    """What outcomes are drawn by at a tree's chance nodes."""
    live = np.asarray(tree.lineage).any(-1) & (np.asarray(tree.turn) == 0)
    return set(np.asarray(tree.chance_words)[live].tolist())


@pytest.mark.slow
def test_a_search_goes_on_from_what_the_move_before_has_found() -> None:
    """The rollout's policies are those of trees that begin with the visits the last ones spent on what then happened.

    A call's first move and a game's first move begin with nothing: they are what a fresh search says.
    """
    made, slab = keeping()
    search, evaluate, states = made.rollout.search, made.rollout.evaluate, states_of(ShortDash, slab)
    assert isinstance(search, Reusing)
    loud, knobs, nothing = jnp.asarray(OPINIONATED), make_knobs(KEEPING), search.nothing(6)
    tree = nothing.tree
    go_on = jax.jit(lambda kept, states, keys: search.go_on(kept, evaluate, loud, states, keys, knobs))
    afresh = jax.jit(lambda states, keys: search.search.run(evaluate, loud, states, keys, knobs))
    over: Any = slab.ended | slab.truncated
    started = after_move = after_roll = same_dice = 0
    before: set[int] = set()
    for t in range(2 * KEPT_MOVES):
        now, keys = jax.tree.map(lambda x, t=t: x[t], states), lane_keys(1, Role.SEARCH, t, jnp.arange(6))
        rolled = np.where(now.moves_left == 2, now.die - 1, -1)  # since the move before, if it was of the same game
        starts, kept, known = np.ones(6, bool), nothing, np.zeros(6)
        if t % KEPT_MOVES:
            starts, action = over[t - 1], np.asarray(slab.action[t - 1], np.int32)
            seen = jax.tree.map(np.asarray, tree)
            known = np.array([visits_after(seen, b, action[b], rolled[b]) for b in range(6)]) * ~starts
            kept = search.follow(tree, jnp.asarray(action), jnp.asarray(rolled, jnp.int32), jnp.asarray(~starts))
        result, tree = go_on(kept, now, keys)
        np.testing.assert_array_equal(np.asarray(result.policy).astype(np.float16), slab.policy[t])
        np.testing.assert_array_equal(tree.stats[0, :, 0], KEEPING.max_simulations + np.maximum(known, 1))
        np.testing.assert_array_equal(afresh(now, keys).visits[starts], result.visits[starts])
        if t == 2 * KEPT_MOVES - 1:
            assert recount(search.search.plan, tree, evaluate, loud, root_visits=False) == []
        started += int(starts.sum())
        words = dice_words(tree)
        same_dice += len(words & before)
        before = words
        after_move += int(((rolled < 0) & (known > 1)).sum())
        after_roll += int(((rolled >= 0) & (known > 1)).sum())
    assert started > 2 * 6 + 5  # two calls of six lanes; the others are games that ended
    assert after_move > 30
    assert after_roll > 20
    assert same_dice > 100  # a chance node that is kept goes on with its own sequence of outcomes


def test_kept_trees_depend_neither_on_the_games_beside_them_nor_on_what_ran_before() -> None:
    """Lanes keep subtrees of different sizes, so that their nodes have other numbers in other company."""
    made, slab = keeping()
    again = play(made, 2, [0, 1, 2, 3, 4, 5], pace(KEEPING))[1]
    assert_equal(slab, again)
    for lane in (2, 5):
        alone = play(made, 2, [lane], pace(KEEPING))[1]
        assert_equal(jax.tree.map(lambda x, b=lane: x[:, b : b + 1], slab), alone)


# ---- where games begin


def test_games_begin_where_they_are_told() -> None:
    made = machine(Pig, DIRECT, 4)
    rollout = dataclasses.replace(made.rollout, other_start=Pig().starts["anywhere"], other_fraction=0.75)
    games = jax.jit(rollout.start)(jnp.uint32(0), jnp.arange(800, dtype=jnp.uint32))
    scores, turns = np.asarray(games.states.scores), np.asarray(games.states.turn_points)
    elsewhere = (scores.sum(-1) > 0) | (turns > 0)
    assert 0.70 < elsewhere.mean() < 0.80
    assert len(np.unique(scores[elsewhere], axis=0)) > 500
    assert turns[elsewhere].max() > 80
    assert not np.asarray(games.states.terminated).any()
    own = scores[np.arange(len(scores)), np.asarray(games.states.to_play)]
    assert (own + turns <= 105).all()
    assert not (scores == 1).any()
    assert not (turns == 1).any()


@pytest.mark.parametrize(("plies", "cut"), [(5, True), (None, False)])
def test_games_that_begin_elsewhere_are_cut_after_some_plies(plies: int | None, cut: bool) -> None:
    made = machine(ShortDash, DIRECT, 12)

    def elsewhere(key: jax.Array) -> Any:
        return dataclasses.replace(ShortDash().init(key), tokens=jnp.ones((2, 2), jnp.int8))

    rollout = dataclasses.replace(made.rollout, other_start=elsewhere, other_fraction=0.5, other_plies=plies, moves=12)
    lanes = jnp.arange(40, dtype=jnp.uint32)
    games = jax.jit(rollout.start)(jnp.uint32(0), lanes)
    _, slab = jax.jit(rollout.run)(jnp.asarray(OPINIONATED), games, pace(DIRECT), jnp.uint32(0), jnp.uint32(0), lanes)
    slab = jax.tree.map(np.asarray, slab)
    states = states_of(ShortDash, slab)
    limits = {True: min(plies or 13, 13), False: 13}  # of games that begin there, and of others
    stopped = []
    for lane in range(40):
        plies_so_far, began = 0, False
        for t in range(12):
            if plies_so_far == 0:
                began = bool(states.tokens[t, lane].sum() == 4)
                assert began or states.tokens[t, lane].sum() == 0
                plies_so_far = 1  # the roll
            turn_over = states.moves_left[t, lane] == 1 and not slab.ended[t, lane]
            plies_so_far += 1 + int(turn_over)
            stops = plies_so_far >= limits[began] and not slab.ended[t, lane]
            assert slab.truncated[t, lane] == stops, (t, lane, plies_so_far)
            if stops:
                stopped.append((began, plies_so_far))
            if stops or slab.ended[t, lane]:
                plies_so_far = 0
    assert ((True, 5) in stopped) == cut
    assert (False, 13) in stopped


def test_cut_games_are_one_ply_long_at_least() -> None:
    assert SelfPlayConfig(starts=("anywhere",), start_plies=0, start_fraction=0.0).problems() == [
        "start_fraction is 0.0; it must be in (0, 1]",
        "start_plies is 0; it must be at least 1",
    ]
    assert SelfPlayConfig(starts=("anywhere",), start_plies=1).problems() == []


# ---- openings


def test_random_openings_are_of_every_length_and_flagged() -> None:
    longest, lanes = 3, 400
    made = machine(TicTacToe, DIRECT, 10, longest)
    _, slab = play(made, 2, list(range(lanes)), pace(DIRECT))
    lengths: list[int] = []
    following = []  # whether a lane's next game has an opening as long as the one before
    for lane in range(lanes):
        starts = [0, *(np.flatnonzero(slab.ended[:, lane]) + 1).tolist()]
        for start, end in itertools.pairwise(starts):
            flags = slab.random[start:end, lane].tolist()
            following += [sum(flags) == lengths[-1]] if start else []
            lengths.append(sum(flags))
            assert flags == [True] * lengths[-1] + [False] * (end - start - lengths[-1])
    assert slab.searched.all()  # their policies are learned: it is the move played that is random
    counts = np.bincount(lengths, minlength=longest + 1)
    assert len(counts) == longest + 1
    share = len(lengths) / (longest + 1)
    assert ((counts - share) ** 2 / share).sum() < 21.1  # chi-square with 3 degrees of freedom, p = 1e-4
    assert abs(np.mean(following) - 1 / (longest + 1)) < 0.1
    # What is played there is not what the network likes best, and differs from lane to lane.
    begins = slab.random[0]
    assert len(set(slab.action[0, begins].tolist())) == 9
    follow(TicTacToe, jax.tree.map(lambda x: x[:, :20], slab), test_tictactoe.Reference)


def test_a_share_of_moves_is_random_and_flagged_whatever_the_search_found() -> None:
    lanes = list(range(400))
    _, slab = play(machine(TicTacToe, DIRECT, 10, 0, 0.25), 1, lanes, pace(DIRECT, temperature=0.0))
    _, plain = play(machine(TicTacToe, DIRECT, 10), 1, lanes, pace(DIRECT, temperature=0.0))
    assert abs(slab.random.mean() - 0.25) < 0.03
    first = slab.random[0]
    assert (slab.action[0, ~first] == plain.action[0, ~first]).all()
    counts = np.bincount(slab.action[0, first], minlength=9)
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 31.8, "uniform: chi-square, 8 degrees, p = 1e-4"
    assert slab.searched.all()
    np.testing.assert_array_equal(slab.policy[0], plain.policy[0])
    follow(TicTacToe, jax.tree.map(lambda x: x[:, :20], slab), test_tictactoe.Reference)


# ---- budgets and temperature


def test_the_budget_is_drawn_for_all_lanes_together() -> None:
    made = machine(TicTacToe, PUCT, 10)
    fraction, fast = 0.3, 5
    _, slab = play(made, 30, list(range(16)), pace(full_search_fraction=fraction, fast_simulations=fast))
    full = slab.searched[:, 0]
    np.testing.assert_array_equal(slab.searched, np.broadcast_to(full[:, None], slab.searched.shape))
    spread = (len(full) * fraction * (1 - fraction)) ** 0.5
    assert abs(full.sum() - len(full) * fraction) < 4 * spread
    # The policy is the share of the visits: it says how many there were.
    for budget, rows in ((SIMULATIONS, full), (fast, ~full)):
        visits = slab.policy[rows].astype(np.float32) * budget
        assert np.abs(visits - visits.round()).max() < 0.01
    other = slab.policy[~full].astype(np.float32) * SIMULATIONS
    assert np.abs(other - other.round()).max() > 0.1


def test_after_some_plies_the_most_visited_move_is_played() -> None:
    _, slab = play(machine(TicTacToe, PUCT, 10), 4, list(range(16)), pace(temperature=10.0, temperature_plies=3))
    played = np.asarray(slab.actions == slab.action[..., None])
    is_best = np.where(played, slab.policy, 0).max(-1) == slab.policy.max(-1)
    ply = np.zeros(slab.action.shape, int)
    for t in range(1, len(ply)):
        ply[t] = np.where(slab.ended[t - 1], 0, ply[t - 1] + 1)
    assert is_best[ply >= 3].all()
    assert 0.1 < is_best[ply < 3].mean() < 0.9


@pytest.mark.parametrize(("plies", "fewest", "most"), [(0, 1, 1), (1, 2, 9), (1000, 10, 64)])
def test_after_some_plies_a_gumbel_root_has_no_noise(plies: int, fewest: int, most: int) -> None:
    """Games are then the same from where they are the same: after no ply one game, after one at most nine."""
    _, slab = play(machine(TicTacToe, GUMBEL, 5), 1, list(range(64)), pace(GUMBEL, temperature_plies=plies))
    assert fewest <= len({tuple(actions) for actions in slab.action.T.tolist()}) <= most


def test_knobs_change_without_a_recompilation() -> None:
    made = machine(TicTacToe, PUCT, 10)
    play(made, 1, list(range(16)), pace())
    before = made.run._cache_size()
    settings: list[dict[str, Any]] = [
        {"temperature": 0.3, "temperature_plies": 4},
        {"simulations": 3, "fast_simulations": 1, "full_search_fraction": 0.25},
        {"exploration": 2.0, "noise_fraction": 0.25, "noise_alpha": 1.0},
    ]
    for changes in settings:
        play(made, 1, list(range(16)), pace(**changes), seed=5, first=77)
    assert made.run._cache_size() == before


def test_the_value_is_that_of_the_policy_over_what_was_tried() -> None:
    found = types.SimpleNamespace(
        visits=jnp.array([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]]),
        policy=jnp.array([[0.5, 0.25, 0.25], [0.2, 0.3, 0.5]]),
        values=jnp.array([[0.6, -0.6, 0.0], [0.0, 0.0, 0.0]]),
        value=jnp.array([0.1, 0.7]),
    )
    np.testing.assert_allclose(improved_value(found), [(0.5 * 0.6 - 0.25 * 0.6) / 0.75, 0.7], rtol=1e-6)


def test_every_problem_of_the_settings_is_named() -> None:
    wrong = SelfPlayConfig(num_games=-1, random_plies=-1, full_search_fraction=0.0, temperature_plies=-2)
    assert wrong.problems() == [
        "num_games is -1; it must be at least 0",
        "random_plies is -1; it must be at least 0",
        "full_search_fraction is 0.0; it must be in (0, 1]",
        "temperature_plies is -2; it must not be negative",
    ]
    assert SelfPlayConfig().problems() == []


# ---- devices

SHARDED = """
import jax, numpy as np
jax.config.update("jax_disable_most_optimizations", True)  # compiled sooner; the results are equal without it too
import jax.numpy as jnp
from aleazero.assemble import build_parts
from aleazero.config import resolve

settings = '''
model.width=16 model.blocks=1 search.max_simulations=4 selfplay.num_games=8 selfplay.moves_per_rollout=6
selfplay.random_plies=2 selfplay.fast_simulations=2 selfplay.full_search_fraction=0.5 total_rows=100000
'''
config = resolve("pig", preset="quick", environ={}, assignments=settings.split())
devices = jax.devices()
assert len(devices) == 4
played = []
for used in (devices[:1], devices):
    parts = build_parts(config, devices=used)
    games, play, weights = parts.start_games(), parts.make_play(), parts.start_learning().average
    slabs = []
    for first in (0, 6):
        games, slab = play(weights, games, parts.pace(0), jnp.uint32(first))
        assert len(slab.action.sharding.device_set) == len(used)
        slabs.append(slab)
    played.append(jax.tree.map(np.asarray, (games, slabs)))
leaves = [jax.tree_util.tree_flatten_with_path(tree)[0] for tree in played]

def same(one, four):  # a network's answer may differ in its last bit: from JAX 0.12 on products go by the batch's size
    return np.allclose(one, four, rtol=0, atol=1e-6) if one.dtype == np.float32 else np.array_equal(one, four)

wrong = [jax.tree_util.keystr(path) for (path, one), (_, four) in zip(*leaves) if not same(one, four)]
print(len(leaves[0]), "leaves; different:", wrong)
"""


@pytest.mark.slow
def test_lanes_over_four_devices_play_the_same_games() -> None:
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", SHARDED], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("leaves; different: []"), done.stdout
