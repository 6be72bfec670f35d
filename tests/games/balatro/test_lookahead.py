"""Looking ahead in Balatro is never clairvoyant: what is hidden in a run's record does not change what is chosen.

Futures are planted by hand, not by `reseed`: another seed, other values in every stream that is remembered (the next
shelves, packs, bosses and tags come from them), and another order of the draw pile.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.records import Prediction
from aleazero.games.balatro import actions
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.game import Balatro
from aleazero.games.balatro.layout import P_PLAY, P_SHOP
from aleazero.play.lookahead import LookAhead, Looking
from aleazero.play.rewards import RewardConfig
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")

LANES = 4


class Clairvoyant(Balatro):
    """The same rules, but whoever looks ahead sees what the run will deal."""

    def reseed(self, states: Batch, seeds: np.ndarray) -> Batch:
        return states.copy()


def in_a_blind() -> Batch:
    states = Balatro().init_batch(np.arange(LANES, dtype=np.uint64))
    states.step(np.full(LANES, actions.A_SELECT_BLIND))
    assert (states.states["phase"] == P_PLAY).all()
    return states


def in_a_shop() -> Batch:
    states = in_a_blind()
    states.states["target"], states.states["money"] = 1, 20
    states.step(np.full(LANES, actions.A_PLAY))
    assert (states.states["phase"] == P_SHOP).all()
    return states


def with_another_future(states: Batch) -> Batch:
    """What is seen is the same; what will come is not."""
    rng, twin = np.random.default_rng(1), states.copy()
    for g in twin.states:
        g.seed[:8] = np.frombuffer(b"QQWWEERR", np.int8)
        g.seed_length = 8
        used = g.stream_key != 0
        g.stream_value[used] = rng.random(int(used.sum()))
        count = int(g.deck_count)
        g.draw_pile[:count] = rng.permutation(g.draw_pile[:count])
    game = Balatro()
    np.testing.assert_array_equal(game.observe(twin), game.observe(states))
    np.testing.assert_array_equal(game.legal_actions(twin), game.legal_actions(states))
    return twin


def evaluate(weights: np.ndarray, observation: jnp.ndarray) -> Prediction:
    """Plays and discards of all kinds are tried; any number that is seen changes what a position is worth."""
    logits = 1e-3 * np.random.default_rng(4).normal(size=actions.NUM_ACTIONS).astype(np.float32)
    value = jnp.tanh(observation) @ weights
    return Prediction(jnp.tile(jnp.asarray(logits)[None], (observation.shape[0], 1)), value)


def chosen(game: Balatro, states: Batch) -> np.ndarray:
    weights = np.random.default_rng(3).normal(size=game.spec.observation_shape).astype(np.float32)
    looks = LookAhead(candidates=8, samples=1, depth=2)
    return Looking(game, evaluate, weights, RewardConfig(progress=0.5), 1.0, looks, seed=3).choose(states, 0)


@pytest.mark.parametrize(("place", "action"), [(in_a_blind, actions.A_DISCARD), (in_a_shop, actions.A_REROLL)])
def test_planted_futures_differ(place, action):
    """Or else the test below would prove nothing."""
    game, states = Balatro(), place()
    twin, doing = with_another_future(states), np.full(LANES, action)
    one, other = (game.observe(game.step_batch(each, doing)) for each in (states, twin))
    assert (one != other).any(-1).all()


@pytest.mark.parametrize("place", [in_a_blind, in_a_shop])
def test_a_planted_future_is_not_used(place):
    states = place()
    twin = with_another_future(states)
    np.testing.assert_array_equal(chosen(Balatro(), states), chosen(Balatro(), twin))
    assert (chosen(Clairvoyant(), states) != chosen(Clairvoyant(), twin)).any()  # who could see it would use it
