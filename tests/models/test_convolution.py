"""Convolutions: they are the library's, so are their gradients, and these are as fast in a loop as outside of one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aleazero.models.convolution import Convolution, convolve

ONE, TWO, THREE = jax.random.split(jax.random.key(0), 3)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_it_is_the_librarys(size: int) -> None:
    x = jax.random.normal(ONE, (3, 6, 5, 4))
    ours, theirs = Convolution(7, size, jnp.float32), nn.Conv(7, (size, size))
    weights = theirs.init(TWO, x)
    jax.tree.map(np.testing.assert_array_equal, ours.init(TWO, x), weights)
    np.testing.assert_array_equal(ours.apply(weights, x), theirs.apply(weights, x))


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("board", [(6, 5), (2, 12), (1, 1)])
def test_its_gradient_is_the_librarys(size: int, board: tuple[int, int]) -> None:
    x, kernel = jax.random.normal(ONE, (3, *board, 4)), jax.random.normal(TWO, (size, size, 4, 7))
    slope = jax.random.normal(THREE, (3, *board, 7))
    ours = jax.vjp(convolve, x, kernel)[1](slope)
    theirs = jax.vjp(_library, x, kernel)[1](slope)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)


def test_half_the_bits_stay_half_the_bits() -> None:
    x, kernel = jnp.ones((2, 3, 3, 4), jnp.bfloat16), jnp.ones((3, 3, 4, 5), jnp.bfloat16)
    found, back = jax.vjp(convolve, x, kernel)
    assert [found.dtype, *(slope.dtype for slope in back(found))] == [jnp.bfloat16] * 3


def test_updates_in_a_loop_are_as_fast_as_one_by_one() -> None:
    """XLA's own gradient took forty times as long in the loop when this was written."""
    x, kernel = jax.random.normal(ONE, (128, 8, 8, 32)), jax.random.normal(TWO, (3, 3, 32, 32)) * 0.05

    def update(kernel: Array, x: Array) -> tuple[Array, None]:
        slope = jax.grad(lambda kernel: (convolve(convolve(x, kernel), kernel) ** 2).mean())(kernel)
        return kernel - 1e-4 * slope, None

    alone = _seconds(jax.jit(update), kernel, x)
    together = _seconds(jax.jit(lambda kernel, xs: jax.lax.scan(update, kernel, xs)), kernel, jnp.stack([x, x]))
    assert together < 10 * alone


def _library(x: Array, kernel: Array) -> Array:
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _seconds(call: Callable[..., Any], *given: Array) -> float:
    jax.block_until_ready(call(*given))
    took = list[float]()
    for _ in range(3):
        begun = time.perf_counter()
        jax.block_until_ready(call(*given))
        took.append(time.perf_counter() - begun)
    return statistics.median(took)
