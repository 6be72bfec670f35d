"""Routes for playing: games, tables, moves, hints, records; and a WebSocket that tells what changes at a table."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import secrets
import shutil
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, WebSocket
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from aleazero.core.errors import AleaError
from aleazero.games.backgammon.files import GameRecord, record_turn, write_mat
from aleazero.games.chess.game import Chess
from aleazero.games.chess.pgn import pgn_of
from aleazero.games.registry import BUILT_IN
from aleazero.judges import exact_judge
from aleazero.players import bundled_folder
from aleazero.web.clock import Clock
from aleazero.web.hall import Hall
from aleazero.web.room import Room
from aleazero.web.rules import playable
from aleazero.web.sockets import not_there, watching
from aleazero.web.table import HUMAN, NotNow, Record, Table
from aleazero.web.thoughts import think

router = APIRouter()
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"description": why, "content": {"application/json": {"schema": {"type": "object"}}}}
    for code, why in (
        (400, "a text or a setting is wrong; `detail` says what"),
        (404, "there is no such table or run"),
        (409, "not now: it is another seat's turn, or the game is over"),
        (413, "the body is too large"),
    )
}
TableId = Annotated[str, Path(min_length=1, max_length=64, description="As given when the table was opened.")]
PlayerText = Annotated[str, Field(min_length=1, max_length=200, description="human, or a player as in alea play.")]
WAIT_SECONDS = 20.0


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Time(_Asked):
    """A clock: what either side has, and what every turn adds."""

    seconds: Annotated[float, Field(ge=1, le=10_800, allow_inf_nan=False)]
    increment: Annotated[float, Field(ge=0, le=180, allow_inf_nan=False)] = 0.0


class NewTable(_Asked):
    """A game to begin."""

    game: Annotated[str, Field(min_length=1, max_length=64)]
    seats: Annotated[list[PlayerText], Field(min_length=2, max_length=2)]
    seed: Annotated[int | None, Field(ge=0, lt=2**31, description="Of the dice; another each time if left out.")] = None
    position: Annotated[str | None, Field(max_length=2000, description="Where to begin.")] = None
    match_points: Annotated[int, Field(ge=0, le=25, description="A match to so many points; 0: one game.")] = 0
    clock: Annotated[Time | None, Field(description="Starts with the first move; no clock if left out.")] = None


class Steps(_Asked):
    """A move: its actions, or its name in the game's notation."""

    actions: Annotated[list[Annotated[int, Field(ge=0, lt=2**15)]] | None, Field(min_length=1, max_length=8)] = None
    text: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    end: Annotated[bool, Field(description="End the turn with it, where it is complete.")] = False


class Hint(_Asked):
    """Whom to ask; the opponent, or the best player there is, if left out."""

    player: PlayerText | None = None


def hall_of(request: Request | WebSocket) -> Hall:
    """The server's tables."""
    hall: Hall = request.app.state.hall
    return hall


def strengths(name: str) -> list[dict[str, str]]:
    """Players to choose from, the weakest first: those that are there."""
    game = playable(name)
    found = [("random", "random moves")]
    if name == "backgammon":
        if importlib.util.find_spec("gnubg_nn"):
            found += [("pubeval", "pubeval, 1993"), ("gnubg:ply=0;noise=0.1", "GNU Backgammon, careless")]
        if bundled_folder(game):
            found += [(f"bundled,ply={ply}", f"our network at {ply}-ply") for ply in (0, 1, 2)]
        if importlib.util.find_spec("gnubg_nn"):
            found.append(("gnubg:ply=2", "GNU Backgammon at 2-ply"))
        return [{"player": player, "name": words} for player, words in found]
    stockfish = name == "chess" and (shutil.which("stockfish") or shutil.which("stockfish", path="/usr/games"))
    if stockfish:
        found += [(f"eps{share}", f"Stockfish, {share} % of its moves by lot") for share in (75, 50, 30, 15)]
    if name == "quoridor":
        found += [("shortest", "goes the shortest way"), ("shortest:walls", "the same, and places walls in your way")]
    if bundled_folder(game):
        found.append(("bundled,search=none", "our network, without looking ahead"))
        found += [(f"bundled,sims={sims}", f"our network, {sims} simulations") for sims in (32, 200)]
    if stockfish:
        found.append(("stockfish:nodes=1", "Stockfish, one node"))
        found += [(f"stockfish:nodes={nodes}", f"Stockfish, {nodes:,} nodes") for nodes in (1000, 50000)]
    if name != "connect_four" and exact_judge(game) is not None:  # its first moves would take minutes
        found.append(("solver", "perfect play"))
    return [{"player": player, "name": words} for player, words in found]


def usual(name: str) -> str:
    """The opponent that is offered first."""
    known = [one["player"] for one in strengths(name)]
    for wanted in ("bundled,ply=0", "bundled,sims=32", "eps50", "shortest:walls"):
        if wanted in known:
            return wanted
    return known[-1]


def adviser(table: Table) -> str:
    """Who is asked for a hint where nobody is named."""
    known = [one["player"] for one in strengths(table.record.game)]
    for wanted in ("bundled,ply=0", "stockfish:nodes=50000", "bundled,sims=200", "solver", "shortest:walls"):
        if wanted in known:
            return wanted
    return next((seat for seat in table.record.seats if seat != HUMAN), "random")


def warm(room: Room, name: str) -> None:
    """Compiles what a first visitor needs."""
    Table(Record(name, (HUMAN, HUMAN), 0)).view()
    room.load(name, usual(name))


