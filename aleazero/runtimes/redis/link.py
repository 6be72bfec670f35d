"""A connection to a run's Redis that says why it cannot be made, and that outlives the server.

A first connection that fails raises, with the reason. One that is lost later is tried again for ever, with growing
pauses; an outage is logged when it begins and when it is over. A server that is full or cannot write is told apart from
one that is not there: then only what writes has to wait. Knows neither slabs nor weights.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import queue
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit, urlunsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ExecAbortError,
    InvalidResponse,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.retry import Retry

from aleazero.core.errors import AleaError
from aleazero.runtimes.protocol import PROTOCOL
from aleazero.runtimes.redis.access import Keys, Token

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 4.0
ANSWER_SECONDS = 5.0  # a server that says nothing for so long is frozen, or out of reach
FIRST_SECONDS = 12.0  # for a first connection with all its steps, names being looked up included
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 3.0

Why = Literal["address", "name", "refused", "silent", "unreachable", "tls", "not_redis", "token", "no_head", "protocol"]
_WORTH_WAITING_FOR = ("name", "refused", "silent", "unreachable", "no_head")
T = TypeVar("T")


class CannotConnect(AleaError):  # noqa: N818 - the name says what is wrong
    """There is no way in, and why."""

    def __init__(self, why: Why, message: str) -> None:
        super().__init__(message)
        self.why = why


class NotAllowed(AleaError):  # noqa: N818
    """The user may not do this."""


class Unavailable(AleaError):  # noqa: N818
    """The server cannot do this now; it is worth trying again."""


class LinkClosed(AleaError):  # noqa: N818
    """The link was closed, or a stop was asked for, while something was still to be done."""


@dataclasses.dataclass
class _Outage:
    """Something that does not work for the time being."""

    what: str
    began: float
    tries: int = 0
    next_try: float = 0.0

    def pause(self) -> None:
        """Sets when to try again: twice as late each time, and never all at once."""
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self.tries, 20))
        self.next_try = time.monotonic() + longest * random.uniform(0.5, 1.0)
        self.tries += 1


class Link:
    """A connection, or the prospect of one; for any number of threads."""

    def __init__(self, client: redis.Redis, where: str) -> None:
        self.client, self.where = client, where
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._outages: dict[str, _Outage] = {}  # by what it stops: "all" or "writes"

    def attempt(self, do: Callable[[redis.Redis], T], *, writes: bool) -> T:
        """Does it once. Raises `Unavailable` where that does not work now, and at once where it did not just before."""
        stops = ("all", "writes") if writes else ("all",)
        with self._lock:
            now = time.monotonic()
            for kind in stops:
                outage = self._outages.get(kind)
                if outage is not None and now < outage.next_try:
                    raise Unavailable(f"Redis at {self.where} {outage.what}")
        try:
            done = do(self.client)
        except RedisError as error:
            raise self._failed(error) from error
        for kind in stops:
            self._over(kind)
        return done

    def call(self, do: Callable[[redis.Redis], T], *, writes: bool, stop: threading.Event | None = None) -> T:
        """Does it, trying for ever; raises `LinkClosed` once the link is closed or `stop` is set."""
        while True:
            try:
                return self.attempt(do, writes=writes)
            except Unavailable:
                self.wait(writes=writes, stop=stop)

    def wait(self, *, writes: bool, stop: threading.Event | None = None) -> None:
        """Until it is worth another attempt; raises `LinkClosed` once the link is closed or `stop` is set."""
        if (stop or self._closed).wait(self._pause(writes)) or self._closed.is_set():
            raise LinkClosed(f"stopped while Redis at {self.where} could not be used")

    def close(self) -> None:
        """Ends every `call`; closes the connections."""
        self._closed.set()
        self.client.close()

    @property
    def trouble(self) -> str | None:
        """What does not work now."""
        with self._lock:
            return next((outage.what for outage in self._outages.values()), None)

    def _pause(self, writes: bool) -> float:
        with self._lock:
            times = [o.next_try for kind, o in self._outages.items() if writes or kind == "all"]
        return max(max(times, default=0.0) - time.monotonic(), 0.001)

    def _failed(self, error: RedisError) -> AleaError:
        if isinstance(error, NoPermissionError):
            return NotAllowed(f"Redis at {self.where} does not allow this user to do that: {error}")
        if isinstance(error, (AuthenticationError, AuthorizationError)):
            return CannotConnect("token", f"Redis at {self.where} no longer accepts this token; ask for a new one")
        trouble = _trouble(error)
        if trouble is None:
            return AleaError(f"Redis at {self.where} answered with an error: {error}")
        kind, what = trouble
        with self._lock:
            outage = self._outages.get(kind)
            if outage is None:
                outage = self._outages[kind] = _Outage(what, time.monotonic())
                logger.warning("Redis at %s %s; trying again until that is over", self.where, what)
            outage.pause()
        return Unavailable(f"Redis at {self.where} {what}")

    def _over(self, kind: str) -> None:
        with self._lock:
            outage = self._outages.pop(kind, None)
        if outage is not None:
            seconds = time.monotonic() - outage.began
            logger.warning("Redis at %s is back; it %s for %.1f s", self.where, outage.what, seconds)


def connect(
    url: str,
    token: Token | None,
    *,
    wait: bool = False,
    stop: threading.Event | None = None,
    ca_file: Path | None = None,
) -> Link:
    """A link to the Redis at `url`, as the token's user (None: as the one the URL names).

    Raises `CannotConnect` within seconds, with the reason; with `wait` it goes on trying where trying can help, until
    `stop` is set. A worker is let in only where a head of the same protocol has been.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("redis", "rediss") or not parts.hostname:
        form = "write redis://HOST:PORT, or rediss://HOST:PORT for TLS"
        raise CannotConnect("address", f"{parts.scheme}://{parts.hostname or ''} is no address of a Redis: {form}")
    where = f"{parts.hostname}:{parts.port or 6379}"
    link = Link(make_client(url, token, ca_file=ca_file), where)
    outage = _Outage("cannot be reached", time.monotonic())
    while True:
        try:
            _within(FIRST_SECONDS, where, lambda: _greet(link.client, token, where))
            return link
        except CannotConnect as error:
            if not wait or error.why not in _WORTH_WAITING_FOR or (stop is not None and stop.is_set()):
                link.close()
                raise
            if not outage.tries:
                logger.warning("%s; waiting for it", error)
            outage.pause()
            (stop or threading.Event()).wait(max(outage.next_try - time.monotonic(), 0.0))


