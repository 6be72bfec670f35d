"""One small cluster for the tests of a module."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from aleazero.ray_settings import RayConfig
from aleazero.runtimes.ray.cluster import connected
from tests.runtimes.support import programs, quick_programs  # noqa: F401 - fixtures


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ray leaves files and sockets open that nobody uses any more."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(autouse=True, scope="module")
def nothing_left() -> Iterator[None]:
    """Or else another module's tests would be told."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def small_cluster() -> Iterator[None]:
    with connected(RayConfig(local=True, workers=2)):
        yield
