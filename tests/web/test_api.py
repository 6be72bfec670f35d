from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets

from aleazero.engines.stockfish import DEBIAN_PLACE
from aleazero.web.app import WebSettings, make_app
from tests.web.conftest import PATIENCE, Server, make_run, report, serving

PERSON = ["human", "human"]
needs_stockfish = pytest.mark.skipif(not DEBIAN_PLACE.exists(), reason="Debian's stockfish is not installed")


def begin(client: httpx.Client, game: str, seats: list[str] | None = None, **more: Any) -> dict[str, Any]:
    answer = client.post("/api/tables", json={"game": game, "seats": seats or PERSON, **more})
    assert answer.status_code == 201, answer.text
    view: dict[str, Any] = answer.json()
    return view


def settled(client: httpx.Client, view: dict[str, Any]) -> dict[str, Any]:
    """Once nobody thinks any more."""
    end = time.monotonic() + PATIENCE
    while view["thinking"] and time.monotonic() < end:
        view = client.get(f"/api/tables/{view['id']}", params={"after": view["version"]}).json()
    assert not view["thinking"]
    return view


def do(client: httpx.Client, view: dict[str, Any], what: str, **body: Any) -> dict[str, Any]:
    answer = (
        client.post(f"/api/tables/{view['id']}/{what}", json=body)
        if body
        else client.post(f"/api/tables/{view['id']}/{what}")
    )
    assert answer.status_code == 200, answer.text
    return settled(client, answer.json())


def test_games_come_with_opponents(client: httpx.Client) -> None:
    games = {game["name"]: game for game in client.get("/api/games").json()["games"]}
    assert {"backgammon", "chess", "connect_four", "quoridor", "tictactoe"} <= games.keys()
    assert {"player": "solver", "name": "perfect play"} in games["tictactoe"]["players"]
    assert games["backgammon"]["usual"] == "bundled,ply=0"


def test_nobody_beats_perfect_play(client: httpx.Client) -> None:
    view = settled(client, begin(client, "tictactoe", ["solver", "human"]))
    while not view["over"]:
        view = do(client, view, "move", actions=[view["moves"][0]["action"]])
    assert view["result"]["winner"] in (0, None)
    back = do(client, view, "back")
    assert not back["over"]


def test_a_game_of_backgammon_against_another_player(client: httpx.Client) -> None:
    view = settled(client, begin(client, "backgammon", ["human", "random"], seed=5))
    for _ in range(4):
        while not view["waits"]:
            view = do(client, view, "move", actions=[view["moves"][-1]["action"]])
        view = do(client, view, "end")
        assert view["to_play"] == 0
    assert len([turn for turn in view["history"] if turn["seat"] == 0]) == 4
    text = client.get(f"/api/records/{view['id']}").text
    assert text.startswith(" 0 point match")
    resigned = do(client, view, "resign")
    assert resigned["result"] == {"winner": 1, "points": 1.0, "name": "resigned"}


def test_hints_rank_moves(client: httpx.Client) -> None:
    view = begin(client, "tictactoe", position="XX./OO./...")
    found = client.post(f"/api/hints/{view['id']}", json={"player": "solver"}).json()
    assert (found["moves"][0]["name"], found["moves"][0]["value"]) == ("c3", 1.0)
    assert found["moves"][0]["steps"] == [{"from": None, "to": "c3", "choice": None}]
    refused = client.post(f"/api/hints/{view['id']}", json={"player": "random"})
    assert refused.status_code == 400
    assert "no opinion" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("tables", {}),
        ("tables", []),
        ("tables", {"game": "tictactoo", "seats": PERSON}),
        ("tables", {"game": "balatro", "seats": PERSON}),
        ("tables", {"game": "tictactoe", "seats": ["human"]}),
        ("tables", {"game": "tictactoe", "seats": ["human", "nobody"]}),
        ("tables", {"game": "tictactoe", "seats": ["human", "bundled,sims=1000000000"]}),
        ("tables", {"game": "connect_four", "seats": ["human", "bundled,sims=3000"]}),
        ("tables", {"game": "chess", "seats": ["human", "stockfish:nodes=2000000"]}),
        ("tables", {"game": "chess", "seats": ["human", "stockfish:depth=99"]}),
        ("tables", {"game": "tictactoe", "seats": PERSON, "seed": -1}),
        ("tables", {"game": "tictactoe", "seats": PERSON, "seed": 2**40}),
        ("tables", {"game": "tictactoe", "seats": PERSON, "position": "XXX/XXX/XXX"}),
        ("tables", {"game": "chess", "seats": PERSON, "position": "8/8/8/8/8/8/8/8 w - - 0 1"}),
        ("tables", {"game": "tictactoe", "seats": PERSON, "more": 1}),
        ("tables/nothing/move", {"actions": [1]}),
        ("tables/..%2f..%2fetc%2fpasswd/move", {"actions": [1]}),
        ("analyse", {"game": "tictactoe", "position": "X", "player": "solver"}),
        ("analyse", {"game": "backgammon", "position": "4HPwATDgc/ABMA"}),
        ("analyse", {"game": "tictactoe", "position": None, "player": "random"}),
        ("review", {"game": "chess", "text": "1. e4 e4", "player": "random"}),
        ("review", {"game": "backgammon", "text": "nothing"}),
        ("tree", {"game": "tictactoe", "position": None, "player": "solver"}),
        ("runs/nothing/pause", {"confirm": "nothing"}),
        ("runs/first/pause", {"confirm": "second"}),
        ("runs/first/stop", {"confirm": "first"}),
    ],
)
def test_what_is_wrong_is_said(client: httpx.Client, path: str, body: Any) -> None:
    answer = client.post(f"/api/{path}", json=body)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["detail"]


