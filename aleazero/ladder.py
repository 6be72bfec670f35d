"""Ratings of several players from the games between them: Elo by maximum likelihood, one player being zero.

The model is Elo's: a score is a win, half a one for a draw, expected by the logistic curve of the difference. Each pair
that met gets one drawn game besides, so that a player who won everything is not infinitely strong. Standard errors take
games for independent. Knows no game and no player.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

_SCALE = math.log(10) / 400
_STEPS = 100


@dataclasses.dataclass(frozen=True)
class Rung:
    """A player's place."""

    elo: float  # above player 0
    error: float  # its standard error; 0 for player 0


def fit_elo(scores: np.ndarray, games: np.ndarray) -> list[Rung]:
    """Ratings from `scores[i, j]`, what player i scored against j in `games[i, j]` games; both `[n, n]`.

    Every player must be reached from player 0 through games.
    """
    count = len(games)
    met = games > 0
    reached = {0}
    while grown := {int(j) for i in reached for j in np.flatnonzero(met[i])} - reached:
        reached |= grown
    if len(reached) < count:
        raise ValueError(f"players {sorted(set(range(count)) - reached)} have met nobody who leads to player 0")
    scores, games = np.where(met, scores + 0.5, 0.0), games + met.astype(float)
    ratings = np.zeros(count)
    information = np.eye(count)
    for _ in range(_STEPS):
        expected = 1 / (1 + 10 ** ((ratings[None] - ratings[:, None]) / 400))
        gradient = _SCALE * (scores - games * expected).sum(1)
        weight = _SCALE**2 * games * expected * (1 - expected)
        information = np.diag(weight.sum(1)) - weight
        step = np.zeros(count)
        if count > 1:
            step[1:] = np.linalg.solve(information[1:, 1:], gradient[1:])
        ratings += np.clip(step, -400, 400)
        if np.abs(step).max() < 1e-9:
            break
    errors = np.zeros(count)
    if count > 1:
        errors[1:] = np.sqrt(np.diag(np.linalg.inv(information[1:, 1:])))
    return [Rung(float(elo), float(error)) for elo, error in zip(ratings, errors, strict=True)]
