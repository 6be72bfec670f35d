"""The MCP server and its client, over HTTP and over standard streams: real processes."""

from __future__ import annotations

import asyncio
import http.client
import importlib.util
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import numpy as np
import pytest
from mcp.server.mcpserver.exceptions import ToolError

from aleazero.bridges import mcp_server
from aleazero.bridges.advisor import Advisor, AdvisorConfig
from aleazero.bridges.balatro_table import Simulated
from aleazero.bridges.mcp_client import McpError, McpGame
from aleazero.bridges.mcp_server import MOST_RUNS, Runs, make_server
from aleazero.cli.main import run
from aleazero.core.errors import ConfigError
from aleazero.games.balatro import actions
from aleazero.games.balatro.checked import checked
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.env import BalatroEnv, IllegalAction
from tests.bridges.chat_endpoint import ChatEndpoint
from tests.bridges.live_game import LiveGame
from tests.bridges.simple import simple

COMMAND = [sys.executable, "-m", "aleazero.cli.main", "mcp", "balatro"]


def _serve(*more: str) -> Iterator[tuple[str, str]]:
    process = subprocess.Popen(
        [*COMMAND, "--transport", "http", "--port", "0", *more], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    hung = threading.Timer(120, process.kill)  # then its output ends, and the test with it
    hung.start()
    try:
        address = process.stdout.readline().split()[-1]
        token = process.stdout.readline().split()[-1]
        hung.cancel()
        yield address, token
    finally:
        hung.cancel()
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, str]]:
    yield from _serve()


@pytest.fixture
def game(server: tuple[str, str]) -> Iterator[McpGame]:
    with McpGame(*server) as connected:
        yield connected


def test_a_run_is_seen_asked_about_and_played(game: McpGame) -> None:
    begun = game.start(seed="ALEEB")
    assert begun["phase"] == "a blind is to be chosen"
    offered = game.call_tool("balatro_legal_actions", {})["actions"]
    assert [one["words"] for one in offered] == ["select blind", "skip blind"]
    seen = game.call_tool("balatro_act", {"action": offered[0]["action"]})
    assert len(seen["hand"]) == 8
    assert seen["target"] == 300
    explained = game.call_tool("balatro_explain_score", {"cards": [0, 1]})
    assert explained["words"].startswith("play")
    assert explained["lines"][-1].split()[-1] == f"{explained['score']:,.0f}"
    after = game.call_tool("balatro_act", {"what": "play", "cards": [0, 1]})
    assert after["score"] == explained["score"]
    assert after["hands_left"] == seen["hands_left"] - 1
    assert game.call_tool("balatro_state", {})["text"] == after["text"]
    everything = game.call_tool("balatro_legal_actions", {"everything": True})
    assert everything["count"] == len(everything["actions"]) > 400
    # Cards beyond the eighth, or chosen one by one, are selected on the way.
    assert game.call_tool("balatro_act", {"what": "discard", "cards": [7, 3]})["discards_left"] == 3


def test_advice_has_reasons_and_chances_and_no_effect(game: McpGame) -> None:
    before = game.start(seed="ALEEB")
    told = game.call_tool("balatro_advise", {"futures": 1})["advice"]
    assert {one["words"] for one in told} == {"select blind", "skip blind"}
    for one in told:
        assert one["reasons"]
        assert 0.0 <= one["win_low"] <= one["win_chance"] <= one["win_high"] <= 1.0
        assert 0.0 <= one["blind_chance"] <= 1.0
    assert told == game.call_tool("balatro_advise", {"futures": 1})["advice"]
    tried = game.call_tool("balatro_simulate", {"action": actions.A_SELECT_BLIND, "futures": 1})
    assert {**tried, "run": ""} == {**next(one for one in told if one["action"] == actions.A_SELECT_BLIND), "run": ""}
    assert game.call_tool("balatro_state", {})["text"] == before["text"]


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("balatro_act", {"action": 5}, "is not legal: a blind is to be chosen"),
        ("balatro_act", {"action": 99999}, "numbers of actions end at"),
        ("balatro_act", {"action": -1}, "not legal"),
        ("balatro_act", {}, "an action is needed"),
        ("balatro_act", {"what": "jump"}, "'play', 'discard' or 'act'"),
        ("balatro_act", {"what": "play", "cards": [0]}, "the hand has"),
        ("balatro_act", {"cards": "x"}, "valid list"),
        ("balatro_act", {"action": 560, "run": "nobody's"}, "there is no run"),
        ("balatro_start", {"seed": "too long a seed"}, "at most 8"),
        ("balatro_start", {"seed": "A", "deck": "Rde Deck"}, "did you mean 'Red Deck'"),
        ("balatro_start", {}, "seed"),
        ("balatro_simulate", {"action": 560, "futures": 10**9}, "1024"),
        ("balatro_nothing", {}, "balatro_nothing"),
    ],
)
def test_malformed_calls_get_an_error_that_can_be_read(
    game: McpGame, tool: str, arguments: dict[str, object], why: str
) -> None:
    before = game.start(seed="ALEEB")
    with pytest.raises(McpError, match=why):
        game.call_tool(tool, arguments)
    assert game.call_tool("balatro_state", {})["text"] == before["text"]


