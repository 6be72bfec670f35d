"""Searches are compiled once and run a few times: compiling them quickly matters, how fast they run does not."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True)
def quick_compile() -> Iterator[None]:
    """XLA without its expensive passes: what it makes of a program before them, copies too, is the same."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
