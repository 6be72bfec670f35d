"""Self-play by whole turns: lanes followed by hand, random openings, other starts, and what all rolls are worth.

Most of it in a game of few plays, beside plain Python; then backgammon, whose first roll says who begins.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aleazero.core.game import Game
from aleazero.core.records import Knowledge, Trajectory
from aleazero.core.struct import replace
from aleazero.doctor.evaluators import OPINIONATED, hashed
from aleazero.games.backgammon.boards import afterstates
from aleazero.games.backgammon.game import ROLLS, Backgammon
from aleazero.play.rollout import Games
from aleazero.play.turns import TurnRollout
from aleazero.search.expectimax import Expectimax
from aleazero.search.plies import Plies
from tests.games.backgammon import reference
from tests.games.conftest import quick_compile  # noqa: F401
from tests.games.tiny import GOAL, Dash, DashState, TurnDash

pytestmark = pytest.mark.usefixtures("quick_compile")

WEIGHTS = jnp.asarray(OPINIONATED)
TOSS = np.array([0.375, 0.125, 0.375, 0.125])


class Toss(TurnDash):
    """TurnDash whose first roll also says who begins: outcomes 0 and 1 seat 0, 2 and 3 seat 1."""

    kind = "toss"
    spec = dataclasses.replace(Dash.spec, name="toss", num_chance_outcomes=4)

    @property
    def num_later_outcomes(self) -> int:
        return 2

    def chance_probs(self, state: DashState) -> Array:
        usual = jnp.array([0.75, 0.25, 0.0, 0.0], jnp.float32)
        return jnp.where(state.die == 0, jnp.asarray(TOSS, jnp.float32), usual)

    def apply_chance(self, state: DashState, outcome: Array) -> DashState:
        rolled = super().apply_chance(state, outcome % 2)
        return replace(rolled, to_play=jnp.where(state.die == 0, outcome // 2, rolled.to_play).astype(jnp.int8))


class ShortToss(Toss):
    """Stopped after four turns."""

    kind = "short toss"
    spec = dataclasses.replace(Toss.spec, max_plies=8)


@functools.cache
def opine_by(game: type[Game]) -> Any:
    """Outcomes that look random but are a function of the observation, the same bit for bit in any batch."""
    made = game() if game is Backgammon else game(4)  # type: ignore[call-arg]
    evaluate = [hashed(made, seed) for seed in range(len(made.spec.outcomes))]

    def opine(weights: Any, observations: Array) -> Array:
        said = jnp.stack([one(weights, observations).value + 1 for one in evaluate], -1)
        return said / said.sum(-1, keepdims=True)

    return opine


@functools.cache
def rollout(game: type[Game], moves: int, **options: Any) -> tuple[TurnRollout, Any, Any]:
    made = game(4)  # type: ignore[call-arg]
    search = Expectimax(made, opine_by(game))
    if options.pop("every_roll", False):
        options["look_ahead"] = functools.partial(Plies(search, 1).opinion, ply=1)
    found = TurnRollout(game=made, search=Plies(search, 0), moves=moves, **{"random_plies": 0} | options)
    return found, jax.jit(found.start), jax.jit(found.run)


def play(
    game: type[Game], moves: int, lanes: list[int], calls: int = 1, seed: int = 1, **options: Any
) -> tuple[Games, Any]:
    """So many calls, one after the other, as one trajectory on the host."""
    knowledge = Knowledge(WEIGHTS, options.pop("endings", None))
    _, start, run = rollout(game, moves, **options)
    numbers = jnp.array(lanes, jnp.uint32)
    games, slabs = start(jnp.uint32(seed), numbers), []
    for call in range(calls):
        games, slab = run(knowledge, games, None, jnp.uint32(seed), jnp.uint32(call * moves), numbers)
        slabs.append(slab)
    return on_host(games), jax.tree.map(lambda *parts: np.concatenate(parts), *slabs)


def on_host(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)


@functools.cache
def unpacking(game: type[Game]) -> Any:
    return jax.jit(jax.vmap(jax.vmap(game(4).unpack)))  # type: ignore[call-arg]


def states_of(game: type[Game], slab: Trajectory) -> Any:
    return on_host(unpacking(game)(slab.state))


@functools.cache
def saying(game: type[Game]) -> Any:
    made, opine = game(4), opine_by(game)  # type: ignore[call-arg]
    return jax.jit(lambda states: opine(WEIGHTS, jax.vmap(made.observe)(states)))


def assert_equal(one: Any, two: Any) -> None:
    for (path, a), b in zip(jax.tree_util.tree_flatten_with_path(one)[0], jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=jax.tree_util.keystr(path))


# ---- plain Python

Side = tuple[int, int]


def turns(mine: Side, die: int) -> list[Side]:
    """Where a player's tokens may be after a turn, each once."""
    found = []
    for first in range(2):
        if mine[first] == GOAL:
            continue
        once = list(mine)
        once[first] = min(once[first] + die, GOAL)
        for second in range(2):
            twice = list(once)
            if once != [GOAL, GOAL]:
                if once[second] == GOAL:
                    continue
                twice[second] = min(twice[second] + die, GOAL)
            found.append((twice[0], twice[1]))
    return list(dict.fromkeys(found))


