"""Players that are programs: GNU Backgammon at some ply, with noise or as Debian's program; pubeval.

Joins engines, which speak plain positions, to a game's states. They are extras: nothing here is imported in training.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol

import jax
import numpy as np
from jax import Array

from aleazero.core.devices import cores
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.core.game import Game

KINDS = ("gnubg", "pubeval")
_ENGINES = ("nn", "debian")
_PLIES = ("0", "1", "2")
_KNOWN = {"ply", "noise", "engine"}
MANY = 16  # positions that are worth asking several processes about
PART = 4  # of them at a time


class Engine(Protocol):
    """What a backgammon engine does."""

    def choose(self, boards: np.ndarray, dice: np.ndarray) -> np.ndarray:
        """`[n, 2, 25]`: the positions it leaves."""


@dataclasses.dataclass(frozen=True)
class EnginePlayer:
    """An engine at the table."""

    engine: Engine
    name: str
    slow: bool = False  # so that it is worth asking it on every core; such an engine can be pickled

    def turn(self, states: Any, lanes: Array, keys: Array) -> Any:
        """The states its turns leave."""
        from aleazero.games.backgammon.boards import afterstates, to_boards, to_dice

        boards, rows = to_boards(states), np.flatnonzero(np.asarray(lanes))
        choose = _on_every_core(self.engine) if self.slow and len(rows) >= MANY else self.engine.choose
        boards[rows] = choose(boards[rows], to_dice(states)[rows])
        return afterstates(boards, np.asarray(states.to_play))


def make(kind: str, detail: str, game: Game, text: str) -> EnginePlayer:
    """The player `KIND:key=value;key=value`."""
    if game.spec.name != "backgammon":
        raise ConfigError(f"player {text!r}: {kind} plays backgammon, not {game.spec.name}")
    options = _options(detail, text)
    if kind == "pubeval":
        if options:
            raise ConfigError(f"player {text!r}: pubeval takes no options")
        from aleazero.engines.gnubg import Pubeval

        return EnginePlayer(Pubeval(), text)
    problems = [str(UnknownName("option", key, _KNOWN)) for key in sorted(options.keys() - _KNOWN)]
    ply, noise, engine = options.get("ply", "0"), options.get("noise", "0"), options.get("engine", "nn")
    if ply not in _PLIES:
        problems.append(f"ply is {ply!r}; it must be 0, 1 or 2")
    deviation = number_of(noise)
    if not 0 <= deviation < math.inf:
        problems.append(f"noise is {noise!r}; it must be a number of points from 0 on, as in 0.06")
    elif deviation and (ply != "0" or engine == "debian"):
        problems.append(f"noise is {noise!r}; it is for ply=0 and engine=nn")
    if engine not in _ENGINES:
        problems.append(str(UnknownName("engine", engine, _ENGINES)))
    if problems:
        raise ConfigError("\n".join(f"player {text!r}: {problem}" for problem in problems))
    return EnginePlayer(_gnubg(int(ply), deviation, engine), text, slow=engine == "nn" and ply != "0")


def _on_every_core(engine: Engine) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The engine's `choose`, on several processes, which stay for the next time."""

    def choose(boards: np.ndarray, dice: np.ndarray) -> np.ndarray:
        parts = [np.array_split(x, -(-len(boards) // PART)) for x in (boards, dice)]
        try:
            return np.concatenate(list(_pool().map(engine.choose, *parts)))
        except BrokenProcessPool as error:
            from aleazero.engines import EngineError

            _pool.cache_clear()
            raise EngineError(f"a process of {engine} ended while it was thinking: {error}") from error

    return choose


@functools.cache
def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(cores(), mp_context=multiprocessing.get_context("spawn"))


def number_of(text: str) -> float:
    """The number that an option says; not a number where it says none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _gnubg(ply: int, noise: float, engine: str) -> Engine:
    from aleazero.engines.gnubg import Gnubg, candidates

    if engine == "nn":
        return Gnubg(ply, noise)
    from aleazero.engines.gnubg_program import GnubgProgram

    return GnubgProgram(candidates, ply).__enter__()  # ends with the player


def _options(detail: str, text: str) -> dict[str, str]:
    options = {}
    for part in filter(None, detail.split(";")):
        key, equals, value = part.partition("=")
        if not equals or not value.strip():
            raise ConfigError(f"player {text!r}: {part!r} is no option; write ply=1 or noise=0.06")
        options[key.strip()] = value.strip()
    return options


# ---- luck


class GnubgJudge:
    """What rolls are worth by GNU Backgammon at 0-ply (`play.luck.Judge`), on several processes."""

    def __init__(self, processes: int) -> None:
        from aleazero.engines.gnubg import Gnubg

        Gnubg()  # says what is missing before anything is started
        self._pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))
        self._parts = 4 * processes

    def __call__(self, states: Any) -> np.ndarray:
        """`[n, C]`: seat 0's expected points after each roll."""
        from aleazero.games.backgammon.boards import to_boards
        from aleazero.games.backgammon.game import MIXED, ROLLS

        states = jax.tree.map(np.asarray, states)
        boards = to_boards(states)[:, ::-1]  # whoever has moved gives the dice away
        parts = self._pool.map(_after_rolls, np.array_split(boards, self._parts))
        after = np.concatenate(list(parts))
        roller = np.where(states.to_play == 0, -1.0, 1.0)[:, None]
        usual = np.concatenate([roller * after, np.zeros((len(after), 2 * MIXED - len(ROLLS)))], 1)
        opening = np.concatenate([after[:, :MIXED], -after[:, :MIXED]], 1)
        return np.where(states.opening[:, None], opening, usual)

    def close(self) -> None:
        """Ends the processes."""
        self._pool.shutdown()


def _after_rolls(boards: np.ndarray) -> np.ndarray:
    """`[n, 21]`: the points that row 1, who rolls, can expect after each roll."""
    from aleazero.engines.gnubg import Gnubg

    engine, rolls = Gnubg(), [(a, b) for a in range(1, 7) for b in range(1, a)] + [(d, d) for d in range(1, 7)]
    worth = [engine.after_equities(engine.choose(boards, np.tile(roll, (len(boards), 1)))) for roll in rolls]
    return np.stack(worth, 1) if len(boards) else np.zeros((0, len(rolls)))
