"""A clock for two: what is left to either seat, and since when the one to play has been thinking.

Times are seconds of the server's own clock, given by the caller: the page only shows them. A clock starts with the
first turn that is ended. Knows seats; nothing of games.
"""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Clock:
    """Stands still where `since` is None."""

    seconds: float  # of either seat at the start
    increment: float  # added for every turn
    left: tuple[float, float]  # when the turn began
    since: float | None = None  # when whoever is to play began to think

    @staticmethod
    def of(seconds: float, increment: float) -> Clock:
        """A fresh one."""
        return Clock(seconds, increment, (seconds, seconds))

    @staticmethod
    def from_json(given: dict[str, Any]) -> Clock:
        """The clock of a record; KeyError, TypeError or ValueError where there is none."""
        left = (float(given["left"][0]), float(given["left"][1]))
        since = None if given["since"] is None else float(given["since"])
        return Clock(float(given["seconds"]), float(given["increment"]), left, since)

    def remaining(self, seat: int, now: float) -> tuple[float, float]:
        """What is left to both, with `seat` to play."""
        left = list(self.left)
        if self.since is not None:
            left[seat] = max(left[seat] - max(now - self.since, 0.0), 0.0)
        return left[0], left[1]

    def has_fallen(self, seat: int, now: float) -> bool:
        """Whether the time of the seat to play is up."""
        return self.since is not None and self.remaining(seat, now)[seat] <= 0.0

    def stopped(self, seat: int, now: float) -> Clock:
        """As it stands, with `seat` to play."""
        return dataclasses.replace(self, left=self.remaining(seat, now), since=None)

    def pressed(self, seat: int, now: float, first: bool) -> Clock:
        """After a turn of `seat`; the first one costs nothing and brings nothing. The other's time begins later."""
        left = list(self.remaining(seat, now))
        left[seat] += 0.0 if first else self.increment
        return dataclasses.replace(self, left=(left[0], left[1]), since=None)

    def started(self, now: float) -> Clock:
        """Runs for whoever is to play, if it did not before."""
        return self if self.since is not None else dataclasses.replace(self, since=now)
