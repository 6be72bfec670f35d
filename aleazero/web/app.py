"""The application: routes joined, errors as answers, the page. OpenAPI at `/api/openapi.json`."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles

from aleazero import __version__
from aleazero.core.errors import AleaError, UnknownName
from aleazero.web import analyse_api, balatro_api, play_api, watch_api
from aleazero.web.guard import Guard
from aleazero.web.hall import Hall, NoSuchTable
from aleazero.web.room import Room
from aleazero.web.table import NotNow

STATIC = Path(__file__).parent / "static"
UNBUILT = (
    "The page has not been built. From a checkout: install Node 20 with npm, then run `make web`; "
    "an installed wheel brings it along. The API works: see /api/openapi.json"
)


@dataclasses.dataclass(frozen=True)
class WebSettings:
    """What a server is started with."""

    tables: Path  # where tables are kept
    runs: Path  # where runs of the kind run:NAME are
    watched: tuple[Path, ...] = ()  # runs, or folders of runs, to watch; none: those in `runs`
    token: str | None = None  # needed by everybody; None: nobody but this machine is answered
    warm: tuple[str, ...] = ()  # games whose rules and first player are compiled at once


def make_app(settings: WebSettings) -> Guard:
    """The ASGI application."""

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        room = Room(settings.runs)
        app.state.hall, app.state.settings = Hall(settings.tables, room), settings
        app.state.offers = asyncio.ensure_future(asyncio.to_thread(play_api.offers))  # before anybody asks
        app.state.balatro = balatro_api.Runs(settings.tables)
        app.state.watch = watch_api.Watch(settings.watched or (settings.runs,))
        for game in settings.warm:
            room.ahead(functools.partial(play_api.warm, room, game))
        try:
            yield
        finally:
            await app.state.hall.close()
            room.close()

    app = FastAPI(
        title="AleaZero",
        version=__version__,
        summary="Play, watch and analyse.",
        lifespan=life,
        openapi_url="/api/openapi.json",
        docs_url=None,  # both load scripts from elsewhere
        redoc_url=None,
    )
    for router in (play_api.router, balatro_api.router, analyse_api.router, watch_api.router):
        app.include_router(router, prefix="/api")
    app.add_exception_handler(AleaError, _explain)
    app.add_exception_handler(RequestValidationError, _what_is_wrong)
    if (STATIC / "index.html").is_file():
        app.mount("/", StaticFiles(directory=STATIC, html=True))
    else:

        @app.get("/", include_in_schema=False)
        async def unbuilt() -> PlainTextResponse:
            return PlainTextResponse(UNBUILT, status_code=503)

    return Guard(app, settings.token)


async def _explain(request: Request, error: Any) -> JSONResponse:
    """Errors that a visitor can act on, as answers."""
    status = 400
    if isinstance(error, NoSuchTable):
        status = 404
    elif isinstance(error, NotNow):
        status = 409
    elif isinstance(error, UnknownName):
        status = 404 if request.url.path.startswith("/api/runs/") else 400
    return JSONResponse({"detail": str(error)[:2000]}, status_code=status)


async def _what_is_wrong(request: Request, error: Any) -> JSONResponse:
    """Where a request is not as described; without what was sent, which need not be JSON."""
    problems = [{"loc": [str(part) for part in one["loc"]], "msg": one["msg"]} for one in error.errors()]
    return JSONResponse({"detail": problems[:20]}, status_code=422)
