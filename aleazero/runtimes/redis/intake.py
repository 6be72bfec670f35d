"""A learner's intake: what workers have sent, checked, each slab once and in its source's order.

It stands where an actor stands in a local run (`Producer`), so that everything behind it is the same. A checkpoint
keeps how far it has read every stream, and which slabs came: what is read again after a restart is known by its number.
Knows streams and slabs; neither who plays nor how anything is learned.
"""

from __future__ import annotations

import collections
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from aleazero import checkpoint as checkpoints
from aleazero.core.records import Trajectory
from aleazero.observe.alarms import Alarm
from aleazero.roles.ports import SourcedSink
from aleazero.runtimes.codec import Envelope, SecretOf, unpack_slab
from aleazero.runtimes.legal import LegalCheck
from aleazero.runtimes.redis.access import Keys
from aleazero.runtimes.redis.link import Link, Unavailable
from aleazero.runtimes.redis.quarantine import Quarantine
from aleazero.runtimes.redis.stream import Entry, Seen, SlabReader, trim
from aleazero.runtimes.selfplay import Resume, SoFar
from aleazero.runtimes.slabs import BadSlab, SlabSchema

logger = logging.getLogger(__name__)

WAIT_SECONDS = 0.5  # for a slab, before the run looks whether it should stop
READ_SLABS = 32  # of each worker at a time
FULL = 0.8  # of the server's memory: then a checkpoint comes early, so that streams can be trimmed
LOOK_SECONDS = 5.0  # between two looks at it


