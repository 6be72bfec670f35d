"""What was refused: kept for a person to look at, counted by worker, and who has sent so much of it that it is benched.

Only what a worker has signed is held against it: others could write its name on anything. Never waits for a server that
is full or away: then the refusal is counted, and its bytes are lost. Knows neither slabs nor tokens.
"""

from __future__ import annotations

import collections
import logging
import time
from collections.abc import Callable

import redis

from aleazero.runtimes.redis.access import Keys
from aleazero.runtimes.redis.link import Link, Unavailable
from aleazero.runtimes.slabs import BadSlab

logger = logging.getLogger(__name__)

KEEP_ENTRIES = 200
KEEP_BYTES = 64 * 2**10  # of each


class Quarantine:
    """A capped stream of refused entries, and the counts of this process."""

    def __init__(
        self,
        link: Link,
        keys: Keys,
        *,
        bench_after: int = 10,
        window_seconds: float = 600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """A worker is benched by its `bench_after`-th bad slab within the window, and stays so until pardoned."""
        self._link, self._key = link, keys.quarantine
        self._bench_after, self._window, self._clock = bench_after, window_seconds, clock
        self._recent: dict[str, collections.deque[float]] = {}
        self._benched: set[str] = set()
        self.counts: collections.Counter[str] = collections.Counter()  # by worker; "" where nobody is proved
        self.reasons: collections.Counter[str] = collections.Counter()

    def put(self, bad: BadSlab, entry_id: str, data: bytes) -> None:
        """Notes a refused entry, and keeps what it can of it."""
        self.counts[bad.worker or ""] += 1
        self.reasons[bad.reason] += 1
        if bad.worker is not None:
            self._hold_against(bad.worker, bad)
        fields = {
            "reason": bad.reason,
            "detail": bad.detail,
            "worker": bad.worker or "",
            "claimed": bad.claimed or "",
            "entry": entry_id,
            "bytes": str(len(data)),
            "data": data[:KEEP_BYTES],
        }

        def do(client: redis.Redis) -> None:
            client.xadd(self._key, fields, maxlen=KEEP_ENTRIES, approximate=False)  # type: ignore[arg-type]

        try:
            self._link.attempt(do, writes=True)
        except Unavailable as error:
            logger.warning("a refused slab could not be kept (%s): %s", error, bad)

    @property
    def all_benched(self) -> list[str]:
        """Who is benched."""
        return sorted(self._benched)

    def benched(self, worker: str) -> bool:
        """Whether nothing more is to be taken from it."""
        return worker in self._benched

    def pardon(self, worker: str) -> None:
        """Takes from it again."""
        self._benched.discard(worker)
        self._recent.pop(worker, None)

    def _hold_against(self, worker: str, bad: BadSlab) -> None:
        now = self._clock()
        recent = self._recent.setdefault(worker, collections.deque(maxlen=self._bench_after))
        recent.append(now)
        if worker not in self._benched and len(recent) == self._bench_after and now - recent[0] <= self._window:
            self._benched.add(worker)
            logger.warning("worker %s is benched: %d bad slabs, the last for %s", worker, self.counts[worker], bad)
