"""Tests run stricter than production: rank promotion raises, warnings are errors, compiled programs are kept."""

from __future__ import annotations

import os

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
