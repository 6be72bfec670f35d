"""Convolutions over a board, of its own size, with a gradient that a CPU works out fast wherever it is asked for.

XLA brings a convolution into the form its fast kernels for CPUs take only outside of loops. Inside one, and several
updates in a row are one, the gradient's convolutions are left as they come and are many times as slow. So
there the gradient is written in that form from the start. Knows arrays, not networks.
"""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
from jax import Array

_FORM = ("NHWC", "HWIO", "NHWC")  # the one that is fast


class Convolution(nn.Module):
    """A convolution with a bias; its kernel is `[kernel, kernel, planes, size]`, an odd number of squares wide."""

    size: int
    kernel: int
    compute: Any
    kernel_init: Any = nn.initializers.lecun_normal()

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """`[B, rows, columns, planes]` to `[B, rows, columns, size]`."""
        kernel = self.param("kernel", self.kernel_init, (self.kernel, self.kernel, x.shape[-1], self.size))
        bias = self.param("bias", nn.initializers.zeros_init(), (self.size,))
        y = convolve(x.astype(self.compute), kernel.astype(self.compute))
        return y + bias.astype(self.compute).reshape(1, 1, 1, -1)


def convolve(x: Array, kernel: Array) -> Array:
    """`[B, rows, columns, I]` by an odd kernel `[K, K, I, O]`: `[B, rows, columns, O]`; zeros lie around the board."""
    return _with_gradient(x, kernel) if jax.default_backend() == "cpu" else _plain(x, kernel)


def _plain(x: Array, kernel: Array) -> Array:
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=_FORM)


@jax.custom_vjp
def _with_gradient(x: Array, kernel: Array) -> Array:
    return _plain(x, kernel)


def _forward(x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return _plain(x, kernel), (x, kernel)


def _backward(seen: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    x, kernel = seen
    back = _plain(slope, kernel[::-1, ::-1].swapaxes(2, 3))
    beside = kernel.shape[0] // 2
    # the kernel's: planes are what is convolved, one board after the other; the slopes are the kernel
    planes, slopes = x.transpose(3, 1, 2, 0), slope.transpose(1, 2, 0, 3)
    around = ((beside, beside), (beside, beside))
    found = jax.lax.conv_general_dilated(planes, slopes, (1, 1), around, dimension_numbers=_FORM)
    return back, found.transpose(1, 2, 0, 3)


_with_gradient.defvjp(_forward, _backward)
