"""Whatever the API's description allows, and what it does not: no answer is a failure of the server."""

from __future__ import annotations

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from tests.web.conftest import PATIENCE, Server

EXAMPLES = 12
HINT = "POST /api/balatro/{table}/hint"  # not of a run that is under way: uncompiled, it thinks for a minute


def names(client: httpx.Client) -> dict[str, str]:
    """Tables and runs that there are: what is asked of others is only ever refused."""
    table = client.post("/api/tables", json={"game": "tictactoe", "seats": ["human", "human"]}).json()["id"]
    run, fresh = (client.post("/api/balatro", json={"seed": "ALEA1234"}).json() for _ in range(2))
    blind = next(offer["action"] for offer in run["actions"] if offer["words"] == "select blind")
    client.post(f"/api/balatro/{run['id']}/act", json={"what": "act", "action": blind}).raise_for_status()
    return {"tables": table, "balatro": run["id"], HINT: fresh["id"]}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
def test_no_request_makes_the_server_fail(server: Server, client: httpx.Client, mode: GenerationMode) -> None:
    described = schemathesis.openapi.from_url(f"{server.url}api/openapi.json")
    known = names(client)
    answered: dict[str, set[int]] = {}
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
            kind = "balatro" if "/balatro" in case.operation.label else "tables"
            if "table" in (case.path_parameters or {}):
                case.path_parameters["table"] = known.get(case.operation.label, known[kind])
            answer = case.call(timeout=PATIENCE)
            assert answer.status_code < 500, answer.text
            answered.setdefault(case.operation.label, set()).add(answer.status_code)

        ask()
    assert len(answered) >= (16 if mode is GenerationMode.POSITIVE else 8)
    assert {"POST /api/balatro", "POST /api/balatro/{table}/act"} <= answered.keys()
    if mode is GenerationMode.POSITIVE:
        assert 200 in answered["POST /api/balatro/{table}/act"]
        assert 200 in answered[HINT]
