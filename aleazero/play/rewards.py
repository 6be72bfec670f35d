"""What a decision is paid: the game's own points, and terms that a run may add to them.

Terms go by the numbers a game describes its positions with (`HostGame.measures`). Shaping is by potentials alone, so
that it changes how fast a policy is found and not which one is best (Ng, Harada and Russell 1999): a potential is
zero where a game is over. Knows the names of measures; no rules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

Measures = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class RewardConfig:
    """What each term weighs. All but `points` are for games that measure what they need: Balatro."""

    points: float = 1.0  # the game's own
    ante_growth: float = 0.0  # a blind beaten in ante a pays this much more for every ante before it
    win: float = 0.0  # for a won game, or the last ante of the horizon
    progress: float = 0.0  # potential: the share of the blind's target that is scored
    money: float = 0.0  # potential: dollars over 25, at most 1
    # the horizon: a game ends, won, when this ante is beaten. It grows by one whenever enough games reach it.
    first_ante: int = 8
    grow_at: float = 0.5  # share of the games that reach the horizon, from which on it grows

    def problems(self) -> list[str]:
        """What is wrong with it."""
        found = [
            f"{name} is {getattr(self, name)}; it must be a finite number"
            for name in ("points", "ante_growth", "win", "progress", "money")
            if not np.isfinite(getattr(self, name))
        ]
        if not 1 <= self.first_ante <= LAST_ANTE:
            found.append(f"first_ante is {self.first_ante}; it must be in 1..{LAST_ANTE}")
        if not 0 < self.grow_at <= 1:
            found.append(f"grow_at is {self.grow_at}; it must be in (0, 1]")
        return found

    def problems_with(self, measured: Measures, name: str) -> list[str]:
        """What a game cannot pay for."""
        needs = {"ante_growth": "ante", "win": "won", "progress": "progress", "money": "money"}
        found = [
            f"rewards.{term} is {getattr(self, term)}, but {name} does not measure {measure!r}; leave it 0"
            for term, measure in needs.items()
            if getattr(self, term) and measure not in measured
        ]
        if self.first_ante < LAST_ANTE and "ante" not in measured:
            found.append(f"rewards.first_ante is {self.first_ante}, but {name} has no antes; leave it {LAST_ANTE}")
        return found


LAST_ANTE = 8


def pay(
    config: RewardConfig, gamma: float, points: np.ndarray, before: Measures, after: Measures, over: np.ndarray
) -> dict[str, np.ndarray]:
    """What a move of every lane pays, `[B]` by term: `points` is what the game paid, `over` where it has ended."""
    terms = {"points": config.points * points}
    if config.ante_growth:
        terms["ante_growth"] = config.ante_growth * points * (before["ante"] - 1)
    if config.win:
        terms["win"] = config.win * (after["won"] * over)
    for name in ("progress", "money"):
        weight = getattr(config, name)
        if weight:
            terms[name] = weight * (gamma * np.where(over, 0.0, after[name]) - before[name])
    return {name: term.astype(np.float32) for name, term in terms.items()}