def offers() -> list[dict[str, Any]]:
    """The games that can be played here, with opponents for each."""
    found = []
    for name in BUILT_IN:
        with contextlib.suppress(AleaError):
            spec = playable(name).spec
            outcomes = [{"name": outcome.name, "points": outcome.points} for outcome in spec.outcomes]
            facts = {"name": name, "turns": playable(name).plays is not None, "outcomes": outcomes}
            found.append({**facts, "players": strengths(name), "usual": usual(name)})
    return found


@router.get("/games", tags=["play"])
async def games(request: Request) -> dict[str, Any]:
    """The games that can be played here, with opponents for each."""
    return {"games": await asyncio.shield(request.app.state.offers)}


@router.post("/tables", tags=["play"], status_code=201, responses=PROBLEMS)
async def open_table(asked: NewTable, request: Request) -> dict[str, Any]:
    """Begins a game."""
    seed = secrets.randbits(31) if asked.seed is None else asked.seed
    seats = (asked.seats[0].strip(), asked.seats[1].strip())
    clock = Clock.of(asked.clock.seconds, asked.clock.increment) if asked.clock else None
    record = Record(asked.game, seats, seed, asked.position, length=asked.match_points, clock=clock)
    return await hall_of(request).open(record)


@router.get("/tables/{table}", tags=["play"], responses=PROBLEMS)
async def see(
    table: TableId,
    request: Request,
    after: Annotated[int | None, Query(ge=0, le=2**53, description="Wait until it is newer than this version.")] = None,
) -> dict[str, Any]:
    """What is seen of a table."""
    return await hall_of(request).look(table, after, WAIT_SECONDS)


@router.post("/tables/{table}/move", tags=["play"], responses=PROBLEMS)
async def move(table: TableId, asked: Steps, request: Request) -> dict[str, Any]:
    """Makes a move, or some steps of a turn. Whoever thinks for the other side answers afterwards."""

    def make(here: Table) -> None:
        if here.player != HUMAN:
            raise NotNow(f"it is {here.player}'s turn")
        if asked.actions is None and asked.text is None:
            raise NotNow("name the move: its actions or its text")
        here.step(asked.actions or here.read(asked.text or ""))
        if asked.end and here.waits:
            here.end_turn()

    return await hall_of(request).act(table, make)


@router.post("/tables/{table}/{what}", tags=["play"], responses=PROBLEMS)
async def do(table: TableId, what: Literal["end", "back", "resign", "next"], request: Request) -> dict[str, Any]:
    """Ends a turn, takes back, resigns, or begins the next game."""

    def make(here: Table) -> None:
        if what == "end":
            if here.player != HUMAN:
                raise NotNow(f"it is {here.player}'s turn")
            here.end_turn()
        elif what == "back":
            here.take_back()
        elif what == "resign":
            people = [seat for seat in (0, 1) if here.record.seats[seat] == HUMAN]
            here.resign(here.to_play if here.to_play in people or not people else people[0])
        else:
            here.next_game()

    return await hall_of(request).act(table, make)


@router.post("/hints/{table}", tags=["play"], responses=PROBLEMS)
async def hint(table: TableId, asked: Hint, request: Request) -> dict[str, Any]:
    """The best moves of the position at a table."""
    hall = hall_of(request)

    def look(here: Table) -> dict[str, Any]:
        return think(here, hall.room.player(here.record.game, asked.player or adviser(here)), 8, answers=False)

    found: dict[str, Any] = await hall.ask(table, look)
    return found


@router.get("/records/{table}", tags=["play"], responses=PROBLEMS, response_class=PlainTextResponse)
async def record(table: TableId, request: Request) -> PlainTextResponse:
    """The game as text: backgammon as .mat, chess as PGN, others as a list of moves."""
    return PlainTextResponse(await hall_of(request).ask(table, written))


def written(table: Table) -> str:
    """A game as other programs read it."""
    names = (table.record.seats[0], table.record.seats[1])
    points, clock = table.points, table.record.clock
    winner = None if not table.over or points[0] == points[1] else int(points[1] > points[0])
    given_up = table.record.resigned is not None or table.record.late is not None
    if isinstance(table.game, Chess):
        start = table.starts()[0] if table.played else table.state
        actions = [action for turn in table.played for action in turn.actions]
        tags = {"Event": "alea web", "White": names[0], "Black": names[1]}
        if clock is not None:
            tags["TimeControl"] = f"{clock.seconds:g}+{clock.increment:g}"
        if table.record.late is not None:
            tags["Termination"] = "time forfeit"
        result = "1/2-1/2" if winner is None else ("1-0", "0-1")[winner]
        return pgn_of(table.game, start, actions, headers=tags, result=result if given_up else None)
    if table.record.game == "backgammon":
        turns = tuple(
            record_turn(state, turn.actions) for state, turn in zip(table.starts(), table.played, strict=True)
        )
        return write_mat(GameRecord(names, turns, winner, int(max(points)), given_up))
    return "\n".join(f"{number}. {turn.name}" for number, turn in enumerate(table.played, 1)) + "\n"


@router.websocket("/tables/{table}/live")
async def live(socket: WebSocket, table: str) -> None:
    """Sends a table whenever it changes; what a visitor sends is not read."""
    hall = hall_of(socket)
    try:
        view = await hall.look(table)
    except AleaError as error:
        await not_there(socket, str(error))
        return
    await socket.accept()
    async with watching(socket) as gone:
        while not gone.done():
            await socket.send_json(view)
            version = view["version"]
            while view["version"] == version and not gone.done():
                view = await hall.look(table, version, WAIT_SECONDS)
