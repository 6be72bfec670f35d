"""Tests run stricter than production: rank promotion raises, warnings are errors. What they compile is kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

from tests.others import QUIET, Others

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_platforms", "cpu")

RUNTIMES = ("runtimes/ray", "runtimes/redis", "runtimes/rllib")
SLOW = ("bench", "bridges", "cli", "doctor", "engines", "monitor", "web", *RUNTIMES)
REQUIRE_ALL = os.environ.get("ALEA_REQUIRE_ALL") == "1"
ONE_DEVICE = "--xla_force_host_platform_device_count=1"  # programs are kept for a number of devices: one for all tests
BUSY = "too slow twice, but the machine is busy: others use"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write golden files anew; review them as diffs")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what lies in these folders: it starts servers, browsers or other programs, or it trains."""
    folders = tuple(f"tests/{name}/" for name in SLOW)
    for item in items:
        if item.nodeid.startswith(folders):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def regenerate(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--regenerate"))


@pytest.fixture(autouse=True, scope="session")
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where compiled programs are kept: for all tests of a session, on all cores, and for the processes they start."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(request.config, "workerinput") else base) / "programs"
    os.environ |= {"JAX_COMPILATION_CACHE_DIR": str(folder), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    os.environ["XLA_FLAGS"] = ONE_DEVICE
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    compilation_cache.reset_cache()
    return folder


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_programs() -> Generator[None, None, None]:
    """A worker that holds the programs of every module in memory grows to gigabytes."""
    yield
    jax.clear_caches()
    jax.config.update("jax_compilation_cache_include_metadata_in_key", False)  # a profile turns it on


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Repeat a test of speed that fails while others keep the machine busy; if it fails again, skip it and say so."""
    others = Others()
    try:
        return (yield)
    except AssertionError:
        if "speed" not in item.keywords or others.cores() <= QUIET:
            raise
    if folder := getattr(item, "funcargs", {}).get("tmp_path"):
        shutil.rmtree(folder)
        folder.mkdir()
    others = Others()
    try:
        item.runtest()
    except AssertionError:
        if others.cores() <= QUIET:
            raise
        pytest.skip(f"{BUSY} {others.cores():.1f} cores")


def _refuse_skips(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Fail what would skip: tests of speed always, others under ALEA_REQUIRE_ALL, so that nothing passes unseen."""
    required = REQUIRE_ALL or "speed" in getattr(report, "keywords", ())
    if (
        required
        and report.outcome == "skipped"
        and not hasattr(report, "wasxfail")
        and BUSY not in str(report.longrepr)
    ):
        report.outcome = "failed"
        report.longrepr = f"skipped, which is not allowed here: {report.longrepr}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skips(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skips(report)
    return report
