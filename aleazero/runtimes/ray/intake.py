"""A learner's intake on Ray: asks players for rollouts, and takes every slab once, in its source's order.

It stands where an actor stands in a local run (`Producer`), so that everything behind it is the same. Each player is
asked for a few rollouts in advance and for no more: where the learner is behind, players wait. Players keep what they
played until a checkpoint holds it; a learner that begins again from its checkpoint asks for that first. Whoever is
gone is started again by Ray. Knows players and slabs; not how anything is learned.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import time
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import ray
from ray import exceptions

from aleazero import checkpoint as checkpoints
from aleazero.assemble import Parts
from aleazero.core.errors import AleaError
from aleazero.core.records import Trajectory
from aleazero.observe.alarms import Alarm
from aleazero.observe.reports import RayReport
from aleazero.roles.ports import SourcedSink
from aleazero.runtimes.ray.messages import Order, Receipt, answer_of
from aleazero.runtimes.ray.pulse import LOST, SILENCE_SECONDS, START_SECONDS, Pulse
from aleazero.runtimes.ray.weights import StoredWeights
from aleazero.runtimes.selfplay import Resume, SoFar
from aleazero.runtimes.slabs import SlabSchema

logger = logging.getLogger(__name__)

WAIT_SECONDS = 0.5  # for a slab, before the run looks whether it should stop
PATIENCE_SECONDS = 60.0  # without a sign of life of anybody: then the run ends
PAUSE_SECONDS = 0.5  # before one that could not be reached is asked again
NO_GPU = "%s has a share of a GPU that JAX does not see, and computes on the CPU: pip install 'jax[cuda12]' there"
FULL = 0.25  # of the object store: when so much waits for a checkpoint, one comes early


class PlayersFailed(AleaError):  # noqa: N818 - the name says what happened
    """Nobody plays any more."""


@dataclasses.dataclass
class _Seat:
    """A player, as the learner sees it."""

    player: Any  # its handle
    pulse: Pulse
    asked: int = 0  # rollouts that are under way
    not_before: float = 0.0  # when it may be asked again
    down_since: float | None = None  # when it did not answer
    gone: bool = False  # for good
    why: str = ""
    restarts: int = 0


@dataclasses.dataclass
class _Tally:
    """What players did since the last report."""

    rows: int = 0
    played: float = 0.0  # seconds
    lag: int = 0  # updates between what played and what learns, in all
    slabs: int = 0
    began: float = dataclasses.field(default_factory=time.monotonic)


class Intake:
    """Takes slabs from players into a sink."""

    def __init__(
        self,
        parts: Parts,
        sink: SourcedSink,
        weights: StoredWeights,
        players: Sequence[Any],
        server: tuple[str, str] | None = None,
    ) -> None:
        """`players` are handles of `Player`s; whoever has the name `server` in that namespace is asked how it does."""
        config = parts.config
        self._lock_step, self._queue = config.ray.lock_step, 1 if config.ray.lock_step else config.ray.queue
        self._sink, self._weights, self._server = sink, weights, server
        self._schema = SlabSchema.of(parts.slab_like(), parts.game.spec)
        self._seats = [_Seat(player, Pulse(player)) for player in players]
        self._under_way: dict[Any, _Seat] = {}
        self._receipts: collections.deque[Receipt] = collections.deque()
        self._taken: dict[int, int] = {}  # by source: the number of its next slab
        self._saved: dict[int, int] = {}  # the same, as the newest checkpoint has it
        self._lines: dict[int, int] = {}  # by source: what the sink calls it
        self._next_line = 0
        self._slabs, self._since_saved = 0, 0
        self._step = 0
        self._tally = _Tally()
        self._room = FULL * ray.cluster_resources().get("object_store_memory", 2**40)
        self.counts: collections.Counter[str] = collections.Counter()  # of slabs: taken, twice, gap, lost
        self.epoch = 0
        self._greeted, self._met, self._warned = False, False, False

    @property
    def rows(self) -> int:
        """Taken so far."""
        return self._slabs * self._schema.rows

    def step(self) -> Trajectory | None:
        """The next slab, once it is in the sink; None where none came in time."""
        if not self._greeted:
            self._greet()
        self._look_after()
        self._ask()
        if not self._receipts:
            self._wait()
        while self._receipts:
            slab = self._take(self._receipts.popleft())
            if slab is not None:
                return slab
        return None

    # ---- asking

    def _greet(self) -> None:
        """Asks for what players have kept since the checkpoint; of players that are new it is nothing."""
        self._greeted = True
        for seat in self._seats:
            self._send(seat, seat.player.kept.remote(self._saved))

    def _ask(self) -> None:
        """Orders as many rollouts as may be under way."""
        now = time.monotonic()
        waiting = len(self._receipts)
        if self._lock_step and (waiting or self._under_way):
            return
        name, reference = self._weights.sent
        order = Order(name, reference, self.rows, self.epoch, dict(self._saved))
        for seat in self._seats:
            while not seat.gone and now >= seat.not_before and seat.asked < self._queue:
                if waiting >= self._queue * len(self._seats):  # the learner is behind
                    return
                self._send(seat, seat.player.play.remote(order))

    def _send(self, seat: _Seat, question: Any) -> None:
        seat.asked += 1
        self._under_way[question] = seat

    def _wait(self) -> None:
        """Collects answers, of players and of those who were asked whether they are alive."""
        questions = [*self._under_way]
        if not questions:
            time.sleep(PAUSE_SECONDS)
            return
        ready, _ = ray.wait(questions, num_returns=1, timeout=WAIT_SECONDS, fetch_local=False)
        if ready:  # the others that are there already
            ready, _ = ray.wait(questions, num_returns=len(questions), timeout=0, fetch_local=False)
        for question in ready:
            seat = self._under_way.pop(question)
            seat.asked -= 1
            try:
                self._receipts.extend(answer_of(question, WAIT_SECONDS))
                self._hear_of(seat)
            except LOST as error:
                self._lose(seat, error)

    def _lose(self, seat: _Seat, error: Exception) -> None:
        """One that did not answer: it is started again by Ray, as often as the settings allow."""
        now = time.monotonic()
        seat.not_before, seat.why = now + PAUSE_SECONDS, str(error)
        seat.pulse.lose()
        if seat.down_since is None:
            seat.down_since = now
            seat.restarts += 1
            logger.warning("a player does not answer: %s", seat.why.partition("\n")[0])
        # What was under way when it died is answered the same way, whether it is started again or not.
        seat.gone = isinstance(error, exceptions.ActorDiedError) and now - seat.down_since > PAUSE_SECONDS

    # ---- signs of life

    def _look_after(self) -> None:
        """Asks who is alive; who hangs is the driver's to end."""
        for seat in self._seats:
            if seat.gone:
                continue
            try:
                if seat.pulse.look():
                    self._hear_of(seat)
            except LOST as error:
                self._lose(seat, error)
        if all(seat.gone for seat in self._seats):
            raise PlayersFailed(f"every player has failed, or too often (ray.restarts): {self._seats[0].why}")
        patience = PATIENCE_SECONDS if self._met else START_SECONDS
        if min(seat.pulse.silence for seat in self._seats if not seat.gone) > patience:
            raise PlayersFailed(
                f"no player has answered for {patience:.0f} s: has the cluster a core free for each of the "
                f"{len(self._seats)} (ray.workers)? See: alea ray status"
            )

    def _hear_of(self, seat: _Seat) -> None:
        self._met, seat.down_since = True, None
        seat.pulse.hear()

    # ---- taking

    def _take(self, receipt: Receipt) -> Trajectory | None:
        """A slab in the sink; None where it came before, or is lost with its player."""
        expected = self._taken.get(receipt.source, 0)
        if receipt.number < expected:
            self.counts["twice"] += 1
            return None
        try:
            arrays = ray.get(receipt.slab[0], timeout=SILENCE_SECONDS)
        except LOST:
            self.counts["lost"] += 1
            return None
        goes_on = receipt.number == expected
        self.counts["taken" if goes_on else "gap"] += 1
        self._taken[receipt.source] = receipt.number + 1
        slab = Trajectory(**{name: jnp.asarray(array) for name, array in arrays.items()})
        self._sink.add(slab, self._line(receipt.source, goes_on))
        self._slabs += 1
        self._since_saved += 1
        self._weights.games += receipt.games
        self._tally.rows += self._schema.rows
        self._tally.played += receipt.played
        self._tally.lag += max(self._step - receipt.version, 0)
        self._tally.slabs += 1
        return slab

    def _line(self, source: int, goes_on: bool) -> int:
        """The number by which the sink knows these games; another one where a slab before is missing."""
        if source not in self._lines or not goes_on:
            self._lines[source] = self._next_line
            self._next_line += 1
        return self._lines[source]

    # ---- what a run asks of whoever brings it slabs

    def alarm(self, learner_version: int) -> Alarm | None:
        """None: how old the weights are that players have is reported, and no fault."""
        return None

    def arrays(self) -> dict[str, Any]:
        """None: games in flight are the players'."""
        return {}

    def facts(self) -> dict[str, Any]:
        """Which slabs came."""
        lines = [[source, number, self._lines[source]] for source, number in self._taken.items()]
        return {"ray": {"slabs": self._slabs, "taken": lines, "next_line": self._next_line}}

    def take_up(self, found: checkpoints.Checkpoint, how: Resume) -> None:
        """Goes on where the checkpoint was, whichever way the rest goes on."""
        kept = found.facts["ray"]
        self._slabs, self._next_line = kept["slabs"], kept["next_line"]
        self._taken = {source: number for source, number, _ in kept["taken"]}
        self._lines = {source: line for source, _, line in kept["taken"]}
        self._saved = dict(self._taken)

    def tend(self, so_far: SoFar) -> bool:
        """Notes how far the run is; whether so much is kept for it that a checkpoint should come early."""
        self._step = so_far.step
        return self._since_saved * self._schema.nbytes > self._room

    def saved(self) -> None:
        """Players may let go of what the checkpoint holds: the next order says so."""
        self._saved, self._since_saved = dict(self._taken), 0

    def report(self, where: dict[str, Any]) -> RayReport:
        """What players did since the last one."""
        tally, self._tally = self._tally, _Tally()
        seconds = max(time.monotonic() - tally.began, 1e-6)
        alive = sum(not seat.gone for seat in self._seats)
        return RayReport(
            **where,
            players=alive,
            restarts=sum(seat.restarts for seat in self._seats),
            rows_per_second=tally.rows / tally.played * alive if tally.played else 0.0,
            taken_per_second=tally.rows / seconds,
            busy_share=min(tally.played / (seconds * alive), 1.0) if alive else 0.0,
            lag_updates=tally.lag / tally.slabs if tally.slabs else 0.0,
            waiting=len(self._receipts),
            lost=self.counts["lost"] + self.counts["gap"],
            inference=self._ask_server(),
        )

    def _ask_server(self) -> dict[str, float]:
        if self._server is None:
            return {}
        try:
            server: Any = ray.get_actor(*self._server)
            figures: dict[str, float] = ray.get(server.figures.remote(), timeout=5.0)
            if figures.pop("blind", 0.0) and not self._warned:
                self._warned = True
                logger.warning(NO_GPU, "the inference server")
            return figures
        except (*LOST, ValueError):  # nobody has its name now
            return {}

    def close(self) -> None:
        """Nothing is held: players are the driver's."""
