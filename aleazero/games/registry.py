"""Games by name: the built-in ones, Pgx's (`pgx:NAME`), Gymnasium's (`gym:NAME`) and third-party ones (entry points).
`chess:history=N` is chess whose networks see N earlier positions too.

A package adds a game with an entry point in the group `aleazero.games` that names a Game class or a function that
makes one. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from aleazero.core.errors import GameContractError, UnknownName
from aleazero.core.game import Game, HostGame

GROUP = "aleazero.games"
BUILT_IN = {
    "backgammon": "aleazero.games.backgammon.game:Backgammon",
    "balatro": "aleazero.games.balatro.game:Balatro",
    "chess": "aleazero.games.chess.game:Chess",
    "connect_four": "aleazero.games.connect_four:ConnectFour",
    "pig": "aleazero.games.pig:Pig",
    "quoridor": "aleazero.games.quoridor.game:Quoridor",
    "tictactoe": "aleazero.games.tictactoe:TicTacToe",
}
PGX_PREFIX = "pgx:"
GYM_PREFIX = "gym:"
_CHESS = re.compile(r"chess:history=([1-8])")


def game_names() -> list[str]:
    """Every name `make_game` knows without a prefix, in order."""
    return sorted({*BUILT_IN, *_third_party()})


@cache
def make_game(name: str) -> Game | HostGame:
    """The game of a name; the same object each time, so that what is compiled for it is compiled once."""
    if name.startswith(PGX_PREFIX):
        from aleazero.games.pgx import PgxGame

        return PgxGame(name.removeprefix(PGX_PREFIX))
    if name.startswith(GYM_PREFIX):
        from aleazero.games.gym import GymGame

        return GymGame(name.removeprefix(GYM_PREFIX))
    if found := _CHESS.fullmatch(name):
        from aleazero.games.chess.game import Chess

        return Chess(history=int(found[1]))
    if name in BUILT_IN:
        module, attribute = BUILT_IN[name].split(":")
        return getattr(importlib.import_module(module), attribute)()
    third_party = _third_party()
    if name in third_party:
        return _load(third_party[name])
    raise UnknownName("game", name, [*game_names(), "chess:history=N", "pgx:NAME", "gym:NAME"])


def _third_party() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in BUILT_IN}


def _load(point: EntryPoint) -> Game | HostGame:
    try:
        factory: Callable[[], Game | HostGame] = point.load()
        game = factory()
    except Exception as error:
        raise GameContractError(
            "entry point", f"game {point.name!r} ({point.value}) did not load: {error!r}"
        ) from error
    if not isinstance(game, Game | HostGame):
        raise GameContractError(
            "entry point",
            f"game {point.name!r} ({point.value}) made a {type(game).__name__}, not a Game or HostGame",
        )
    return game
