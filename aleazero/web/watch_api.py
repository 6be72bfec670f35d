"""Routes for watching: runs, their curves as they grow, alarms, workers, games of self-play; pause, resume, stop."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, WebSocket
from pydantic import BaseModel, ConfigDict, Field

from aleazero.chess_games import selfplay_games
from aleazero.core.errors import AleaError, ConfigError
from aleazero.core.settings import to_toml
from aleazero.play.episodes import Episode
from aleazero.runs import RunFolder
from aleazero.standing import standing
from aleazero.web.feed import Watch, order, panels
from aleazero.web.play_api import PROBLEMS
from aleazero.web.replays import frames
from aleazero.web.rules import playable
from aleazero.web.sockets import not_there, watching

router = APIRouter()
RunName = Annotated[str, Path(min_length=1, max_length=128)]
POLL_SECONDS = 0.5
SLABS, GAMES = 32, 40  # looked through, and listed
LAST_ALARMS = 20


class Confirmed(BaseModel):
    """An order to a run, confirmed by its name."""

    model_config = ConfigDict(extra="forbid", strict=True)
    confirm: Annotated[str, Field(min_length=1, max_length=128, description="The run's name once more.")]


def watch_of(request: Request | WebSocket) -> Watch:
    """The server's runs."""
    watch: Watch = request.app.state.watch
    return watch


@router.get("/runs", tags=["watch"], responses=PROBLEMS)
async def runs(request: Request) -> dict[str, Any]:
    """Every run and how it stands."""
    watch = watch_of(request)

    def look() -> list[dict[str, Any]]:
        return [dataclasses.asdict(standing(run, watch.feed(run).records)) for run in watch.runs()]

    return {"runs": await asyncio.to_thread(look)}


@router.get("/runs/{run}", tags=["watch"], responses=PROBLEMS)
async def one_run(run: RunName, request: Request) -> dict[str, Any]:
    """How a run stands, its alarms, machine and workers, and its settings."""
    watch = watch_of(request)

    def look() -> dict[str, Any]:
        folder = watch.find(run)
        records = watch.feed(folder).records
        alarms = [record for record in records if record.get("kind") == "alarm"][-LAST_ALARMS:]
        last = {
            kind: next((record for record in reversed(records) if record.get("kind") == kind), None)
            for kind in ("hardware", "workers", "selfplay", "replay")
        }
        try:
            settings = to_toml(folder.read_config())
        except AleaError as error:
            settings = str(error)
        return {**dataclasses.asdict(standing(folder, records)), "alarms": alarms, **last, "settings": settings}

    return await asyncio.to_thread(look)


@router.get("/runs/{run}/curves", tags=["watch"], responses=PROBLEMS)
async def curves(
    run: RunName,
    request: Request,
    since: Annotated[int, Query(ge=0, le=2**31, description="Reports that are drawn already.")] = 0,
    epoch: Annotated[int, Query(ge=0, le=2**31, description="As given with them.")] = 0,
) -> dict[str, Any]:
    """Points of the run's curves; only new ones, unless the run has gone back: then all, with another epoch."""
    watch = watch_of(request)

    def look() -> dict[str, Any]:
        feed = watch.feed(watch.find(run))
        now, records = feed.epoch, feed.records
        count = len(records)
        first = since if now == epoch and since <= count else 0
        return {"epoch": now, "first": first, "count": count, "panels": panels(records[first:count])}

    return await asyncio.to_thread(look)


@router.get("/runs/{run}/games", tags=["watch"], responses=PROBLEMS)
async def games(run: RunName, request: Request) -> dict[str, Any]:
    """The newest whole games of self-play that the run's replay log holds."""
    watch = watch_of(request)

    def look() -> list[dict[str, Any]]:
        newest = list(_episodes(watch.find(run)))[-GAMES:]
        return [
            {"id": one.id, "moves": len(one), "points": float(one.moves.points[-1]) if one.moves.ended[-1] else None}
            for one in reversed(newest)
        ]

    return {"games": await asyncio.to_thread(look)}


@router.get("/runs/{run}/games/{game}", tags=["watch"], responses=PROBLEMS)
async def one_game(run: RunName, game: Annotated[str, Path(max_length=80)], request: Request) -> dict[str, Any]:
    """A game of self-play, position by position."""
    watch = watch_of(request)

    def look() -> dict[str, Any]:
        folder = watch.find(run)
        for episode in _episodes(folder):
            if episode.id == game:
                name = folder.read_config().game
                return {"id": game, "game": name, "frames": frames(playable(name), episode)}
        raise ConfigError(f"game {game!r} is not among the newest games of run {run!r} any more")

    return await asyncio.to_thread(look)


def _episodes(run: RunFolder) -> list[Episode]:
    return list(itertools.islice(selfplay_games(run, SLABS), 10_000))


@router.post("/runs/{run}/{what}", tags=["watch"], responses=PROBLEMS)
async def tell(
    run: RunName, what: Literal["pause", "resume", "stop"], asked: Confirmed, request: Request
) -> dict[str, Any]:
    """Pauses, resumes or stops a run; its name must be given twice."""
    watch = watch_of(request)

    def give() -> str:
        folder = watch.find(run)
        if asked.confirm != run:
            raise ConfigError(f"to {what} run {run!r}, confirm with its name, not with {asked.confirm!r}")
        return order(folder, what)

    return {"message": await asyncio.to_thread(give)}


@router.websocket("/runs/{run}/live")
async def live(socket: WebSocket, run: str) -> None:
    """Says how many reports there are, whenever there are more."""
    watch = watch_of(socket)
    try:
        folder = await asyncio.to_thread(watch.find, run)
    except AleaError as error:
        await not_there(socket, str(error))
        return
    await socket.accept()
    told: tuple[int, int] | None = None
    async with watching(socket) as gone:
        while not gone.done():
            feed = await asyncio.to_thread(watch.feed, folder)
            now = (feed.epoch, len(feed.records))
            if now != told:
                await socket.send_json({"epoch": now[0], "count": now[1]})
                told = now
            await asyncio.wait({gone}, timeout=POLL_SECONDS)
