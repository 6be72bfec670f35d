"""The ports between roles: what each asks of the others, whatever carries it (memory, Redis, Ray)."""

from __future__ import annotations

from typing import Protocol

from aleazero.core.records import Rows, Trajectory, Weights


class EpisodeSink(Protocol):
    """Takes what an actor played."""

    def add(self, slab: Trajectory) -> None:
        """Accepts T moves of B games."""


class SourcedSink(Protocol):
    """Takes what several sources played; an `EpisodeSink` where there is but one."""

    def add(self, slab: Trajectory, source: int = 0) -> None:
        """Accepts T moves of B games, which go on from the last slab of the same source."""


class SampleSource(Protocol):
    """Gives a learner its rows."""

    @property
    def rows_played(self) -> int:
        """Rows that came in so far."""

    def count_ready(self) -> int:
        """Rows that can be drawn now."""

    def sample(self, number: int, count: int) -> Rows:
        """The batches called `number` to `number + count - 1`, `[count, B, ...]`."""


class WeightStore(Protocol):
    """Versions of the weights; each is immutable once published."""

    def publish(self, version: int, weights: Weights) -> None:
        """Makes a version known; versions increase."""

    def latest(self) -> tuple[int, Weights]:
        """The newest version."""


class StopSignal(Protocol):
    """Says whether the run should come to an end."""

    def stop_requested(self) -> bool:
        """Whether to stop at the next good moment."""


class LocalWeights:
    """The weight store of one process: the arrays stay on the device."""

    def __init__(self) -> None:
        self._latest: tuple[int, Weights] | None = None

    def publish(self, version: int, weights: Weights) -> None:
        """Keeps the newest version only."""
        if self._latest is not None and version < self._latest[0]:
            raise ValueError(f"weights version {version} is older than {self._latest[0]}")
        self._latest = (version, weights)

    def latest(self) -> tuple[int, Weights]:
        """The newest version."""
        if self._latest is None:
            raise LookupError("no weights have been published")
        return self._latest