def announce(link: Link, run: str) -> None:
    """As the head: says which protocol it speaks, before any worker is let in."""
    key = Keys(run).public("protocol")
    if link.call(lambda client: client.get(key), writes=False) != str(PROTOCOL).encode():  # a full server can be read
        link.call(lambda client: client.set(key, PROTOCOL), writes=True)


def without_secrets(url: str) -> str:
    """The URL without its user and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def make_client(
    url: str, token: Token | None, *, ca_file: Path | None = None, answer_seconds: float = ANSWER_SECONDS
) -> redis.Redis:
    """A client that tries everything once and notices a silent server."""
    options: dict[str, Any] = {
        "protocol": 2,
        "driver_info": None,
        "socket_connect_timeout": CONNECT_SECONDS,
        "socket_timeout": answer_seconds,
        "socket_keepalive": True,
        "retry": Retry(NoBackoff(), 0),
    }
    if token is not None:
        options |= {"username": token.user, "password": token.password}
    if ca_file is not None:
        options["ssl_ca_certs"] = str(ca_file)
    client: redis.Redis = redis.Redis.from_url(url, **options)
    return client


def _greet(client: redis.Redis, token: Token | None, where: str) -> None:
    """The first words: whether a Redis is there, lets us in, and belongs to a head we understand."""
    try:
        client.ping()
        said: Any = None if token is None or token.is_head else client.get(Keys(token.run).public("protocol"))
    except (RedisError, OSError) as error:
        raise _first_failure(error, token, where) from error
    if token is None or token.is_head:
        return
    if said is None:
        raise CannotConnect("no_head", f"Redis at {where} knows no run {token.run!r}: has its head been started?")
    if said != str(PROTOCOL).encode():
        raise CannotConnect(
            "protocol",
            f"the head of run {token.run!r} speaks protocol {said.decode(errors='replace')}, and this version of "
            f"aleazero speaks {PROTOCOL}: install the same version on both machines",
        )


def _first_failure(error: BaseException, token: Token | None, where: str) -> CannotConnect:
    """Names the reason that lies behind what the client raises."""
    whose = f"the token of {token.name!r}" if token else "the user and password of the URL"
    causes = list(_causes(error))

    def met(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if met(AuthenticationError, AuthorizationError) or "NOAUTH" in str(error) or "WRONGPASS" in str(error):
        return CannotConnect("token", f"Redis at {where} does not accept {whose}: it is wrong, or was revoked")
    if met(NoPermissionError):
        return CannotConnect("token", f"Redis at {where} knows {whose}, but does not let it read its run's keys")
    if met(socket.gaierror):
        return CannotConnect("name", f"the host of {where} cannot be found: is its name right, and known here?")
    if met(ConnectionRefusedError):
        return CannotConnect("refused", f"nothing listens at {where}: is the head running, and is the port right?")
    if met(ssl.SSLError):
        return CannotConnect("tls", f"no TLS with {where}: {error}; is it rediss://, and is the certificate trusted?")
    if met(BusyLoadingError):
        return CannotConnect("silent", f"Redis at {where} is still loading its data")
    if met(InvalidResponse, ResponseError):
        return CannotConnect("not_redis", f"what listens at {where} does not speak as a Redis server does: {error}")
    if met(redis.TimeoutError, TimeoutError):
        return CannotConnect("silent", f"no answer from {where}: is it the right address, and is a firewall between?")
    if met(ConnectionResetError) or "closed by server" in str(error):
        return CannotConnect("not_redis", f"{where} hangs up: is it a Redis server, and does it want rediss://?")
    return CannotConnect("unreachable", f"no connection to {where}: {error}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _within(seconds: float, where: str, do: Callable[[], None]) -> None:
    """Does it in a thread of its own: looking up a name cannot be given a time limit."""
    answers: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            do()
            answers.put(None)
        except BaseException as error:
            answers.put(error)

    threading.Thread(target=run, daemon=True, name="alea-connect").start()
    failure: BaseException | None = CannotConnect("silent", f"no connection to {where} within {seconds:.0f} s")
    with contextlib.suppress(queue.Empty):
        failure = answers.get(timeout=seconds)
    if failure is not None:
        raise failure


def _trouble(error: RedisError) -> tuple[str, str] | None:
    """What an error stops and what to call it; None where trying again would not help."""
    if isinstance(error, BusyLoadingError):
        return "all", "is loading its data"
    if isinstance(error, redis.TimeoutError):
        return "all", "does not answer"
    if isinstance(error, (redis.ConnectionError, InvalidResponse)):
        return "all", "cannot be reached"
    text = str(error)
    aborted = isinstance(error, ExecAbortError)
    if isinstance(error, OutOfMemoryError) or (aborted and "OOM" in text):
        return "writes", "is out of memory"
    if isinstance(error, ReadOnlyError) or (aborted and "READONLY" in text):
        return "writes", "is read-only"
    if isinstance(error, ResponseError) and "MISCONF" in text:
        return "writes", "cannot write to its disk"
    if isinstance(error, ResponseError) and text.startswith("BUSY "):
        return "all", "is busy with a script"
    return None
