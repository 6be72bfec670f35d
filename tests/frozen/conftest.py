"""A copy of the frozen runs, and no settings but those of the tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from tests.frozen.support import RUNS


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for variable in ("ALEA_RUNS", "ALEA_DEVICE", "ALEA_MLFLOW_URL", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("ALEA_DATA", str(tmp_path_factory.mktemp("data")))


@pytest.fixture(autouse=True, scope="module")
def quick_compile() -> Iterator[None]:
    """XLA without its expensive passes, as when the data was made."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="session")
def frozen_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all frozen runs, which tests only read."""
    return Path(shutil.copytree(RUNS, tmp_path_factory.mktemp("frozen") / "runs"))
