"""The evaluator: measures published weights in matches. Reads the weight store and touches nothing else.

So how often it runs cannot change what is learned. Knows a way to play a match; not how it is played.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from aleazero.core.records import Weights
from aleazero.play.alone import Alone
from aleazero.play.match import MatchResult
from aleazero.roles.ports import WeightStore


@dataclasses.dataclass(frozen=True)
class EvaluateConfig:
    """When and against whom a run measures itself."""

    every_rows: int = 200_000  # of self-play; 0: only at the end
    games: int = 200  # per match, half of them from each seat
    opponents: tuple[str, ...] = ("random",)  # player strings
    simulations: int | None = None  # per move; None: as many as in self-play
    luck: bool = False  # take luck off the points, by what the run's own network thinks of every roll; for whole turns
    opening_plies: int = 0  # random moves at the start of each pair of games, so that deterministic games differ

    def problems(self) -> list[str]:
        """What is wrong with it."""
        found = [
            f"{name} is {getattr(self, name)}; it must not be negative"
            for name in ("every_rows", "opening_plies")
            if getattr(self, name) < 0
        ]
        if self.games < 2 or self.games % 2:
            found.append(f"games is {self.games}; it must be even and at least 2: every game is played from both seats")
        if self.simulations is not None and self.simulations < 1:
            found.append(f"simulations is {self.simulations}; it must be at least 1")
        return found


class Evaluator:
    """Plays the newest weights against each opponent."""

    def __init__(
        self, play: Callable[[Weights, str], MatchResult | Alone], opponents: tuple[str, ...], weights: WeightStore
    ) -> None:
        self._play, self._opponents, self._weights = play, opponents, weights

    def step(self) -> list[tuple[int, MatchResult | Alone]]:
        """One match per opponent, each with the version that played it."""
        version, weights = self._weights.latest()
        return [(version, self._play(weights, opponent)) for opponent in self._opponents]
