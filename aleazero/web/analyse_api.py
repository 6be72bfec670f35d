"""Routes for analysing: a position from a text, ranked moves, rollouts, the search's tree, a whole game."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from aleazero.core.errors import ConfigError
from aleazero.web.play_api import PROBLEMS, PlayerText, adviser, hall_of
from aleazero.web.review import review
from aleazero.web.table import HUMAN, Record, Table
from aleazero.web.thoughts import think
from aleazero.web.tree import tree_of

router = APIRouter()


class Position(BaseModel):
    """A position to look at."""

    model_config = ConfigDict(extra="forbid", strict=True)
    game: Annotated[str, Field(min_length=1, max_length=64)]
    position: Annotated[
        str | None, Field(max_length=2000, description="In the game's notation; the first one if null.")
    ]
    player: PlayerText | None = None
    count: Annotated[int, Field(ge=1, le=50, description="How many moves.")] = 10
    rollout: Annotated[int | None, Field(ge=36, le=1296, multiple_of=36, description="Games for each play.")] = None


def table_of(game: str, position: str | None) -> Table:
    """A table at a position where somebody is to move."""
    table = Table(Record(game, (HUMAN, HUMAN), 0))
    if position is None or not position.strip():
        return table
    state = table.notation.parse_state(position)
    if bool(state.is_chance):
        raise ConfigError(f"position {position!r}: no dice are rolled; add them, as in 4HPwATDgc/ABMA:31")
    return Table(Record(game, (HUMAN, HUMAN), 0, position))


@router.post("/positions", tags=["analyse"], responses=PROBLEMS)
async def show(asked: Position) -> dict[str, Any]:
    """What a text describes: the board and its legal moves."""
    return await asyncio.to_thread(lambda: table_of(asked.game, asked.position).view())


@router.post("/analyse", tags=["analyse"], responses=PROBLEMS)
async def analyse(asked: Position, request: Request) -> dict[str, Any]:
    """Ranked moves of a position, with what they are worth; by rollouts where that is asked for."""
    room = hall_of(request).room

    def look() -> dict[str, Any]:
        table = table_of(asked.game, asked.position)
        name = asked.player or ("bundled" if asked.rollout else adviser(table))
        return think(table, room.player(asked.game, name), asked.count, asked.rollout)

    return await asyncio.wrap_future(room.slowly(look, long=asked.rollout is not None))


@router.post("/tree", tags=["analyse"], responses=PROBLEMS)
async def tree(asked: Position, request: Request) -> dict[str, Any]:
    """What a search looks at: visits, values, odds; the line it expects."""
    room = hall_of(request).room

    def look() -> dict[str, Any]:
        table = table_of(asked.game, asked.position)
        best = adviser(table)
        name = asked.player or (best if best.startswith("bundled") else "bundled")
        return tree_of(table, room.player(asked.game, name))

    return await asyncio.wrap_future(room.slowly(look))


class Game(BaseModel):
    """A game to look at again."""

    model_config = ConfigDict(extra="forbid", strict=True)
    game: Annotated[str, Field(min_length=1, max_length=64)]
    text: Annotated[str, Field(min_length=1, max_length=200_000, description="A .mat, PGN, or a list of moves.")]
    player: PlayerText | None = None
    number: Annotated[int, Field(ge=1, le=1000, description="Which game, where there are several.")] = 1


@router.post("/review", tags=["analyse"], responses=PROBLEMS)
async def look_again(asked: Game, request: Request) -> dict[str, Any]:
    """Every decision of a game, with what it cost."""
    room = hall_of(request).room

    def look() -> dict[str, Any]:
        name = asked.player or adviser(Table(Record(asked.game, (HUMAN, HUMAN), 0)))
        return review(asked.game, asked.text, room.player(asked.game, name), asked.number)

    return await asyncio.wrap_future(room.slowly(look, long=True))
