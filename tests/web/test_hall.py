"""A hall in this process, with a real room, whose loading and changes are held up as long as a test wants."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from aleazero.web.clock import Clock
from aleazero.web.hall import Hall
from aleazero.web.room import Room
from aleazero.web.table import HUMAN, Record, Table
from tests.web.conftest import PATIENCE

NAME = "a-table-of-ours_"
SEATS = (HUMAN, "random")


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[Hall, threading.Event]]:
    """A hall that loads no player until the event is set."""
    room, gate = Room(None), threading.Event()
    for _ in range(2):
        room._load.submit(gate.wait, PATIENCE)
    hall = Hall(folder, room)
    try:
        yield hall, gate
    finally:
        gate.set()
        await hall.close()
        room.close()


async def answers(hall: Hall) -> None:
    """Waits until nobody thinks."""
    await asyncio.wait_for(asyncio.gather(*hall._tasks), PATIENCE)


def move(text: str) -> Callable[[Table], None]:
    return lambda table: table.step(table.read(text))


def give_up(table: Table) -> None:
    table.resign(0)


def take_back(table: Table) -> None:
    table.take_back()


@pytest.mark.parametrize("clock", [None, Clock.of(60, 0)])
def test_a_game_given_up_while_a_player_is_loaded_is_over(tmp_path: Path, clock: Clock | None) -> None:
    async def play() -> None:
        async with opened(tmp_path) as (hall, gate):
            name = (await hall.open(Record("tictactoe", SEATS, 0, clock=clock)))["id"]
            assert (await hall.act(name, move("b2")))["thinking"]
            await asyncio.sleep(0)  # the player is asked for
            await hall.act(name, give_up)
            gate.set()
            await answers(hall)
            view = await hall.look(name)
            assert (view["over"], view["trouble"], len(view["history"])) == (True, None, 1)

    asyncio.run(play())


def test_a_move_taken_back_while_a_player_is_loaded_can_be_made_again(tmp_path: Path) -> None:
    async def play() -> None:
        async with opened(tmp_path) as (hall, gate):
            name = (await hall.open(Record("tictactoe", SEATS, 0)))["id"]
            await hall.act(name, move("b2"))
            await asyncio.sleep(0)  # the player is asked for
            await hall.act(name, take_back)
            gate.set()
            await answers(hall)
            view = await hall.look(name)
            assert (view["trouble"], view["history"]) == (None, [])
            await hall.act(name, move("a1"))
            await answers(hall)
            assert len((await hall.look(name))["history"]) == 2

    asyncio.run(play())


def kept(folder: Path, seats: tuple[str, str], since: float) -> None:
    """A record with 60 seconds for either seat; the second one has been thinking since then."""
    table = Table(Record("tictactoe", seats, 0, clock=Clock.of(60, 0)))
    table.step(table.read("b2"))
    table.count(0, since)
    table.start_clock(since)
    (folder / f"{NAME}.json").write_text(table.record.to_json())


def test_a_player_pays_neither_for_a_restart_nor_for_being_loaded_after_it(tmp_path: Path) -> None:
    kept(tmp_path, SEATS, time.time() - 1000)

    async def play() -> None:
        async with opened(tmp_path) as (hall, gate):
            clock = (await hall.look(NAME))["clock"]
            assert (clock["running"], clock["left"]) == (None, [60, 60])
            gate.set()
            await answers(hall)
            clock = (await hall.look(NAME))["clock"]
            assert (clock["running"], clock["left"][1] > 0) == (0, True)

    asyncio.run(play())


def test_a_persons_time_begins_again_when_somebody_comes_after_a_restart(tmp_path: Path) -> None:
    kept(tmp_path, (HUMAN, HUMAN), time.time() - 1000)

    async def play() -> None:
        async with opened(tmp_path) as (hall, _):
            hall._began -= 500  # the server has been there for long, and nobody came
            clock = (await hall.look(NAME))["clock"]
            assert (clock["running"], clock["left"][1] > 50) == (1, True)

    asyncio.run(play())


def test_time_runs_on_at_a_table_that_only_memory_has_forgotten(tmp_path: Path) -> None:
    async def play() -> None:
        async with opened(tmp_path) as (hall, _):
            hall._began -= 500
            kept(tmp_path, (HUMAN, HUMAN), time.time() - 20)
            clock = (await hall.look(NAME))["clock"]
            assert (clock["running"], clock["left"][1] <= 40) == (1, True)

    asyncio.run(play())


def test_a_table_that_is_read_back_is_shown_whole_to_all_who_come_at_once(tmp_path: Path) -> None:
    kept(tmp_path, (HUMAN, HUMAN), time.time())

    async def play() -> None:
        async with opened(tmp_path) as (hall, _):
            views = await asyncio.gather(*(hall.look(NAME) for _ in range(8)))
            assert [view.get("id") for view in views] == [NAME] * 8

    asyncio.run(play())


def test_a_table_is_not_copied_in_the_middle_of_a_change(tmp_path: Path) -> None:
    begun, gate = threading.Event(), threading.Event()

    def slowly(table: Table) -> None:
        table.step(table.read("a1"))
        begun.set()
        gate.wait(PATIENCE)
        table.step(table.read("b2"))

    async def play() -> None:
        async with opened(tmp_path) as (hall, _):
            name = (await hall.open(Record("tictactoe", (HUMAN, HUMAN), 0)))["id"]
            acting = asyncio.create_task(hall.act(name, slowly))
            await asyncio.to_thread(begun.wait, PATIENCE)
            asking = asyncio.create_task(hall.ask(name, lambda table: len(table.played)))
            await asyncio.sleep(0)  # it has asked
            gate.set()
            assert await asking == 2
            await acting

    asyncio.run(play())


def test_a_table_that_changes_is_not_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aleazero.web.hall.IN_MEMORY", 1)

    async def play() -> None:
        async with opened(tmp_path) as (hall, _):
            name = (await hall.open(Record("tictactoe", (HUMAN, HUMAN), 0)))["id"]
            begun, go_on = threading.Event(), threading.Event()

            def slowly(table: Table) -> None:
                begun.set()
                go_on.wait(PATIENCE)
                move("b2")(table)

            changing = asyncio.create_task(hall.act(name, slowly))
            await asyncio.to_thread(begun.wait, PATIENCE)
            await hall.open(Record("tictactoe", (HUMAN, HUMAN), 1))
            assert name in hall._places
            seen = asyncio.create_task(hall.look(name))
            await asyncio.sleep(0.05)
            go_on.set()
            await changing
            assert [turn["name"] for turn in (await seen)["history"]] == ["b2"]

    asyncio.run(play())
