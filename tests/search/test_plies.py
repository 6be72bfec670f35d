"""1-ply and 2-ply against expectations written out, roll by roll; the shortlist against the ranking of all plays."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.opinions import expected_value, other_side
from aleazero.games.backgammon.boards import afterstates, rolled
from aleazero.games.backgammon.game import ROLLS, Backgammon
from aleazero.search.expectimax import Expectimax, rank_turns
from aleazero.search.plies import Plies
from tests.search.test_expectimax import ANY, opine_by

GAME = Backgammon(chunk=16)
SEARCH = Expectimax(GAME, opine_by(6, GAME))
CHANCES = [2 / 36] * 15 + [1 / 36] * 6


def board(mine: dict[int, int], theirs: dict[int, int]) -> np.ndarray:
    """Checkers by own point; 25 is the bar."""
    sides = np.zeros((2, 25), int)
    for side, checkers in ((0, theirs), (1, mine)):
        for point, number in checkers.items():
            sides[side, point - 1] = number
    return sides


BOARDS = np.stack(
    [
        board({24: 2, 13: 5, 8: 3, 6: 5}, {24: 2, 13: 5, 8: 3, 6: 5}),
        board({20: 1, 7: 2, 5: 2, 3: 1}, {21: 1, 6: 3, 4: 2, 2: 1}),
        board({2: 1, 1: 2}, {3: 1, 1: 1}),  # somebody is about to win
    ]
)
STATES = rolled(BOARDS, np.array([[5, 3], [6, 1], [2, 1]]), np.array([0, 1, 0]))


CANDIDATES = 3  # as many as lanes: then all programs are for batches of three


@functools.cache
def compiled(ply: int, within: float = 9.0) -> Any:
    return jax.jit(Plies(SEARCH, ply, CANDIDATES, within).best)


@functools.cache
def opinions(ply: int) -> Any:
    return jax.jit(functools.partial(Plies(SEARCH, ply).opinion, ply=ply))


BEST = jax.jit(SEARCH.best)
ROLL = jax.jit(jax.vmap(GAME.apply_chance, (0, None)))


def of_lane(tree: Any, lane: int) -> Any:
    return jax.tree.map(lambda x: x[lane : lane + 1], tree)


def by_hand(after: Any, ply: int) -> np.ndarray:
    """`[n, 6]`: the opinion at some ply, one roll after the other."""
    seen = np.asarray(opinions(0)(ANY, after))
    if ply == 0:
        return seen
    total = np.zeros_like(seen)
    for roll, chance in enumerate(CHANCES):
        answer = BEST(ANY, ROLL(after, jnp.int32(roll)))
        total += chance * np.asarray(other_side(GAME.spec, jnp.asarray(by_hand(answer.afterstates, ply - 1))))
    return np.where(np.asarray(after.terminated)[:, None], seen, total)


@pytest.mark.slow
def test_the_rolls_are_the_later_outcomes() -> None:
    after = of_lane(BEST(ANY, STATES).afterstates, 0)
    np.testing.assert_allclose(GAME.chance_probs(jax.tree.map(lambda x: x[0], after))[: len(ROLLS)], CHANCES, rtol=1e-6)
    assert GAME.num_later_outcomes == len(ROLLS) == 21


@pytest.mark.slow
@pytest.mark.parametrize("ply", [1, 2])
def test_an_opinion_is_the_mean_over_rolls_of_what_the_best_answer_promises(ply: int) -> None:
    after = BEST(ANY, STATES).afterstates
    found = np.asarray(opinions(ply)(ANY, after))
    np.testing.assert_allclose(found, by_hand(after, ply), atol=2e-6)
    assert np.abs(found - np.asarray(opinions(ply - 1)(ANY, after))).max() > 0.01  # a ply more says something else


def test_a_finished_game_is_known() -> None:
    won = afterstates(np.stack([board({}, {20: 2, 6: 13}), BOARDS[0], BOARDS[1]]), np.zeros(3, int))
    assert np.asarray(opinions(1)(ANY, won))[0].tolist() == [0, 0, 1, 0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 16])
def test_the_shortlist_is_the_head_of_the_ranking(chunk: int) -> None:
    game = Backgammon(chunk)
    search = Expectimax(game, opine_by(6, GAME))
    turns, score = jax.jit(Plies(search, 1, 6).shortlist)(ANY, STATES)
    for lane in range(3):
        ranked = rank_turns(SEARCH, ANY, of_lane(STATES, lane))
        count = min(6, len(ranked.value))
        np.testing.assert_array_equal(score[lane, :count], ranked.value[:count])
        np.testing.assert_array_equal(turns.afterstates.mine[lane, :count], ranked.afterstates.mine[:count])
        np.testing.assert_array_equal(turns.afterstates.theirs[lane, :count], ranked.afterstates.theirs[:count])
        assert (score[lane, count:] == -4).all()
    assert len(rank_turns(SEARCH, ANY, of_lane(STATES, 2)).value) < 6  # one has fewer plays than places


@pytest.mark.slow
def test_the_best_candidate_is_played_and_a_lot_draws_any_play() -> None:
    lots = jnp.array([0, 0, 77], jnp.uint32)
    found = compiled(1)(ANY, STATES, lots)
    other = 0
    for lane in range(2):
        ranked = rank_turns(SEARCH, ANY, of_lane(STATES, lane))
        opinion = by_hand(jax.tree.map(lambda x: jnp.asarray(x[:CANDIDATES]), ranked.afterstates), 1)
        values = np.asarray(expected_value(GAME.spec, jnp.asarray(opinion)))
        best = int(values.argmax())
        other += best != 0
        np.testing.assert_array_equal(found.afterstates.mine[lane], ranked.afterstates.mine[best])
        np.testing.assert_allclose(found.value[lane], values[best], atol=2e-6)
        np.testing.assert_allclose(found.opinion[lane], opinion[best], atol=2e-6)
    assert other  # somewhere the first at 0-ply is not the best
    by_lot = jax.jit(SEARCH.best)(ANY, STATES, lots)
    np.testing.assert_array_equal(found.afterstates.mine[2], by_lot.afterstates.mine[2])


@pytest.mark.slow
def test_plays_that_are_too_far_behind_are_not_looked_at() -> None:
    nearest, plain = compiled(1, 0.0)(ANY, STATES), BEST(ANY, STATES)
    np.testing.assert_array_equal(nearest.afterstates.mine, plain.afterstates.mine)
    assert (np.asarray(nearest.value) != np.asarray(plain.value)).any()


def test_at_0_ply_it_is_the_search_itself() -> None:
    found, plain = compiled(0)(ANY, STATES), BEST(ANY, STATES)
    jax.tree.map(np.testing.assert_array_equal, found, plain)
