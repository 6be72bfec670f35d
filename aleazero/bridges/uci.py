"""A chess engine as chess programs know them: the Universal Chess Interface over two streams.

One thread reads and answers; while a search runs, another one thinks, and tells what it finds. Whatever comes in, the
loop goes on: what cannot be understood is answered by `info string` and changes nothing. Every `go` is answered by one
`bestmove`, also if the input ends. Games that our rules have called drawn can be played on, as the protocol expects.
Knows UCI; how to search is `uci_search.py`'s, how long is `uci_limits.py`'s.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import jax

from aleazero import __version__
from aleazero.bridges.uci_limits import Limits, limited, parse_go
from aleazero.bridges.uci_options import NONE, Options, parse_option, short
from aleazero.bridges.uci_search import Line, Look, Thinker
from aleazero.core.errors import AleaError, ConfigError, NotationError
from aleazero.core.records import Weights
from aleazero.games.chess.compiled import legal_actions
from aleazero.games.chess.fen import make_state, parse_fen
from aleazero.games.chess.game import Chess, ChessState
from aleazero.games.chess.uci import action_of, as_open, counted, go_on, open_actions
from aleazero.models.build import Model, ModelConfig, build_model
from aleazero.players import bundled_folder, load_network

log = logging.getLogger(__name__)
UNTRAINED = "untrained"
NO_MOVE = "(none)"
SLICE_SECONDS = 0.05  # what a slice of simulations is to take
SLICE = 32  # simulations of one at most
TELL_SECONDS = 0.5  # between two reports
_UNTRAINED_MODEL = ModelConfig(width=32, blocks=2)


class UciEngine:
    """An engine: `run` it over lines, or `handle` them one by one."""

    def __init__(
        self,
        game: Chess,
        say: Callable[[str], None],
        *,
        weights: str = "",
        simulations: int = 800,
        runs: Path | None = None,
    ) -> None:
        """`say` is called with one line at a time, from either thread."""
        self._game, self._runs = game, runs
        self._cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        cores = max(len(self._cores), 1)
        self.options = Options(cores, cores, weights, simulations)
        self._say_line, self._speaking = say, threading.Lock()
        self._start, self._moves = "startpos", list[str]()
        self._refused = False  # the position last sent
        self._state = self._first = self._position("startpos")
        self._network: tuple[Model, Weights] | None = None
        self._thinker: Thinker | None = None
        self._thought: list[str] | None = None  # the start and the moves of the position last thought about
        self._rate = 100.0  # simulations a second, as last seen
        self._stop = threading.Event()
        self._answered = threading.Event()  # the search's move is being said: nothing hinders the next command
        self._search: threading.Thread | None = None
        self._commands: dict[str, Callable[[str], None]] = {
            "uci": self._introduce,
            "isready": self._is_ready,
            "ucinewgame": lambda _: self._when_idle("ucinewgame", self._new_game),
            "setoption": lambda rest: self._when_idle("setoption", lambda: self._set(rest)),
            "position": lambda rest: self._when_idle("position", lambda: self._set_position(rest)),
            "go": lambda rest: self._when_idle("go", lambda: self._go(rest)),
            "stop": lambda _: self._stop.set(),
            "ponderhit": lambda _: self._stop.set(),
            "debug": lambda _: None,
            "register": lambda _: None,
        }
        if weights:
            self._load(weights)

    def run(self, lines: Iterable[bytes]) -> None:
        """Answers lines until `quit` or their end; a search that runs then still says its move."""
        for raw in lines:
            if not self.handle(raw.decode("utf-8", "replace")):
                break
        self.close()

    def close(self) -> None:
        """Ends a search, with its move."""
        self._stop.set()
        self._wait()

    def handle(self, line: str) -> bool:
        """Answers one line; False if it is `quit`."""
        words = line.split()
        while words and words[0] not in self._commands and words[0] != "quit":
            words.pop(0)  # as the protocol has it: what is unknown is passed over, what comes behind it may be known
        if not words:
            if line.strip():
                self._error(f"{short(line)} is no command that is known")
            return True
        if words[0] == "quit":
            return False
        try:
            self._commands[words[0]](" ".join(words[1:]))
        except AleaError as error:
            self._error(str(error))
        except Exception as error:  # the loop outlives its own faults
            log.exception("%s failed", short(line))
            self._error(f"{words[0]} failed: {error!r}")
        return True

    # ---- what is said

    def _say(self, text: str) -> None:
        with self._speaking:
            self._say_line(text)

    def _error(self, text: str) -> None:
        self._say("info string error: " + " / ".join(text.splitlines()))

    def _introduce(self, _: str) -> None:
        self._say(f"id name AleaZero {__version__}")
        self._say("id author the AleaZero authors")
        for line in self.options.lines():
            self._say(line)
        self._say("uciok")

    def _is_ready(self, _: str) -> None:
        """Compiles everything, so that no clock pays for it."""
        if self._search is None or self._answered.is_set():
            self._wait()
            try:
                if self._network is None:
                    self._say(f"info string {_no_network()}")
                elif self._thinker is None:
                    self._rehearse()
            except Exception as error:  # the answer must come
                log.exception("not ready")
                self._error(repr(error) if not isinstance(error, AleaError) else str(error))
        self._say("readyok")

    def _rehearse(self) -> None:
        thinker = self._make_thinker()
        thinker.compile(self._first)
        began = time.monotonic()
        thinker.grow(4)
        self._rate = 4 / max(time.monotonic() - began, 1e-4)
        thinker.forget()

    def _make_thinker(self) -> Thinker:
        if self._thinker is None:
            if self._network is None:
                raise ConfigError(_no_network())
            self._thinker = Thinker(self._game, *self._network, self.options.simulations)
            self._thought = None
        return self._thinker

    # ---- what is set

    def _when_idle(self, what: str, action: Callable[[], None]) -> None:
        """Does something that no search may run beside; one that was told to stop is waited for."""
        if self._search is not None and not self._answered.is_set() and not self._stop.is_set():
            self._error(f"{what} is ignored while a search runs; send stop first")
            return
        self._wait()
        action()

    def _wait(self) -> None:
        search = self._search
        if search is not None:
            search.join()
            self._search = None

    def _new_game(self) -> None:
        if self._thinker is not None:
            self._thinker.forget()
        self._thought = None

    def _set(self, rest: str) -> None:
        name, value = parse_option(rest)
        if name == "weights":
            self._load(value)
            return
        self.options.put(name, value)
        if name == "simulations":
            self._thinker = None
        elif name == "threads":
            self._keep_to_cores()

    def _keep_to_cores(self) -> None:
        """Keeps every thread of the process to so many cores: XLA has its own threads, and no way to have fewer."""
        if not self._cores:
            self._say("info string Threads has no effect on this system")
            return
        for task in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):  # it has ended since
                os.sched_setaffinity(int(task), self._cores[: self.options.threads])

    def _load(self, text: str) -> None:
        """Takes a network; if there is none of that name, the one before stays."""
        if text in ("", NONE):
            self._network, self._thinker, self.options.weights = None, None, ""
            return
        if text == UNTRAINED:
            model = build_model(_UNTRAINED_MODEL, self._game.spec)
            self._network = model, jax.jit(model.init)(jax.random.key(0))
        else:
            named = text == "bundled" or text.partition(":")[0] in ("run", "path", "registry")
            self._network = load_network(text if named else f"path:{text}", self._game, self._runs)
        self._thinker, self.options.weights = None, text

    def _position(self, fen: str) -> ChessState:
        try:
            return make_state(self._game, parse_fen(counted(fen)))
        except NotationError as error:
            raise NotationError(f"position {short(fen)}: {error}") from None

    def _set_position(self, rest: str) -> None:
        """Takes a position; if anything is wrong with it, the one before stays, and the next search says so."""
        self._refused = True
        where, _, line = f"{rest} ".partition(" moves ")
        where = where.strip()
        if where != "startpos" and not where.startswith("fen "):
            raise NotationError(f"position is written: position startpos|fen FEN [moves ...]; received {short(rest)}")
        start, moves = where.removeprefix("fen ").strip(), line.split()
        known = self._start == start and moves[: len(self._moves)] == self._moves
        state = self._state if known else self._position(start)
        for number in range(len(self._moves) if known else 0, len(moves)):
            try:
                state = go_on(self._game, state, moves[number])
            except NotationError as error:
                raise NotationError(f"position: at move {number + 1}: {error}; the position is not changed") from None
        self._start, self._moves, self._state, self._refused = start, moves, state, False

    # ---- searching

    def _go(self, rest: str) -> None:
        limits, problems = parse_go(rest.split())
        for problem in problems:
            self._error(f"go: {problem}")
        if self._refused:
            self._error("go: the position last sent was refused; this is a move in the one before")
        self._stop, self._answered = threading.Event(), threading.Event()
        began = time.monotonic()
        self._search = threading.Thread(target=self._answer, args=(limits, began, self._stop), name="search")
        self._search.start()

    def _answer(self, limits: Limits, began: float, stop: threading.Event) -> None:
        """Thinks, and says one move whatever happens."""
        best = NO_MOVE
        try:
            best = self._fallback()
            best = self._think(limits, began, stop) or best
        except AleaError as error:
            best = NO_MOVE if self._network is None else best
            self._error(str(error))
        except Exception as error:  # the program at the other end waits for a move
            log.exception("the search failed")
            self._error(f"the search failed: {error!r}")
            with contextlib.suppress(Exception):
                self._new_game()  # a tree that a search left half-way is of no use to the next
        if limits.infinite:
            stop.wait()
        self._answered.set()  # before it is said: the answer to it may come at once
        self._say(f"bestmove {best}")

    def _fallback(self) -> str:
        """Some legal move, for want of a better one."""
        moves = open_actions(self._game, self._state)
        return self._game.notation.format_uci(self._state, moves[0]) if moves else NO_MOVE  # type: ignore[attr-defined]

    def _think(self, limits: Limits, began: float, stop: threading.Event) -> str | None:
        """The move found; None where there is nothing to think about."""
        state = as_open(self._game, self._state)
        legal = legal_actions(self._game, state)
        if not legal:
            self._say(f"info depth 0 score {'mate 0' if bool(state.returns.any()) else 'cp 0'}")
            return None
        thinker = self._make_thinker()
        seat = int(state.to_play)
        thinker.begin(state, self._played(seat), self._only(limits, legal, seat))
        self._thought = [self._start, *self._moves]
        seconds = limits.seconds(seat, self.options.overhead / 1000)
        budget = min(thinker.room, thinker.room if limits.nodes is None else limits.nodes)
        if self.options.limit_strength:
            budget = min(budget, limited(thinker.room, self.options.elo))
        if len(legal) == 1 and seconds is not None and limits.movetime is None:
            budget = 0
        told = 0.0
        look = thinker.look()
        while thinker.simulations < budget and not stop.is_set():
            size = min(budget - thinker.simulations, SLICE, max(int(self._rate * SLICE_SECONDS), 1))
            if seconds is not None and time.monotonic() - began + 1.5 * size / self._rate > seconds:
                break
            self._grow(thinker, size)
            look = thinker.look()
            lines = look.lines(1)
            if time.monotonic() - told > TELL_SECONDS:
                told = time.monotonic()
                self._tell(thinker, look, began)
            if not limits.infinite and _is_enough(limits, lines[0]):
                break
        self._tell(thinker, look, began)
        return look.names(look.lines(1)[0])[0]

    def _grow(self, thinker: Thinker, size: int) -> None:
        began = time.monotonic()
        thinker.grow(size)
        rate = size / max(time.monotonic() - began, 1e-4)
        self._rate = min(rate, 0.5 * (rate + self._rate))  # a slow slice is believed at once

    def _played(self, seat: int) -> tuple[int, int] | None:
        """The two moves since the position last thought about, if that is what came."""
        now = [self._start, *self._moves]
        if self._thought is None or len(now) != len(self._thought) + 2 or now[:-2] != self._thought:
            return None
        return action_of(now[-2], seat), action_of(now[-1], 1 - seat)

    def _only(self, limits: Limits, legal: list[int], seat: int) -> list[int] | None:
        wanted = []
        for text in limits.searchmoves:
            try:
                action = action_of(text, seat)
            except NotationError as error:
                self._error(f"go: searchmoves: {error}")
                continue
            if action in legal:
                wanted.append(action)
            else:
                self._error(f"go: searchmoves: {text!r} is not legal here")
        return wanted or None

    def _tell(self, thinker: Thinker, look: Look, began: float) -> None:
        spent = max(time.monotonic() - began, 1e-3)
        for number, line in enumerate(look.lines(self.options.multi_pv), 1):
            score = f"cp {line.centipawns}" if line.mate is None else f"mate {line.mate}"
            self._say(
                f"info depth {len(line.actions)} seldepth {max(look.depth, len(line.actions))} multipv {number} "
                f"score {score} nodes {thinker.simulations} nps {int(thinker.simulations / spent)} "
                f"time {int(1000 * spent)} pv {' '.join(look.names(line))}"
            )


def _is_enough(limits: Limits, best: Line) -> bool:
    """Whether a search may end before its budget: a mate is proved, or it looks as far as was asked for."""
    if best.mate is not None and best.mate > 0:
        return limits.mate is None or best.mate <= limits.mate
    return limits.depth is not None and len(best.actions) >= limits.depth


def _no_network() -> str:
    return (
        "there is no network: setoption name Weights value FOLDER (of alea export), run:NAME, or untrained for one "
        "that has learned nothing"
    )


def default_weights(game: Chess) -> str:
    """`bundled` where a network comes with the package, else nothing."""
    return "bundled" if bundled_folder(game) else ""