def _post(address: str, body: bytes, **headers: str) -> tuple[int, bytes]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", parts.path, body, kinds | {k.replace("_", "-"): v for k, v in headers.items()})
    answer = connection.getresponse()
    told = answer.status, answer.read()
    connection.close()
    return told


def test_without_the_token_or_under_another_name_nobody_is_answered(server: tuple[str, str]) -> None:
    address, token = server
    listing = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).encode()
    assert _post(address, listing)[0] == 401
    assert _post(address, listing, Authorization="Bearer wrong")[0] == 401
    assert _post(address, listing, Authorization=f"Bearer {token}", Host="evil.example")[0] == 421
    assert _post(address, listing, Authorization=f"Bearer {token}", Origin="http://evil.example")[0] == 403
    assert _post(address, b"no json", Authorization=f"Bearer {token}")[0] == 400
    with pytest.raises(McpError, match="cannot be reached"):
        McpGame(address, "wrong-token-wrong-token")
    with McpGame(address, token) as alive:
        assert alive.start(seed="A")


def test_the_environment_plays_over_mcp_as_it_does_here(game: McpGame) -> None:
    """ALEEB is lost soon by who plays the first five cards."""
    far, near = BalatroEnv({"mcp_client": game, "seed": "ALEEB"}), BalatroEnv({"seed": "ALEEB"})
    seen, here = far.reset()[0], near.reset()[0]
    over = False
    while not over:
        for name, array in here.items():
            np.testing.assert_array_equal(seen[name], array)
        assert near.batch is not None
        action = int(simple(near.batch, 0)[0])
        seen, reward, over, _, info = far.step(action)
        here, reward_here, over_here, _, info_here = near.step(action)
        assert (reward, over, info) == (reward_here, over_here, info_here)
    with pytest.raises(IllegalAction):
        far.step(0)


def test_two_clients_play_their_own_runs(server: tuple[str, str]) -> None:
    with McpGame(*server) as one, McpGame(*server) as other:
        one.start(seed="ALEEB")
        other.start(seed="ABCDEFGH")
        one.call_tool("balatro_act", {"action": actions.A_SELECT_BLIND})
        assert other.call_tool("balatro_state", {})["phase"] == "a blind is to be chosen"


def test_standard_streams_serve_the_same() -> None:
    with McpGame(COMMAND) as game:
        assert game.start(seed="ALEEB")["ante"] == 1
        assert len(game.call_tool("balatro_act", {"action": actions.A_SELECT_BLIND})["hand"]) == 8


def test_a_live_game_is_played_over_mcp() -> None:
    with LiveGame(Batch.start(["ALEEB"])) as live:
        for server in _serve("--live", live.url):
            with McpGame(*server) as game:
                with pytest.raises(McpError, match="live game"):
                    game.start(seed="ALEEB")
                assert len(game.call_tool("balatro_act", {"action": actions.A_SELECT_BLIND})["hand"]) == 8
                assert game.call_tool("balatro_explain_score", {"cards": [0, 1]})["score"] > 0
        assert [method for _, method in live.log] == ["select"]


def test_an_action_for_another_position_is_refused(server: tuple[str, str]) -> None:
    with McpGame(*server) as game:
        begun = game.start(seed="ALEEB")
        again = {"action": actions.A_SELECT_BLIND, "position": begun["position"]}
        after = game.call_tool("balatro_act", again)
        assert after["position"] != begun["position"]
        assert game.call_tool("balatro_legal_actions", {})["position"] == after["position"]
        with pytest.raises(McpError, match="another position"):
            game.call_tool("balatro_act", again)
        with McpGame(*server) as other:  # it plays the same run, which the first does not see
            other.call_tool("balatro_act", {"run": begun["run"], "what": "play", "cards": [0]})
        with pytest.raises(McpError, match="another position"):
            game.call_tool("balatro_act", {"what": "play", "cards": [0]})
        seen = game.call_tool("balatro_state", {})
        assert game.call_tool("balatro_act", {"what": "play", "cards": [0]})["hands_left"] == seen["hands_left"] - 1


