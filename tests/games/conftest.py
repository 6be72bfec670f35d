"""Most tests of rules run a program a few times: compiling it quickly matters, how fast it runs does not."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture
def quick_compile() -> Iterator[None]:
    """XLA without its expensive passes."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
