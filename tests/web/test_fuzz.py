"""Whatever the API's description allows, and what it does not: no answer is a failure of the server."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from tests.web.conftest import PATIENCE, Server

EXAMPLES = 12


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
def test_no_request_makes_the_server_fail(server: Server, mode: GenerationMode) -> None:
    described = schemathesis.openapi.from_url(f"{server.url}api/openapi.json")
    asked: set[str] = set()
    for found in described.get_all_operations():
        operation = found.ok()
        if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
            continue  # there is nothing that could be wrong

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: schemathesis.Case) -> None:
            answer = case.call(timeout=PATIENCE)
            assert answer.status_code < 500, answer.text
            asked.add(case.operation.label)

        ask()
    assert len(asked) >= (16 if mode is GenerationMode.POSITIVE else 8)
