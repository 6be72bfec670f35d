"""Heartbeats: every worker says now and then that it is alive, and what it does.

A heartbeat is the one entry of the worker's own stream, and the entry's id is the server's time: clocks of other
machines do not matter. How old is too old, the reader decides; a server that is full takes no heartbeat, so nobody is
dead while it is. Knows nothing of what a status says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import msgpack
import redis

from aleazero.runtimes.redis.access import Keys, Token
from aleazero.runtimes.redis.link import Link

_FIELD = b"status"


@dataclasses.dataclass(frozen=True)
class Beat:
    """A worker's last sign of life."""

    age_seconds: float  # by the server's clock
    status: dict[str, Any]


def send_beat(link: Link, token: Token, status: dict[str, Any]) -> None:
    """Once, as the worker; raises `Unavailable` where the server cannot be reached now."""
    key, packed = Keys(token.run).beat(token.name), msgpack.packb(status)
    link.attempt(lambda client: client.xadd(key, {_FIELD: packed}, maxlen=1, approximate=False), writes=True)


def read_beats(link: Link, keys: Keys, workers: Iterable[str]) -> dict[str, Beat]:
    """As the head: the last of each worker that has ever given one."""
    names = list(workers)

    def do(client: redis.Redis) -> list[Any]:
        with client.pipeline(transaction=True) as pipe:
            pipe.time()
            for name in names:
                pipe.xrevrange(keys.beat(name), count=1)
            return pipe.execute()

    (seconds, micros), *found = link.attempt(do, writes=False)
    now = seconds + micros / 1e6
    return {
        name: Beat(max(now - int(entries[0][0].split(b"-")[0]) / 1000, 0.0), _status(entries[0][1]))
        for name, entries in zip(names, found, strict=True)
        if entries
    }


def forget_beat(link: Link, keys: Keys, worker: str) -> None:
    """Removes the heartbeat of a worker that is gone."""
    link.attempt(lambda client: client.delete(keys.beat(worker)), writes=False)


def _status(fields: dict[bytes, bytes]) -> dict[str, Any]:
    """What a worker says of itself; nothing where that cannot be read, as any worker can write anything."""
    try:
        status = msgpack.unpackb(fields.get(_FIELD, b""))
    except (ValueError, TypeError, msgpack.UnpackException):
        return {}
    return dict(status) if isinstance(status, dict) else {}
