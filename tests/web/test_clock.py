from __future__ import annotations

import time

import httpx
import pytest

from aleazero.web.clock import Clock
from aleazero.web.play_api import written
from aleazero.web.table import HUMAN, NotNow, Record, Table
from tests.web.conftest import PATIENCE

TWO = (HUMAN, HUMAN)
LONE_KING = "8/8/8/8/8/k7/8/K6R b - - 0 1"  # Black has nothing but the king


def timed(seconds: float = 60, increment: float = 2, game: str = "tictactoe", start: str | None = None) -> Table:
    return Table(Record(game, TWO, 0, start, clock=Clock.of(seconds, increment)))


def move(table: Table, text: str, now: float) -> None:
    turns = len(table.played)
    table.step(table.read(text))
    table.count(turns, now)


def left(table: Table, now: float) -> list[float]:
    shown = table.time_left(now)
    assert shown is not None
    found: list[float] = shown["left"]
    return found


def test_a_clock_starts_with_the_first_move_and_adds_its_increment() -> None:
    table = timed()
    table.count(0, 1000.0)
    assert left(table, 1e6) == [60, 60]  # nobody has moved yet
    move(table, "a1", 2000.0)
    assert left(table, 2010.0) == [60, 50]
    move(table, "b2", 2010.0)
    assert left(table, 2010.0) == [60, 52]
    assert left(table, 2030.0) == [40, 52]
    again = Table(Record.from_json(table.record.to_json()))
    assert again.time_left(2030.0) == table.time_left(2030.0)


def test_who_has_no_time_left_loses_and_nothing_more_is_played() -> None:
    table = timed()
    move(table, "a1", 0.0)
    assert not table.notice(59.9)
    assert table.notice(60.0)
    view = table.view()
    assert view["result"] == {"winner": 0, "points": 1.0, "name": "on time"}
    assert left(table, 1e6) == [60, 0]
    with pytest.raises(NotNow, match="over"):
        table.step([8])
    table.next_game()
    assert (table.over, left(table, 2e6)) == (False, [60, 60])


def test_a_lone_king_does_not_win_on_time() -> None:
    late = [Table(Record("chess", TWO, 0, LONE_KING, clock=Clock.of(60, 2), late=seat)) for seat in (0, 1)]
    assert [table.view()["result"]["winner"] for table in late] == [None, 0]
    records = [written(table) for table in late]
    assert [record.split()[-1] for record in records] == ["1/2-1/2", "1-0"]
    assert all('[TimeControl "60+2"]' in record and "time forfeit" in record for record in records)


def test_with_a_clock_only_steps_are_taken_back() -> None:
    table = timed(game="backgammon")
    table.step([table.moves()[0]["action"]])
    assert table.view()["can_take_back"]
    table.take_back()
    while not table.waits:
        table.step([table.moves()[0]["action"]])
    table.end_turn()
    assert not table.view()["can_take_back"]
    with pytest.raises(NotNow, match="clock"):
        table.take_back()


def test_a_flag_falls_at_the_server_whether_or_not_anybody_asks(client: httpx.Client) -> None:
    asked = {"game": "tictactoe", "seats": ["human", "human"], "clock": {"seconds": 1, "increment": 5}}
    view = client.post("/api/tables", json=asked).json()
    assert view["clock"] == {"left": [1.0, 1.0], "running": None, "seconds": 1.0, "increment": 5.0}
    view = client.post(f"/api/tables/{view['id']}/move", json={"text": "a1"}).json()
    assert view["clock"]["running"] == 1
    started = time.monotonic()
    while not view["over"] and time.monotonic() < started + PATIENCE:
        view = client.get(f"/api/tables/{view['id']}", params={"after": view["version"]}).json()
    assert view["result"] == {"winner": 0, "points": 1.0, "name": "on time"}
    assert view["clock"]["left"] == [1.0, 0.0]
    late = client.post(f"/api/tables/{view['id']}/move", json={"text": "b2"})
    assert (late.status_code, "over" in late.json()["detail"]) == (409, True)


def test_a_player_that_thinks_has_its_time_counted(client: httpx.Client) -> None:
    asked = {"game": "tictactoe", "seats": ["human", "random"], "clock": {"seconds": 600, "increment": 0}, "seed": 1}
    view = client.post("/api/tables", json=asked).json()
    view = client.post(f"/api/tables/{view['id']}/move", json={"text": "b2"}).json()
    end = time.monotonic() + PATIENCE
    while view["thinking"] and time.monotonic() < end:
        view = client.get(f"/api/tables/{view['id']}", params={"after": view["version"]}).json()
    assert len(view["history"]) == 2
    assert view["clock"]["running"] == 0
    assert 590 < view["clock"]["left"][1] < 600  # it thought, but was not charged for being loaded
    resigned = client.post(f"/api/tables/{view['id']}/resign").json()
    assert resigned["clock"]["running"] is None


@pytest.mark.parametrize("clock", [{"seconds": 0}, {"seconds": 1e9}, {"seconds": "x"}, {}, {"seconds": 60, "more": 1}])
def test_a_clock_that_cannot_be_is_refused(client: httpx.Client, clock: dict[str, object]) -> None:
    asked = {"game": "tictactoe", "seats": ["human", "human"], "clock": clock}
    assert client.post("/api/tables", json=asked).status_code == 422
