"""Tests run stricter than production: rank promotion raises, warnings are errors. What they compile is kept."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_platforms", "cpu")

RUNTIMES = ("runtimes/ray", "runtimes/redis", "runtimes/rllib")
SLOW = ("bench", "bridges", "cli", "doctor", "engines", "monitor", "web", *RUNTIMES)
REQUIRE_ALL = os.environ.get("ALEA_REQUIRE_ALL") == "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write golden files anew; review them as diffs")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what lies in these folders: it starts servers, browsers or other programs, or it trains."""
    folders = [Path(__file__).parent / name for name in SLOW]
    for item in items:
        if any(folder in item.path.parents for folder in folders):
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


def _refuse_skips(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Under ALEA_REQUIRE_ALL what would skip fails, so that a missing server or package cannot pass unseen."""
    if REQUIRE_ALL and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which ALEA_REQUIRE_ALL=1 does not allow: {report.longrepr}"


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
