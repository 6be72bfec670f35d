"""When a run is over, and when it saves and measures on the way. Knows the settings and how far a run is, no more."""

from __future__ import annotations

import dataclasses

from aleazero.config import RunConfig


@dataclasses.dataclass(frozen=True)
class Count:
    """How far a run is."""

    rows: int
    games: int  # that are over; 0 where nobody asks
    epoch: int


@dataclasses.dataclass(frozen=True)
class Milestones:
    """What the settings say of a run's way."""

    config: RunConfig

    @property
    def count_games(self) -> bool:
        """Whether anything goes by games that are over: they are counted on the device, and that is waited for."""
        config = self.config
        return bool(config.learn.games_per_epoch or config.total_games or config.checkpoint.every_games)

    def over(self, now: Count) -> bool:
        """Whether enough was played."""
        games = self.config.total_games
        return now.rows >= self.config.total_rows or (games > 0 and now.games >= games)

    def measure(self, before: Count, now: Count) -> bool:
        """Whether a match is due."""
        return _passed(self.config.evaluate.every_rows, before.rows, now.rows) and not self.over(now)

    def save(self, before: Count, now: Count) -> bool:
        """Whether a checkpoint is due; one that is over saves in the end, once it is measured."""
        settings = self.config.checkpoint
        if self.over(now):
            return False
        if settings.every_epochs:
            return _passed(settings.every_epochs, before.epoch, now.epoch)
        if settings.every_games:
            return _passed(settings.every_games, before.games, now.games)
        return _passed(settings.every_rows, before.rows, now.rows)


def _passed(every: int, before: int, now: int) -> bool:
    return every > 0 and now // every > before // every
