"""Whatever the API's description allows, and what it does not: no answer is a failure of the server."""

from __future__ import annotations

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from tests.web.conftest import PATIENCE, Server, make_run

EXAMPLES = 12
HINT = "POST /api/balatro/{table}/hint"  # not of a run that is under way: uncompiled, it thinks for a minute
HINTS = "POST /api/hints/{table}"  # not of the table that is given up meanwhile
RUN = "asked"
SOLVED = {"game": "tictactoe", "player": "solver"}
REAL = {  # what is asked of half of the cases: free strings alone would name nothing that there is
    "POST /api/tables": {"game": "tictactoe", "seats": ["human", "solver"], "position": None},
    "POST /api/tables/{table}/move": {"text": "b2", "actions": None},
    HINTS: {"player": "solver"},
    "POST /api/positions": {"game": "tictactoe", "position": None},
    "POST /api/analyse": {**SOLVED, "position": "X../.O./..X", "rollout": None},
    "POST /api/review": {**SOLVED, "text": "1. a1 2. b1 3. b2 4. c1 5. c3", "number": 1},
    "POST /api/runs/{run}/{what}": {"confirm": RUN},
    "POST /api/balatro": {"seed": "ALEA1234"},
    "POST /api/balatro/{table}/act": {"what": "play", "cards": [0, 3], "action": None},
}
DONE = {"POST /api/runs/{run}/{what}": "pause", "POST /api/tables/{table}/{what}": "resign"}
REFUSED = {"POST /api/tree", "GET /api/runs/{run}/games/{game}"}  # a network is compiled, a run has played: elsewhere


def names(client: httpx.Client) -> dict[str, str]:
    """Tables and runs that there are: what is asked of others is only ever refused."""
    game = {"game": "tictactoe", "seats": ["human", "human"]}
    table, other = (client.post("/api/tables", json=game).json()["id"] for _ in range(2))
    run, fresh = (client.post("/api/balatro", json={"seed": "ALEA1234"}).json() for _ in range(2))
    blind = next(offer["action"] for offer in run["actions"] if offer["words"] == "select blind")
    client.post(f"/api/balatro/{run['id']}/act", json={"what": "act", "action": blind}).raise_for_status()
    return {"tables": table, "balatro": run["id"], HINT: fresh["id"], HINTS: other}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.value)
def test_no_request_makes_the_server_fail(server: Server, client: httpx.Client, mode: GenerationMode) -> None:
    described = schemathesis.openapi.from_url(f"{server.url}api/openapi.json")
    known = names(client)
    if not (server.folder / "runs" / RUN).exists():
        make_run(server.folder / "runs" / RUN)
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
        @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
        def ask(case: schemathesis.Case, real: bool) -> None:
            kind = "balatro" if "/balatro" in case.operation.label else "tables"
            if "table" in (case.path_parameters or {}):
                case.path_parameters["table"] = known.get(case.operation.label, known[kind])
            if real and mode is GenerationMode.POSITIVE:
                label, places = case.operation.label, case.path_parameters or {}
                places |= {name: word for name, word in (("run", RUN), ("what", DONE.get(label))) if name in places}
                if label in REAL:
                    case.body = {**(case.body if isinstance(case.body, dict) else {}), **REAL[label]}
            answer = case.call(timeout=PATIENCE)
            assert answer.status_code < 500, answer.text
            answered.setdefault(case.operation.label, set()).add(answer.status_code)

        ask()
    assert len(answered) >= (16 if mode is GenerationMode.POSITIVE else 8)
    assert {"POST /api/balatro", "POST /api/balatro/{table}/act"} <= answered.keys()
    if mode is GenerationMode.POSITIVE:
        assert {label for label, codes in answered.items() if min(codes) >= 300} <= REFUSED
