"""The hall: every table, who looks on, and the players' answers. One event loop; rules run on threads beside it.

A table is written to disk at every change and read back when somebody asks for it: a server that was killed goes on
where it was. Few are kept in memory, so that the hall does not grow with its visitors.
Knows tables and the engine room; nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
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


class Hall:
    """All tables."""

    def __init__(self, folder: Path, room: Room) -> None:
        self._folder, self.room = folder, room
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        folder.mkdir(parents=True, exist_ok=True)

    async def open(self, record: Record) -> dict[str, Any]:
        """A new table; AleaError where it cannot be."""
        table = await asyncio.to_thread(Table, record)
        for player in {seat for seat in record.seats if seat != HUMAN}:
            await asyncio.to_thread(self.room.player, record.game, player)
        place = _Place(secrets.token_urlsafe(12), table)
        self._remember(place)
        await self._publish(place)
        for player in {seat for seat in record.seats if seat != HUMAN}:
            self.room.prepare(record.game, player).add_done_callback(_told)
        await asyncio.to_thread(self._tidy)
        self._let_answer(place)
        return place.view

    async def look(self, name: str, after: int | None = None, wait: float = 20.0) -> dict[str, Any]:
        """What is seen of a table; with `after`, once it is newer than that, or when nothing has happened for long."""
        place = await self._place(name)
        if after is not None and place.version == after:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(place.changed.wait(), wait)
        return place.view

    async def act(self, name: str, what: Callable[[Table], None]) -> dict[str, Any]:
        """Changes a table; AleaError, and nothing changed, where that cannot be."""
        place = await self._place(name)
        async with place.lock:
            await asyncio.to_thread(what, place.table)
            place.trouble = None
            await self._publish(place)
        self._let_answer(place)
        return place.view

    async def ask(self, name: str, what: Callable[[Table], Any]) -> Any:
        """Something about a table that takes long; the table is a copy of its own."""
        place = await self._place(name)
        record = place.table.record
        return await asyncio.wrap_future(self.room.slowly(lambda: what(Table(record))))

    async def close(self) -> None:
        """Stops thinking."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ---- players

    def _let_answer(self, place: _Place) -> None:
        if not place.thinking and not place.table.over and place.table.player != HUMAN:
            place.thinking = True
            task = asyncio.create_task(self._answer(place))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, place: _Place) -> None:
        """Moves for players that are not people, as long as one is to play."""
        try:
            while not place.table.over and place.table.player != HUMAN:
                record, table = place.table.record, place.table
                await asyncio.wrap_future(self.room.prepare(record.game, table.player))
                actions = await asyncio.wrap_future(
                    self.room.turn(record.game, table.player, table.state, record.seed, len(table.played))
                )
                async with place.lock:
                    if place.table.record != record:
                        continue  # taken back, or given up, while it was thinking
                    await asyncio.to_thread(_play, place.table, actions)
                    if place.table.over or place.table.player == HUMAN:
                        place.thinking = False
                    await self._publish(place)
        except Exception as error:  # whatever it is, the visitor is told, and can take back or resign
            _log.warning("table %s: %r", place.name, error)
            place.thinking, place.trouble = False, str(error) or type(error).__name__
            await self._publish(place)
        finally:
            place.thinking = False

    # ---- keeping

    async def _place(self, name: str) -> _Place:
        if name in self._places:
            self._places.move_to_end(name)
            return self._places[name]
        if not _ID.fullmatch(name):
            raise NoSuchTable(f"there is no table {name[:40]!r}")
        try:
            text = await asyncio.to_thread(self._file(name).read_text, "utf-8")
            table = await asyncio.to_thread(lambda: Table(Record.from_json(text)))
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise NoSuchTable(f"there is no table {name!r}") from error
        if name in self._places:  # another visitor was faster
            return self._places[name]
        place = _Place(name, table)
        self._remember(place)
        await self._publish(place)
        self._let_answer(place)
        return place

    def _remember(self, place: _Place) -> None:
        self._places[place.name] = place
        for name in list(self._places):
            if len(self._places) <= IN_MEMORY:
                return
            if not self._places[name].thinking and name != place.name:
                del self._places[name]

    async def _publish(self, place: _Place) -> None:
        """Writes a table down and shows it to all who look."""
        text, thinking = place.table.record.to_json(), not place.table.over and place.table.player != HUMAN
        view = await asyncio.to_thread(place.table.view)
        await asyncio.to_thread(_write, self._file(place.name), text)
        place.version += 1
        more = {"thinking": thinking and place.trouble is None, "trouble": place.trouble}
        place.view = {"id": place.name, "version": place.version, **view, **more}
        changed, place.changed = place.changed, asyncio.Event()
        changed.set()

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _tidy(self) -> None:
        """Forgets the tables that nobody has touched for longest."""
        files = list(self._folder.glob("*.json"))
        if len(files) > ON_DISK:
            files.sort(key=lambda file: file.stat().st_mtime)
            for file in files[: len(files) - ON_DISK]:
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
