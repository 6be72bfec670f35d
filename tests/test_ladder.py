"""Elo from games between several players."""

from __future__ import annotations

import numpy as np
import pytest

from aleazero.ladder import fit_elo
from aleazero.play.ratings import expected_score


def test_known_ratings_are_found() -> None:
    ratings = np.array([0.0, 150.0, 90.0, 400.0])
    games = 1_000_000 * (1 - np.eye(4))
    games[0, 3] = games[3, 0] = 0  # those two never met
    scores = games * np.array([[expected_score(a - b) for b in ratings] for a in ratings])
    found = fit_elo(scores, games)
    assert [rung.elo for rung in found] == pytest.approx(ratings, abs=0.01)
    assert found[0].error == 0
    assert all(0 < rung.error < 1 for rung in found[1:])


def test_the_error_is_that_of_so_many_games() -> None:
    few, many = (fit_elo(np.full((2, 2), n / 2), np.array([[0, n], [n, 0]]))[1].error for n in (100, 400))
    assert few == pytest.approx(2 * many, rel=0.01)
    assert few == pytest.approx(400 / np.log(10) * 2 / np.sqrt(101), rel=1e-6)


def test_who_wins_everything_is_not_infinitely_strong() -> None:
    scores = np.array([[0.0, 0.0], [20.0, 0.0]])
    (_, best) = fit_elo(scores, np.array([[0, 20], [20, 0]]))
    assert 400 < best.elo < 800
    assert fit_elo(np.zeros((1, 1)), np.zeros((1, 1)))[0].elo == 0


def test_players_who_met_nobody() -> None:
    games = np.zeros((3, 3))
    games[0, 1] = games[1, 0] = 4
    with pytest.raises(ValueError, match=r"\[2\]"):
        fit_elo(games / 2, games)
