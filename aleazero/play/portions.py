"""Answers for the lanes of a batch that wait for one, and for no others.

In a match half of the games wait for the other player, and in the end most are over. A compiled program takes batches
of one size; so the lanes that wait are gathered and answered in portions of two sizes, a large one for many and a small
one for few. Knows programs whose lanes are independent; not what they compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax import Array

from aleazero.core.devices import LEAST_LANES, lanes_step

SMALL = 8
GPU_LARGE, GPU_SMALL = 4096, 256  # an accelerator takes about as long for fewer


def in_portions(answer: Callable[[Any], Any], batch: Any, lanes: Array) -> Any:
    """What `answer` says of the rows of `batch` `[B, ...]` in `lanes` `[B]` bool; zeros for the others. On the host.

    `answer` takes a part of the batch and returns arrays with as many rows. At least one lane must wait.
    """
    total, waiting = lanes.shape[0], np.flatnonzero(np.asarray(lanes))
    # Asked for before any is read, so that devices need not wait for the host.
    told = [(rows, answer(_take(batch, padded))) for rows, padded in _portions(waiting, sizes(total))]

    def join(*parts: Any) -> np.ndarray:
        whole = np.zeros((total, *parts[0].shape[1:]), parts[0].dtype)
        for (rows, _), part in zip(told, parts, strict=True):
            whole[rows] = np.asarray(part)[: len(rows)]
        return whole

    return jax.tree.map(join, *(part for _, part in told))


def sizes(total: int) -> tuple[int, int]:
    """Of portions of a batch of `total` lanes, the large one first."""
    on_cpu = jax.default_backend() == "cpu"
    large, small = (LEAST_LANES * len(jax.local_devices()), SMALL) if on_cpu else (GPU_LARGE, GPU_SMALL)
    step = lanes_step()
    return -(-min(large, total) // step) * step, -(-min(small, total) // step) * step


def _portions(rows: np.ndarray, of: tuple[int, int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows in portions, and the same with the last one repeated, so that each has one of the sizes."""
    large, small = of
    while len(rows):
        size = large if 2 * len(rows) > large else small
        now, rows = rows[:size], rows[size:]
        yield now, np.pad(now, (0, size - len(now)), mode="edge")


@jax.jit
def _take(batch: Any, rows: Array) -> Any:
    return jax.tree.map(lambda x: x[rows], batch)