class Intake:
    """Takes slabs from the workers' streams into a sink."""

    def __init__(
        self,
        link: Link,
        keys: Keys,
        schema: SlabSchema,
        sink: SourcedSink,
        *,
        workers: Callable[[], Sequence[str]],
        secret_of: SecretOf,
        newest_version: Callable[[], int],
        legal: LegalCheck,
        quarantine: Quarantine,
        tell: Callable[[SoFar], None] = lambda so_far: None,
        wait_seconds: float = WAIT_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """`workers()` are those whose streams are read; `newest_version()` is the highest that was ever published.

        `tell` is called after every iteration of the run.
        """
        self._keys, self._schema, self._sink = keys, schema, sink
        self._workers, self._secret_of, self._newest_version = workers, secret_of, newest_version
        self._legal, self._quarantine, self._wait = legal, quarantine, wait_seconds
        self._reader, self._seen = SlabReader(link, keys), Seen()
        self._link, self._tell = link, tell
        self._read: collections.deque[Entry] = collections.deque()
        self.positions: dict[str, str] = {}  # by worker: the last entry dealt with
        self._lines: dict[tuple[str, int], int] = {}  # by worker and source: what the sink calls it
        self._next_line = 0
        self._look_seconds, self._next_look = look_seconds, 0.0
        self._trimmed: dict[str, str] = {}  # positions up to which streams were trimmed
        self._since_trim = 0  # entries dealt with after that
        self.epoch = 0
        self.slabs = 0  # taken so far
        self.counts: collections.Counter[str] = collections.Counter()  # of entries: taken, twice, gap, refused, benched

    @property
    def rows(self) -> int:
        """Taken so far."""
        return self.slabs * self._schema.rows

    def step(self) -> Trajectory | None:
        """The next good slab, once it is in the sink; None where none came in time."""
        if not self._read:
            until = time.monotonic() + self._wait
            self._read.extend(self._reader.read(self._workers(), READ_SLABS, self._wait))
            if not self._read:  # a server that is away, or a run without workers, answers at once
                time.sleep(max(until - time.monotonic(), 0.0))
        while self._read:
            entry = self._read.popleft()
            slab = self._take(entry)
            self.positions[entry.worker] = entry.id
            self._since_trim += 1
            if slab is not None:
                return slab
        return None

    def _take(self, entry: Entry) -> Trajectory | None:
        """The slab of an entry in the sink; None where it is refused, or came before."""
        if self._quarantine.benched(entry.worker):
            self.counts["benched"] += 1
            return None
        try:
            envelope, arrays = self._unpack(entry)
        except BadSlab as bad:
            self.counts["refused"] += 1
            self._quarantine.put(bad, entry.id, entry.data)
            return None
        came = self._seen.add(envelope)
        self.counts[came] += 1
        if came == "twice":
            return None
        fields: dict[str, Any] = {name: jnp.asarray(array) for name, array in arrays.items()}
        slab = Trajectory(**fields)
        self._sink.add(slab, self._line(envelope, goes_on=came == "next"))
        self.slabs += 1
        return slab

    def _unpack(self, entry: Entry) -> tuple[Envelope, dict[str, np.ndarray]]:
        envelope, arrays = unpack_slab(
            entry.data, self._schema, self._secret_of, run=self._keys.run, newest_version=self._newest_version()
        )
        if envelope.worker != entry.worker:
            raise BadSlab("worker", f"signed by {envelope.worker!r}, in the stream of {entry.worker!r}", entry.worker)
        self._legal(arrays, envelope.worker)
        return envelope, arrays

    def _line(self, envelope: Envelope, goes_on: bool) -> int:
        """The number by which the sink knows these games; another one where a slab before is missing."""
        name = envelope.worker, envelope.source
        if name not in self._lines or not goes_on:
            self._lines[name] = self._next_line
            self._next_line += 1
        return self._lines[name]

    # ---- what a run asks of whoever brings it slabs

    def alarm(self, learner_version: int) -> Alarm | None:
        """None: how old the weights are that workers play with is for `alea status` to show, and no fault."""
        return None

    def arrays(self) -> dict[str, Any]:
        """None: games in flight are the workers'."""
        return {}

    def facts(self) -> dict[str, Any]:
        """How far it has read."""
        lines = [[worker, source, line] for (worker, source), line in sorted(self._lines.items())]
        kept = {"positions": self.positions, "seen": self._seen.state(), "slabs": self.slabs, "lines": lines}
        return {"intake": kept}

    def take_up(self, found: checkpoints.Checkpoint, how: Resume) -> None:
        """Goes on reading where the checkpoint was, whichever way the rest goes on."""
        kept = found.facts["intake"]
        self.positions, self._seen, self.slabs = dict(kept["positions"]), Seen(kept["seen"]), kept["slabs"]
        self._lines = {(worker, source): line for worker, source, line in kept["lines"]}
        self._next_line = 1 + max(self._lines.values(), default=-1)
        self._reader = SlabReader(self._link, self._keys, self.positions)
        self._read.clear()

    def tend(self, so_far: SoFar) -> bool:
        """Tells others how far the run is; whether the server is nearly full and a checkpoint would make room."""
        self._tell(so_far)
        return self._presses()

    def _presses(self) -> bool:
        now = time.monotonic()
        if now < self._next_look or self.positions == self._trimmed:
            return False
        self._next_look = now + self._look_seconds
        try:
            memory: Any = self._link.attempt(lambda client: client.info("memory"), writes=False)
        except Unavailable:
            return False
        most = int(memory["maxmemory"])
        full = most > 0 and int(memory["used_memory"]) > FULL * most
        if full:
            logger.warning("Redis at %s is nearly full: a checkpoint comes early, then it is trimmed", self._link.where)
        return full

    def saved(self) -> None:
        """Lets go of what the checkpoint has read."""
        positions = dict(self.positions)
        trim(self._link, self._keys, positions)
        self._trimmed, self._since_trim = positions, len(positions)  # the last of each stays

    def report(self, where: dict[str, Any]) -> None:
        """Nothing: the head says who takes part."""

    def close(self) -> None:
        """Nothing is held: the link is the run's."""

    def backlog_rows(self) -> int:
        """Rows that wait in the streams, about."""
        return max(self._reader.waiting(self._workers()) - self._since_trim, 0) * self._schema.rows
