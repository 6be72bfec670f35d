"""Compiling: programs are kept on disk, and a compilation that takes long says so and can be ended.

A kept program is found by what it computes and for which devices, by the version of jaxlib, by XLA's flags, and by
whether the package `zstandard` is installed, for JAX packs programs with it where it can: installing that one alone
makes everything compile once more.
"""

from __future__ import annotations

import functools
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import jax

LONG_SECONDS = 60.0
_COMPILING = "/jax/core/compile/backend_compile_duration"  # JAX tells of its beginning, and of its end


def set_up_compiling() -> None:
    """What every command does first: keeps compiled programs, and watches over long compilations."""
    keep_compiled_programs()
    _watch()


def keep_compiled_programs() -> None:
    """Keeps what takes over half a second to compile under `~/.cache/aleazero`; JAX's own variables override.

    An unwritable home is no reason to stop: then nothing is kept.
    """
    update: Callable[[str, object], None] = jax.config.update
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        update("jax_persistent_cache_min_compile_time_secs", 0.5)
    if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "aleazero" / "jax"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    update("jax_compilation_cache_dir", str(folder))


def keep_names() -> None:
    """From now on a kept program is taken only if its operations have the same names, which a profile goes by.

    Otherwise programs that are equal but for names count as the same, and those that were compiled first are used.
    """
    update: Callable[[str, object], None] = jax.config.update
    update("jax_compilation_cache_include_metadata_in_key", True)


class _Watch(threading.Thread):
    """Prints which program has been compiling for long, and ends the process on Ctrl-C while that goes on.

    Python handles a signal only after the compiler has returned, which may be never. So the number of the signal comes
    here through a socket, which needs no Python in the thread that compiles.
    """

    def __init__(self) -> None:
        super().__init__(name="compilation watch", daemon=True)
        self._going: dict[int, tuple[str, float]] = {}  # by thread: the program, and since when
        self._told: set[tuple[str, float]] = set()
        self._signals, heard = socket.socketpair()
        heard.setblocking(False)
        if threading.current_thread() is threading.main_thread():  # else signals are somebody else's
            signal.set_wakeup_fd(heard.fileno(), warn_on_full_buffer=False)
        self._heard = heard  # as long as it may be written to
        jax.monitoring.register_scalar_listener(self._begin)
        jax.monitoring.register_event_duration_secs_listener(self._end)

    def _begin(self, event: str, value: float, **kwargs: str | int) -> None:
        if event == _COMPILING:
            self._going[threading.get_ident()] = str(kwargs.get("fun_name", "a program")), value

    def _end(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == _COMPILING:
            self._going.pop(threading.get_ident(), None)

    def run(self) -> None:
        """Looks once a second."""
        while True:
            asked = select.select([self._signals], [], [], 1.0)[0] and signal.SIGINT in self._signals.recv(64)
            going = list(self._going.values())
            self._told.intersection_update(going)
            if asked and self._told:
                os.write(2, f"aleazero: ended while it compiled {min(self._told)[0]}\n".encode())
                os._exit(1)
            for program, since in going:
                if (program, since) not in self._told and time.time() - since > LONG_SECONDS:
                    self._told.add((program, since))
                    clock = time.strftime("%H:%M:%S", time.localtime(since))
                    told = f"aleazero: {program} has been compiling since {clock}; it goes on, and Ctrl-C ends it"
                    print(told, file=sys.stderr, flush=True)


@functools.cache
def _watch() -> None:
    """Once in a process."""
    _Watch().start()
