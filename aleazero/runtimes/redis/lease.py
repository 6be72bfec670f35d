"""A lease: one holder of a name at a time, whatever the machines, so that a run has one head and one learner.

A key that expires, renewed by a thread. Durations alone count, the server's and each process's own: no two clocks are
ever compared. Who cannot reach the server goes on, because it can change nothing there; who finds another's name in the
key has lost it, and is told. Knows not what the name is for.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import threading
import time
from typing import Any

import msgpack
import redis
from redis.exceptions import ExecAbortError, OutOfMemoryError, WatchError

from aleazero.core.errors import AleaError
from aleazero.runtimes.redis.link import Link, LinkClosed, Unavailable

logger = logging.getLogger(__name__)

LEASE_SECONDS = 15.0


class LeaseTaken(AleaError):  # noqa: N818 - the name says what is wrong
    """Somebody else holds it, or has taken it over."""


class Lease:
    """The right to be something in a run."""

    def __init__(self, link: Link, key: str, what: str, seconds: float = LEASE_SECONDS) -> None:
        """`what` says in messages what there can be only one of, as in "head of run 'home'"."""
        self._link, self._key, self._what, self._seconds = link, key, what, seconds
        self.instance = secrets.token_hex(8)
        self._renewals = 0
        self._lost: dict[str, Any] | None = None
        self._known = 0.0  # when it was last known to be ours
        self._lock = threading.Lock()  # of renewals
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew_for_ever, daemon=True, name="alea-lease")

    def acquire(self) -> None:
        """Takes it, and keeps it; raises `LeaseTaken`, naming the holder, where somebody alive has it.

        A holder elsewhere that does not renew it is given as long as the lease lasts.
        """
        first: dict[str, Any] | None = None
        while (holder := self._link.call(lambda client: self._take(client, None), writes=True)) is not None:
            if _gone(holder):
                holder = self._link.call(lambda client, old=holder: self._take(client, old), writes=True)  # type: ignore[misc]
                if holder is None:
                    break
            first = first or holder
            if _is_here(holder) or holder != first:
                raise LeaseTaken(f"{self._who(holder)} is the {self._what} already: stop it first")
            self._stop.wait(self._seconds / 20)
        self._known = time.monotonic()
        self._thread.start()

    def check(self) -> None:
        """Raises `LeaseTaken` where it is another's by now. After a long sleep it looks before it answers."""
        if time.monotonic() - self._known > self._seconds and self._lost is None:
            self._renew()
        if self._lost is not None:
            raise LeaseTaken(f"{self._who(self._lost)} has become the {self._what} in place of this process")

    def release(self) -> None:
        """Lets go of it, so that the next one need not wait."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

        def do(client: redis.Redis) -> None:
            with client.pipeline(transaction=True) as pipe, contextlib.suppress(WatchError):
                pipe.watch(self._key)
                if _read(pipe.get(self._key)).get("instance") == self.instance:
                    pipe.multi()
                    pipe.delete(self._key)
                    pipe.execute()

        with contextlib.suppress(AleaError):  # it expires
            self._link.attempt(do, writes=False)

    def _renew_for_ever(self) -> None:
        while not self._stop.wait(self._seconds / 3):
            try:
                self._renew()
            except LinkClosed:
                return
            except AleaError as error:
                logger.warning("the lease of the %s could not be renewed: %s", self._what, error)

    def _renew(self) -> None:
        with self._lock:
            began = time.monotonic()
            try:
                holder = self._link.attempt(lambda client: self._take(client, {"instance": self.instance}), writes=True)
            except Unavailable:
                return
            self._lost, self._known = holder, began

    def _take(self, client: redis.Redis, old: dict[str, Any] | None) -> dict[str, Any] | None:
        """Ours from now on, where nobody or `old` has it: None; or else who has it."""
        self._renewals += 1
        mine = {"instance": self.instance, "host": socket.gethostname(), "pid": os.getpid(), "count": self._renewals}
        while True:
            with client.pipeline(transaction=True) as pipe:
                pipe.watch(self._key)
                holder = _read(pipe.get(self._key))
                if holder and (old is None or holder.get("instance") != old["instance"]):
                    return holder
                pipe.multi()
                pipe.set(self._key, msgpack.packb(mine), px=round(self._seconds * 1000))
                try:
                    pipe.execute()
                except WatchError:
                    continue
                except (OutOfMemoryError, ExecAbortError):
                    # Nobody else can write it either. A learner must not wait for room that only it can make.
                    logger.warning("the lease of the %s is not written: Redis is out of memory", self._what)
                return None

    def _who(self, holder: dict[str, Any]) -> str:
        return f"process {holder.get('pid', '?')} on {holder.get('host', '?')}"


def _is_here(holder: dict[str, Any]) -> bool:
    """Whether a holder is a process of this machine that runs."""
    return holder.get("host") == socket.gethostname() and not _gone(holder)


def _gone(holder: dict[str, Any]) -> bool:
    """Whether a holder was a process of this machine that runs no longer; of other machines nothing is known."""
    if holder.get("host") != socket.gethostname() or not isinstance(holder.get("pid"), int):
        return False
    try:
        os.kill(holder["pid"], 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _read(raw: Any) -> dict[str, Any]:
    """What a key says; nothing where it is not there. One that cannot be read is held by somebody unknown."""
    if raw is None:
        return {}
    with contextlib.suppress(ValueError, TypeError, msgpack.UnpackException):
        found = msgpack.unpackb(raw)
        if isinstance(found, dict):
            return found
    return {"instance": ""}
