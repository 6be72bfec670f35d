"""The engine room: who thinks for the players at all tables, many tables at once.

Requests for the same player that wait together are answered together, in a batch of one of two compiled sizes. One
thread answers moves; another does what takes longer (hints, analysis) and a third what takes long (rollouts, whole
games), so that none waits for a slower one; two more load players that somebody waits for and compile what they need;
the last one does that ahead of need.
Knows players and rules; nothing of tables and visitors.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import importlib.util
import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import AleaError, ConfigError, GameContractError
from aleazero.core.game import Game
from aleazero.core.keys import Role, lane_keys
from aleazero.judges import Judge
from aleazero.play.match import TurnPlayer
from aleazero.players import AnyPlayer, SolverPlayer, make_player
from aleazero.web.rules import playable, rules_of

BATCH = 16  # the larger of the two sizes
MOST_PLAYERS = 12  # kept loaded
MOST = {"sims": 2000, "nodes": 1_000_000, "depth": 20}  # that a visitor may ask for: others wait meanwhile
FEWEST_STONES, FEWEST_STONES_PLAIN = 12, 28  # for Connect Four's solver, with Numba and without
_MANY_STONES = "137127154673375617425463357241"
_ASKED = re.compile(r"\b(sims|nodes|depth)\s*=\s*(\d+)")
_THREADS = "alea-room-"  # what their names begin with
T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class _Request:
    state: Any
    seed: int
    move: int
    answer: concurrent.futures.Future[list[int]]


class Room:
    """Answers until it is closed."""

    def __init__(self, runs: Path | None) -> None:
        """`runs` is where players of the kind `run:NAME` come from."""
        self._runs = runs
        self._players: OrderedDict[tuple[str, str], AnyPlayer] = OrderedDict()
        self._sizes: dict[tuple[str, str], set[int]] = {}  # that are compiled
        self._lock = threading.Lock()
        self._waiting: OrderedDict[tuple[str, str], list[_Request]] = OrderedDict()
        self._wake = threading.Condition(self._lock)
        self._closed = False
        self._loading: dict[tuple[str, str], threading.Lock] = {}
        self._slow = concurrent.futures.ThreadPoolExecutor(1, f"{_THREADS}slow")
        self._long = concurrent.futures.ThreadPoolExecutor(1, f"{_THREADS}long")
        self._load = concurrent.futures.ThreadPoolExecutor(2, f"{_THREADS}load")
        self._ahead = concurrent.futures.ThreadPoolExecutor(1, f"{_THREADS}ahead")
        self._fast = threading.Thread(target=self._work, name=f"{_THREADS}moves", daemon=True)
        self._fast.start()

    def close(self) -> None:
        """Ends the threads; what still waits is cancelled."""
        with self._wake:
            self._closed = True
            self._wake.notify_all()
        for threads in (self._slow, self._long, self._load, self._ahead):
            threads.shutdown(wait=False, cancel_futures=True)
        self._fast.join(timeout=2)

    def slowly(self, work: Callable[[], T], long: bool = False) -> concurrent.futures.Future[T]:
        """Does something that takes a while, after what was asked for before; `long`: more than a few seconds."""
        return (self._long if long else self._slow).submit(work)

    def ahead(self, work: Callable[[], None]) -> None:
        """Does something that nobody waits for yet, after what was asked for before."""
        self._ahead.submit(work)

    def player(self, game: str, text: str) -> AnyPlayer:
        """The player of a string, loaded; AleaError with all that is wrong."""
        key = (game, text)
        with self._lock:
            if key in self._players:
                self._players.move_to_end(key)
                return self._players[key]
        for what, number in _ASKED.findall(text):
            if len(number) > 9 or int(number) > MOST[what]:
                raise ConfigError(f"player {text!r}: {what} is {number[:12]}; here it is at most {MOST[what]}")
        made = make_player(text, playable(game), self._runs)
        if _solves_connect_four(made):
            made = dataclasses.replace(made, judge=functools.partial(_soon, made.judge))
        with self._lock:
            self._players[key] = made
            while len(self._players) > MOST_PLAYERS:
                old, _ = self._players.popitem(last=False)
                self._sizes.pop(old, None)
                self._loading.pop(old, None)
        return made

    def sit(self, game: str, text: str, state: Any, first: bool) -> None:
        """Loads a player for a table that begins in a state, where it moves `first` or second; AleaError: it cannot."""
        if _solves_connect_four(self.player(game, text)):
            _enough(np.asarray(state.board)[None], 0 if first else 1)

    def prepare(self, game: str, text: str) -> concurrent.futures.Future[None]:
        """Loads a player and compiles what it needs to answer one table; then, without being waited for, many."""

        if self._ready(game, text, 1):
            ready: concurrent.futures.Future[None] = concurrent.futures.Future()
            ready.set_result(None)
            return ready

        return self._load.submit(self.load, game, text)

    def load(self, game: str, text: str) -> None:
        """The same, at once."""
        with self._lock:
            loading = self._loading.setdefault((game, text), threading.Lock())
        with loading:  # whoever wants the same player waits for what is compiled already
            self.player(game, text)
            if not self._ready(game, text, 1):
                self._warm(game, text, 1)
                self._ahead.submit(self._warm, game, text, BATCH)

    def turn(self, game: str, text: str, state: Any, seed: int, move: int) -> concurrent.futures.Future[list[int]]:
        """The actions of a player's turn in a state; its randomness is named by seed and move."""
        request = _Request(state, seed, move, concurrent.futures.Future())
        with self._wake:
            if self._closed:
                request.answer.cancel()
            self._waiting.setdefault((game, text), []).append(request)
            self._wake.notify()
        return request.answer

    # ---- inside

    def _ready(self, game: str, text: str, size: int) -> bool:
        with self._lock:
            return size in self._sizes.get((game, text), ())

    def _warm(self, game: str, text: str, size: int) -> None:
        """Compiles one size, by answering a first position, or one that is soon answered."""
        rules, player = rules_of(playable(game)), self.player(game, text)
        state, _ = rules.settle(rules.first(0), 0, 0, opening=True)
        if _solves_connect_four(player):
            state = rules.game.notation.parse_state(_MANY_STONES)
        try:
            _answers(rules.game, player, [_Request(state, 0, 0, concurrent.futures.Future())], size)
        except AleaError:
            if size == 1:
                raise
            return
        with self._lock:
            self._sizes.setdefault((game, text), set()).add(size)

    def _work(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._closed or bool(self._waiting))
                if self._closed:
                    for requests in self._waiting.values():
                        for request in requests:
                            request.answer.cancel()
                    return
                (game, text), requests = self._waiting.popitem(last=False)
                most = BATCH if BATCH in self._sizes.get((game, text), ()) else 1
                if requests[most:]:
                    self._waiting[game, text] = requests[most:]  # behind the others: nobody waits for ever
                requests = requests[:most]
            self._answer(game, text, requests)

    def _answer(self, game: str, text: str, requests: list[_Request]) -> None:
        try:
            player = self.player(game, text)
            turns = _answers(playable(game), player, requests, 1 if len(requests) == 1 else BATCH)
        except Exception as error:  # told to those who wait: no failure of one player may stop the others' answers
            if not isinstance(error, AleaError):
                _log.exception("player %s of %s failed", text, game)
            for request in requests:
                request.answer.set_exception(error)
            return
        for request, turn in zip(requests, turns, strict=True):
            request.answer.set_result(turn)


