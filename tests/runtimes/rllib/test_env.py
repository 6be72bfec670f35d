"""The vector environment: the game's own rules, masks, rewards, and a new game where one is over."""

from __future__ import annotations

import numpy as np
import pytest

from aleazero.host_players import host_game
from aleazero.play.rewards import RewardConfig
from aleazero.runtimes.rllib.env import GamesEnv, make_env
from aleazero.runtimes.rllib.module import LEGAL, SEEN


def games(num_envs: int = 8, seed: int = 0, kind: str = "balatro", **rewards: float) -> GamesEnv:
    """What `balatro_rows` sees takes twenty times as long where rules are plain Python."""
    return GamesEnv(host_game("balatro", kind), num_envs, RewardConfig(**rewards), 0.99, [seed])


def chosen(observation: dict[str, np.ndarray], random: np.random.Generator) -> np.ndarray:
    legal = observation[LEGAL]
    return (random.random(legal.shape) * legal).argmax(-1)


def test_games_go_on_and_begin_anew_and_everything_is_counted() -> None:
    env, random = games(), np.random.default_rng(0)
    observation, _ = env.reset()
    assert env.observation_space.contains(observation)
    over, ends, rewards, rows = np.zeros(8, bool), 0, 0.0, 0
    for _ in range(120):
        before = over
        observation, paid, ended, truncated, info = env.step(chosen(observation, random))
        over = ended | truncated
        assert observation[SEEN].shape == (8, 1458)
        assert info == {}
        assert not (over & before).any()  # its step was the reset
        assert (paid[before] == 0).all()
        assert observation[LEGAL][~over].any(-1).all()
        ends, rewards, rows = ends + int(over.sum()), rewards + float(paid.sum()), rows + int((~before).sum())
    sums = env.take_sums()
    assert ends > 5
    assert (sums["ended"], sums["rows"]) == (ends, rows)
    assert sums["term_points"] == rewards
    assert sum(sums[f"ante_{ante}"] for ante in range(13)) == ends
    assert env.take_sums()["rows"] == 0


@pytest.mark.parametrize("of_runner", [(None, None, None), (1, 1, 2)])
def test_which_games_are_played_follows_from_the_seed(of_runner: tuple[int | None, ...]) -> None:
    """The run's and the runner's, which RLlib gives with the first reset."""

    def seen(seed: int, of_runner: int | None) -> np.ndarray:
        env = games(2, seed, "balatro_rows")
        observation, _ = env.reset(seed=of_runner)
        assert env.observation_space.contains(observation)
        after = env.step(chosen(observation, np.random.default_rng(0)))[0]
        return np.concatenate([observation[SEEN], after[SEEN]])

    one, same, other = map(seen, (3, 3, 3 if of_runner[0] else 4), of_runner)
    assert one.shape == (4, 1077)
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_potentials_are_paid_while_a_game_lasts() -> None:
    plain, shaped = games(), games(money=1.0)
    random = np.random.default_rng(0)
    observation = plain.reset()[0]
    shaped.reset()
    for _ in range(20):
        actions = chosen(observation, random)
        observation, paid, *_ = plain.step(actions)
        more = shaped.step(actions)[1]
    assert "term_money" in shaped.take_sums()
    assert (paid != more).any()


TOLD = {
    "game": "balatro",
    "kind": "balatro",
    "graph": "none",
    "rewards": {},
    "gamma": 0.9,
    "seed": [1, 2],
    "num_envs": 3,
}


def test_rllib_makes_them_with_one_thread() -> None:
    env = make_env(TOLD)
    assert env.num_envs == 3
    assert env.game.threads == 1  # type: ignore[attr-defined]
    assert env.reset()[0][SEEN].shape == (3, 1458)
