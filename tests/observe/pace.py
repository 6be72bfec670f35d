"""Whether reports are held up: a busy machine may take its time now and then, a service that hangs takes seconds."""

from __future__ import annotations

from collections.abc import Sequence

USUAL_SECONDS = 0.05  # that all but one in a hundred must keep
LONGEST_SECONDS = 0.5  # a process that is not scheduled; whatever hangs in these tests hangs for longer


def assert_not_held_up(seconds: Sequence[float]) -> None:
    ordered = sorted(seconds)
    assert len(ordered) >= 100
    assert ordered[int(0.99 * len(ordered)) - 1] < USUAL_SECONDS
    assert ordered[-1] < LONGEST_SECONDS