@pytest.mark.parametrize("name", ["gym:nomodule:X-v0", "gym:this:X-v0", "gym:unittest.__main__:X-v0"])
@pytest.mark.parametrize("path", ["tables", "positions", "analyse", "tree", "review"])
def test_no_name_of_a_game_imports_a_module(client: httpx.Client, path: str, name: str) -> None:
    own = {"tables": {"seats": PERSON}, "review": {"text": "1. a1"}}
    answer = client.post(f"/api/{path}", json={"game": name, **own.get(path, {"position": None})})
    assert answer.status_code == 400, answer.text
    assert "runs on the host" in answer.json()["detail"]


def test_illegal_moves_are_refused_and_change_nothing(client: httpx.Client) -> None:
    view = begin(client, "chess")
    for body in ({"actions": [99]}, {"text": "e5"}, {"actions": [32767]}, {"actions": []}, {}):
        assert 400 <= client.post(f"/api/tables/{view['id']}/move", json=body).status_code < 500
    assert client.get(f"/api/tables/{view['id']}").json() == view
    assert client.post(f"/api/tables/{view['id']}/end").status_code == 409
    assert client.post(f"/api/tables/{view['id']}/back").status_code == 409


@pytest.mark.parametrize("chunked", [False, True])
def test_large_bodies_are_refused(client: httpx.Client, chunked: bool) -> None:
    body = b'{"game": "' + b"x" * 1_200_000 + b'"}'
    content = iter([body[:600_000], body[600_000:]]) if chunked else body
    answer = client.post("/api/tables", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"game": 1e999}', b"null"])
def test_bodies_that_are_no_json_are_refused(client: httpx.Client, content: bytes) -> None:
    answer = client.post("/api/tables", content=content, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500


def test_another_origin_cannot_ask(server: Server, client: httpx.Client) -> None:
    body = {"game": "tictactoe", "seats": PERSON}
    origins = [{"Origin": origin} for origin in ("https://evil.example", "null", "http://[", "")]
    for headers in (*origins, {"Sec-Fetch-Site": "cross-site"}):
        assert client.post("/api/tables", json=body, headers=headers).status_code == 403
    own = server.url.rstrip("/")
    assert client.post("/api/tables", json=body, headers={"Origin": own}).status_code == 201
    assert client.get("/api/games", headers={"Host": "evil.example"}).status_code == 421
    assert client.post("/api/tables", json=body, headers={"Host": "evil.example:80"}).status_code == 421


def test_every_answer_forbids_what_is_not_ours(client: httpx.Client) -> None:
    for path in ("/api/games", "/api/openapi.json", "/"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy


def test_changes_are_told_at_once_to_all_who_look(server: Server, client: httpx.Client) -> None:
    view = begin(client, "tictactoe")
    address = server.url.replace("http", "ws", 1) + f"api/tables/{view['id']}/live"

    async def look() -> list[dict[str, Any]]:
        async with websockets.connect(address, origin=server.url.rstrip("/")) as socket:  # type: ignore[arg-type]
            seen = [json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))]
            await asyncio.to_thread(client.post, f"/api/tables/{view['id']}/move", json={"text": "b2"})
            seen.append(json.loads(await asyncio.wait_for(socket.recv(), PATIENCE)))
            return seen

    async def refused(origin: str) -> None:
        async with websockets.connect(address, origin=origin):  # type: ignore[arg-type]
            pass

    first, second = asyncio.run(look())
    assert first["history"] == []
    assert second["history"][0]["name"] == "b2"
    for origin in ("https://evil.example", "http://["):
        with pytest.raises(websockets.exceptions.InvalidStatus, match="403"):
            asyncio.run(refused(origin))


