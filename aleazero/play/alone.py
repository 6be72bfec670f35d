"""Games for one player, played to their ends by whoever chooses: how far a policy comes.

Knows the contract of host games and a way to choose; neither networks nor searches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from aleazero.core.game import HostGame
from aleazero.play.ratings import clustered_interval, wilson
from aleazero.play.rewards import LAST_ANTE

Choose = Callable[[Any, int], np.ndarray]
"""`choose(states, move) -> actions [B]`, all legal where a game is not over."""


@dataclasses.dataclass(frozen=True)
class Alone:
    """How games ended."""

    points: np.ndarray  # [N] float64: the game's own
    won: np.ndarray  # [N] bool
    measures: dict[str, np.ndarray]  # [N] by name: of the last positions
    decisions: int

    @property
    def opponent(self) -> str:
        """There is none."""
        return "nobody"

    def details(self) -> dict[str, float]:
        """Numbers that a report may give; means and shares with 95 % intervals, `NAME_low` and `NAME_high`."""
        found = {"decisions": float(self.decisions)}
        if "ante" in self.measures:
            ante = np.minimum(self.measures["ante"], LAST_ANTE)  # a won game ended where it was won
            for name, interval in (
                ("mean_ante", clustered_interval(ante, np.arange(len(ante)))),
                ("ante1_clear", wilson(int((ante > 1).sum()), len(ante))),
            ):
                found |= {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
        return found


def play_alone(game: HostGame, choose: Choose, seeds: np.ndarray) -> Alone:
    """Plays the games of these seeds `[N]` to their ends, or to the game's `max_plies`."""
    states = game.init_batch(seeds)
    points, decisions = np.zeros(len(seeds)), 0
    for move in range(game.spec.max_plies):
        moving = ~game.status(states).terminated
        if not moving.any():
            break
        actions = np.where(moving, choose(states, move), 0)
        states = game.advance(states, actions, moving)
        points += np.where(moving, game.status(states).rewards[:, 0], 0.0)
        decisions += int(moving.sum())
    measures = game.measures(states)
    won = measures.get("won", np.zeros(len(seeds))) > 0
    return Alone(points, won, measures, decisions)
