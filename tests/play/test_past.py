"""What networks that remember are shown: in play, in learning and by players, beside a slow reference."""

from __future__ import annotations

import types

import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.records import Prediction
from aleazero.host_players import chooser
from aleazero.learn.ppo import with_past
from aleazero.play.alone import play_alone
from aleazero.play.fragments import FragmentPlay
from aleazero.play.lookahead import LookAhead, Looking
from aleazero.play.past import Past
from aleazero.play.rewards import RewardConfig
from tests.games.conftest import quick_compile  # noqa: F401
from tests.games.tiny import Climb
from tests.play.test_host_rollout import Bounded

pytestmark = pytest.mark.usefixtures("quick_compile")

LANES, MOVES, HISTORY = 6, 15, 3


def judge(weights, shown):
    """Goes by all that it is shown: every number has a weight of its own."""
    rows = shown.reshape(shown.shape[0], -1)
    total = (rows * jnp.arange(1, rows.shape[1] + 1)[None]).sum(-1)
    return Prediction(jnp.stack([total, -total, weights[0] * total], 1)[:, :2], total * weights[1])


WEIGHTS = jnp.array([0.5, 0.25])


def slowly(observation, over, before):
    """`[T, B, 1 + H, ...]`, one number at a time; `before` `[B, H, ...]` is what came before the first move."""
    shown = np.zeros((*observation.shape[:2], 1 + HISTORY, *observation.shape[2:]), np.float32)
    for lane in range(observation.shape[1]):
        seen = list(before[lane])  # the newest first
        for t in range(observation.shape[0]):
            shown[t, lane, 0] = observation[t, lane]
            shown[t, lane, 1:] = seen
            seen = [observation[t, lane], *seen[:-1]]
            if over[t, lane]:
                seen = [np.zeros_like(x) for x in seen]
    return shown


@pytest.mark.parametrize("game", [Climb(), Bounded()], ids=["ended", "truncated"])
def test_play_and_learning_are_shown_the_same(game):
    play = FragmentPlay(game, judge, LANES, MOVES, RewardConfig(), 0.9, history=HISTORY)
    games = play.start(3)
    for first in (0, MOVES):
        before = np.concatenate([lanes.past.rows for lanes in games])
        fragment, _ = play.run(WEIGHTS, games, seed=3, first=first)
        shown = slowly(fragment.observation, fragment.ended | fragment.truncated, before)
        np.testing.assert_array_equal(with_past(fragment), shown)
        flat = jnp.asarray(shown.reshape(-1, *shown.shape[2:]))
        np.testing.assert_allclose(judge(WEIGHTS, flat).value, fragment.value.ravel(), rtol=1e-5)
        assert (fragment.ended | fragment.truncated).any()
    assert np.abs(before).sum() > 0  # the second fragment began in the middle of games
    lane = games[0]
    last = judge(WEIGHTS, jnp.asarray(lane.past.beside(game.observe(lane.states)))).value
    np.testing.assert_allclose(fragment.last[lane.at], last, rtol=1e-5)


def test_without_a_past_nothing_is_added():
    past = Past(2, (3,), 0)
    seen = np.ones((2, 3), np.float32)
    past.add(seen)
    past.forget(np.array([True, False]))
    assert past.beside(seen) is seen
    assert past.take(np.array([0, 0, 1])).beside(seen) is seen
    assert past.take(np.array([7])).beside(seen) is seen  # of lanes that another batch has


@pytest.mark.parametrize("history", [0, HISTORY])
def test_a_network_plays_every_game_as_if_it_were_alone(history):
    """Games end at different times; those that are over are shown to nobody, and the others keep their past."""
    lanes = []

    def evaluate(weights, shown):
        lanes.append(shown.shape[0])
        total = judge(weights, shown).logits[:, 0]
        return Prediction(jnp.stack([jnp.cos(9 * total), jnp.sin(9 * total)], 1), total)  # it jumps now and then

    game, seeds = Climb(), np.arange(9, dtype=np.uint64)
    model = types.SimpleNamespace(evaluate=evaluate, config=types.SimpleNamespace(history=history))
    together = play_alone(game, chooser(game, model, WEIGHTS), seeds)
    apart = [play_alone(game, chooser(game, model, WEIGHTS), seeds[i : i + 1]) for i in range(9)]
    np.testing.assert_array_equal(together.points, [one.points[0] for one in apart])
    assert together.decisions == sum(one.decisions for one in apart)
    assert len({one.decisions for one in apart}) > 1
    assert {16, 1} < set(lanes)  # fewer as games end


def test_a_player_that_looks_ahead_goes_on_from_what_it_saw():
    """Its trials begin with what the game has shown: the network of the first move sees nothing else, later ones do."""
    asked = []

    def notes(weights, shown):
        asked.append(shown.shape)
        return judge(weights, shown)

    game, seeds = Climb(), np.arange(4, dtype=np.uint64)
    player = Looking(game, notes, WEIGHTS, RewardConfig(), 0.9, LookAhead(2, 1, 2), 1, HISTORY)
    play_alone(game, player.choose, seeds)
    assert {shape[1:] for shape in asked} == {(1 + HISTORY, *game.spec.observation_shape)}
    again = Looking(game, judge, WEIGHTS, RewardConfig(), 0.9, LookAhead(2, 1, 2), 1, HISTORY)
    states = game.init_batch(seeds)
    first = again.choose(states, 0)
    later = game.step_batch(states, first)
    seen = again._past[0].rows.copy()
    np.testing.assert_array_equal(seen[:, 0], game.observe(states))
    again.choose(later, 1)
    np.testing.assert_array_equal(again._past[0].rows[:, :2], np.stack([game.observe(later), game.observe(states)], 1))
    again.choose(states, 0)  # other games
    np.testing.assert_array_equal(again._past[0].rows[:, 1:], 0)
