"""The learner's process: a local run that takes its slabs from workers and gives its weights to them.

It needs the run's folder, where its checkpoints, its log and the workers' secrets are. There is one of it: by the lock
of the folder, and by a lease, whatever the machines. What was acknowledged to workers and is in no checkpoint is still
in the streams, so a learner that is killed takes it again. Knows no game and no training: those are the local run's.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import msgpack

from aleazero.assemble import Parts, build_parts
from aleazero.core.records import Weights
from aleazero.observe.sink import Sink
from aleazero.roles.ports import SourcedSink, WeightStore
from aleazero.runs import RunFolder
from aleazero.runtimes.codec import pack_weights
from aleazero.runtimes.legal import LegalCheck
from aleazero.runtimes.local import LocalRun
from aleazero.runtimes.redis.board import Progress, publish_progress
from aleazero.runtimes.redis.home import Home
from aleazero.runtimes.redis.intake import Intake
from aleazero.runtimes.redis.lease import Lease
from aleazero.runtimes.redis.link import Link, Unavailable
from aleazero.runtimes.redis.quarantine import Quarantine
from aleazero.runtimes.redis.weights import RedisWeights
from aleazero.runtimes.selfplay import SoFar
from aleazero.runtimes.slabs import SlabSchema
from aleazero.runtimes.start import Finished, Until, how_to_go_on, train_in

logger = logging.getLogger(__name__)

TELL_SECONDS = 0.5
LEGAL_ROWS = 64  # of every slab, looked at by the rules
RATE_SECONDS = 60.0


def learn(folder: RunFolder, root: Path) -> Finished:
    """Trains a run from what its workers send, from its newest checkpoint on; to its end, or until told to stop."""
    home = Home(folder)
    parts = build_parts(folder.read_config(), [jax.local_devices()[0]], root)
    with contextlib.closing(home.connect()) as link:
        lease = Lease(link, home.keys.lock("learner"), f"learner of run {folder.name!r}")
        lease.acquire()
        try:
            maker = _run_maker(home, link, lease)
            # What is sent elsewhere the head sends: matches come after the learner's end.
            return train_in(
                parts, folder, root, how_to_go_on(folder, parts.config), Until(None, False), True, maker, sends=False
            )
        finally:
            lease.release()


def _run_maker(home: Home, link: Link, lease: Lease) -> Callable[..., LocalRun]:
    def make_run(parts: Parts, folder: RunFolder, sink: Sink, root: Path) -> LocalRun:
        like = jax.eval_shape(parts.model.init, jax.random.key(0))
        weights = RedisWeights(link, home.keys, like)
        teller = _Teller(home, link, lease, weights)
        run = LocalRun(
            parts, folder, sink, root=root, weights=weights, make_producer=teller.make_intake, offer=teller.offer
        )
        teller.run = run
        return run

    return make_run


class _Teller:
    """Says how far the run is, and whatever else there is to do between two iterations."""

    run: LocalRun

    def __init__(self, home: Home, link: Link, lease: Lease, weights: RedisWeights) -> None:
        self._keys, self._link, self._lease, self._weights = home.keys, link, lease, weights
        self._known = home.known()
        self._quarantine = Quarantine(link, home.keys)
        self._before = weights.highest()  # published by the learner before this one
        self._next = 0.0
        self._games: collections.deque[tuple[float, int]] = collections.deque()  # of the last minute
        self._pending: tuple[dict[str, Any], bytes] | None = None  # an offer that is not out yet
        before = link.call(lambda client: client.get(home.keys.offer), writes=False)
        self._offered = int(msgpack.unpackb(before)["step"]) if before else -1  # the version of the last one
        self._warned = False

    def make_intake(self, parts: Parts, sink: SourcedSink, weights: WeightStore) -> Intake:
        """The intake that takes the actor's place."""
        return Intake(
            self._link,
            self._keys,
            SlabSchema.of(parts.slab_like(), parts.game.spec),
            sink,
            workers=self._known.names,
            secret_of=self._known.signing_key,
            newest_version=lambda: max(self._before, self._weights.published),
            legal=LegalCheck(parts.game, LEGAL_ROWS),
            quarantine=self._quarantine,
            tell=self.tell,
        )

    def offer(self, where: dict[str, Any], weights: Weights) -> None:
        """What is to be measured: goes out now, or as soon as it can; a newer one takes its place."""
        self._offered = where["step"]
        self._pending = where, pack_weights(where["step"], weights)
        self._flush_offer()

    def _flush_offer(self) -> None:
        if self._pending is None:
            return
        where, data = self._pending
        with contextlib.suppress(Unavailable):
            said = {self._keys.offer: msgpack.packb(where), self._keys.offered: data}
            self._link.attempt(lambda client: client.mset(said), writes=True)
            self._pending = None

    def _hear(self, kept: Any) -> None:
        """What the head has measured: the best, and what must stay because it is not done with."""
        said: Any = msgpack.unpackb(kept or b"\x80")
        best, job, done = said.get("best"), said.get("evaluation"), said.get("measured", {}).get("version")
        awaited = {self._offered, job["version"] if job else self._offered} - {done}
        self.run.hear((best[0], best[1]) if best else None, awaited)

    def tell(self, so_far: SoFar) -> None:
        """Now and then, and in the end; raises where another learner has taken over."""
        now = time.monotonic()
        if now < self._next and not so_far.over:
            return
        self._next = now + TELL_SECONDS
        self._lease.check()
        self._weights.flush()
        self._flush_offer()
        self._warn_of_sources()
        producer = self.run.producer
        assert isinstance(producer, Intake)
        progress = Progress(
            rows=producer.rows,
            games=so_far.games,
            epoch=producer.epoch,
            step=so_far.step,
            seconds=self.run.seconds,
            rows_held=so_far.rows_held,
            backlog_rows=producer.backlog_rows(),
            games_per_minute=self._per_minute(now, so_far.games),
            trains=so_far.trains,
        )
        private = {
            "benched": self._quarantine.all_benched,
            "refused": dict(self._quarantine.counts),
            "reasons": dict(self._quarantine.reasons),
            "entries": dict(producer.counts),
        }

        with contextlib.suppress(Unavailable):
            self._hear(self._link.attempt(lambda client: client.get(self._keys.evaluation), writes=False))
            publish_progress(self._link, self._keys, progress)
            self._link.attempt(lambda client: client.set(self._keys.learner, msgpack.packb(private)), writes=True)

    def _per_minute(self, now: float, games: int) -> float:
        self._games.append((now, games))
        while now - self._games[0][0] > RATE_SECONDS:
            self._games.popleft()
        then, before = self._games[0]
        return round((games - before) / (now - then) * 60, 1) if now > then else 0.0

    def _warn_of_sources(self) -> None:
        """A source's games are cut where the ring comes round before they are over."""
        replay = self.run.replay
        recent = sum(numbers[-1] >= replay.num_slabs - replay.slabs for numbers in replay.sources.values())
        if recent * replay.reach > replay.slabs and replay.reach > 1 and not self._warned:
            self._warned = True
            logger.warning(
                "%d groups of games share a replay of %d slabs, and a game may need %d: long games are lost; raise "
                "replay.capacity_rows, or set targets.wait to false",
                recent,
                replay.slabs,
                replay.reach,
            )
