"""One small cluster for all modules, whose actors share compiled programs."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from aleazero.ray_settings import RayConfig
from aleazero.runtimes.ray.cluster import connected
from tests.runtimes.support import programs, quick_programs  # noqa: F401 - fixtures


@pytest.fixture(scope="module")
def quick_actors(programs: Path, quick_programs: None) -> Iterator[None]:  # noqa: F811
    """What actors, which are other processes, compile by: as this one does."""
    told = {
        "JAX_COMPILATION_CACHE_DIR": str(programs),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_PLATFORMS": "cpu",
    }
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


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


class SmallCluster:
    """Stays for the next module, until somebody needs another one: a process is connected to one at a time."""

    def __init__(self, spilt: Path) -> None:
        self._spilt, self._open = spilt, contextlib.ExitStack()

    def open(self) -> None:
        if not ray.is_initialized():
            self._open.enter_context(connected(RayConfig(local=True, workers=4, spill_dir=str(self._spilt))))

    def close(self) -> None:
        self._open.close()


@pytest.fixture(scope="package")
def one_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallCluster]:
    with contextlib.closing(SmallCluster(tmp_path_factory.mktemp("spilt"))) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def small_cluster(quick_actors: None, one_cluster: SmallCluster) -> None:
    one_cluster.open()
