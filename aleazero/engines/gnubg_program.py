"""GNU Backgammon as a program beside us (Debian's `gnubg`): the referee, asked over its socket for external players.

One child process, one question at a time. It plays a cubeless money game without the Jacoby rule, whatever the user's
own settings are: its home is an empty folder of ours. Equities are asked for by position, not taken from hints: hints
at 2-ply hold 0-ply equities where the move filter leaves one play. Every wait ends; a program that dies, hangs or
answers what is no legal play is an error that says so, and nothing is left behind, not even if we are killed.
Does not know the rules: legal plays come from a function it is given. Threads take turns, question by question.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np

from aleazero.engines import EngineError
from aleazero.engines.gnubg import CHECKERS, MAX_PLY, check, equity_of, move, won_points

Legal = Callable[[np.ndarray, np.ndarray], np.ndarray]  # [2, 25], [2] -> [k, 2, 25]

DEBIAN_PLACE = Path("/usr/games/gnubg")  # often not on PATH
# GNU's own filter: at 1 and 2 plies up to 8 plays within 0.16 points of the best at 0-ply.
_SETTINGS = """\
set evaluation sameasanalysis off
set evaluation chequerplay evaluation plies {ply}
set evaluation chequerplay evaluation cubeful off
set evaluation chequerplay evaluation noise 0
set evaluation chequerplay evaluation prune on
set evaluation movefilter 1 0 0 8 0.16
set evaluation movefilter 2 0 0 8 0.16
set evaluation movefilter 2 1 -1 0 0
external {address}:{port}
"""
_ADDRESS = "127.0.0.1"
_GREETING_LINES = 4  # what `version` answers


class GnubgProgram:
    """`with GnubgProgram(legal) as engine:` GNU Backgammon at some ply; `timeout` seconds for each answer.

    Where it is entered and never left, it ends when nobody holds it any more.
    """

    def __init__(self, legal: Legal, ply: int = 2, *, timeout: float = 60.0, program: str | None = None) -> None:
        if ply not in range(MAX_PLY + 1):
            raise EngineError(f"ply is {ply!r}; it must be 0 to {MAX_PLY}")
        self.ply = ply
        self.timeout = timeout
        self.process: subprocess.Popen[bytes] | None = None
        self._legal = legal
        self._program = program
        self._cleanup = contextlib.ExitStack()
        weakref.finalize(self, self._cleanup.close)
        self._asking = threading.RLock()

    def __enter__(self) -> GnubgProgram:
        program = _find(self._program)
        try:
            self._start(program)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the program, if it runs."""
        self.process = None
        self._cleanup.close()

    def choose(self, boards: np.ndarray, dice: np.ndarray) -> np.ndarray:
        """`[n, 2, 25]`: the positions it leaves (the mover still in row 1) from `[n, 2, 25]` with dice `[n, 2]`."""
        boards, dice = check(boards, dice)
        after = [self._choose(board, roll) for board, roll in zip(boards, dice, strict=True)]
        return np.array(after, np.int64).reshape(-1, 2, 25)

    def probabilities(self, boards: np.ndarray) -> np.ndarray:
        """`[n, 5]`: chances that the mover, on roll, wins, wins at least a gammon, a backgammon, loses a gammon, ..."""
        boards, _ = check(boards)
        return np.array([self._judge(board) for board in boards], np.float64).reshape(-1, 5)

    def equities(self, boards: np.ndarray) -> np.ndarray:
        """`[n]`: expected points of the mover, who is on roll."""
        return equity_of(self.probabilities(boards))

    def after_equities(self, after: np.ndarray) -> np.ndarray:
        """`[n]`: expected points of the mover, who has just moved; exact where the game is over."""
        after, _ = check(after, over=True)
        value = won_points(after).astype(np.float64)
        going = value == 0
        value[going] = -self.equities(after[going, ::-1])
        return value

    # ---- questions

    def _choose(self, board: np.ndarray, dice: np.ndarray) -> np.ndarray:
        question = f"{_fibs(board, dice)} jacobyrule off"
        answer = self._ask(question)
        after = _after(board, answer)
        legal = np.asarray(self._legal(board, dice))
        if after is None or not (legal == after).all((1, 2)).any():
            why = "is no move" if after is None else f"leaves {after.tolist()}, which none of {len(legal)} plays does"
            raise EngineError(
                f"GNU Backgammon answered {answer!r}, which {why}; position {board.tolist()}, dice {dice.tolist()}, "
                f"asked as {question!r}"
            )
        return after

    def _judge(self, board: np.ndarray) -> list[float]:
        question = f"evaluation fibsboard {_fibs(board)} jacobyrule off plies {self.ply} cubeless prune"
        answer = self._ask(question)
        if not re.fullmatch(r"[01]\.\d+( [01]\.\d+){4} -?[0-3]\.\d+", answer.strip()):
            raise EngineError(f"GNU Backgammon answered {answer!r}, which is no evaluation, to {question!r}")
        return [float(word) for word in answer.split()[:5]]

    def _ask(self, question: str, lines: int = 1) -> str:
        with self._asking:
            return self._answer(question, lines)

    def _answer(self, question: str, lines: int) -> str:
        if self.process is None:
            raise EngineError("GNU Backgammon is not running: use it inside `with`; after an error, start it anew")
        end = time.monotonic() + self.timeout
        answer = b""
        try:
            self._socket.sendall(question.encode("ascii") + b"\n")
            while answer.count(b"\n") < lines:
                self._socket.settimeout(max(end - time.monotonic(), 1e-3))
                part = self._socket.recv(4096)
                if not part:
                    raise self._failure(question, "closed the connection")
                answer += part
        except TimeoutError:
            raise self._failure(question, f"did not answer within {self.timeout:g} s") from None
        except OSError as error:
            raise self._failure(question, f"is not reachable ({error})") from None
        except BaseException:  # interrupted: the answer would be taken for the next question's
            self.close()
            raise
        if not answer.endswith(b"\n") or answer.count(b"\n") > lines:
            raise self._failure(question, f"answered {answer!r}, more than was asked for")
        return answer.decode("utf-8", "replace").removesuffix("\n")

    def _failure(self, question: str, what: str) -> EngineError:
        """The program is of no use any more: ends it and says how it came."""
        process = self.process
        assert process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)  # a connection ends a little before its process does
        if process.returncode is not None:
            what = _ended(process.returncode)
        words = " / ".join(self._said().split("\n")[-4:]).strip(" /")
        self.close()
        return EngineError(f"GNU Backgammon (process {process.pid}) {what} when asked {question!r}; it said: {words!r}")

    # ---- the process

    def _start(self, program: str) -> None:
        home = Path(self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="alea-gnubg-")))
        self._log = home / "log"
        port = _free_port()
        with self._log.open("wb") as log:
            try:
                self.process = process = _spawn([program, "-t", "-q", "-r"], home, log)
            except OSError as error:
                raise EngineError(f"{program} cannot be started: {error}") from error
        self._cleanup.callback(_end, process)
        # GNU Backgammon waits for the next controller if we go away without a word.
        last_will = 'cat >/dev/null; kill -9 "$0"; rm -rf "$1"'
        guard = _spawn(["sh", "-c", last_will, str(process.pid), str(home)], home)
        self._cleanup.callback(_end, guard)
        assert process.stdin is not None
        settings = _SETTINGS.format(ply=self.ply, address=_ADDRESS, port=port)
        with contextlib.suppress(BrokenPipeError), process.stdin:  # a program that is gone is noticed in `_connect`
            process.stdin.write(settings.encode("ascii"))
        self._connect(port)
        greeting = self._ask("version", _GREETING_LINES)
        said = self._said()
        wanted = ("Interface: 2", f"use {self.ply} ply evaluation", "use cubeless evaluation")
        missing = [text for text in wanted if text not in greeting + said]
        if missing:
            raise EngineError(f"{program} is no GNU Backgammon that we know: it did not say {missing}, but {said!r}")

    def _connect(self, port: int) -> None:
        """Waits until it listens. (Trying before that could meet our own call: a port may connect to itself.)"""
        assert self.process is not None
        end = time.monotonic() + self.timeout
        while "Waiting for a connection" not in self._said():
            if time.monotonic() > end or self.process.poll() is not None:
                raise self._failure("to listen", f"did not within {self.timeout:g} s")
            time.sleep(0.01)
        try:
            self._socket = socket.create_connection((_ADDRESS, port), timeout=self.timeout)
        except OSError as error:
            raise self._failure("to listen", f"is not reachable ({error})") from None
        self._cleanup.callback(self._socket.close)

    def _said(self) -> str:
        return self._log.read_text("utf-8", "replace")


