"""Slabs from processes of this machine: one learner, and producers that play for it, each on a core of its own.

Stands where the actor of a local run stands (`Producer`). Each producer has a connection and a thread that reads it
into a queue of bounded length: where the learner is behind, connections fill up and producers wait; nothing is dropped.
One that dies is started again with other games; what it had not sent is gone with it, and nothing else. Games in flight
are the producers', so a resumed run begins new ones. Knows the actor's process and the queue; not how one learns.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import queue
import shutil
import socket
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from aleazero import checkpoint as checkpoints
from aleazero.assemble import Parts
from aleazero.core.records import Trajectory
from aleazero.core.settings import to_toml
from aleazero.observe.alarms import Alarm
from aleazero.observe.reports import ProducersReport
from aleazero.observe.sink import Sink
from aleazero.roles.ports import SourcedSink, WeightStore
from aleazero.runs import RunFolder
from aleazero.runtimes.children import JAX_SHARE, MOST_FAILURES, ONE_CORE, Child, memory_share
from aleazero.runtimes.local import LocalRun
from aleazero.runtimes.producer import FileWeights, unpack
from aleazero.runtimes.selfplay import ProducersFailed, Resume, SoFar
from aleazero.runtimes.slabs import SlabSchema

logger = logging.getLogger(__name__)

WAIT_SECONDS = 0.5  # for a slab, before the run looks whether it should stop


@dataclasses.dataclass
class _Tally:
    """What producers did since the last report."""

    rows: int = 0
    played: float = 0.0  # seconds
    waited: float = 0.0
    began: float = dataclasses.field(default_factory=time.monotonic)


class Place:
    """Where a learner and its producers meet: a folder with the weights, gone when they are."""

    def __init__(self, like: Any) -> None:
        """`like` are shapes of the weights."""
        memory = Path("/dev/shm")  # what is there never touches a disk
        self._path = Path(tempfile.mkdtemp(prefix="alea-", dir=memory if memory.is_dir() else None))
        self.file = self._path / "weights"
        self.weights = FileWeights(self.file, like)

    def close(self) -> None:
        """Takes it away."""
        shutil.rmtree(self._path, ignore_errors=True)


class Producers:
    """Takes slabs from producers into a sink, in the order in which they come."""

    def __init__(self, parts: Parts, sink: SourcedSink, place: Place, *, logs: Path, root: Path) -> None:
        """`logs` is where producers print; `root` is where the runs that settings may name are kept."""
        settings = parts.config.producers
        self._parts, self._sink, self._place, self._root = parts, sink, place, root
        self._schema = SlabSchema.of(parts.slab_like(), parts.game.spec)
        self._queue: queue.Queue[tuple[int, bytes]] = queue.Queue(settings.queue_size)
        self._children = [self._child(number, logs) for number in range(settings.workers)]
        self._next_source = 1  # 0 has the games of a local run
        self._slabs, self._restarts = 0, 0
        self._taken: dict[int, int] = {}  # by source: slabs taken
        self._whose: dict[int, str] = {}  # by source: the producer
        self._fruitless = dict.fromkeys((child.name for child in self._children), 0)  # failures since its last slab
        self._tally = _Tally()
        self._closed = False
        self.epoch = 0

    def _child(self, number: int, logs: Path) -> Child:
        settings = self._parts.config.producers
        # The learner has begun already; what it leaves of a GPU's memory, less some air, is the producers'.
        environment = ONE_CORE if settings.device == "cpu" else memory_share(0.8 * (1 - JAX_SHARE) / settings.workers)
        command = ["aleazero.runtimes.producer"]
        return Child(f"producer {number + 1}", command, environment, logs / f"producer_{number + 1}.log")

    @property
    def rows(self) -> int:
        """Taken so far."""
        return self._slabs * self._schema.rows

    def step(self) -> Trajectory | None:
        """The next slab, once it is in the sink; None where none came in time."""
        self._keep_going()
        try:
            source, data = self._queue.get(timeout=WAIT_SECONDS)
        except queue.Empty:
            return None
        arrays, said = unpack(data, self._schema)
        if said.number != self._taken.get(source, 0):
            raise ProducersFailed(
                f"slab {self._taken.get(source, 0)} of source {source} is missing: {said.number} came"
            )
        self._taken[source] = said.number + 1
        slab = Trajectory(**{name: jnp.asarray(array) for name, array in arrays.items()})
        self._sink.add(slab, source)
        self._slabs += 1
        self._fruitless[self._whose[source]] = 0
        self._tally.rows += self._schema.rows
        self._tally.played += said.played
        self._tally.waited += said.waited
        return slab

    # ---- processes

    def _keep_going(self) -> None:
        for child in self._children:
            code = child.ended()
            if code is not None:
                self._restarts += 1
                logger.warning("%s has ended: %s; it is started again", child.name, child.how)
                self._fruitless[child.name] += code > 0
                if (failures := max(child.failures, self._fruitless[child.name])) >= MOST_FAILURES:
                    raise ProducersFailed(
                        f"{child.name} has failed {failures} times in a row; its log says why: {child.log}"
                    )
            if child.due:
                self._start(child)

    def _start(self, child: Child) -> None:
        """With games that nobody has played yet."""
        ours, theirs = socket.socketpair()
        with theirs:
            child.start([str(theirs.fileno())], [theirs.fileno()])
        connection, source = Connection(ours.detach()), self._next_source
        self._next_source += 1
        self._whose[source] = child.name
        order = {
            "config": to_toml(self._parts.config),
            "root": str(self._root.absolute()),
            "weights": str(self._place.file),
            "source": source,
        }
        with contextlib.suppress(OSError):  # it has ended already: that is seen at the next look
            connection.send_bytes(json.dumps(order).encode())
        threading.Thread(target=self._read, args=(connection, source), daemon=True, name="alea-producer").start()

    def _read(self, connection: Connection, source: int) -> None:
        """A producer's slabs, until it ends. One that was not sent whole is none."""
        with contextlib.closing(connection), contextlib.suppress(EOFError, OSError):
            while not self._closed:
                data = connection.recv_bytes()
                while not self._closed:
                    with contextlib.suppress(queue.Full):
                        self._queue.put((source, data), timeout=WAIT_SECONDS)
                        break

    def close(self) -> None:
        """Ends every producer."""
        if self._closed:
            return
        self._closed = True
        for child in self._children:
            child.kill()
        for child in self._children:
            child.wait(5.0)
        self._place.close()

    # ---- what a run asks of whoever brings it slabs

    def alarm(self, learner_version: int) -> Alarm | None:
        """None: what waits in the queue was played with older weights, and that is no fault."""
        return None

    def arrays(self) -> dict[str, Any]:
        """None: games in flight are the producers'."""
        return {}

    def facts(self) -> dict[str, Any]:
        """How much came, and which games nobody has played yet."""
        return {"producers": {"slabs": self._slabs, "next_source": self._next_source}}

    def take_up(self, found: checkpoints.Checkpoint, how: Resume) -> None:
        """Counts go on; games begin anew. Where the run played itself until now, they are those of its source."""
        facts = found.facts
        itself = {"slabs": facts["rows"] // self._schema.rows, "next_source": facts.get("source", 0) + 1}
        kept = facts.get("producers", itself)
        self._slabs, self._next_source = kept["slabs"], kept["next_source"]

    def tend(self, so_far: SoFar) -> bool:
        """Notes how far the run is, for the next weights to say."""
        self._place.weights.rows, self._place.weights.epoch = self.rows, self.epoch
        if so_far.over:
            self.close()
        return False

    def saved(self) -> None:
        """Nothing of it is kept elsewhere."""

    def report(self, where: dict[str, Any]) -> ProducersReport:
        """What they did since the last one."""
        tally, self._tally = self._tally, _Tally()
        seconds = max(time.monotonic() - tally.began, 1e-6)
        busy = tally.played + tally.waited
        return ProducersReport(
            **where,
            processes=sum(child.pid is not None for child in self._children),
            restarts=self._restarts,
            rows_per_second=tally.rows / tally.played * len(self._children) if tally.played else 0.0,
            taken_per_second=tally.rows / seconds,
            waiting_share=tally.waited / busy if busy else 0.0,
            queue=self._queue.qsize(),
            queue_size=self._queue.maxsize,
        )


def run_with_producers(parts: Parts, folder: RunFolder, sink: Sink, *, root: Path) -> LocalRun:
    """A run for which processes of this machine play."""
    place = Place(jax.eval_shape(parts.model.init, jax.random.key(0)))

    def make_producer(parts: Parts, sink: SourcedSink, weights: WeightStore) -> Producers:
        return Producers(parts, sink, place, logs=folder.path / "logs", root=root)

    return LocalRun(parts, folder, sink, root=root, weights=place.weights, make_producer=make_producer)