@pytest.mark.parametrize("path", ["tables/AAAAAAAAAAAAAAAA/live", "runs/nothing/live", f"runs/{'%C3%A4' * 120}/live"])
def test_who_looks_at_what_is_not_there_is_told_so(server: Server, path: str) -> None:
    async def look() -> websockets.frames.Close | None:
        async with websockets.connect(server.url.replace("http", "ws", 1) + f"api/{path}") as socket:
            with pytest.raises(websockets.exceptions.ConnectionClosedError) as closed:
                await asyncio.wait_for(socket.recv(), PATIENCE)
            return closed.value.rcvd

    closed = asyncio.run(look())
    assert closed is not None
    assert closed.code == 4404
    assert closed.reason


def test_what_a_visitor_says_on_a_socket_is_not_heard(server: Server, client: httpx.Client) -> None:
    view = begin(client, "tictactoe")
    before = server.log.read_text()

    async def talk() -> list[dict[str, Any]]:
        address = server.url.replace("http", "ws", 1) + f"api/tables/{view['id']}/live"
        async with websockets.connect(address) as socket:
            seen = [json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))]
            for words in ("text", b"bytes", "text"):
                await socket.send(words)
            await asyncio.to_thread(client.post, f"/api/tables/{view['id']}/move", json={"text": "b2"})
            return [*seen, json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))]

    assert asyncio.run(talk())[1]["history"][0]["name"] == "b2"
    assert server.log.read_text() == before  # nothing failed


def test_a_server_that_was_killed_goes_on_with_its_games(tmp_path: Path) -> None:
    first = Server(tmp_path)
    with first.client() as client:
        view = begin(client, "backgammon", seed=11)
        view = do(client, view, "move", actions=[view["moves"][0]["action"]])
    first.kill()
    with serving(tmp_path) as second, second.client() as client:
        again = client.get(f"/api/tables/{view['id']}").json()
        same = ("board", "chance", "moves", "steps", "history", "to_play", "position")
        assert {key: again[key] for key in same} == {key: view[key] for key in same}
        assert not do(client, again, "back")["steps"]
        assert second.stop() == 0


def test_a_server_that_thinks_stops_when_it_is_told_to(tmp_path: Path) -> None:
    asked = {"game": "backgammon", "position": "4HPwATDgc/ABMA:31", "player": "bundled", "rollout": 1296}
    with serving(tmp_path) as server, server.client() as client, ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(client.post, "/api/analyse", json=asked)  # minutes of work
        time.sleep(2)
        assert server.stop() == 0
        answer = None if waiting.exception(PATIENCE) else waiting.result()
        assert answer is None or answer.status_code == 500  # it was never finished


def test_a_page_that_is_not_built_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aleazero.web.app.STATIC", tmp_path)
    app = make_app(WebSettings(tmp_path / "tables", tmp_path / "runs"))

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/")

    answer = asyncio.run(ask())
    assert answer.status_code == 503
    assert "make web" in answer.text


def test_with_a_token_nobody_comes_in_without_it(tmp_path: Path) -> None:
    token = "a-token-of-some-length"
    with serving(tmp_path, "--token", token) as server:
        assert server.url.endswith(f"/?token={token}")
        with server.client() as client:
            assert client.get("/api/games").status_code == 401
            assert client.get("/").status_code == 401
            assert client.get("/?token=another-token-of-length").status_code == 401
            assert client.get("/api/games", headers={"Authorization": f"Bearer {token}"}).status_code == 200
            assert client.get(f"/?token={token}").status_code == 303
            assert client.get("/api/games").status_code == 200  # by the cookie


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="needs IPv6")
def test_the_other_loopback_address_is_ours_too(tmp_path: Path) -> None:
    with serving(tmp_path, "--host", "::1") as server:
        assert server.url.startswith("http://[::1]:")
        with server.client() as client:
            own = {"Origin": server.url.rstrip("/")}
            assert client.post("/api/balatro", json={"seed": "ALEA1234"}, headers=own).status_code == 201
            assert client.get("/api/games", headers={"Host": "evil.example"}).status_code == 421


