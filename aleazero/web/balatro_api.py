"""Routes for Balatro: a run, what is done in it, hints. Runs are kept on disk as tables are."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from aleazero.core.files import replace_file
from aleazero.games.balatro.rng import check_seed
from aleazero.games.balatro.saved import SavedRun, read
from aleazero.web.balatro_run import BalatroRun
from aleazero.web.hall import NoSuchTable, forget_oldest
from aleazero.web.play_api import PROBLEMS, TableId, hall_of

router = APIRouter()
IN_MEMORY = 64
_ID = re.compile(r"[A-Za-z0-9_-]{16}")
_LETTERS = "123456789ABCDEFGHIJKLMNPQRSTUVWXYZ"


class NewRun(BaseModel):
    """A run to begin."""

    model_config = ConfigDict(extra="forbid", strict=True)
    seed: Annotated[str | None, Field(min_length=1, max_length=8, description="Another each time if left out.")] = None


class Act(BaseModel):
    """Cards to play or discard by their places from 0 on; or an action, with cards where it needs any."""

    model_config = ConfigDict(extra="forbid", strict=True)
    what: Literal["play", "discard", "act"]
    cards: Annotated[list[Annotated[int, Field(ge=0, lt=64)]], Field(max_length=16)] = []
    action: Annotated[int | None, Field(ge=0, lt=1000)] = None


class Runs:
    """Runs by name, one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "balatro"
        self._runs: OrderedDict[str, BalatroRun] = OrderedDict()
        self._lock = asyncio.Lock()

    async def begin(self, seed: str) -> dict[str, Any]:
        """A new run."""
        async with self._lock:
            name = secrets.token_urlsafe(12)
            view = await asyncio.to_thread(self._change, name, lambda: BalatroRun(SavedRun(seed)))
            await asyncio.to_thread(forget_oldest, self._folder)
            return view

    async def change(self, name: str, what: Callable[[BalatroRun], None]) -> dict[str, Any]:
        """A run after something was done."""

        def do() -> BalatroRun:
            run = self._find(name)
            what(run)
            return run

        async with self._lock:
            return await asyncio.to_thread(self._change, name, do)

    async def copy(self, name: str) -> BalatroRun:
        """A run to look at, while others are changed."""
        async with self._lock:
            return await asyncio.to_thread(lambda: self._find(name).copy())

    def _change(self, name: str, make: Callable[[], BalatroRun]) -> dict[str, Any]:
        run = make()
        self._folder.mkdir(parents=True, exist_ok=True)
        content = {"game": "balatro", "version": 1, **dataclasses.asdict(run.saved)}
        replace_file(self._folder / f"{name}.json", json.dumps(content).encode())
        self._runs[name] = run
        while len(self._runs) > IN_MEMORY:
            self._runs.popitem(last=False)
        return {"id": name, **run.view()}

    def _find(self, name: str) -> BalatroRun:
        if name in self._runs:
            self._runs.move_to_end(name)
            return self._runs[name]
        path = self._folder / f"{name}.json"
        if not _ID.fullmatch(name) or not path.is_file():
            raise NoSuchTable(f"there is no run {name[:40]!r}")
        return BalatroRun(read(path))


def runs_of(request: Request) -> Runs:
    """The server's runs of Balatro."""
    runs: Runs = request.app.state.balatro
    return runs


@router.post("/balatro", tags=["balatro"], status_code=201, responses=PROBLEMS)
async def begin(asked: NewRun, request: Request) -> dict[str, Any]:
    """Begins a run."""
    seed = asked.seed or "".join(secrets.choice(_LETTERS) for _ in range(8))
    check_seed(seed)
    return await runs_of(request).begin(seed)


@router.get("/balatro/{table}", tags=["balatro"], responses=PROBLEMS)
async def see(table: TableId, request: Request) -> dict[str, Any]:
    """What is seen of a run."""
    run = await runs_of(request).copy(table)
    return {"id": table, **await asyncio.to_thread(run.view)}


@router.post("/balatro/{table}/act", tags=["balatro"], responses=PROBLEMS)
async def act(table: TableId, asked: Act, request: Request) -> dict[str, Any]:
    """Plays, discards, buys, sells, uses, goes on."""
    return await runs_of(request).change(table, lambda run: run.act(asked.what, asked.cards, asked.action))


@router.post("/balatro/{table}/back", tags=["balatro"], responses=PROBLEMS)
async def back(table: TableId, request: Request) -> dict[str, Any]:
    """Takes back what was done last."""
    return await runs_of(request).change(table, lambda run: run.take_back())


@router.post("/balatro/{table}/hint", tags=["balatro"], responses=PROBLEMS)
async def hint(table: TableId, request: Request) -> dict[str, Any]:
    """What our network would do; a baseline, where none comes with the package."""
    run = await runs_of(request).copy(table)
    return await asyncio.wrap_future(hall_of(request).room.slowly(run.hint))