def _find(program: str | None) -> str:
    found = program or shutil.which("gnubg") or str(DEBIAN_PLACE)
    if shutil.which(found) is None:
        raise EngineError(
            f"GNU Backgammon's program is not at {found}: on Debian and Ubuntu, apt-get install gnubg; or name the "
            "program's place"
        )
    return found


def _spawn(command: list[str], home: Path, log: int | IO[bytes] = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A child with settings, language and home of ours, out of the terminal's reach."""
    environment = {"HOME": str(home), "LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=home,
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def _ended(status: int) -> str:
    names = {number.value: number.name for number in signal.Signals}
    return f"ended with status {status}" if status >= 0 else f"was killed by {names.get(-status, -status)}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_ADDRESS, 0))
        return int(probe.getsockname()[1])


# ---- its language


def _fibs(board: np.ndarray, dice: np.ndarray | None = None) -> str:
    """The position as FIBS writes boards: the mover counts up and moves down, the opponent counts down."""
    opponent, mover = board.tolist()
    places = [-opponent[24], *(m - o for m, o in zip(mover[:24], opponent[23::-1], strict=True)), mover[24]]
    rolled = [0, 0] if dice is None else dice.tolist()
    cube = [1, 1, 1, 0]  # both may double: or else it believes that it has been offered a double
    seat = [1, -1, 0, 25]
    off = [CHECKERS - sum(mover), CHECKERS - sum(opponent), mover[24], opponent[24]]
    rest = [0, 0, 0, 0]
    fields = [0, 0, 0, *places, 1, *rolled, 0, 0, *cube, *seat, *off, *rest]
    return "board:mover:opponent:" + ":".join(map(str, fields))


def _after(board: np.ndarray, answer: str) -> np.ndarray | None:
    """What a move such as `25/22* 8/5` leaves (25 is the bar, 0 is off; nothing is a pass); None if it is no move."""
    steps = []
    for word in answer.split():
        found = re.fullmatch(r"(\d{1,2})/(\d{1,2})\*?", word)
        if not found or not 1 <= int(found[1]) <= 25 or not int(found[2]) < int(found[1]):
            return None
        steps.append((int(found[1]) - 1, int(found[2]) - 1))
    after = board.copy()
    move(after, steps)
    return after