# ---- watching


def test_a_run_is_watched_as_it_grows(server: Server, client: httpx.Client) -> None:
    folder = server.folder / "runs" / "growing"
    make_run(folder)
    assert "growing" in {run["name"] for run in client.get("/api/runs").json()["runs"]}
    whole = client.get("/api/runs/growing/curves").json()
    assert (whole["first"], whole["count"]) == (0, 12)
    losses = next(panel for panel in whole["panels"] if panel["title"] == "Losses")
    assert losses["curves"][0]["y"] == pytest.approx([2, 1, 2 / 3, 0.5, 0.4, 1 / 3])
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(report(6) + '{"kind": "learn", "st')  # the last line is being written
    more = client.get("/api/runs/growing/curves", params={"since": 12, "epoch": whole["epoch"]}).json()
    assert (more["first"], more["count"]) == (12, 14)
    assert [len(curve["x"]) for panel in more["panels"] for curve in panel["curves"]] == [1, 1, 1]
    (folder / "metrics.jsonl").write_text(report(0))  # the run has gone back
    fresh = client.get("/api/runs/growing/curves", params={"since": 14, "epoch": whole["epoch"]}).json()
    assert (fresh["first"], fresh["count"]) == (0, 2)
    assert fresh["epoch"] != whole["epoch"]
    assert client.get("/api/runs/growing").json()["status"] == "killed"


def test_a_run_is_paused_only_if_its_name_is_given_twice(server: Server, client: httpx.Client) -> None:
    folder = server.folder / "runs" / "paused"
    make_run(folder)
    assert client.post("/api/runs/paused/pause", json={"confirm": "pause"}).status_code == 400
    assert not (folder / "paused").exists()
    assert client.post("/api/runs/paused/pause", json={"confirm": "paused"}).status_code == 200
    assert (folder / "paused").exists()
    refused = client.post("/api/runs/paused/resume", json={"confirm": "paused"})
    assert "alea runs resume paused" in refused.json()["detail"]


# ---- analysing


def test_a_position_is_analysed_exactly(client: httpx.Client) -> None:
    asked = {"game": "tictactoe", "position": "XX./OO./...", "player": "solver"}
    found = client.post("/api/analyse", json=asked).json()
    values = [move["value"] for move in found["moves"]]
    assert (found["moves"][0]["name"], values[0], len(values)) == ("c3", 1.0, 5)
    assert values == sorted(values, reverse=True)
    shown = client.post("/api/positions", json={**asked, "player": None}).json()
    assert shown["board"]["cells"] == "XX.OO...."


def test_a_game_is_reviewed_with_its_mistakes_marked(client: httpx.Client) -> None:
    asked = {"game": "tictactoe", "text": "1. a1 2. b1 3. b2 4. c1 5. c3", "player": "solver"}
    found = client.post("/api/review", json=asked).json()
    marks = [turn["mark"] for turn in found["turns"]]
    assert marks[1] == "blunder"  # an edge answer to a corner loses
    assert marks[4] == ""  # wins
    assert found["summary"][1]["blunder"] >= 1
    assert found["summary"][0]["error_rate"] == pytest.approx(0)


def test_backgammon_is_analysed_roll_by_roll(client: httpx.Client) -> None:
    asked = {"game": "backgammon", "position": "4HPwATDgc/ABMA:31", "player": "bundled,ply=0"}
    found = client.post("/api/analyse", json=asked).json()
    best = found["moves"][0]
    assert best["name"] == "8/5 6/5"
    assert sum(best["chances"]) == pytest.approx(1, abs=1e-3)
    assert [(step["from"], step["to"]) for step in best["steps"]] in (
        [("8", "5"), ("6", "5")],
        [("6", "5"), ("8", "5")],
    )
    grown = client.post("/api/tree", json=asked).json()
    play = grown["root"]["children"][0]
    assert (play["name"], play["chance"], len(play["children"])) == ("8/5 6/5", True, 21)
    assert sum(roll["prior"] for roll in play["children"]) == pytest.approx(1)
    mean = sum(roll["prior"] * roll["value"] for roll in play["children"])
    assert mean == pytest.approx(play["value"], abs=0.05)  # what the network says before the roll, and after it
    answers = {roll["name"]: roll["children"][0]["name"] for roll in play["children"]}
    for line in (best["line"], grown["line"][1:]):
        roll, answer = line
        assert answers[roll.removesuffix(":")] == answer
    middle = next(one["value"] for one in play["children"] if f"{one['name']}:" == best["line"][0])
    assert abs(middle - mean) == min(abs(one["value"] - mean) for one in play["children"])
    assert all(len(move["line"]) == 2 for move in found["moves"][:3])


