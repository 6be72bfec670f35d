"""How lucky the players of a match were, so that it can be taken off the result.

The luck of a roll is what it is worth, by some judge, less the mean over all rolls that could have come. Its
expectation is zero whatever the judge says, so a result less its luck is as true as the result, and far less noisy if
the judge knows the game. How much of the luck to take off is fitted: all of it between players as good as the judge,
little where it misjudges how they go on.
Knows what chance did in a match; neither games nor judges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from aleazero.core.game import Game
from aleazero.play.match import MatchResult

Judge = Callable[[Any], np.ndarray]
"""`judge(states [n])` -> `[n, C]`: seat 0's expected points after each outcome of chance; anything where impossible."""

BATCH = 4096  # states judged at once


def luck(game: Game, result: MatchResult, judge: Judge) -> np.ndarray:
    """`[P, 2]`: the points that chance brought the player in each game of a match that was recorded."""
    rolls = result.rolls
    if rolls is None:
        raise ValueError("the match was played without record=True")
    total = np.zeros(result.points.size)
    chances_of = jax.jit(jax.vmap(game.chance_probs))
    unpack = jax.jit(jax.vmap(game.unpack))
    size = min(BATCH, 1 << max(len(rolls.game) - 1, 0).bit_length())  # one shape: compiled once
    for first in range(0, len(rolls.game), size):
        rows = np.minimum(np.arange(first, first + size), len(rolls.game) - 1)
        real = np.arange(first, first + size) < len(rolls.game)
        states = unpack(rolls.states[rows])
        chances = np.asarray(chances_of(states), np.float64)
        values = np.where(chances > 0, judge(states), 0.0)
        came = np.take_along_axis(values, rolls.outcome[rows][:, None], 1)[:, 0]
        np.add.at(total, rolls.game[rows][real], (came - (values * chances).sum(-1))[real])
    seat = np.tile([1.0, -1.0], len(result.points))  # the player's, in the columns
    adjusted: np.ndarray = (seat * total).reshape(-1, 2)
    return adjusted


def take_off(points: np.ndarray, luck: np.ndarray) -> tuple[np.ndarray, float]:
    """Points `[P, 2]` less their luck, as much of it as makes pairs vary least; and how much that is."""
    pairs, lucky = points.mean(-1), luck.mean(-1)
    known = ~np.isnan(pairs)
    share = 0.0
    if known.sum() > 2 and np.ptp(lucky[known]) > 0:
        spread = np.cov(pairs[known], lucky[known])
        share = float(spread[0, 1] / spread[1, 1])
    return points - share * luck, share
