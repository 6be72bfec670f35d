"""What a match says in a report: with the luck taken off where it was judged."""

from __future__ import annotations

import numpy as np
import pytest

from aleazero.play.match import MatchResult
from aleazero.runtimes.digest import match_report

WHERE = {"step": 7, "rows": 100, "seconds": 1.0}


def match(skill: float, luck: np.ndarray, judged: np.ndarray | None) -> MatchResult:
    """A match in which every game brings a little skill and its luck."""
    points = skill + luck
    return MatchResult("self", "other", points, np.full(points.shape, 9), luck=judged)


def test_luck_that_was_judged_is_taken_off_the_points_and_not_off_the_score() -> None:
    luck = np.random.default_rng(3).normal(size=(50, 2))
    plain, adjusted = (match_report(WHERE, "self", match(0.25, luck, judged)) for judged in (None, luck))
    assert plain is not None
    assert adjusted is not None
    assert adjusted.points_per_game == pytest.approx(0.25)
    assert adjusted.points_high - adjusted.points_low < 0.01
    assert plain.points_per_game == pytest.approx(0.25 + luck.mean())
    assert plain.points_high - plain.points_low > 0.2
    assert (plain.luck_off, adjusted.luck_off) == (False, True)
    assert (plain.score, plain.games) == (adjusted.score, adjusted.games)
