"""Stockfish as a program beside us (Debian's `stockfish`): moves and lines for positions, at a strength that is named.

Positions are FEN and moves UCI. Several processes, one for every core at most, are asked at the same time; each has one
thread and begins a new game for every position, so that an answer does not depend on what was asked before. (With a
skill below 20 Stockfish draws lots of its own; such answers differ from time to time.) Of a game's past a FEN says
nothing: it does not see repetitions coming. Every wait ends; a program that is missing, dies, hangs or answers what is
no move is an error that says so. Does not know the rules. Threads that ask at the same time are answered one by one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import re
import shutil
import signal
import subprocess
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aleazero.core.errors import ConfigError
from aleazero.engines import EngineError

DEBIAN_PLACE = Path("/usr/games/stockfish")  # often not on PATH
MOST_SKILL = 20
MOST_NODES = 2_000_000  # for lines, where no nodes are named: many of them at some depth would take for ever
_MOVE = re.compile(r"bestmove ([a-h][1-8][a-h][1-8][nbrq]?)\b")
_LINE = re.compile(
    r"info depth (?P<depth>\d+) .*\bmultipv (?P<rank>\d+) score \S+ \S+ wdl (?P<win>\d+) (?P<draw>\d+) (?P<loss>\d+) "
    r"(?P<bound>\w+bound )?nodes .*\bpv (?P<moves>.+)"
)


@dataclasses.dataclass(frozen=True)
class Strength:
    """How well it plays. One of `depth` and `nodes` at least."""

    skill: int = MOST_SKILL
    depth: int | None = None
    nodes: int | None = None

    def __post_init__(self) -> None:
        problems = []
        if not 0 <= self.skill <= MOST_SKILL:
            problems.append(f"skill is {self.skill}; it must be in 0..{MOST_SKILL}")
        for name in ("depth", "nodes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                problems.append(f"{name} is {value}; it must be at least 1")
        if self.depth is None and self.nodes is None:
            problems.append("neither depth nor nodes says how far to look; write depth=1 or nodes=100")
        if problems:
            raise ConfigError("; ".join(problems))

    @property
    def go(self) -> str:
        """The command that asks for a move."""
        limits = (("depth", self.depth), ("nodes", self.nodes))
        return " ".join(["go", *(f"{name} {value}" for name, value in limits if value is not None)])


@dataclasses.dataclass(frozen=True)
class Line:
    """A move and what is expected to follow it."""

    moves: tuple[str, ...]
    chances: tuple[float, float, float]  # of a win, a draw and a loss for whoever makes the first one


class Stockfish:
    """`with Stockfish(Strength(nodes=100)) as engine:` or without, and then it ends with the process.

    `timeout` is in seconds, for each answer. Processes are started when they are first needed.
    """

    def __init__(
        self, strength: Strength, *, processes: int = 1, timeout: float = 60.0, program: str | None = None
    ) -> None:
        self.strength = strength
        self.timeout = timeout
        self.program = _find(program)
        self._wanted = max(processes, 1)
        self._running: list[_Process] = []
        self._asking = threading.RLock()
        self._cleanup = weakref.finalize(self, _end_all, self._running)

    def __enter__(self) -> Stockfish:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the processes, if any run, once they have answered."""
        with self._asking:
            _end_all(self._running)

    @property
    def processes(self) -> list[int]:
        """The numbers of the processes that run."""
        return [process.pid for process in self._running]

    @property
    def name(self) -> str:
        """What the program calls itself."""
        with self._asking:
            return self._started(1)[0].name

    def choose(self, fens: Sequence[str]) -> list[str]:
        """A move for every position; in none of them may the game be over."""
        with self._asking:
            return self._choose(fens) if fens else []

    def lines(self, fen: str, count: int, only: str | None = None) -> list[Line]:
        """The best moves of a position where the game is not over, best first; or what `only` one of them is worth."""
        go = dataclasses.replace(self.strength, nodes=self.strength.nodes or MOST_NODES).go
        with self._asking:
            try:
                return self._started(1)[0].lines(fen, go + (f" searchmoves {only}" if only else ""), count)
            except BaseException:
                self.close()
                raise

    def _choose(self, fens: Sequence[str]) -> list[str]:
        running = self._started(min(self._wanted, len(fens)))
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(len(fens)):
            waiting.put(number)
        moves = [""] * len(fens)

        def work(process: _Process) -> None:
            with contextlib.suppress(queue.Empty):
                while True:
                    number = waiting.get_nowait()
                    moves[number] = process.move(fens[number], self.strength.go)

        try:
            with ThreadPoolExecutor(len(running)) as pool:
                for done in [pool.submit(work, process) for process in running]:
                    done.result()
        except BaseException:  # the others' answers would be taken for the next questions'
            self.close()
            raise
        return moves

    def _started(self, count: int) -> list[_Process]:
        while len(self._running) < count:
            self._running.append(_Process(self.program, self.strength.skill, self.timeout))
        return self._running[:count]


