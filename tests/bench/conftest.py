"""Nobody's profiles and nobody's results; and no longer than must be."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import jax
import pytest

from aleazero.bench import measure


@pytest.fixture(autouse=True)
def compiled_plainly() -> Generator[None, None, None]:
    """How fast it goes does not matter here; how long it takes to compile does."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where benchmarks keep what they find, in this test."""
    monkeypatch.setenv("ALEA_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("ALEA_RUNS", raising=False)
    monkeypatch.setattr(measure, "SECONDS", 0.05)
    return tmp_path / "data"
