"""Padding changes nothing of what a network says, and keeps it from being compiled for every size."""

from __future__ import annotations

import types

import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.play import asked
from aleazero.play.asked import distinct, logits_of, most_rows, values_of


def test_answers_are_those_of_the_rows_alone() -> None:
    sizes = []

    def evaluate(weights, observation):
        sizes.append(len(observation))  # when it is compiled
        return types.SimpleNamespace(logits=observation @ weights, value=jnp.sum(observation, -1))

    weights = np.random.default_rng(0).random((3, 4), np.float32)
    for count in (1, 5, 6, 8, 7):
        rows = np.random.default_rng(count).random((count, 3), np.float32)
        np.testing.assert_allclose(logits_of(evaluate, weights, rows), rows @ weights, rtol=1e-5)
        np.testing.assert_allclose(values_of(evaluate, weights, rows), rows.sum(-1), rtol=1e-5)
    assert sizes == [1, 1, 8, 8]


def test_many_rows_are_asked_about_in_pieces_of_one_size() -> None:
    sizes = []

    def evaluate(weights, observation):
        sizes.append(len(observation))
        return types.SimpleNamespace(logits=observation * weights, value=jnp.sum(observation, -1))

    most = most_rows()
    rows = np.arange(2 * (2 * most + 9), dtype=np.float32).reshape(-1, 2)
    np.testing.assert_array_equal(logits_of(evaluate, np.float32(2), rows), 2 * rows)
    np.testing.assert_array_equal(values_of(evaluate, np.float32(2), rows), rows.sum(-1))
    assert sizes == [most, 16, most, 16]


@pytest.mark.parametrize(
    ("rows", "shares", "size"), [(1, 1, 1), (5, 1, 8), (1, 2, 2), (5, 2, 8), (9, 3, 12), (64, 2, 64)]
)
def test_every_share_is_a_power_of_two(rows: int, shares: int, size: int) -> None:
    assert len(asked._padded(np.ones((rows, 2)), shares)) == size


def test_rows_that_stand_before_are_found_again() -> None:
    rows = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [3.0, 0.0], [0.0, 0.0]], np.float32)
    first, where = distinct(rows)
    assert first.tolist() == [[1.0, 2.0], [0.0, 0.0], [3.0, 0.0]]
    np.testing.assert_array_equal(first[where], rows)
