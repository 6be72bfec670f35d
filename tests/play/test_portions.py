"""Portions: who waits is answered as alone, nobody else is computed for, and few sizes are compiled."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.keys import Role, lane_keys
from aleazero.play import portions
from aleazero.play.portions import in_portions, sizes


class Squares:
    """Answers with squares, and remembers how many rows it was asked for each time."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, batch: tuple[Any, Any]) -> dict[str, Any]:
        numbers, keys = batch
        self.asked.append(len(numbers))
        return {"square": numbers**2, "drawn": jax.vmap(jax.random.uniform)(keys)}


def batch_of(total: int) -> tuple[Any, Any]:
    return jnp.arange(total) + 1, lane_keys(0, Role.MATCH, 3, jnp.arange(total))


@pytest.mark.parametrize("total", [1, 7, 64, 200, 1000])
@pytest.mark.parametrize("share", [0.0, 0.04, 0.5, 1.0])
def test_lanes_that_wait_are_answered_as_alone(total: int, share: float) -> None:
    lanes = np.random.default_rng(total).random(total) < share
    lanes[total // 2] = True
    batch, answer = batch_of(total), Squares()
    found = in_portions(answer, batch, jnp.asarray(lanes))
    expected = {"square": np.asarray(batch[0]) ** 2, "drawn": np.asarray(jax.vmap(jax.random.uniform)(batch[1]))}
    for name, values in expected.items():
        assert np.array_equal(found[name], np.where(lanes, values, 0))
    large, small = sizes(total)
    assert set(answer.asked) <= {large, small}
    assert sum(answer.asked) <= 2 * lanes.sum() + small  # a large one is more than half full


def test_few_lanes_are_a_small_portion() -> None:
    answer = Squares()
    in_portions(answer, batch_of(200), jnp.arange(200) < 3)
    assert answer.asked == [portions.SMALL]


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_on_accelerators_sizes_are_shared_out_evenly(devices: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(portions, "lanes_step", lambda: devices)
    assert all(size % devices == 0 and size >= 200 for size in sizes(200))
    assert sizes(100_000)[0] < portions.GPU_LARGE + devices
