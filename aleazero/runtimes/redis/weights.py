"""Weights through Redis: a key for each version, and one that says which is the newest. Published all at once.

Publishing never waits: where the server cannot be reached or is full, the newest version is kept and goes out later, so
that a learner learns on. Who fetches plays on with what it has. Knows the tree's shapes only by an example.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgpack
import redis

from aleazero.core.records import Weights
from aleazero.runtimes.codec import BadWeights, pack_weights, unpack_weights
from aleazero.runtimes.redis.access import Keys
from aleazero.runtimes.redis.link import Link, Unavailable

KEEP_VERSIONS = 3

_TRIES = 5  # to fetch what the pointer names, while newer versions come out


class RedisWeights:
    """A `WeightStore` that many processes share; one of them publishes."""

    def __init__(self, link: Link, keys: Keys, like: Any, *, keep: int = KEEP_VERSIONS) -> None:
        """`like` has the structure, shapes and dtypes of the weights; `keep` versions stay, at least 2."""
        if keep < 2:
            raise ValueError(f"keep is {keep}: a version must stay while those who read of it fetch it")
        self._link, self._keys, self._like, self._keep = link, keys, like, keep
        self._pointer_key = keys.public("weights")
        self._published = -1  # by this process
        self._pending: tuple[int, bytes] | None = None
        self._held: tuple[str, int, Weights] | None = None  # sha256, version and tree of the last fetched
        self.fetches = 0  # of whole versions

    # ---- the learner's side

    def publish(self, version: int, weights: Weights) -> None:
        """Makes a version the newest, now or as soon as it goes. A learner that began anew may go back."""
        if version < self._published:
            raise ValueError(f"weights version {version} is older than {self._published}")
        self._published = version
        self._pending = (version, pack_weights(version, weights))
        self.flush()

    def flush(self) -> bool:
        """Sends what could not be sent; whether nothing is left to send."""
        if self._pending is None:
            return True
        version, data = self._pending

        def do(client: redis.Redis) -> None:
            before = read_pointer(client.get(self._pointer_key))
            old = [v for v in before["kept"] if v != version]
            kept = [*old, version][-self._keep :]
            pointer = {
                "version": version,
                "sha256": hashlib.sha256(data).hexdigest(),
                "kept": kept,
                "highest": max(version, before["highest"]),
            }
            client.mset({self._keys.weights(version): data, self._pointer_key: msgpack.packb(pointer)})  # as one
            if gone := set(old) - set(kept):
                client.delete(*(self._keys.weights(v) for v in gone))

        try:
            self._link.attempt(do, writes=True)
        except Unavailable:
            return False
        self._pending = None
        return True

    @property
    def published(self) -> int:
        """The last version of this process; -1 where there is none."""
        return self._published

    def highest(self) -> int:
        """The highest version ever published, before a learner went back too; -1 where there is none."""
        pointer = self._link.call(lambda client: client.get(self._pointer_key), writes=False)
        return max(int(read_pointer(pointer)["highest"]), self._published)

    # ---- the players' side

    def latest(self) -> tuple[int, Weights]:
        """The newest version, fetched once; the last one fetched where the server cannot be reached.

        Waits for the server where nothing was fetched yet; raises `LookupError` where nothing is published.
        """
        for _ in range(_TRIES):
            try:
                found = self._link.attempt(self._fetch, writes=False)
            except Unavailable:
                if self._held is not None:
                    return self._held[1:]
                found = self._link.call(self._fetch, writes=False)
            if found is not None:
                return found
        raise BadWeights("the newest weights could not be fetched: they went out of date faster than they came")

    def _fetch(self, client: redis.Redis) -> tuple[int, Weights] | None:
        """None where a version was gone before it came."""
        raw = client.get(self._pointer_key)
        if raw is None:
            raise LookupError("no weights have been published")
        pointer = read_pointer(raw)
        if self._held is not None and self._held[0] == pointer["sha256"]:
            return self._held[1:]
        data: Any = client.get(self._keys.weights(pointer["version"]))
        if data is None or hashlib.sha256(data).hexdigest() != pointer["sha256"]:
            return None  # trimmed, or published anew, in between
        version, weights = unpack_weights(data, self._like)
        self.fetches += 1
        self._held = (pointer["sha256"], version, weights)
        return version, weights


def read_pointer(raw: Any) -> dict[str, Any]:
    """What the key that names the newest weights says."""
    if raw is None:
        return {"version": -1, "sha256": "", "kept": [], "highest": -1}
    try:
        pointer = msgpack.unpackb(raw)
        wanted = {"version": int, "sha256": str, "kept": list, "highest": int}
        if all(isinstance(pointer[name], kind) for name, kind in wanted.items()):
            return dict(pointer)
    except (ValueError, TypeError, KeyError, msgpack.UnpackException):
        pass
    raise BadWeights("the key that names the newest weights is damaged: publish them again")
