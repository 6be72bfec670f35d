"""Whatever the API's description allows, and what it does not: no answer is a failure of the server."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from tests.web.conftest import PATIENCE, Server


@pytest.fixture
def described(server: Server) -> object:
    return schemathesis.openapi.from_url(f"{server.url}api/openapi.json", wait_for_schema=PATIENCE)


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(max_examples=12, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
def test_no_request_makes_the_server_fail(case: schemathesis.Case) -> None:
    answer = case.call(timeout=PATIENCE)
    assert answer.status_code < 500, answer.text
