"""Looking ahead on a game where the future decides everything."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.errors import ConfigError
from aleazero.core.game import GameSpec, HostGame, HostStatus
from aleazero.core.records import Prediction
from aleazero.play import lookahead
from aleazero.play.alone import play_alone
from aleazero.play.asked import logits_of
from aleazero.play.lookahead import LookAhead, Looking
from aleazero.play.rewards import RewardConfig
from tests.games.conftest import quick_compile  # noqa: F401
from tests.games.tiny import Climb

pytestmark = pytest.mark.usefixtures("quick_compile")


@dataclasses.dataclass(frozen=True)
class Bets:
    stream: np.ndarray  # [B] uint64
    paid: np.ndarray  # [B] float32
    over: np.ndarray  # [B] bool


class Casino(HostGame):
    """One bet: the die of the stream, even or odd, wins a point for action 1 or 2; action 0 takes 0.8 for sure."""

    spec = GameSpec("casino", 1, 1, 3, 3, (1,), (), 5, "sampled")

    def init_batch(self, seeds):
        return Bets(seeds.copy(), np.zeros(len(seeds), np.float32), np.zeros(len(seeds), bool))

    def step_batch(self, states, actions, lanes=None):
        lanes = np.ones(len(actions), bool) if lanes is None else lanes
        odd = (states.stream % np.uint64(2)).astype(int)
        paid = np.where(actions == 0, 0.8, (actions - 1 == odd) * 1.0).astype(np.float32)
        return Bets(states.stream, np.where(lanes, paid, states.paid), states.over | lanes)

    def legal_actions(self, states):
        return np.repeat(~states.over[:, None], 3, 1)

    def observe(self, states):
        return np.zeros((len(states.stream), 1), np.float32)

    def status(self, states):
        return HostStatus(np.zeros(len(states.over), int), states.over, states.paid[:, None], states.paid[:, None])

    def reseed(self, states, seeds):
        return dataclasses.replace(states, stream=seeds.copy())

    def snapshot(self, states):
        return [a.tobytes() + b.tobytes() + c.tobytes() for a, b, c in zip(*vars(states).values(), strict=True)]

    def restore(self, rows):
        layout = np.dtype([("stream", np.uint64), ("paid", np.float32), ("over", bool)])
        table = np.frombuffer(b"".join(rows), layout)
        return Bets(*(table[name].copy() for name in layout.names))


def knows_nothing(weights, observation):
    count = observation.shape[0]
    return Prediction(jnp.zeros((count, weights)), jnp.zeros(count))


def looking(game, actions, **settings) -> Looking:
    return Looking(game, lambda w, o: knows_nothing(actions, o), (), RewardConfig(), 1.0, LookAhead(**settings))


def test_a_known_future_is_not_used():
    """One who saw the real dice would win every bet; what is chosen does not depend on them at all."""
    game = Casino()
    even, odd = (game.init_batch(np.full(200, 10 + k, np.uint64)) for k in (0, 1))
    player = looking(game, 3, samples=32)
    first, second = player.choose(even, 0), player.choose(odd, 0)
    np.testing.assert_array_equal(first, second)
    assert (first == 0).mean() > 0.9  # the sure thing: half of the futures win a bet


def test_looking_ahead_beats_a_policy_that_knows_nothing():
    seeds = np.arange(64, dtype=np.uint64)
    player = looking(Climb(), 2, candidates=2, samples=16, depth=12)
    rng = np.random.default_rng(0)

    def at_random(states, move):
        return np.where(Climb().legal_actions(states), rng.random((64, 2)), -1).argmax(1)

    assert play_alone(Climb(), at_random, seeds).points.mean() < 0.95
    assert play_alone(Climb(), player.choose, seeds).points.tolist() == [1.0] * 64


def test_luck_in_few_futures_does_not_overrule_the_policy():
    """Both bets are worth the same; the policy prefers the first."""

    def prefers(weights, observation):
        count = observation.shape[0]
        return Prediction(jnp.tile(jnp.array([[-20.0, 4.0, 0.0]]), (count, 1)), jnp.zeros(count))

    player = Looking(Casino(), prefers, (), RewardConfig(), 1.0, LookAhead(samples=16))
    chosen = player.choose(Casino().init_batch(np.arange(200, dtype=np.uint64)), 0)
    assert (chosen == 1).mean() > 0.95


def test_nobody_looks_ahead_at_the_only_action():
    class OneWay(Casino):
        def legal_actions(self, states):
            return ~states.over[:, None] & (np.arange(3) == 2)[None]

        def reseed(self, states, seeds):
            raise AssertionError("there is nothing to choose")

    assert looking(OneWay(), 3).choose(OneWay().init_batch(np.arange(4, dtype=np.uint64)), 0).tolist() == [2] * 4


@pytest.mark.parametrize(("prior", "tried"), [(5.3, True), (5.5, False)])
def test_what_no_value_can_lift_is_not_tried(prior: float, tried: bool) -> None:
    """Two candidates of four futures each: values add at most (50 + 4) / 10 to a logit."""
    looked = []

    class Watched(Casino):
        def reseed(self, states, seeds):
            looked.append(len(seeds))
            return super().reseed(states, seeds)

    def sure(weights, observation):
        count = observation.shape[0]
        return Prediction(jnp.tile(jnp.array([[0.0, prior, -50.0]]), (count, 1)), jnp.zeros(count))

    player = Looking(Watched(), sure, (), RewardConfig(), 1.0, LookAhead(candidates=2))
    player.choose(Casino().init_batch(np.arange(3, dtype=np.uint64)), 0)
    assert looked == ([3 * 2 * 4] if tried else [])


def test_trials_that_are_still_alike_are_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until chance has spoken all futures of a candidate look the same; what is chosen does not depend on it."""
    asked = []

    def counted(evaluate, weights, shown):
        asked.append(len(shown))
        return logits_of(evaluate, weights, shown)

    monkeypatch.setattr(lookahead, "logits_of", counted)
    states = Climb().step_batch(Climb().init_batch(np.arange(8, dtype=np.uint64)), np.zeros(8, int))
    chosen = looking(Climb(), 2, candidates=2, samples=16, depth=12).choose(states, 0)
    few = asked[1:]
    monkeypatch.setattr(lookahead, "distinct", lambda rows: (rows, np.arange(len(rows))))
    again = looking(Climb(), 2, candidates=2, samples=16, depth=12).choose(states, 0)
    np.testing.assert_array_equal(chosen, again)
    many = asked[2 + len(few) :]
    assert len(few) == len(many)
    assert 2 * sum(few) < sum(many)


def test_games_that_are_over_are_left_alone():
    game = Casino()
    states = game.step_batch(
        game.init_batch(np.arange(3, dtype=np.uint64)), np.zeros(3, int), np.array([True, False, True])
    )
    assert looking(game, 3).choose(states, 0)[[0, 2]].tolist() == [0, 0]
    assert looking(game, 3).choose(game.step_batch(states, np.zeros(3, int)), 0).tolist() == [0, 0, 0]


def test_numbers_that_mean_nothing_are_refused():
    with pytest.raises(ConfigError, match=r"candidates is 0.*\n.*depth is -1"):
        LookAhead(candidates=0, depth=-1)