def still_thinking(seconds: float = 1.0) -> bool:
    """Whether a closed room's threads are at work still, after so long."""
    end = time.monotonic() + seconds
    while any(thread.name.startswith(_THREADS) for thread in threading.enumerate()):
        if time.monotonic() > end:
            return True
        time.sleep(0.02)
    return False


def _solves_connect_four(player: AnyPlayer) -> TypeGuard[SolverPlayer]:
    return isinstance(player, SolverPlayer) and player.game.spec.name == "connect_four"


def _soon(judge: Judge, states: Any) -> np.ndarray:
    """Values of Connect Four where they are found in about a second; ConfigError where not."""
    _enough(np.asarray(states.board))
    return judge(states)


def _enough(boards: np.ndarray, more: int = 0) -> None:
    """ConfigError where too few stones, with some `more`, stand on one of the boards for the solver to be quick."""
    fewest = FEWEST_STONES if importlib.util.find_spec("numba") else FEWEST_STONES_PLAIN
    if ((boards >= 0).sum((1, 2)) + more < fewest).any():
        raise ConfigError(f"the solver of Connect Four is asked here from {fewest} stones on: earlier it takes minutes")


def _answers(game: Game, player: AnyPlayer, requests: list[_Request], size: int) -> list[list[int]]:
    """A turn for each request; the batch is filled up with the last one."""
    rows = [requests[min(row, len(requests) - 1)] for row in range(size)]
    states = jax.tree.map(lambda *leaves: np.stack(leaves), *(row.state for row in rows))
    seeds = np.array([row.seed for row in rows], np.uint32)
    keys = _keys(seeds, np.array([row.move for row in rows], np.int32))
    asked = jnp.asarray(np.arange(size) < len(requests))
    if isinstance(player, TurnPlayer):
        left = jax.tree.map(np.asarray, player.turn(jax.tree.map(jnp.asarray, states), asked, keys))
        rules = rules_of(game)
        return [
            rules.turn_to(request.state, jax.tree.map(lambda x, row=row: x[row], left))
            for row, request in enumerate(requests)
        ]
    return _step_by_step(game, player, states, asked, keys)[: len(requests)]


def _step_by_step(game: Game, player: Any, states: Any, asked: Array, keys: Array) -> list[list[int]]:
    """Turns of players that choose one action at a time."""
    size = len(asked)
    turns: list[list[int]] = [[] for _ in range(size)]
    seats, going = np.array(states.to_play), np.array(asked)
    step = 0
    while going.any():
        chosen = np.asarray(player.choose(jax.tree.map(jnp.asarray, states), jnp.asarray(going), keys))
        legal = np.asarray(_many(game)[0](states))
        for row in np.flatnonzero(going).tolist():
            if chosen[row] < 0 or chosen[row] not in legal[row]:
                raise GameContractError(
                    "turn", f"player {player.name!r} chose action {chosen[row]}, which is not legal"
                )
            turns[row].append(int(chosen[row]))
        if game.plays is None:
            break
        safe = np.where(going, chosen, legal.max(-1)).astype(np.int32)
        after = jax.tree.map(np.asarray, _many(game)[1](states, safe))
        states = _where(going, after, states)
        going &= ~(after.is_chance | after.terminated | (after.to_play != seats))
        step += 1
        keys = _fold(keys, step)
    return turns


def _where(lanes: np.ndarray, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda x, y: np.where(lanes.reshape(-1, *[1] * (x.ndim - 1)), x, y), new, old)


@functools.cache
def _many(game: Game) -> tuple[Callable[..., Array], Callable[..., Any]]:
    return jax.jit(jax.vmap(game.legal_list)), jax.jit(jax.vmap(game.apply_action))


@jax.jit
def _keys(seeds: Array, moves: Array) -> Array:
    return jax.vmap(lambda seed, move: lane_keys(seed, Role.MATCH, move, jnp.arange(1))[0])(seeds, moves)


@jax.jit
def _fold(keys: Array, step: int) -> Array:
    return jax.vmap(lambda key: jax.random.fold_in(key, step))(keys)
