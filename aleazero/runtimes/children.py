"""Processes that a run starts: each with a log of its own, started again when it ends before it should.

Each is in a session of its own, so that Ctrl-C reaches their parent alone. Secrets go by the environment, which only
their owner can read, never by the command line. Knows processes; not what they do.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
STEADY_SECONDS = 60.0  # one that has lived so long is started again at once
PATIENCE_SECONDS = 30.0  # for a checkpoint, and for what was played to be sent, once the head is gone
# The environment of a process that computes on one core and leaves the others to others.
ONE_CORE = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false --xla_force_host_platform_device_count=1",
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
JAX_SHARE = 0.75  # of a GPU's memory: what JAX takes for a process that is told nothing
MOST_FAILURES = 4  # in a row, of a process that must not fail


def memory_share(share: float) -> dict[str, str]:
    """The environment of a process that takes so much of a GPU's memory, and leaves the rest to others."""
    return {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{share:.3f}"}


class Child:
    """A process, from start to start."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        """`command` is a module and its arguments, for this Python."""
        self.name, self.log = name, log
        self._command = [sys.executable, "-m", *command]
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._next_start = 0.0
        self.how = ""  # it has ended last
        self.failures = 0  # in a row: ends of its own that were no good ones
        self._quick_ends = 0

    @property
    def pid(self) -> int | None:
        """Its number, while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self, more: Sequence[str] = (), files: Sequence[int] = ()) -> int:
        """Starts it, with `more` arguments and these open files; its number."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
            self._process = subprocess.Popen(
                [*self._command, *more],
                pass_fds=files,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )
        self._started = time.monotonic()
        return self._process.pid

    def ended(self) -> int | None:
        """The exit code, once, where it has ended; the next start is then some time away."""
        if self._process is None or (code := self._process.poll()) is None:
            return None
        lived = time.monotonic() - self._started
        self._process = None
        self._quick_ends = 0 if lived > STEADY_SECONDS else self._quick_ends + 1
        self.failures = self.failures + 1 if code > 0 and lived <= STEADY_SECONDS else int(code > 0)
        pause = min(FIRST_PAUSE * 2.0 ** (self._quick_ends - 1), LONGEST_PAUSE) if self._quick_ends else 0.0
        self._next_start = time.monotonic() + pause
        self.how = f"signal {-code}" if code < 0 else f"exit code {code} (its log: {self.log})"
        return code

    @property
    def due(self) -> bool:
        """Whether it is to be started."""
        return self._process is None and time.monotonic() >= self._next_start

    def ask(self) -> None:
        """Asks it to come to a good end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it, and whatever it has started."""
        self._signal(signal.SIGKILL)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended within the time."""
        if self._process is None:
            return True
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll() is not None

    def _signal(self, number: int) -> None:
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)


class Guard:
    """The process that ends the others when this one is gone (`aleazero.runtimes.guard`)."""

    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        """`patience` is how long a process may take to come to a good end, in seconds."""
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._said: list[str] = []

    def watch(self, groups: Sequence[int], needed: Sequence[int] = ()) -> None:
        """Keeps it up to date; those that are `needed` by the others are ended last."""
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "aleazero.runtimes.guard", str(self._patience)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
            self._said = []
        wanted = [f"*{group}" for group in needed] + [f"+{group}" for group in groups]
        if wanted != self._said:
            lines = [f"-{line[1:]}" for line in self._said] + wanted
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())
                self._process.stdin.flush()
                self._said = wanted

    def dismiss(self) -> None:
        """Lets it go, as if this process were gone: whatever is still watched is ended."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.wait()
