"""Tests run stricter than production: rank promotion raises, warnings are errors, compiled programs are kept."""

from __future__ import annotations

import os
from collections.abc import Generator

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_platforms", "cpu")

REQUIRE_ALL = os.environ.get("ALEA_REQUIRE_ALL") == "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write golden files anew; review them as diffs")


@pytest.fixture
def regenerate(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--regenerate"))


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_programs() -> Generator[None, None, None]:
    """A worker that keeps the programs of every module grows to gigabytes."""
    yield
    jax.clear_caches()


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