def opinions_of(sides: list[tuple[Side, Side, int]]) -> np.ndarray:
    """`[n, 2]`: win and loss for who has just moved, of (its tokens, the other's, the die it moved by)."""
    mine, theirs = (np.array([row[i] for row in sides]) for i in range(2))
    blank = Toss(4).init(jax.random.key(0))
    count = len(sides)
    states = jax.tree.map(lambda x: jnp.repeat(x[None], count, 0), blank)
    states = replace(
        states,
        to_play=jnp.zeros(count, jnp.int8),
        tokens=jnp.asarray(np.stack([mine, theirs], 1), jnp.int8),
        die=jnp.array([row[2] for row in sides], jnp.int8),
    )
    said = np.asarray(saying(Toss)(states))
    return np.where((mine == GOAL).all(-1)[:, None], np.array([1.0, 0.0]), said)


@functools.cache
def best_turn(mine: Side, theirs: Side, die: int) -> tuple[Side, tuple[float, float]]:
    """The turn the network likes best and what it then expects; of equals the first."""
    plays = turns(mine, die)
    said = opinions_of([(play, theirs, die) for play in plays])
    row = int((said[:, 0] - said[:, 1]).argmax())
    return plays[row], (float(said[row, 0]), float(said[row, 1]))


@dataclasses.dataclass
class Row:
    """One turn as the record has it."""

    mine: Side  # the roller's
    theirs: Side
    roller: int
    after: Side | None  # the roller's tokens at the next record; None where the game was over then
    die: int | None


def each_row(slab: Any, states: Any) -> dict[tuple[int, int], Row]:
    """Every turn whose roll and result can be read off the record. Checks what must hold of each."""
    rows = {}
    moves, lanes = slab.ended.shape
    for t, lane in itertools.product(range(moves), range(lanes)):
        where = f"turn {t} of lane {lane}"
        last = int(states.to_play[t, lane])
        over = bool(slab.ended[t, lane] or slab.truncated[t, lane])
        opening = states.die[t, lane] == 0
        tokens = [(int(a), int(b)) for a, b in states.tokens[t, lane]]
        if opening:
            assert tokens == [(0, 0), (0, 0)], where
        if over or t + 1 == moves:
            if t + 1 < moves:
                assert states.die[t + 1, lane] == 0, f"no new game after {where}"
            if slab.ended[t, lane]:
                roller = 1 - last
                assert slab.points[t, lane] == (1 if roller == 0 else -1), where
                wins = [die for die in (1, 2) if (GOAL, GOAL) in turns(tokens[roller], die)]
                assert wins, where
                rows[t, lane] = Row(tokens[roller], tokens[last], roller, None, None)
            continue
        roller, die = int(states.to_play[t + 1, lane]), int(states.die[t + 1, lane])
        assert opening or roller == 1 - last, where
        after = [(int(a), int(b)) for a, b in states.tokens[t + 1, lane]]
        assert after[1 - roller] == tokens[1 - roller], where
        assert after[roller] in turns(tokens[roller], die), where
        assert slab.points[t, lane] == 0, where
        rows[t, lane] = Row(tokens[roller], tokens[1 - roller], roller, after[roller], die)
    return rows


# ---- games


LANES = list(range(12))
MOVES = 24


@functools.cache
def tosses() -> tuple[Any, Any, Any]:
    games, slab = play(Toss, MOVES, LANES, random_plies=2)
    return games, slab, states_of(Toss, slab)


