"""The host rollout on Climb: every lane followed by hand, and what its randomness must not depend on."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aleazero.core.errors import AleaError, ConfigError, GameContractError
from aleazero.core.keys import Role, lane_keys, lane_words
from aleazero.core.records import Prediction
from aleazero.games.host_conformance import check_host_game
from aleazero.play.host_rollout import HostGames, HostRollout, HostTrajectory, _decide
from tests.games.conftest import quick_compile  # noqa: F401
from tests.games.tiny import Climb, ClimbStates

pytestmark = pytest.mark.usefixtures("quick_compile")

LANES, MOVES = 6, 40
TURNS = 12  # after which Climb is lost


class Bounded(Climb):
    """Climb that is stopped after seven moves."""

    spec = dataclasses.replace(Climb.spec, max_plies=7)


def judge(weights: Array, observation: Array) -> Prediction:
    """Jumping is liked the more the higher one stands; exact in any batch."""
    height, turns = observation[:, 0], observation[:, 1]
    return Prediction(jnp.stack([weights[0] * height, jnp.ones_like(height)], -1), weights[1] * (height - turns))


WEIGHTS = np.array([-3.0, 0.5], np.float32)


def play(
    moves: int, lanes: int = LANES, *, calls: int = 1, temperature: float = 1.0, seed: int = 3, game: Any = None
) -> tuple[HostGames, HostTrajectory]:
    """So many calls of so many moves, as one trajectory."""
    rollout = HostRollout(game or Climb(), judge, moves)
    games, slabs = rollout.start(seed, lanes), []
    for call in range(calls):
        games, slab = rollout.run(WEIGHTS, games, seed=seed, first=call * moves, temperature=temperature)
        slabs.append(slab)
    names = [field.name for field in dataclasses.fields(HostTrajectory)]
    return games, HostTrajectory(**{name: np.concatenate([getattr(s, name) for s in slabs]) for name in names})


def assert_equal(one: HostTrajectory, two: HostTrajectory) -> None:
    for field in dataclasses.fields(HostTrajectory):
        a, b = getattr(one, field.name), getattr(two, field.name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b, err_msg=field.name)


def policy_of(observation: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """Log-probabilities of both actions, in plain numpy."""
    logits = np.array([WEIGHTS[0] * observation[0], 1.0], np.float64)
    masked = np.where(legal, logits, -np.inf)
    return np.asarray(masked - np.log(np.exp(masked).sum()))


def streams(seed: int) -> list[list[int]]:
    """The seed of the game that would begin before every move, in every lane."""
    lanes, numbers = jnp.arange(LANES), jnp.arange(MOVES + 1)
    named = jax.jit(jax.vmap(lambda number: lane_words(lane_keys(seed, Role.INIT, number, lanes), 2)))(numbers)
    words = np.asarray(named).astype(object)
    found: list[list[int]] = (words[:, 0] * 2**32 + words[:, 1]).tolist()
    return found


def test_lanes_follow_the_rules_of_climb() -> None:
    _, slab = play(MOVES)
    seeds = streams(seed=3)
    for lane in range(LANES):
        height, turns, stream = 0, 0, seeds[0][lane]
        for t in range(MOVES):
            where = f"move {t} of lane {lane}"
            seen, legal, action = slab.observation[t, lane], slab.legal[t, lane], int(slab.action[t, lane])
            np.testing.assert_array_equal(seen, np.array([height, turns], np.float32) / 12, where)
            assert legal.tolist() == [True, height > 0], where
            assert slab.to_play[t, lane] == 0
            assert legal[action], where
            assert slab.log_prob[t, lane] == pytest.approx(policy_of(seen, legal)[action], abs=1e-6), where
            assert slab.value[t, lane] == pytest.approx(WEIGHTS[1] * (seen[0] - seen[1]), abs=1e-7), where
            stream = (stream * 6364136223846793005 + 1442695040888963407) % 2**64
            face = (stream >> 33) % 6 + 1
            height = height + 1 if action == 0 else 0 if face == 1 else height + face
            turns += 1
            over = height >= 10 or turns >= TURNS
            assert slab.ended[t, lane] == over, where
            assert slab.rewards[t, lane].tolist() == [0.0 if not over else 1.0 if height >= 10 else -1.0], where
            assert not slab.truncated[t, lane]
            if over:
                height, turns, stream = 0, 0, seeds[t + 1][lane]
    assert slab.ended.sum() > 2 * LANES
    assert (slab.action == 1).any()
    assert {-1.0, 0.0, 1.0} == set(slab.rewards.ravel().tolist())


def test_shapes_and_types() -> None:
    _, slab = play(MOVES)
    like = {field.name: getattr(slab, field.name) for field in dataclasses.fields(HostTrajectory)}
    assert all(array.shape[:2] == (MOVES, LANES) for array in like.values())
    assert {name: (array.shape[2:], str(array.dtype)) for name, array in like.items()} == {
        "observation": ((2,), "float32"),
        "legal": ((2,), "bool"),
        "to_play": ((), "int8"),
        "action": ((), "int16"),
        "log_prob": ((), "float32"),
        "value": ((), "float32"),
        "rewards": ((1,), "float32"),
        "ended": ((), "bool"),
        "truncated": ((), "bool"),
    }


@pytest.mark.parametrize("moves", [1, 5])
def test_games_do_not_depend_on_the_moves_of_a_call(moves: int) -> None:
    long, short = play(MOVES), play(moves, calls=MOVES // moves)
    assert_equal(long[1], short[1])
    assert Climb().snapshot(long[0].states) == Climb().snapshot(short[0].states)
    np.testing.assert_array_equal(long[0].ply, short[0].ply)


def test_games_do_not_depend_on_the_games_beside_them() -> None:
    many, few = play(MOVES)[1], play(MOVES, lanes=2)[1]
    alike = {f.name: getattr(many, f.name)[:, :2] for f in dataclasses.fields(HostTrajectory)}
    assert_equal(HostTrajectory(**alike), few)


def test_every_game_has_dice_and_choices_of_its_own() -> None:
    first, other = play(MOVES, lanes=32)[1], play(MOVES, lanes=32, seed=4)[1]
    lines = [first.observation[:, lane].tobytes() for lane in range(32)]
    assert len(set(lines)) == 32
    assert (first.action != other.action).mean() > 0.1
    # The games that a lane plays one after another differ too: else every game would be as long as its first.
    lengths = [np.diff(np.flatnonzero(first.ended[:, lane])) for lane in range(32)]
    assert len({tuple(line) for line in lengths}) > 16


def test_a_game_that_lasts_too_long_is_stopped_without_a_result() -> None:
    _, slab = play(MOVES, game=Bounded())
    over = slab.ended | slab.truncated
    assert not (slab.ended & slab.truncated).any()
    for lane in range(LANES):
        ply = 0
        for t in range(MOVES):
            ply += 1
            assert slab.truncated[t, lane] == (ply == 7 and not slab.ended[t, lane])
            assert ply <= 7
            if over[t, lane] and t + 1 < MOVES:
                assert slab.observation[t + 1, lane].tolist() == [0.0, 0.0]
                ply = 0
    assert slab.truncated.sum() >= 3
    assert slab.ended.any()
    assert (slab.rewards[slab.truncated] == 0).all()


def test_temperature_zero_plays_the_best() -> None:
    _, slab = play(MOVES, temperature=0.0)
    for t in range(MOVES):
        for lane in range(LANES):
            best = policy_of(slab.observation[t, lane], slab.legal[t, lane]).argmax()
            assert slab.action[t, lane] == best


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_actions_are_drawn_with_the_temperature(temperature: float) -> None:
    _, slab = play(30, lanes=400, temperature=temperature)
    both = slab.legal.all(-1)
    heights = slab.observation[both][:, 0].astype(np.float64)
    odds = (1.0 - WEIGHTS[0] * heights) / temperature
    chance = 1 / (1 + np.exp(-odds))
    jumps = slab.action[both] == 1
    spread = np.sqrt((chance * (1 - chance)).sum())
    assert abs(jumps.sum() - chance.sum()) < 4 * spread
    wrong = 1 / (1 + np.exp(-odds * 2))
    assert abs(jumps.sum() - wrong.sum()) > 8 * spread  # so that a temperature twice as low would be noticed


def test_one_program_serves_all_temperatures_moves_and_seeds() -> None:
    rollout = HostRollout(Climb(), judge, 3)
    games = rollout.start(0, 7)  # lanes that no other test has
    before = _decide._cache_size()  # type: ignore[attr-defined]
    for first, temperature in ((0, 1.0), (3, 0.0), (6, 0.25), (2**33, 1.0)):
        games, _ = rollout.run(WEIGHTS, games, seed=first % 7, first=first, temperature=temperature)
    assert _decide._cache_size() == before + 1  # type: ignore[attr-defined]


def test_the_games_given_are_left_as_they_are() -> None:
    rollout = HostRollout(Climb(), judge, 20)
    games = rollout.start(0, 4)
    before = Climb().snapshot(games.states)
    rollout.run(WEIGHTS, games, seed=0, first=0, temperature=1.0)
    assert Climb().snapshot(games.states) == before
    assert games.ply.tolist() == [0] * 4


def test_what_cannot_be_played_is_named() -> None:
    class Stuck(Climb):
        def legal_actions(self, states: ClimbStates) -> np.ndarray:
            return super().legal_actions(states) & (states.height < 2)[:, None]

    with pytest.raises(GameContractError, match=r"legal_actions: move \d+, lane \d: no action is legal"):
        play(MOVES, game=Stuck())
    rollout = HostRollout(Climb(), judge, 4)
    games = rollout.start(0, 4)
    with pytest.raises(AleaError, match="move 5, lane 0: the network's policy is not finite"):
        rollout.run(np.array([np.nan, 0], np.float32), games, seed=0, first=5, temperature=1.0)
    with pytest.raises(ConfigError, match=r"temperature is -0.5; it must not be negative"):
        rollout.run(WEIGHTS, games, seed=0, first=0, temperature=-0.5)


def test_the_games_of_these_tests_keep_the_contract() -> None:
    assert check_host_game(Bounded()).games > 0
