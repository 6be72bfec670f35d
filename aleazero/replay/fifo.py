"""The replay of learners that use what was just played, once: it holds the newest fragment until it is taken.

What a run asks of a `Replay`, so that one loop serves both; nothing is kept between iterations, so a checkpoint keeps
nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aleazero.core.records import Fragment


class Fifo:
    """One place; what is there must be taken before the next comes."""

    slabs = window_slabs = 1

    def __init__(self, slab_rows: int) -> None:
        self.slab_rows = slab_rows
        self.num_slabs = 0  # added so far
        self.rows_before = 0  # played before the first of them, in a run that began anew from weights
        self.sources: dict[int, list[int]] = {}
        self.ring: dict[str, Any] = {}  # nothing that a checkpoint would keep
        self._waiting: Fragment | None = None

    def add(self, fragment: Fragment, source: int = 0) -> None:
        """Puts a fragment there."""
        assert self._waiting is None, "the fragment before was not taken"
        self._waiting = fragment
        self.num_slabs += 1

    def take(self) -> Fragment | None:
        """The fragment that waits, if one does."""
        waiting, self._waiting = self._waiting, None
        return waiting

    def count_ready(self) -> int:
        """Rows that wait."""
        return self.slab_rows if self._waiting is not None else 0

    def held(self) -> int:
        """The same: what there is to report of it."""
        return self.count_ready()

    @property
    def rows_held(self) -> int:
        """The same."""
        return self.count_ready()

    @property
    def rows_played(self) -> int:
        """Rows added so far."""
        return self.num_slabs * self.slab_rows

    def restore(self, ring: Mapping[str, Any], num_slabs: int, sources: Mapping[int, list[int]]) -> None:
        """Goes on counting."""
        self.num_slabs = num_slabs
