"""Fragments on Climb: beside the plain host rollout, and what they must not depend on."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from aleazero.play.alone import play_alone
from aleazero.play.fragments import FragmentPlay
from aleazero.play.host_rollout import HostRollout
from aleazero.play.rewards import RewardConfig, pay
from tests.games.conftest import quick_compile  # noqa: F401
from tests.games.tiny import Climb
from tests.play.test_host_rollout import WEIGHTS, Bounded, judge

pytestmark = pytest.mark.usefixtures("quick_compile")

LANES, MOVES = 6, 30


class Measured(Climb):
    """Climb with numbers that rewards can go by."""

    def measures(self, states):
        height = states.height.astype(float)
        return {"ante": 1 + height // 3, "won": (height >= 10) * 1.0, "progress": height / 20, "money": height / 10}


def make(game=None, moves=MOVES, groups=2, **rewards) -> FragmentPlay:
    return FragmentPlay(game or Climb(), judge, LANES, moves, RewardConfig(**rewards), 0.9, groups)


def copied(fragment):
    return {f.name: np.array(getattr(fragment, f.name)) for f in dataclasses.fields(fragment) if f.name != "past"}


@pytest.mark.parametrize("game", [Climb(), Bounded()], ids=["ended", "truncated"])
def test_a_fragment_is_what_the_plain_rollout_plays(game):
    rollout = HostRollout(game, judge, MOVES)
    _, plain = rollout.run(WEIGHTS, rollout.start(3, LANES), seed=3, first=0, temperature=1.0)
    play = make(game)
    fragment, played = play.run(WEIGHTS, play.start(3), seed=3, first=0)
    for name in ("observation", "legal", "action", "log_prob", "value", "ended", "truncated"):
        np.testing.assert_allclose(getattr(fragment, name), getattr(plain, name), rtol=1e-6, err_msg=name)
    np.testing.assert_array_equal(fragment.reward, plain.rewards[..., 0])
    assert (played.ended, played.truncated) == (plain.ended.sum(), plain.truncated.sum())
    assert (played.truncated > 0) == isinstance(game, Bounded)
    assert played.rows == LANES * MOVES


def test_where_a_game_was_stopped_is_valued_before_the_next_begins():
    play = make(Bounded())
    fragment, _ = play.run(WEIGHTS, play.start(3), seed=3, first=0)
    t, b = np.argwhere(fragment.truncated)[0]
    height, turns = fragment.observation[t, b] * 12
    assert turns == 6  # the seventh move is the last
    moved = fragment.after[t, b] / WEIGHTS[1] + 7 / 12  # the value is half of height - turns, in twelfths
    assert moved * 12 > height or moved == 0  # higher by a step or a jump, or fallen
    assert (fragment.after[~fragment.truncated] == 0).all()
    np.testing.assert_array_equal(fragment.observation[t + 1, b], [0, 0])


def test_neither_groups_nor_calls_change_what_is_played():
    whole, split, calls = make(groups=1), make(groups=3), make(moves=10)
    one = copied(whole.run(WEIGHTS, whole.start(5), seed=5, first=0)[0])
    other = copied(split.run(WEIGHTS, split.start(5), seed=5, first=0)[0])
    games, parts = calls.start(5), []
    for first in (0, 10, 20):
        fragment, _ = calls.run(WEIGHTS, games, seed=5, first=first)
        parts.append(copied(fragment))
        if first < 20:  # what follows the last move is the value that the next call begins with
            later = first + 10
            np.testing.assert_allclose(parts[-1]["last"], one["value"][later], rtol=1e-6)
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)
        if name != "last":
            np.testing.assert_array_equal(array, np.concatenate([p[name] for p in parts]), err_msg=name)


def test_buffers_are_made_once():
    play = make()
    games = play.start(1)
    first, _ = play.run(WEIGHTS, games, seed=1, first=0)
    second, _ = play.run(WEIGHTS, games, seed=1, first=MOVES)
    assert first.observation is second.observation


def test_terms_add_up_and_potentials_cancel():
    """Over a whole game, discounted, a potential pays minus its first value: which policy is best stays so."""
    play = make(Measured(), ante_growth=0.5, win=3.0, progress=2.0, money=1.0)
    fragment, played = play.run(WEIGHTS, play.start(3), seed=3, first=0)
    plain = make(Measured())
    bare, _ = plain.run(WEIGHTS, plain.start(3), seed=3, first=0)
    assert float(fragment.reward.sum()) / fragment.reward.size == pytest.approx(sum(played.terms.values()), abs=1e-6)
    ends = np.flatnonzero(fragment.ended[:, 0])
    assert len(ends) > 1
    game = range(ends[0] + 1, ends[1] + 1)
    shaped = sum(0.9**i * float(fragment.reward[t, 0]) for i, t in enumerate(game))
    height = fragment.observation[:, 0, 0] * 12
    expected = 0.0
    for i, t in enumerate(game):
        points = float(bare.reward[t, 0])
        expected += 0.9**i * (points + 0.5 * points * (height[t] // 3) + 3.0 * (points > 0))
    assert shaped == pytest.approx(expected, abs=1e-4)  # both potentials are 0 on the ground, where a game begins


def test_the_horizon_ends_games_as_won():
    play = make(Measured(), win=1.0)
    fragment, played = play.run(WEIGHTS, play.start(3), seed=3, first=0, horizon=1)
    assert played.won > 0
    heights = fragment.observation[..., 0] * 12
    assert heights.max() < 3  # ante 2 begins at three
    assert played.horizon == 1
    assert played.antes[1] == played.ended + played.truncated
    assert played.terms["win"] * fragment.reward.size == pytest.approx(played.won)


def test_rewards_of_one_move():
    before = {"ante": np.array([1.0, 2.0]), "progress": np.array([0.2, 0.5])}
    after = {"won": np.array([0.0, 1.0]), "progress": np.array([0.6, 0.9])}
    config = RewardConfig(points=2, ante_growth=0.5, win=5, progress=1)
    terms = pay(config, 0.9, np.array([0.0, 1.0]), before, after, np.array([False, True]))
    assert terms["points"].tolist() == [0, 2]
    assert terms["ante_growth"].tolist() == [0, 0.5]
    assert terms["win"].tolist() == [0, 5]
    np.testing.assert_allclose(terms["progress"], [0.9 * 0.6 - 0.2, -0.5], rtol=1e-6)


def test_terms_that_a_game_does_not_measure_are_refused():
    said = RewardConfig(win=1, progress=1, first_ante=2).problems_with({}, "climb")
    assert len(said) == 3
    assert "rewards.win is 1, but climb does not measure 'won'; leave it 0" in said
    assert RewardConfig(first_ante=9, grow_at=0).problems() == [
        "first_ante is 9; it must be in 1..8",
        "grow_at is 0; it must be in (0, 1]",
    ]


def test_games_alone_end_with_their_points():
    seeds = np.arange(20, dtype=np.uint64)
    result = play_alone(Measured(), lambda states, move: np.zeros(20, int), seeds)
    assert result.points.tolist() == [1.0] * 20  # ten steps up
    assert result.won.all()
    assert result.decisions == 200
    details = result.details()
    assert (details["decisions"], details["mean_ante"], details["ante1_clear"]) == (200, 4, 1)
    assert details["mean_ante_low"] == details["mean_ante_high"] == 4  # all the same
    assert 0.8 < details["ante1_clear_low"] < details["ante1_clear_high"] == 1
