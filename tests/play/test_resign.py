"""Games that are given up: followed lane by lane in plain Python, and those that are played on to see who was right."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.records import NOT_RESIGNED, RESIGNED, RIGHT, WRONG
from aleazero.doctor.evaluators import OPINIONATED, hashed
from aleazero.games.connect_four import ConnectFour
from aleazero.play.rollout import GivingUp, Rollout
from aleazero.roles.actor import summarise
from aleazero.search.build import build_search
from tests.games.conftest import quick_compile  # noqa: F401
from tests.play.test_rollout import DIRECT, pace

pytestmark = pytest.mark.usefixtures("quick_compile")
BELOW, MOVES = 0.25, 2


def played(check: float, calls: int = 4, lanes: int = 200):  # type: ignore[no-untyped-def]
    game = ConnectFour()
    evaluate = hashed(game)
    rollout = Rollout(
        game=game,
        search=build_search(game, DIRECT),
        evaluate=evaluate,
        opine=lambda weights, observations: evaluate(weights, observations).value[:, None],
        moves=20,
        random_plies=0,
        giving_up=GivingUp(BELOW, MOVES, check, 1.0),
    )
    numbers = jnp.arange(lanes, dtype=jnp.uint32)
    games, run, slabs = jax.jit(rollout.start)(jnp.uint32(1), numbers), jax.jit(rollout.run), []
    for call in range(calls):
        move = jnp.uint32(20 * call)
        games, slab = run(jnp.asarray(OPINIONATED), games, pace(DIRECT), jnp.uint32(1), move, numbers)
        slabs.append(jax.tree.map(np.asarray, slab))
    return jax.tree.map(lambda *parts: np.concatenate(parts), *slabs)


def follow(slab) -> dict[str, int]:  # type: ignore[no-untyped-def]
    """Every lane again, by hand: what became of its games."""
    counts = {"gone": 0, "right": 0, "wrong": 0, "quiet": 0}
    for lane in range(slab.ended.shape[1]):
        streak, loser = 0, None
        for t in range(len(slab.ended)):
            value = slab.value[t, lane] * (1 if slab.to_play[t, lane] == 0 else -1)
            side = -1 if value <= -BELOW else 1 if value >= BELOW else 0
            streak = 0 if side == 0 else streak + side if streak * side > 0 else side
            said, points = int(slab.resign[t, lane]), slab.points[t, lane]
            if said == RESIGNED:
                assert slab.ended[t, lane]
                assert (abs(streak), points) == (MOVES, np.sign(streak)), "at once, and the one who is behind loses"
                assert loser is None, "a game that is played on is played on"
                counts["gone"] += 1
            elif slab.ended[t, lane]:
                if loser is None:
                    assert said == NOT_RESIGNED
                    counts["quiet"] += 1
                else:
                    lost = points < 0 if loser == 0 else points > 0
                    assert said == (RIGHT if lost else WRONG)
                    counts["right" if lost else "wrong"] += 1
            else:
                assert said == NOT_RESIGNED
                if abs(streak) >= MOVES and loser is None:
                    loser = 0 if streak < 0 else 1
            if slab.ended[t, lane]:
                streak, loser = 0, None
    return counts


def test_games_are_given_up_and_some_are_played_on_to_see() -> None:
    slab = played(check=0.3)
    counts = follow(slab)
    assert min(counts["gone"], counts["right"], counts["wrong"]) > 20
    # Games that are played on last longer, so that fewer of them are over by now.
    checked = counts["right"] + counts["wrong"]
    assert 0.1 < checked / (checked + counts["gone"]) < 0.4
    stats = summarise(slab, jnp.int32(1), jnp.int32(1))
    assert stats.resigns[1:].tolist() == [counts["gone"], counts["right"], counts["wrong"]]
    assert int(stats.ended) == sum(counts.values())


@pytest.mark.parametrize(("check", "none"), [(0.0, ("right", "wrong")), (1.0, ("gone",))])
def test_all_or_none_are_played_on(check: float, none: tuple[str, ...]) -> None:
    counts = follow(played(check, calls=3, lanes=60))
    assert [counts[name] for name in none] == [0] * len(none)
    assert sum(counts.values()) > 60