def test_lanes_are_games_of_best_plays() -> None:
    _, slab, states = tosses()
    rows = each_row(slab, states)
    assert states.is_chance.all()
    assert not states.terminated.any()
    np.testing.assert_array_equal(slab.to_play, states.to_play)
    assert not slab.truncated.any()
    checked = 0
    for place, row in rows.items():
        if row.after is not None and row.die is not None and not slab.random[place]:
            assert row.after == best_turn(row.mine, row.theirs, row.die)[0], place
            checked += 1
    assert checked > 100
    assert slab.ended.sum() > 30
    assert {-1.0, 0.0, 1.0} == set(slab.points.ravel().tolist())
    begun = [states.to_play[t + 1, lane] for (t, lane) in rows if states.die[t, lane] == 0 and t + 1 < MOVES]
    assert 10 < sum(begun) < len(begun) - 10  # either seat begins


@functools.cache
def many() -> tuple[Any, Any]:
    """Some thousand turns by the same program."""
    _, slab = play(Toss, MOVES, LANES, calls=25, seed=5, random_plies=2)
    return slab, states_of(Toss, slab)


def test_dice_fall_as_they_should() -> None:
    slab, states = many()
    following = states.die[1:] - 1 + 2 * states.to_play[1:]
    opening = states.die[:-1] == 0
    first = following[opening]  # who begins, and the die
    counts = np.bincount(first, minlength=4)
    wanted = len(first) * TOSS
    assert len(first) > 1000
    assert ((counts - wanted) ** 2 / wanted).sum() < 21.1  # chi-square with 3 degrees of freedom, p = 1e-4
    # The rolls of second turns, which never end a game, do not depend on those of first ones.
    later = opening[:-1]
    assert not slab.ended[:-2][later].any()
    assert not slab.ended[1:-1][later].any()
    second, before = states.die[2:][later] == 2, states.die[1:-1][later] == 2
    assert abs(second.mean() - 0.25) < 4 * (0.25 * 0.75 / len(second)) ** 0.5
    assert abs(np.corrcoef(second, before)[0, 1]) < 4 / len(second) ** 0.5


def test_the_opinion_is_the_networks_of_the_position_before_the_roll() -> None:
    _, slab, states = tosses()
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), states)
    said = np.asarray(saying(Toss)(flat)).reshape(*slab.ended.shape, 2)
    np.testing.assert_allclose(slab.opinion, said, atol=1e-3)  # float16
    np.testing.assert_allclose(slab.value, said[..., 0] - said[..., 1], atol=1e-5)


def test_rows_teach_no_policy() -> None:
    _, slab, _ = tosses()
    assert not slab.searched.any()
    assert (slab.action == -1).all()
    assert slab.actions.shape == slab.policy.shape == (MOVES, len(LANES), 1)
    assert (slab.actions == -1).all()
    assert not slab.policy.any()
    wanted = "uint8 int8 int16 float16 int16 float16 float32 bool bool bool bool bool float32 uint32"
    assert [str(getattr(slab, field.name).dtype) for field in dataclasses.fields(Trajectory)[:-1]] == wanted.split()


def test_other_turns_or_other_dice_are_another_fingerprint() -> None:
    _, slab, states = tosses()
    lines: dict[Any, int] = {}
    for lane in range(len(LANES)):
        line: tuple[Any, ...] = ()
        for t in range(MOVES - 1):
            if slab.ended[t, lane]:
                line = ()
                continue
            following = jax.tree.map(lambda x, at=(t + 1, lane): x[at], states)
            line = (*line, (following.tokens.tobytes(), int(following.die), int(following.to_play)))
            assert lines.setdefault(line, int(slab.fingerprint[t, lane])) == slab.fingerprint[t, lane]
    assert len(set(lines.values())) == len(lines) > 50


# ---- what a game does not depend on