def test_a_live_game_is_acted_on_by_one_call_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Simulated("ALEEB")
    runs = Runs(table)
    with runs.using(None), pytest.raises(ConfigError, match="under way"), runs.using(None, acting=True):
        pytest.fail("two at once")
    with runs.using(None, acting=True) as (name, found):
        assert (name, found) == ("live", table)
    monkeypatch.setattr(mcp_server, "SLOW", -1.0)  # any look takes too long
    with pytest.raises(ToolError, match="nothing was done"):
        asyncio.run(make_server(simple, table).call_tool("balatro_act", {"action": actions.A_SELECT_BLIND}))
    assert table.see().snapshot() == Batch.start(["ALEEB"]).snapshot()
    for live, hint in ((table, None), (None, True)):
        tools = asyncio.run(make_server(simple, live).list_tools())
        state = next(tool for tool in tools if tool.name == "balatro_state")
        assert (state.annotations.read_only_hint if state.annotations else None) is hint


def test_the_run_that_was_not_used_for_longest_is_forgotten() -> None:
    runs = Runs()
    names = [runs.start("ALEEB", "Red Deck", "White", 8)[0] for _ in range(MOST_RUNS)]
    with runs.using(names[0]):
        pass
    with runs.using(None) as (newest, _):
        assert newest == names[-1]
    runs.start("ALEEB", "Red Deck", "White", 8)
    with runs.using(names[0]):
        pass
    with pytest.raises(ConfigError, match="no run"), runs.using(names[1]):
        pytest.fail("it should be forgotten")


def test_an_advisor_is_asked_about_the_run_and_not_in_imagined_futures() -> None:
    with ChatEndpoint(lambda question: '{"option": 1}') as endpoint:
        advisor = Advisor(simple, AdvisorConfig(endpoint.url))
        server = make_server(advisor)
        asyncio.run(server.call_tool("balatro_start", {"seed": "ALEEB"}))
        asyncio.run(server.call_tool("balatro_advise", {"futures": 1}))
        asyncio.run(server.call_tool("balatro_simulate", {"action": actions.A_SELECT_BLIND, "futures": 1}))
        assert len(endpoint.questions) == 1
    assert advisor.counts.asked == advisor.counts.followed == 1


@pytest.mark.speed
def test_a_round_trip_takes_milliseconds(game: McpGame) -> None:
    """10 ms are promised; `alea mcp --bench` says how long they take."""
    game.start(seed="ALEEB")
    took = []
    for _ in range(50):
        started = time.perf_counter()
        game.call_tool("balatro_state", {})
        took.append(time.perf_counter() - started)
    assert statistics.median(took) < 0.010


def test_what_comes_from_a_server_is_checked() -> None:
    batch = Batch.start(["ALEEB"])
    row = batch.snapshot()[0]
    assert checked(row).snapshot() == [row]
    with pytest.raises(ConfigError, match="bytes are no game"):
        checked(row[:-1])
    for field, value in (("joker_count", 99), ("hand_count", -1), ("boss", 31), ("phase", 7), ("hand_size", 200)):
        spoiled = batch.copy()
        spoiled.states[field][0] = value
        with pytest.raises(ConfigError, match=field):
            checked(spoiled.snapshot()[0])
    for kind, number, what in (
        ("shelf_kind", "shelf_id", 2),
        ("pack_what", "pack_item", 2),
        ("pack_what", "pack_item", 3),
    ):
        spoiled = batch.copy()
        spoiled.states[kind][0, 0], spoiled.states[number][0, 0] = 1, 150  # a joker
        checked(spoiled.snapshot()[0])
        spoiled.states[kind][0, 0] = what  # there are fewer consumables, and cards have no number
        with pytest.raises(ConfigError, match=number):
            checked(spoiled.snapshot()[0])
    spoiled = batch.copy()
    spoiled.states["draw_pile"][0, 3] = 127
    with pytest.raises(ConfigError, match="draw_pile"):
        checked(spoiled.snapshot()[0])


def test_every_record_that_play_leads_to_passes_the_check() -> None:
    batch = Batch.start(["CHECK1", "CHECK2"], "Red Deck", "Gold", 12)
    for seed in range(1, 7):
        batch.wander(15, seed=seed, charmed=True)
        for row, error in zip(batch.snapshot(), batch.states["error"], strict=True):
            if not error:
                checked(row)


def test_a_missing_package_is_said_with_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mcp" else found(name))
    assert run(["mcp", "balatro"]) == 1
    assert "pip install 'aleazero[balatro]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["chess"], "what is served is balatro"),
        (["balatro", "--player", "nobody"], "greedy or expectimax"),
        (["balatro", "--transport", "http", "--port", "99999"], "port"),
        (["balatro", "--transport", "http", "--token", "short"], "token is too simple"),
        (["balatro", "--live", "ftp://x"], "http"),
        (["balatro", "--bench", "-1"], "negative"),
    ],
)
def test_mistakes_are_explained(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", *words]) == 2
    assert why in capsys.readouterr().err