def test_a_backgammon_match_is_reviewed(client: httpx.Client) -> None:
    text = " Game 1\n one : 0              two : 0\n  1) 31: 8/5 6/5           64: 24/14\n  2) 61: 6/5 7/1\n"
    asked = {"game": "backgammon", "text": text, "player": "bundled,ply=0"}
    refused = client.post("/api/review", json=asked)
    assert refused.status_code == 400
    assert "line 4" in refused.json()["detail"]
    found = client.post("/api/review", json={**asked, "text": text.replace("6/5 7/1", "13/7 6/5")}).json()
    assert found["names"] == ["one", "two"]
    assert [turn["name"] for turn in found["turns"]] == ["8/5 6/5", "24/14", "13/7 6/5"]
    assert found["turns"][0]["loss"] == 0
    assert found["turns"][2]["loss"] > 0
    assert found["summary"][0]["decisions"] == 2


def test_a_search_tree_counts_its_visits(client: httpx.Client) -> None:
    asked = {"game": "connect_four", "position": "4453", "player": "bundled,sims=16"}
    found = client.post("/api/tree", json=asked).json()
    root = found["root"]
    assert root["visits"] == 17
    assert sum(child["visits"] for child in root["children"]) == 16
    assert found["line"][0] == root["children"][0]["name"]
    ranked = client.post("/api/analyse", json=asked).json()["moves"]
    ways = {child["name"]: child for child in root["children"]}
    assert {move["name"]: move["visits"] for move in ranked if move["visits"]} == {
        name: child["visits"] for name, child in ways.items()
    }
    for move in ranked:  # the most visited way down from each
        node = ways.get(move["name"], {"children": []})
        for name in move["line"]:
            node = node["children"][0]
            assert node["name"] == name
        assert not node["children"]
    assert any(move["line"] for move in ranked)


def test_perfect_play_says_how_it_goes_on(client: httpx.Client) -> None:
    asked = {"game": "tictactoe", "position": "X../.O./..X", "player": "solver"}
    found = client.post("/api/analyse", json=asked).json()
    best = found["moves"][0]
    assert found["value"] == 0
    assert len(best["line"]) == 5  # to the end of a draw
    moves = [best["name"], *best["line"]]
    assert len({*moves, "a3", "b2", "c1"}) == 9


def test_connect_four_is_solved_where_that_is_soon_done(client: httpx.Client) -> None:
    games = {game["name"]: game for game in client.get("/api/games").json()["games"]}
    assert "solver" not in [one["player"] for one in games["connect_four"]["players"]]
    late = {"game": "connect_four", "position": "137127154673375617425463357241", "player": "solver"}
    found = client.post("/api/analyse", json=late).json()
    assert found["kind"] == "exact"
    assert found["moves"][0]["line"]
    refused = client.post("/api/analyse", json={**late, "position": "4"})
    assert refused.status_code == 400
    assert "stones" in refused.json()["detail"]
    view = begin(client, "connect_four", position=late["position"])
    hint = client.post(f"/api/hints/{view['id']}", json={"player": "solver"}).json()
    assert (hint["value"], hint["moves"][0]["line"]) == (found["value"], [])  # a hint is soon there


def test_connect_fours_solver_is_an_opponent_where_it_answers_soon(client: httpx.Client) -> None:
    asked = {"game": "connect_four", "seats": ["human", "solver"]}
    refused = client.post("/api/tables", json=asked)
    assert refused.status_code == 400
    assert "stones" in refused.json()["detail"]
    view = begin(client, "connect_four", ["human", "solver"], position="137127154673375617425463357241")
    view = do(client, view, "move", text=view["moves"][0]["name"])
    assert (view["trouble"], len(view["history"])) == (None, 2)