class _Process:
    """One child, one question at a time."""

    def __init__(self, program: str, skill: int, timeout: float) -> None:
        self._timeout, self.name = timeout, program
        try:
            self._child = subprocess.Popen(
                [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise EngineError(f"{program} cannot be started: {error}") from error
        self.pid = self._child.pid
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            for line in self._ask("uci", until="uciok"):
                self.name = line.removeprefix("id name ") if line.startswith("id name ") else self.name
            options = {"Threads": 1, "Hash": 1, "Skill Level": skill, "UCI_ShowWDL": "true"}
            self._send(*(f"setoption name {name} value {value}" for name, value in options.items()))
            self._ask("isready", until="readyok")
        except BaseException:
            self.end()
            raise

    def move(self, fen: str, go: str) -> str:
        """Its move in a position."""
        self._send("ucinewgame", f"position fen {fen}")
        answer = self._ask(go, until="bestmove")[-1]
        found = _MOVE.match(answer)
        if not found:
            raise EngineError(f"{self.name} answered {answer!r}, which is no move, in {fen!r}")
        return found[1]

    def lines(self, fen: str, go: str, count: int) -> list[Line]:
        """The last lines that it saw equally deep: it tells of all, the best first, whenever one has changed."""
        self._send("ucinewgame", f"setoption name MultiPV value {count}", f"position fen {fen}")
        told: list[list[re.Match[str]]] = []
        for text in self._ask(go, until="bestmove"):
            line = _LINE.match(text)
            if line and line["rank"] == "1":
                told.append([])
            if line and told:
                told[-1].append(line)
        self._send("setoption name MultiPV value 1")
        most = max((len(lines) for lines in told), default=0)
        even = [
            lines
            for lines in told
            if len(lines) == most
            and len({(line["depth"], line["bound"]) for line in lines}) == 1
            and not lines[0]["bound"]
        ]
        if not told:
            raise EngineError(f"{self.name} said nothing of moves in {fen!r}; let it look at more nodes")
        found = []
        for line in (even or told)[-1]:
            win, draw, loss = (int(line[number]) / 1000 for number in ("win", "draw", "loss"))
            found.append(Line(tuple(line["moves"].split()), (win, draw, loss)))
        return found

    def end(self) -> None:
        """Kills it, and whatever it has started: or else reading from it would not end."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._child.wait()
        self._reader.join()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _read(self) -> None:
        assert self._child.stdout is not None
        with contextlib.suppress(OSError, ValueError):  # closed while it is read
            for raw in self._child.stdout:
                self._lines.put(raw.decode("utf-8", "replace").strip())
        self._lines.put(None)

    def _send(self, *lines: str) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write("".join(f"{line}\n" for line in lines).encode())
            self._child.stdin.flush()
        except (OSError, ValueError):
            raise self._failure(lines[-1], "does not listen") from None

    def _ask(self, question: str, until: str) -> list[str]:
        """The lines it answers, up to the one that begins with `until`."""
        self._send(question)
        said: list[str] = []
        while not said or not said[-1].startswith(until):
            try:
                line = self._lines.get(timeout=self._timeout)
            except queue.Empty:
                raise self._failure(question, f"did not answer within {self._timeout:g} s") from None
            if line is None:
                raise self._failure(question, "said no more")
            said.append(line)
        return said

    def _failure(self, question: str, what: str) -> EngineError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(0.2)  # a pipe ends a little before its process does
        status = self._child.returncode
        if status is not None:
            names = {number.value: number.name for number in signal.Signals}
            what = f"ended with status {status}" if status >= 0 else f"was killed by {names.get(-status, -status)}"
        return EngineError(f"{self.name} (process {self.pid}) {what} when asked {question!r}; start the match anew")


def _end_all(running: list[_Process]) -> None:
    while running:
        running.pop().end()


def _find(program: str | None) -> str:
    found = program or shutil.which("stockfish") or str(DEBIAN_PLACE)
    if shutil.which(found) is None or os.path.isdir(found):
        raise EngineError(
            f"Stockfish is not at {found}: on Debian and Ubuntu, apt-get install stockfish; or put it on PATH"
        )
    return found
