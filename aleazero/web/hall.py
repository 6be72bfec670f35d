"""The hall: every table, who looks on, and the players' answers. One event loop; rules run on threads beside it.

A table is written to disk at every change and read back when somebody asks for it: a server that was killed goes on
where it was, and no clock ran meanwhile. Few are kept in memory, so that the hall does not grow with its visitors.
Knows tables and the engine room; nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import os
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from aleazero.core.errors import AleaError
from aleazero.web.room import Room
from aleazero.web.table import HUMAN, NotNow, Record, Table

IN_MEMORY = 64
ON_DISK = 5000
_ID = re.compile(r"[A-Za-z0-9_-]{16}")
_log = logging.getLogger(__name__)


class NoSuchTable(AleaError):  # noqa: N818
    """Nobody knows a table of this name."""


class _Place:
    """A table in memory."""

    def __init__(self, name: str, table: Table) -> None:
        self.name, self.table = name, table
        self.version = int(time.time() * 1000)  # greater than before, also after a restart of the server
        self.thinking = False
        self.trouble: str | None = None
        self.lock = asyncio.Lock()
        self.changed = asyncio.Event()
        self.view: dict[str, Any] = {}

    def seen(self) -> dict[str, Any]:
        """What is shown of it, with the time that is left now."""
        return {**self.view, "clock": self.table.time_left(time.time())}


class Hall:
    """All tables."""

    def __init__(self, folder: Path, room: Room) -> None:
        self._folder, self.room = folder, room
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flags: dict[str, asyncio.TimerHandle] = {}  # when a table's time will be up
        self._began = time.time()
        folder.mkdir(parents=True, exist_ok=True)

    async def open(self, record: Record) -> dict[str, Any]:
        """A new table; AleaError where it cannot be."""
        table = await asyncio.to_thread(Table, record)
        for seat, player in enumerate(record.seats):
            if player != HUMAN:
                await asyncio.to_thread(self.room.sit, record.game, player, table.state, seat == table.to_play)
        place = _Place(secrets.token_urlsafe(12), table)
        self._remember(place)
        await self._publish(place)
        for player in {seat for seat in record.seats if seat != HUMAN}:
            self.room.prepare(record.game, player).add_done_callback(_told)
        await asyncio.to_thread(forget_oldest, self._folder)
        self._let_answer(place)
        return place.seen()

    async def look(self, name: str, after: int | None = None, wait: float = 20.0) -> dict[str, Any]:
        """What is seen of a table; with `after`, once it is newer than that, or when nothing has happened for long."""
        place = await self._place(name)
        if after is not None and place.version == after:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(place.changed.wait(), wait)
        async with place.lock:  # not in the middle of a change, nor while it is read back
            return place.seen()

    async def act(self, name: str, what: Callable[[Table], None]) -> dict[str, Any]:
        """Changes a table; AleaError, and nothing changed, where that cannot be."""
        place = await self._place(name)
        async with place.lock:
            if place.table.notice(time.time()):
                await self._publish(place)
                raise NotNow("the time is up: the game is over")
            await self._change(place, what)
        self._let_answer(place)
        return place.seen()

    async def ask(self, name: str, what: Callable[[Table], Any]) -> Any:
        """Something about a table that takes long; the table is a copy of its own."""
        place = await self._place(name)
        async with place.lock:  # not in the middle of a change
            table = place.table.copy()
        return await asyncio.wrap_future(self.room.slowly(lambda: what(table)))

    async def close(self) -> None:
        """Stops thinking."""
        for timer in self._flags.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ---- players

    def _let_answer(self, place: _Place) -> None:
        if not place.thinking and not place.table.over and place.table.player != HUMAN:
            place.thinking = True
            self._do(self._answer(place))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, place: _Place) -> None:
        """Moves for players that are not people, as long as one is to play."""
        table = place.table
        try:
            while True:
                async with place.lock:
                    if table.over or table.player == HUMAN:
                        return
                    player = table.player
                await asyncio.wrap_future(self.room.prepare(table.record.game, player))
                async with place.lock:
                    if table.over or table.player != player:
                        continue  # taken back, or given up, while it was loaded
                    if table.record.clock is not None:  # that a player is loaded costs it nothing
                        table.start_clock(time.time())
                        await self._publish(place)
                    record = table.record
                    turn = self.room.turn(record.game, player, table.state, record.seed, len(table.played))
                actions = await asyncio.wrap_future(turn)
                async with place.lock:
                    if table.record != record:
                        continue  # taken back, or given up, while it was thinking
                    if table.notice(time.time()):
                        await self._publish(place)
                    else:
                        await self._change(place, functools.partial(_play, actions=actions))
        except Exception as error:  # whatever it is, the visitor is told, and can take back or resign
            _log.warning("table %s: %r", place.name, error)
            async with place.lock:
                place.trouble = str(error) or type(error).__name__
                await self._publish(place)
        finally:
            place.thinking = False

    # ---- time

    def _await_flag(self, place: _Place) -> None:
        """Sees to it that a game ends when a time is up, whether or not anybody asks."""
        if place.name in self._flags:
            self._flags.pop(place.name).cancel()
        shown = place.table.time_left(time.time())
        if shown is not None and shown["running"] is not None:
            loop, wait = asyncio.get_running_loop(), shown["left"][shown["running"]] + 0.01
            self._flags[place.name] = loop.call_later(wait, lambda: self._do(self._time_is_up(place.name)))

    async def _time_is_up(self, name: str) -> None:
        self._flags.pop(name, None)
        place = await self._place(name)
        async with place.lock:
            if place.table.notice(time.time()):
                await self._publish(place)
            else:
                self._await_flag(place)

    # ---- keeping

    async def _place(self, name: str) -> _Place:
        if name in self._places:
            self._places.move_to_end(name)
            return self._places[name]
        if not _ID.fullmatch(name):
            raise NoSuchTable(f"there is no table {name[:40]!r}")
        try:
            text = await asyncio.to_thread(self._file(name).read_text, "utf-8")
            table = await asyncio.to_thread(Table, self._without_the_pause(Record.from_json(text)))
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise NoSuchTable(f"there is no table {name!r}") from error
        if name in self._places:  # another visitor was faster
            return self._places[name]
        if table.player == HUMAN:  # a player's own time runs once it is loaded
            table.start_clock(time.time())
        place = _Place(name, table)
        self._remember(place)
        async with place.lock:
            await self._publish(place)
        self._let_answer(place)
        return place

    def _without_the_pause(self, record: Record) -> Record:
        """No time runs while there is no server: what ran before this one began is started again."""
        clock = record.clock
        if clock is None or clock.since is None or clock.since >= self._began:
            return record
        return dataclasses.replace(record, clock=dataclasses.replace(clock, since=None))

    def _remember(self, place: _Place) -> None:
        self._places[place.name] = place
        for name in list(self._places):
            if len(self._places) <= IN_MEMORY:
                return
            old = self._places[name]
            if not old.thinking and not old.lock.locked() and old is not place:  # one that changes would be read twice
                del self._places[name]

    async def _change(self, place: _Place, what: Callable[[Table], None]) -> None:
        """Does something at a table, and shows it; nothing is shown where it cannot be done."""

        def do(table: Table) -> None:
            turns = len(table.played)
            what(table)
            table.count(turns, time.time())
            place.trouble = None

        await self._publish(place, do)

    async def _publish(self, place: _Place, what: Callable[[Table], None] | None = None) -> None:
        """Writes a table down, after something was done at it, and shows it to all who look."""
        table = place.table

        def work() -> dict[str, Any]:  # at once, on one thread: to go from one to another costs more than the rules do
            if what is not None:
                what(table)
            view = table.view()
            _write(self._file(place.name), table.record.to_json())
            return view

        view = await asyncio.to_thread(work)
        thinking = not table.over and table.player != HUMAN
        place.version += 1
        more = {"thinking": thinking and place.trouble is None, "trouble": place.trouble}
        place.view = {"id": place.name, "version": place.version, **view, **more}
        changed, place.changed = place.changed, asyncio.Event()
        changed.set()
        self._await_flag(place)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def forget_oldest(folder: Path, most: int = ON_DISK) -> None:
    """Deletes the records that nobody has touched for longest, where there are more than so many."""
    names = [entry.name for entry in os.scandir(folder) if entry.name.endswith(".json")]
    if len(names) <= most:
        return
    touched: dict[Path, float] = {}
    for name in names:
        with contextlib.suppress(FileNotFoundError):  # another visitor's tidying was faster
            touched[folder / name] = (folder / name).stat().st_mtime
    for file in sorted(touched, key=touched.__getitem__)[: max(len(touched) - most, 0)]:
        file.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """Whole or not at all, should the server be killed; a loss of power may take the last moves with it."""
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text(text, "utf-8")
    os.replace(fresh, path)


def _play(table: Table, actions: list[int]) -> None:
    table.step(actions)
    if table.waits:
        table.end_turn()


def _told(loaded: Any) -> None:
    """A player that does not load is said at its first move; here it need only not be a surprise."""
    if not loaded.cancelled() and loaded.exception() is not None:
        _log.warning("a player did not load: %s", loaded.exception())


__all__ = ["Hall", "NoSuchTable", "NotNow"]