def test_games_depend_neither_on_the_turns_of_a_call_nor_on_the_games_beside_them() -> None:
    games, slab, _ = tosses()
    assert slab.random[:, 3:5].any()
    alone = play(Toss, MOVES // 3, [3, 4], calls=3, random_plies=2)
    assert_equal(jax.tree.map(lambda x: x[:, 3:5], slab), alone[1])
    assert_equal(jax.tree.map(lambda x: x[3:5], games), alone[0])


def test_lanes_and_seeds_have_randomness_of_their_own() -> None:
    _, slab, _ = tosses()
    assert len({slab.state[:, lane].tobytes() for lane in LANES}) == len(LANES)
    _, other = play(Toss, MOVES, LANES, seed=2, random_plies=2)
    assert all((slab.state[:, lane] != other.state[:, lane]).any() for lane in LANES)


# ---- openings


def test_random_openings_are_of_every_length_and_flagged() -> None:
    longest = 2
    slab, states = many()
    lengths = []
    for lane in LANES:
        starts = [0, *(np.flatnonzero(slab.ended[:, lane]) + 1).tolist()]
        for start, end in itertools.pairwise(starts):
            flags = slab.random[start:end, lane].tolist()
            lengths.append(sum(flags))
            assert flags == [True] * lengths[-1] + [False] * (end - start - lengths[-1])
    counts = np.bincount(lengths, minlength=longest + 1)
    share = len(lengths) / (longest + 1)
    assert len(counts) == longest + 1
    assert ((counts - share) ** 2 / share).sum() < 18.4  # chi-square with 2 degrees of freedom, p = 1e-4
    # What is played there is any turn: after a one at the start both tokens at one, or the first or the second at two.
    opened = (states.die[:-1] == 0) & slab.random[:-1] & (states.die[1:] == 1)
    rolled = np.take_along_axis(states.tokens[1:], states.to_play[1:, :, None, None].astype(int), 2)[:, :, 0][opened]
    kinds = np.unique(rolled, axis=0, return_counts=True)
    assert kinds[0].tolist() == [[0, 2], [1, 1], [2, 0]]
    share = opened.sum() / 3
    assert ((kinds[1] - share) ** 2 / share).sum() < 18.4


# ---- games that are stopped, and other starts


def test_a_game_that_lasts_too_long_is_stopped_without_a_result() -> None:
    _, slab = play(ShortToss, MOVES, LANES, random_plies=2)
    states = states_of(ShortToss, slab)
    each_row(slab, states)
    assert slab.truncated.sum() > 5
    assert not (slab.truncated & slab.ended).any()
    for lane in range(len(LANES)):
        age = 0
        for t in range(MOVES):
            assert (states.die[t, lane] == 0) == (age == 0)
            age += 1
            assert slab.truncated[t, lane] == (age == 4 and not slab.ended[t, lane])
            age = 0 if slab.ended[t, lane] or slab.truncated[t, lane] else age
    assert (slab.points[slab.truncated] == 0).all()


def elsewhere(key: Array) -> DashState:
    """Somewhere in the middle, before a roll; who has moved last, by chance."""
    words = jax.random.bits(key, (2,))
    return replace(
        Toss(4).init(key),
        to_play=(words[0] % 2).astype(jnp.int8),
        tokens=jnp.broadcast_to((1 + words[1] % 2).astype(jnp.int8), (2, 2)),
        die=jnp.int8(2),
    )


@pytest.mark.parametrize(("plies", "stop"), [(3, 2), (None, 0)])
def test_games_begin_elsewhere_and_are_cut_there(plies: int | None, stop: int) -> None:
    _, slab = play(Toss, 12, list(range(80)), other_start=elsewhere, other_fraction=0.5, other_plies=plies)
    states = states_of(Toss, slab)
    other = states.die[0] == 2
    assert 20 < other.sum() < 60
    assert {0, 1} == set(states.to_play[0, other].tolist())
    assert {1, 2} == set(states.tokens[0, other].ravel().tolist())
    seen = 0
    for lane in range(80):
        begun, begins, age = False, True, 0
        for t in range(12):
            if begins:
                begun, begins, age = bool(states.die[t, lane] != 0), False, 0
                assert begun or states.tokens[t, lane].sum() == 0
            age += 1
            cut = bool(stop and begun and age == stop and not slab.ended[t, lane])
            assert slab.truncated[t, lane] == cut, (t, lane)
            begins = bool(slab.ended[t, lane]) or cut
            seen += cut
    assert (seen > 20) == (stop > 0)
    assert slab.ended.any()
    assert not slab.random.any()


# ---- every roll


def expected(mine: Side, theirs: Side) -> np.ndarray:
    """What the roller expects before its roll, win and loss, if it then plays what it likes best."""
    return sum(p * np.array(best_turn(mine, theirs, die)[1]) for die, p in ((1, 0.75), (2, 0.25)))  # type: ignore[return-value]


def test_every_roll_is_looked_at_and_the_one_drawn_is_played() -> None:
    _, plain, states = tosses()
    _, slab = play(Toss, MOVES, LANES, random_plies=2, every_roll=True)
    same = [field.name for field in dataclasses.fields(Trajectory) if field.name not in ("opinion", "value")]
    assert_equal({name: getattr(slab, name) for name in same}, {name: getattr(plain, name) for name in same})
    openings = 0
    for t, lane in itertools.product(range(MOVES), LANES):
        sides = [(int(a), int(b)) for a, b in states.tokens[t, lane]]
        last = int(states.to_play[t, lane])
        if states.die[t, lane] == 0:  # either seat may roll: the network's own opinion
            wanted = plain.opinion[t, lane]
            openings += 1
        else:
            wanted = expected(sides[1 - last], sides[last])[::-1]
        np.testing.assert_allclose(slab.opinion[t, lane], wanted, atol=1e-3, err_msg=f"turn {t} of lane {lane}")
        assert slab.value[t, lane] == pytest.approx(wanted[0] - wanted[1], abs=1e-5)
    assert openings > 20
    assert plain.random.sum() > 20  # also where the turn that follows is a random one


# ---- backgammon


@functools.cache
def backgammon() -> tuple[Any, Any, Any]:
    """Games of which most begin as races; those end once their end is known. One program for both tests of it."""
    game = Backgammon(4)
    endings = jax.device_put(game.ending_tables())
    options: Any = {"other_start": game.starts["race"], "other_fraction": 0.75, "endings": endings}
    _, slab = play(Backgammon, 8, list(range(128)), **options)
    return endings, slab, states_of(Backgammon, slab)


@pytest.mark.slow
def test_backgammon_goes_from_best_play_to_best_play() -> None:
    """By plain enumeration: what comes next is the best answer to a roll that was possible."""
    _, slab, every = backgammon()
    lanes = np.flatnonzero(every.opening[0])[:12]
    states = jax.tree.map(lambda x: x[:4, lanes], every)
    assert states.is_chance.all()
    assert states.opening.tolist() == [[True] * 12] + [[False] * 12] * 3
    assert not slab.settled[:4, lanes].any()
    assert set(states.to_play[1].tolist()) == {0, 1}  # either seat has started
    np.testing.assert_array_equal(states.to_play[2:], 1 - states.to_play[1:-1])
    points = np.array([outcome.points for outcome in Backgammon.spec.outcomes])
    for t, lane in ((0, 0), (1, 0), (0, 1), (2, 2)):
        here, following = (jax.tree.map(lambda x, at=(at, lane): x[at][None], states) for at in (t, t + 1))
        ((mine, theirs),) = reference.positions(here)
        found = []
        for roll in ROLLS[: 15 if t == 0 else 21]:
            ends = sorted(reference.plays((theirs, mine), reference.dice_of(*roll)))
            boards = np.resize(np.array(ends)[:, ::-1, 1:], (512, 2, 25))  # one shape: compiled once
            said = np.asarray(saying(Backgammon)(afterstates(boards, np.zeros(512, int))))[: len(ends)]
            found.append(ends[int((said @ points).argmax())])
        assert reference.positions(following)[0] in found


@pytest.mark.slow
def test_a_game_is_over_once_its_end_is_known() -> None:
    """Races: the last row has the exact chances as its opinion, and its points are drawn from them."""
    game = Backgammon(4)
    endings, slab, states = backgammon()
    known, exact = (
        np.asarray(x) for x in jax.jit(jax.vmap(jax.vmap(game.ending, (None, 0)), (None, 0)))(endings, states)
    )
    np.testing.assert_array_equal(slab.settled, known)
    assert slab.settled.sum() > 60
    assert slab.ended[slab.settled].all()
    assert not slab.random[slab.settled].any()
    np.testing.assert_allclose(slab.opinion[known], exact[known], atol=1e-3)
    points = np.array([outcome.points for outcome in game.spec.outcomes])
    seat = 1 - 2 * states.to_play[known].astype(float)
    expected = seat * (exact[known] @ points)
    spread = np.sqrt(np.maximum(exact[known] @ points**2 - expected**2, 1e-9))
    away = (slab.points[known] - expected).sum() / np.sqrt((spread**2).sum())
    assert abs(away) < 4  # drawn fairly: within four standard errors
    assert set(np.abs(slab.points[known]).tolist()) <= {1.0, 2.0}
    correlation = np.corrcoef(slab.points[known], expected)[0, 1]
    assert correlation > 0.5  # and each from its own position
    # What follows is a fresh game: before a turn of it the board is a race again, or known at once.
    again = states.mine[1:][slab.settled[:-1]]
    assert not np.array_equal(again, states.mine[:-1][slab.settled[:-1]])
