"""These tests run many small programs once each: see `quick_compile`."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True)
def quick_compile() -> Iterator[None]:
    """XLA without its expensive passes."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
