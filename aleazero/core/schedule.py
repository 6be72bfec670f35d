"""A number that changes as a run goes on. Schedules count rows, never seconds: a resumed run follows them too."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal


@dataclasses.dataclass(frozen=True)
class Schedule:
    """From `start` to `end` over `rows`, after a linear warm-up from nothing over `warmup_rows`."""

    start: float
    end: float | None = None  # the same as the start if left out
    rows: int = 0  # of the run, warm-up included, after which it is at its end; 0: the length of the run
    shape: Literal["linear", "cosine"] = "linear"
    warmup_rows: int = 0

    def problems(self) -> list[str]:
        """What is wrong with it."""
        found = [
            f"{name} is {getattr(self, name)}; it must not be negative"
            for name in ("rows", "warmup_rows")
            if getattr(self, name) < 0
        ]
        numbers = {"start": self.start, "end": self.end}
        return found + [
            f"{name} is {v}; it must be a finite number that is not negative"
            for name, v in numbers.items()
            if v is not None and not (math.isfinite(v) and v >= 0)
        ]

    def at(self, row: float, total_rows: int) -> float:
        """Its value when `row` rows of a run of `total_rows` are done."""
        if row < self.warmup_rows:
            return self.start * (row + 1) / self.warmup_rows
        if self.end is None:
            return self.start
        span = max((self.rows or total_rows) - self.warmup_rows, 1)
        done = min((row - self.warmup_rows) / span, 1.0)
        if self.shape == "cosine":
            done = (1 - math.cos(math.pi * done)) / 2
        return self.start + (self.end - self.start) * done
