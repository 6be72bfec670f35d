"""A worker's place in a run: it registers, gives signs of life, and hears what the head has to say.

A thread does both, every second or two, whatever the worker is busy with. The head answers in the worker's own key:
welcome, or why not. A head that is away is no reason to stop: what was said last holds. Knows not what the worker does.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import msgpack
import redis

from aleazero.core.errors import AleaError
from aleazero.runtimes.redis.access import Keys, Token
from aleazero.runtimes.redis.beats import send_beat
from aleazero.runtimes.redis.board import Notices, Progress, read_notices
from aleazero.runtimes.redis.link import Link, LinkClosed, Unavailable
from aleazero.runtimes.redis.page import WorkerPage

logger = logging.getLogger(__name__)

BEAT_SECONDS = 2.0
POLL_SECONDS = 0.5
WELCOME_SECONDS = 12.0  # with what comes before it, a first connection fails within 15


class Dismissed(AleaError):  # noqa: N818 - the name says what happened
    """The head does not want this worker, or not any more; the message says why."""


class Member:
    """One start of a worker, as the head sees it."""

    def __init__(self, link: Link, token: Token, kind: str, status: Callable[[], dict[str, Any]]) -> None:
        """`status()` is what signs of life say besides who it is."""
        self._link, self._token, self._keys = link, token, Keys(token.run)
        self.instance = secrets.token_hex(8)
        self._who = {"instance": self.instance, "kind": kind, "host": socket.gethostname(), "pid": os.getpid()}
        self._status = status
        self.page = WorkerPage(kind, link)
        self.notices = Notices("running", Progress(), "")
        self.orders: dict[str, Any] = {}  # those for this start of it
        self._others: dict[str, Any] = {}  # those for another start
        self._welcomed = False
        self._failure: BaseException | None = None
        self._leaving = False
        self._change = threading.Condition()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="alea-member")

    # ---- what the worker does

    def serve(self, live: Callable[[], None], stop: Callable[[], bool], *, wait: bool) -> None:
        """Joins, `live`s one life of the run after another until it is to stop, and leaves."""
        try:
            if not self.join(stop, wait=wait):
                return
            logger.info("worker %s has joined run %s", self._token.name, self._token.run)
            while not stop():
                live()
        finally:
            self.leave()
            self.page.close()

    def join(self, stop: Callable[[], bool], *, wait: bool = False) -> bool:
        """Returns when the head has said welcome; with `wait` however long that takes. False: stopped before.

        Raises `Dismissed` where it says no, or nothing for too long.
        """
        self._thread.start()
        end = time.monotonic() + WELCOME_SECONDS
        while not self._welcomed:
            self.check()
            if stop():
                return False
            if not wait and time.monotonic() > end:
                raise Dismissed(
                    f"the head of run {self._token.run!r} does not answer: is it running? (alea head --run "
                    f"{self._token.run}; --wait waits for it)"
                )
            with self._change:
                self._change.wait(POLL_SECONDS)
        return True

    def check(self) -> None:
        """Raises `Dismissed` where the head has no use for this worker, and whatever else has gone wrong."""
        if self._failure is not None:
            raise self._failure
        verdict, reason = self.orders.get("verdict"), self.orders.get("reason", "")
        if verdict in ("refused", "benched"):
            raise Dismissed(f"worker {self._token.name!r} is {verdict}: {reason}")
        if self._welcomed and self._others.get("verdict") == "welcome":
            raise Dismissed(
                f"the token of worker {self._token.name!r} is in use elsewhere: {self._others.get('reason')}"
            )

    @property
    def progress(self) -> Progress:
        """How far the run is."""
        return self.notices.progress

    @property
    def told_to_stop(self) -> bool:
        """Whether the head wants it to come to a good end."""
        return self.orders.get("verdict") == "stop" or self.notices.state == "done"

    @property
    def told_to_wait(self) -> bool:
        """Whether there is nothing to do for the time being."""
        return self.notices.state in ("paused", "stopping")

    def speak(self) -> None:
        """Gives a sign of life at once."""
        self._wake.set()

    def leave(self) -> None:
        """Says that it goes, once; the head need not wait for its next sign of life."""
        self._leaving = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(5.0)

    # ---- the thread

    def _run(self) -> None:
        next_beat = 0.0
        try:
            while True:
                leaving = self._leaving
                if leaving or self._wake.is_set() or time.monotonic() >= next_beat:
                    self._wake.clear()
                    next_beat = time.monotonic() + BEAT_SECONDS
                    with contextlib.suppress(Unavailable):
                        send_beat(
                            self._link, self._token, self._who | {"leaving": leaving} | self.page.said(self._status())
                        )
                with contextlib.suppress(Unavailable):
                    self._hear()
                if leaving:
                    return
                self._wake.wait(POLL_SECONDS)
        except LinkClosed:
            pass
        except BaseException as error:
            self._failure = error
        with self._change:
            self._change.notify_all()

    def _hear(self) -> None:
        def do(client: redis.Redis) -> tuple[Any, Notices]:
            return client.get(self._keys.orders(self._token.name)), read_notices(client, self._keys)

        raw, notices = self._link.attempt(do, writes=False)
        orders = _orders(raw)
        with self._change:
            self.notices = notices
            if orders.get("instance") == self.instance:
                self.orders, self._others = orders, {}
                self._welcomed = self._welcomed or orders.get("verdict") == "welcome"
            else:
                self._others = orders
            self._change.notify_all()


def _orders(raw: Any) -> dict[str, Any]:
    if raw is None:
        return {}
    try:
        orders = msgpack.unpackb(raw)
    except (ValueError, TypeError, msgpack.UnpackException):
        return {}
    return orders if isinstance(orders, dict) else {}
