"""Gymnasium environments as host games."""

from __future__ import annotations

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.errors import ConfigError
from aleazero.core.records import Prediction
from aleazero.games.gym import GymGame
from aleazero.games.host_conformance import check_host_game
from aleazero.games.registry import make_game
from aleazero.play.fragments import FragmentPlay
from aleazero.play.rewards import RewardConfig


@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1", "Blackjack-v1"])
def test_the_contract_holds(name):
    report = check_host_game(make_game(f"gym:{name}"), lanes=6, plies=60)
    assert report.warnings == ()  # games came to an end


def test_a_game_is_the_environments_own():
    game = GymGame("CartPole-v1")
    env = gymnasium.make("CartPole-v1")
    seen, _ = env.reset(seed=7)
    states = game.init_batch(np.array([7], np.uint64))
    for move in range(500):
        np.testing.assert_array_equal(game.observe(states)[0], seen)
        action = move % 2
        seen, reward, over, _, _ = env.step(action)
        states = game.step_batch(states, np.array([action]))
        assert game.status(states).rewards[0, 0] == reward
        assert game.status(states).terminated[0] == over
        if over:
            break
    assert over
    assert game.spec.max_plies == 500
    assert game.measures(states)["won"].tolist() == [0]  # 475 points are what its makers ask for


def test_the_limit_of_time_is_not_the_environments():
    """A game that was stopped has not ended: who plays says so."""
    game = GymGame("MountainCar-v0")
    states = game.init_batch(np.array([1], np.uint64))
    for _ in range(game.spec.max_plies + 5):
        states = game.step_batch(states, np.array([1]))
    assert not game.status(states).terminated[0]


def test_old_states_can_be_gone_on_from():
    game = GymGame("CartPole-v1")
    start = game.init_batch(np.array([3], np.uint64))
    left = game.step_batch(start, np.array([0]))
    right = game.step_batch(start, np.array([1]))
    again = game.step_batch(start, np.array([0]))
    np.testing.assert_array_equal(game.observe(left), game.observe(again))
    assert (game.observe(left) != game.observe(right)).any()


def test_actions_of_several_numbers_are_numbered():
    gymnasium.register("alea-two-v0", entry_point=lambda: Two(), max_episode_steps=5)
    game = GymGame("alea-two-v0")
    assert game.spec.num_actions == 6
    states = game.step_batch(game.init_batch(np.array([0, 1], np.uint64)), np.array([5, 3]))
    np.testing.assert_array_equal(game.observe(states), [[1, 2], [1, 0]])


class Two(gymnasium.Env):
    """Shows what was done."""

    action_space = gymnasium.spaces.MultiDiscrete([2, 3])
    observation_space = gymnasium.spaces.Box(0, 3, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.asarray(action, np.float32), 0.0, False, False, {}


class Cut(gymnasium.Env):
    """Ends at the third move after action 1; cuts itself short after action 0."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(0, 3, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.moves = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.moves += 1
        over = self.moves == 3
        return np.full(1, self.moves, np.float32), 1.0, over and action == 1, over and action == 0, {}


def test_a_game_that_the_environment_cuts_short_has_not_ended():
    gymnasium.register("alea-cut-v0", entry_point=lambda: Cut())
    game = GymGame("alea-cut-v0")
    states = game.init_batch(np.array([0, 1], np.uint64))
    for _ in range(3):
        assert not game.status(states).terminated.any()
        states = game.step_batch(states, np.array([0, 1]))
    assert game.status(states).terminated.tolist() == [True, True]
    assert game.status(states).stopped.tolist() == [True, False]
    assert not game.legal_actions(states).any()
    again = game.restore(game.snapshot(states))
    assert game.status(again).stopped.tolist() == [True, False]

    def worth(weights, observation):  # where a game stood, so that a cut one is worth 3 more than nothing
        return Prediction(jnp.zeros((observation.shape[0], 2)), observation[:, 0])

    play = FragmentPlay(game, worth, 8, 9, RewardConfig(), 1.0)
    fragment, played = play.run((), play.start(0), seed=0, first=0)
    assert (played.ended + played.truncated, played.ended > 0, played.truncated > 0) == (24, True, True)
    np.testing.assert_array_equal(fragment.truncated[2::3], fragment.action[2::3] == 0)
    np.testing.assert_array_equal(fragment.ended[2::3], fragment.action[2::3] == 1)
    np.testing.assert_array_equal(fragment.after, 3.0 * fragment.truncated)


def test_what_cannot_be_played_is_said():
    with pytest.raises(ConfigError, match="Discrete and MultiDiscrete are supported"):
        GymGame("Pendulum-v1")
    with pytest.raises(ConfigError, match="gym:CartPool-v1"):
        GymGame("CartPool-v1")
    for name in ("nomodule:X-v0", "a:b:c", "no.module:X-v0"):
        with pytest.raises(ConfigError, match=f"gym:{name}"):
            GymGame(name)


def test_lanes_are_taken_without_playing_them_again(monkeypatch):
    """Who plays alone takes the games that go on before every move: to play all of them again each time is too slow."""
    game = make_game("gym:CartPole-v1")
    states = game.init_batch(np.arange(3, dtype=np.uint64))
    for _ in range(5):
        states = game.step_batch(states, np.zeros(3, np.int64))
    made = []
    monkeypatch.setattr(GymGame, "make", lambda self, make=GymGame.make: made.append(1) or make(self))
    twice = game.take(states, np.array([2, 0, 2]))
    assert not made
    np.testing.assert_array_equal(game.observe(twice), game.observe(states)[[2, 0, 2]])
    after = game.step_batch(twice, np.array([0, 0, 1]))  # one place, two ways to go on: the second has to play again
    assert len(made) == 1
    assert game.observe(after)[0, 1] < game.observe(twice)[0, 1] < game.observe(after)[2, 1]
    np.testing.assert_array_equal(game.observe(states), game.observe(game.restore(game.snapshot(states))))
