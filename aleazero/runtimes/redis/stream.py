"""Slabs through streams, one a worker: a sender that loses none, a reader that goes on, and what came already.

The sender packs and sends in a thread of its own. What it holds is bounded: `add` waits when that is full, and nothing
is ever dropped. Slabs go in order, several in one transaction, which the server takes whole or not at all; after an
outage all that was not acknowledged goes again, so an entry may come twice, and `Seen` tells. Knows neither replay nor
how slabs are made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import redis

from aleazero.core.errors import AleaError
from aleazero.core.records import Trajectory
from aleazero.runtimes.codec import Envelope, pack_slab
from aleazero.runtimes.redis.access import Keys, Token
from aleazero.runtimes.redis.link import ANSWER_SECONDS, Link, LinkClosed, Unavailable
from aleazero.runtimes.slabs import SlabSchema, count_games

QUEUE_ROLLOUTS = 4  # waiting; as many again may be on their way
BATCH_BYTES = 8 * 2**20  # sent in one transaction, or one rollout where that has more
FIRST_ID = "0-0"

_FIELD = b"slab"
_POLL_SECONDS = 0.2  # how soon a waiting `add` notices that the thread has failed


class SenderFailed(AleaError):  # noqa: N818 - the name says what is wrong
    """Slabs can no longer be sent; those not yet acknowledged are lost."""


@dataclasses.dataclass(frozen=True)
class SenderCounts:
    """What a sender has done so far."""

    slabs_added: int
    slabs_sent: int  # attempts included that came to nothing
    slabs_acknowledged: int
    rows_acknowledged: int
    games_acknowledged: int
    bytes_acknowledged: int
    seconds_blocked: float  # that `add` had to wait


class SlabSender:
    """An `EpisodeSink` at the other end of which is a learner."""

    def __init__(
        self,
        link: Link,
        token: Token,
        schema: SlabSchema,
        sources: Sequence[int],
        version: Callable[[], int],
        *,
        queue_rollouts: int = QUEUE_ROLLOUTS,
    ) -> None:
        """`sources` are the numbers of groups of `schema.lanes` games: nobody else's, now or ever.

        `version()` is the version of the weights that played what is added.
        """
        self._link, self._token, self._schema, self._sources = link, token, schema, list(sources)
        self._key, self._secret = Keys(token.run).slabs(token.name), token.signing_key
        self._version = version
        self._queue: queue.Queue[tuple[Trajectory, int]] = queue.Queue(queue_rollouts)
        self._change = threading.Condition()
        self._counts = SenderCounts(0, 0, 0, 0, 0, 0, 0.0)
        self._sequence = 0
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="alea-sender")
        self._thread.start()

    def add(self, slab: Trajectory) -> None:
        """Takes T moves of all sources' games; waits while too many are still to be sent."""
        moves, lanes = slab.ended.shape
        wanted = (self._schema.moves, self._schema.lanes * len(self._sources))
        if (moves, lanes) != wanted:
            raise ValueError(f"the slab has {moves} moves of {lanes} games, and the sources have {wanted}")
        item, began = (slab, self._version()), time.monotonic()
        with self._change:  # counted first, so that `drain` never misses it
            self._count(slabs_added=len(self._sources))
        while True:
            self._check()
            try:
                self._queue.put(item, timeout=_POLL_SECONDS)
                break
            except queue.Full:
                continue
        with self._change:
            self._count(seconds_blocked=time.monotonic() - began)

    def drain(self, seconds: float) -> bool:
        """Waits until all that was added is acknowledged; whether that was within the time."""
        with self._change:
            done = self._change.wait_for(lambda: self._failure is not None or self._all_there(), seconds)
        self._check()
        return done

    def close(self, seconds: float = 5.0) -> bool:
        """Drains, and ends the thread; whether all was acknowledged. The link stays open."""
        try:
            return self.drain(seconds)
        finally:
            self._stop.set()
            self._thread.join()

    @property
    def counts(self) -> SenderCounts:
        """What was done so far."""
        with self._change:
            return self._counts

    @property
    def waiting(self) -> int:
        """Slabs that are not acknowledged yet."""
        counts = self.counts
        return counts.slabs_added - counts.slabs_acknowledged

    def _all_there(self) -> bool:
        return self._counts.slabs_acknowledged == self._counts.slabs_added

    def _count(self, **more: float) -> None:
        now: dict[str, Any] = {name: getattr(self._counts, name) + value for name, value in more.items()}
        self._counts = dataclasses.replace(self._counts, **now)
        self._change.notify_all()

    def _check(self) -> None:
        if self._failure is not None:
            raise SenderFailed(f"slabs can no longer be sent: {self._failure}") from self._failure
        if self._stop.is_set():
            raise SenderFailed("slabs can no longer be sent: the sender is closed")

    # ---- the thread

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                packed = self._next_batch()
                if packed:
                    self._send(packed)
        except LinkClosed as error:
            if not self._stop.is_set():
                self._fail(error)
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        with self._change:
            self._failure = error
            self._change.notify_all()

    def _next_batch(self) -> list[tuple[Envelope, bytes]]:
        """What is waiting, as far as it fits into a transaction.

        No more rollouts than the queue holds, so that what is held is bounded however fast they come.
        """
        packed: list[tuple[Envelope, bytes]] = []
        with contextlib.suppress(queue.Empty):
            packed += self._pack(*self._queue.get(timeout=_POLL_SECONDS))
            for _ in range(self._queue.maxsize - 1):
                if sum(len(data) for _, data in packed) >= BATCH_BYTES:
                    break
                packed += self._pack(*self._queue.get_nowait())
        return packed

    def _pack(self, slab: Trajectory, version: int) -> list[tuple[Envelope, bytes]]:
        """One entry for each source."""
        whole = {field.name: np.asarray(getattr(slab, field.name)) for field in self._schema.fields}
        lanes, packed = self._schema.lanes, []
        for place, source in enumerate(self._sources):
            part = {name: array[:, place * lanes : (place + 1) * lanes] for name, array in whole.items()}
            if misfits := self._schema.misfits(part):
                raise ValueError("the slab is not as the run's slabs are: " + "; ".join(misfits))
            envelope = Envelope(
                run=self._token.run,
                worker=self._token.name,
                source=source,
                sequence=self._sequence,
                weights_version=version,
                schema=self._schema.fingerprint,
                rows=self._schema.rows,
                games=count_games(part),
            )
            packed.append((envelope, pack_slab(envelope, part, self._secret)))
        self._sequence += 1
        return packed

    def _send(self, packed: list[tuple[Envelope, bytes]]) -> None:
        """Until all of it is acknowledged; in ever smaller groups where the server could not take one."""
        group = len(packed)
        while packed:
            try:
                self._send_group(packed[:group])
            except Unavailable:
                group = max(group // 2, 1)
                self._link.wait(writes=True, stop=self._stop)
            else:
                packed = packed[group:]

    def _send_group(self, packed: list[tuple[Envelope, bytes]]) -> None:
        def do(client: redis.Redis) -> None:
            # A transaction, so that no later slab of a source can be in while an earlier one is not.
            with client.pipeline(transaction=True) as pipe:
                for _, data in packed:
                    pipe.xadd(self._key, {_FIELD: data})
                pipe.execute()

        with self._change:
            self._count(slabs_sent=len(packed))
        self._link.attempt(do, writes=True)
        with self._change:
            self._count(
                slabs_acknowledged=len(packed),
                rows_acknowledged=sum(envelope.rows for envelope, _ in packed),
                games_acknowledged=sum(envelope.games for envelope, _ in packed),
                bytes_acknowledged=sum(len(data) for _, data in packed),
            )


@dataclasses.dataclass(frozen=True)
class Entry:
    """One entry of a worker's stream."""

    worker: str
    id: str
    data: bytes  # none where the entry holds no slab


class SlabReader:
    """Reads the streams of a run's workers, every entry once; `positions` is all that it carries."""

    def __init__(self, link: Link, keys: Keys, positions: Mapping[str, str] | None = None) -> None:
        self._link, self._keys = link, keys
        self.positions = dict(positions or {})  # by worker: the last entry handed out. What a checkpoint keeps

    def read(self, workers: Iterable[str], count: int = 64, wait_seconds: float = 0.0) -> list[Entry]:
        """The next entries, at most `count` of each worker; none where the server cannot be reached now.

        `wait_seconds` is how long to wait for the first of them, at most: less than what a silent server is given.
        """
        streams = {self._keys.slabs(worker): worker for worker in workers}
        if not streams:
            return []
        block = round(min(wait_seconds, ANSWER_SECONDS / 2) * 1000) or None  # 0 would mean for ever
        wanted: dict[Any, Any] = {key: self.positions.get(worker, FIRST_ID) for key, worker in streams.items()}

        def do(client: redis.Redis) -> Any:
            return client.xread(wanted, count=count, block=block)

        try:
            answer = self._link.attempt(do, writes=False)
        except Unavailable:
            return []
        entries = []
        for key, found in answer or []:
            worker = streams[key.decode()]
            entries += [Entry(worker, name.decode(), fields.get(_FIELD, b"")) for name, fields in found]
            self.positions[worker] = entries[-1].id
        return entries

    def waiting(self, workers: Iterable[str]) -> int:
        """Entries in the streams, those already read and not trimmed included; 0 where it cannot be asked."""
        return sum(_each(self._link, self._keys, workers, lambda pipe, key, _: pipe.xlen(key)))


def trim(link: Link, keys: Keys, positions: Mapping[str, str]) -> int:
    """Removes the entries before those that a saved checkpoint has read last, where memory is full too; how many."""
    return sum(
        _each(
            link,
            keys,
            positions,
            lambda pipe, key, worker: pipe.xtrim(key, minid=positions[worker], approximate=False),
        )
    )


def _each(link: Link, keys: Keys, workers: Iterable[str], ask: Callable[[Any, str, str], Any]) -> list[int]:
    """The answers for every worker's stream; none where the server cannot be asked."""
    names = list(workers)

    def do(client: redis.Redis) -> list[int]:
        with client.pipeline(transaction=False) as pipe:
            for worker in names:
                ask(pipe, keys.slabs(worker), worker)
            return [int(answer) for answer in pipe.execute()]

    try:
        return link.attempt(do, writes=False)
    except Unavailable:
        return []


class Seen:
    """Which slabs came already: the last sequence of every worker's sources."""

    def __init__(self, state: Mapping[str, Mapping[str, int]] | None = None) -> None:
        """`state` is as `state()` gave it."""
        self._last = {worker: {int(s): n for s, n in of.items()} for worker, of in (state or {}).items()}

    def add(self, envelope: Envelope) -> Literal["next", "gap", "twice"]:
        """Notes a slab: the next of its source, one after others that never came, or one that was there before."""
        of = self._last.setdefault(envelope.worker, {})
        last = of.get(envelope.source, -1)
        if envelope.sequence <= last:
            return "twice"
        of[envelope.source] = envelope.sequence
        return "next" if envelope.sequence == last + 1 else "gap"

    def state(self) -> dict[str, dict[str, int]]:
        """For a checkpoint, as JSON can say it."""
        return {worker: {str(source): n for source, n in of.items()} for worker, of in self._last.items()}