@needs_stockfish
def test_chess_is_analysed_and_reviewed_by_stockfish(client: httpx.Client) -> None:
    mate_in_two = "6k1/5ppp/8/8/8/8/2r2PPP/1R4K1 w - - 0 1"
    asked = {"game": "chess", "position": mate_in_two, "count": 3}
    found = client.post("/api/analyse", json=asked).json()  # nobody is named
    assert found["player"].startswith("stockfish")
    best = found["moves"][0]
    assert (best["name"], best["value"], best["chances"]) == ("Rb8+", 1, [1, 0, 0])
    assert best["line"] == ["Rc8", "Rxc8#"]
    view = begin(client, "chess", ["human", "eps50"], position=mate_in_two)
    assert client.post(f"/api/hints/{view['id']}", json={}).json()["moves"][0]["name"] == "Rb8+"
    refused = client.post("/api/analyse", json={**asked, "player": "eps50"})
    assert refused.status_code == 400
    assert "draws no lots" in refused.json()["detail"]
    seen = client.post("/api/review", json={"game": "chess", "text": "1. f3 e5 2. g4 Qh4# 0-1"}).json()
    assert [turn["mark"] for turn in seen["turns"]][2:] == ["blunder", ""]
    assert seen["turns"][3]["best"] == "Qh4#"
    assert seen["summary"][0]["blunder"] >= 1


def test_a_player_without_values_is_asked_for_its_move(client: httpx.Client) -> None:
    view = begin(client, "quoridor")
    found = client.post(f"/api/hints/{view['id']}", json={}).json()
    assert (found["player"], found["kind"], found["value"]) == ("shortest:walls", "choice", None)
    assert [move["name"] for move in found["moves"]] == ["e2"]
    assert found["moves"][0]["steps"] == [{"from": "e1", "to": "e2", "choice": None}]


# ---- Balatro


def test_a_run_of_balatro_is_played_taken_back_and_kept(server: Server, client: httpx.Client) -> None:
    run = client.post("/api/balatro", json={"seed": "ALEA1234"}).json()
    assert run["seed"] == "ALEA1234"
    assert client.post(f"/api/balatro/{run['id']}/hint").json()["words"] == "select blind"
    blind = next(offer["action"] for offer in run["actions"] if offer["words"] == "select blind")
    dealt = client.post(f"/api/balatro/{run['id']}/act", json={"what": "act", "action": blind}).json()
    assert len(dealt["hand"]) == 8
    played = client.post(f"/api/balatro/{run['id']}/act", json={"what": "play", "cards": [0, 3]}).json()
    assert played["score"] > 0
    assert played["account"]
    wrong = client.post(f"/api/balatro/{run['id']}/act", json={"what": "play", "cards": []})
    assert wrong.status_code == 400
    assert client.get(f"/api/balatro/{run['id']}").json()["score"] == played["score"]
    again = client.post(f"/api/balatro/{run['id']}/back").json()
    assert again["hand"] == dealt["hand"]
    assert client.get("/api/balatro/nothing").status_code == 404
    assert client.post("/api/balatro", json={"seed": "a b"}).status_code in (400, 422)


TELL = """
import json
from aleazero.games.balatro import actions
from aleazero.games.balatro.saved import SavedRun
from aleazero.web.balatro_run import BalatroRun
run = BalatroRun(SavedRun("ALEA1234"))
run.act("act", [], next(offer["action"] for offer in run.view()["actions"] if offer["words"] == "select blind"))
subset = [int(bits) for bits in actions.SUBSETS].index(0b1001)
told, other, before = run.tell(actions.A_DISCARD + subset), run.copy(), run.view()
run.act("discard", [7], None)
print(json.dumps([told, before["hand"], other.view() == before != run.view()]))
"""


def test_a_hint_names_the_cards_it_is_about() -> None:
    env = {**os.environ, "ALEA_BALATRO_PLAIN": "1"}  # to compile it would take longer than all tests here
    said = subprocess.run([sys.executable, "-c", TELL], env=env, capture_output=True, text=True, check=True)
    told, cards, apart = json.loads(said.stdout)
    assert apart  # hints are thought of beside what is done meanwhile
    assert told["cards"] == [0, 3]
    assert told["words"] == f"discard {cards[0]['text']} {cards[3]['text']}"
