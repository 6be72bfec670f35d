"""Players of chess that are programs: Stockfish at some strength, and rungs that move at random part of the time.

    stockfish:skill=0,depth=1    stockfish:nodes=1    stockfish:nodes=100
    eps15                        15 % random moves, else Stockfish with nodes=1
Joins engines, which speak FEN, to states of chess. No engine is imported before it is asked for.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.devices import cores
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.core.game import Game
from aleazero.games.chess.fen import plain_fen, read
from aleazero.games.chess.uci import action_of
from aleazero.play.rollout import random_actions

if TYPE_CHECKING:
    from aleazero.engines.stockfish import Stockfish, Strength

OPTIONS = ("skill", "depth", "nodes")
_RUNG = re.compile(r"eps(\d{1,3})")
MOST_ENGINES = 6  # whose processes run: strengths are many
_running: OrderedDict[Stockfish, None] = OrderedDict()  # the one that was asked last at the end
_lock = threading.Lock()


@dataclasses.dataclass(frozen=True)
class ChessLine:
    """Moves that are expected one after the other, the first of them legal."""

    actions: list[int]
    chances: tuple[float, float, float]  # of a win, a draw and a loss for whoever makes the first one


@dataclasses.dataclass(frozen=True)
class StockfishPlayer:
    """Stockfish at the board; with `random` above 0 that share of its moves is drawn by lot."""

    game: Game
    engine: Stockfish
    name: str
    random: float = 0.0

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        """The moves of the lanes that wait for one, all games at once."""
        waiting = np.asarray(lanes)
        actions = np.zeros(waiting.shape, np.int32)
        if self.random:
            lots, drawn = _lots(self.game)(states, keys)
            by_lot = waiting & (np.asarray(lots) < self.random)
            actions = np.where(by_lot, np.asarray(drawn), 0).astype(np.int32)
            waiting = waiting & ~by_lot
        rows = np.flatnonzero(waiting)
        host = jax.tree.map(np.asarray, states)
        here = [read(jax.tree.map(lambda x, row=row: x[row], host)) for row in rows]
        fens = [plain_fen(position) for position in here]
        for row, position, move in zip(rows, here, _awake(self.engine).choose(fens), strict=True):
            actions[row] = action_of(move, position.to_play)
        return jnp.asarray(actions)

    def lines(self, state: Any, count: int, only: int | None = None) -> list[ChessLine]:
        """The best moves of one position, best first; or what `only` one of them is worth.

        By a program of its own: moves may be asked for on another thread at the same time.
        """
        if self.random:
            raise ConfigError(
                f"player {self.name!r} has no opinion; name one that draws no lots: stockfish:nodes=50000"
            )
        here = read(jax.tree.map(np.asarray, state))
        fen = plain_fen(here)
        name = None if only is None else self.game.notation.format_uci(state, only)  # type: ignore[attr-defined]
        found = _awake(_analyst(self.engine.strength)).lines(fen, count, name)
        return [
            ChessLine(
                [action_of(move, here.to_play ^ (number % 2)) for number, move in enumerate(line.moves)], line.chances
            )
            for line in found
        ]


def is_rung(kind: str) -> bool:
    """Whether a player's kind is written as `eps15` is."""
    return _RUNG.fullmatch(kind) is not None


def make(kind: str, options: list[str], game: Game, text: str) -> StockfishPlayer:
    """The player `stockfish:key=value,...` or `epsN`."""
    from aleazero.engines.stockfish import Strength

    if game.spec.name != "chess":
        raise ConfigError(f"player {text!r}: {kind} plays chess, not {game.spec.name}")
    options = [part for part in options if part.strip()]
    rung = _RUNG.fullmatch(kind)
    if rung:
        if options or int(rung[1]) > 100:
            raise ConfigError(f"player {text!r}: write eps15, the percentage of random moves from 0 to 100")
        return StockfishPlayer(game, _engine(Strength(nodes=1)), text, int(rung[1]) / 100)
    numbers: dict[str, int] = {}
    problems = []
    for part in options:
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in OPTIONS:
            problems.append(str(UnknownName("option", key, OPTIONS)))
        elif not (value.isascii() and value.isdecimal()) or len(value) > 9:
            problems.append(f"{key} is {value!r}; it must be a whole number")
        else:
            numbers[key] = int(value)
    if not problems:
        try:
            return StockfishPlayer(game, _engine(Strength(**numbers)), text)
        except ConfigError as error:
            problems.append(str(error))
    raise ConfigError("\n".join(f"player {text!r}: {problem}" for problem in problems))


def _awake(engine: Stockfish) -> Stockfish:
    """The same, after the processes of those that were not asked for longest have ended; asked again, they start."""
    with _lock:
        _running[engine] = None
        _running.move_to_end(engine)
        idle = [_running.popitem(last=False)[0] for _ in range(len(_running) - MOST_ENGINES)]
    for one in idle:
        one.close()
    return engine


@functools.lru_cache(maxsize=MOST_ENGINES)
def _engine(strength: Strength) -> Stockfish:
    """One for each strength, whoever asks; ends with the process."""
    from aleazero.engines.stockfish import Stockfish

    return Stockfish(strength, processes=cores())


@functools.lru_cache(maxsize=MOST_ENGINES)
def _analyst(strength: Strength) -> Stockfish:
    """One that says what moves are worth."""
    from aleazero.engines.stockfish import Stockfish

    return Stockfish(strength)


@functools.cache
def _lots(game: Game) -> Any:
    """`(states, keys) -> ([B] in 0..1, [B] random actions)`."""

    def lots(states: Any, keys: Array) -> tuple[Array, Array]:
        own, others = jax.vmap(lambda key: jax.random.fold_in(key, 1))(keys), jax.vmap(jax.random.uniform)(keys)
        return others, random_actions(game, states, own)

    return jax.jit(lots)
