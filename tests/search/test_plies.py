"""1-ply and 2-ply against expectations written out, roll by roll; the shortlist against the ranking of all plays.

Compiling is what costs here: what any game shows is shown in TurnDash, which has two rolls.
"""

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
from tests.search.test_expectimax import ANY, Dashes, assert_equal, dashing, opine_by, some

GAME = Backgammon(chunk=16)
SEARCH = Expectimax(GAME, opine_by(6, GAME))
DASH = Expectimax(Dashes(4), opine_by(2, Dashes(4)))
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


CANDIDATES = {SEARCH: 3, DASH: 2}  # in backgammon as many as lanes: then all programs are for batches of three


@functools.cache
def looked_ahead(search: Expectimax, ply: int, within: float = 9.0) -> Any:
    return jax.jit(Plies(search, ply, CANDIDATES[search], within).best)


@functools.cache
def opinions(search: Expectimax, ply: int) -> Any:
    return jax.jit(functools.partial(Plies(search, ply).opinion, ply=ply))


@functools.cache
def best(search: Expectimax) -> Any:
    return jax.jit(search.best)


@functools.cache
def rolls(search: Expectimax) -> Any:
    """Afterstates, rolled by a number, and each one's chance of it."""
    game = search.game
    roll = jax.vmap(lambda state, roll: (game.apply_chance(state, roll), game.chance_probs(state)[roll]), (0, None))
    return jax.jit(roll)


def states_of(search: Expectimax) -> Any:
    return STATES if search is SEARCH else some(dashing(), slice(0, 24))


def of_lane(tree: Any, lane: int) -> Any:
    return jax.tree.map(lambda x: x[lane : lane + 1], tree)


def by_hand(search: Expectimax, after: Any, ply: int) -> np.ndarray:
    """`[n, V]`: the opinion at some ply, one roll after the other."""
    seen = np.asarray(opinions(search, 0)(ANY, after))
    if ply == 0:
        return seen
    total = np.zeros_like(seen)
    for roll in range(search.game.num_later_outcomes):
        states, chance = rolls(search)(after, jnp.int32(roll))
        theirs = by_hand(search, best(search)(ANY, states).afterstates, ply - 1)
        total += np.asarray(chance)[:, None] * np.asarray(other_side(search.game.spec, jnp.asarray(theirs)))
    return np.where(np.asarray(after.terminated)[:, None], seen, total)


@pytest.mark.slow
def test_the_rolls_are_the_later_outcomes() -> None:
    after = best(SEARCH)(ANY, STATES).afterstates
    chances = [rolls(SEARCH)(after, jnp.int32(roll))[1][0] for roll in range(len(ROLLS))]
    np.testing.assert_allclose(chances, CHANCES, rtol=1e-6)
    assert GAME.num_later_outcomes == len(ROLLS) == 21


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "ply"),
    [(SEARCH, 1), (DASH, 2), pytest.param(SEARCH, 2, marks=pytest.mark.long)],
    ids=["backgammon-1", "dash-2", "backgammon-2"],
)
def test_an_opinion_is_the_mean_over_rolls_of_what_the_best_answer_promises(search: Expectimax, ply: int) -> None:
    after = best(search)(ANY, states_of(search)).afterstates
    found = np.asarray(opinions(search, ply)(ANY, after))
    np.testing.assert_allclose(found, by_hand(search, after, ply), atol=2e-6)
    fewer = np.asarray(opinions(search, ply - 1)(ANY, after))
    assert np.abs(found - fewer).max() > 0.01  # a ply more says something else


def test_a_finished_game_is_known() -> None:
    won = afterstates(np.stack([board({}, {20: 2, 6: 13}), BOARDS[0], BOARDS[1]]), np.zeros(3, int))
    assert np.asarray(opinions(SEARCH, 1)(ANY, won))[0].tolist() == [0, 0, 1, 0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, pytest.param(16, marks=pytest.mark.long)])
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
@pytest.mark.parametrize("search", [DASH, pytest.param(SEARCH, marks=pytest.mark.long)], ids=["dash", "backgammon"])
def test_the_best_candidate_is_played_and_a_lot_draws_any_play(search: Expectimax) -> None:
    states, spec = states_of(search), search.game.spec
    lanes, kept = len(states.to_play), CANDIDATES[search]
    lots = np.where(np.arange(lanes) % 3 == 2, 77, 0).astype(np.uint32)
    found = jax.device_get(looked_ahead(search, 1)(ANY, states, lots))
    by_lot = jax.device_get(best(search)(ANY, states, lots))
    ranked = [rank_turns(search, ANY, of_lane(states, lane)) for lane in range(lanes)]
    rows = [np.resize(np.arange(len(turns.value))[:kept], kept) for turns in ranked]
    heads = [some(turns.afterstates, first) for turns, first in zip(ranked, rows, strict=True)]
    candidates = jax.tree.map(lambda *x: np.concatenate(x), *heads)
    opinion = by_hand(search, candidates, 1)
    values = np.asarray(expected_value(spec, jnp.asarray(opinion))).reshape(lanes, kept)
    chosen = values.argmax(-1)
    assert chosen[lots == 0].any()  # somewhere the first at 0-ply is not the best
    for lane in range(lanes):
        if lots[lane]:
            assert_equal(some(found.afterstates, lane), some(by_lot.afterstates, lane))
        else:
            row = lane * kept + chosen[lane]
            assert_equal(some(found.afterstates, lane), some(candidates, row))
            np.testing.assert_allclose(found.value[lane], values[lane, chosen[lane]], atol=2e-6)
            np.testing.assert_allclose(found.opinion[lane], opinion[row], atol=2e-6)


@pytest.mark.slow
def test_plays_that_are_too_far_behind_are_not_looked_at() -> None:
    states = states_of(DASH)
    nearest, plain = looked_ahead(DASH, 1, 0.0)(ANY, states), best(DASH)(ANY, states)
    np.testing.assert_array_equal(nearest.afterstates.tokens, plain.afterstates.tokens)
    assert (np.asarray(nearest.value) != np.asarray(plain.value)).any()


def test_at_0_ply_it_is_the_search_itself() -> None:
    states = states_of(DASH)
    found, plain = looked_ahead(DASH, 0)(ANY, states), best(DASH)(ANY, states)
    jax.tree.map(np.testing.assert_array_equal, found, plain)
