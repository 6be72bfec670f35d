"""The head's part in what happens: lets workers in, says the run's state, hands out what is to be measured.

`tick` looks at everything once and says what has changed. Nothing of it is needed for playing and learning to go on, so
that a head can end and come again. What must outlive it, the measurement under way, is in Redis. Knows the keys and who
may do what; starts no process.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Any

import msgpack
import redis

from aleazero.config import RunConfig
from aleazero.observe.jsonl import read_jsonl
from aleazero.observe.sink import Sink
from aleazero.runtimes.digest import match_report
from aleazero.runtimes.protocol import PROTOCOL
from aleazero.runtimes.redis.access import Token
from aleazero.runtimes.redis.beats import read_beats
from aleazero.runtimes.redis.board import State, publish_config, publish_state
from aleazero.runtimes.redis.evaluation import PREVIOUS, Evaluation
from aleazero.runtimes.redis.evaluator import measured, order_of
from aleazero.runtimes.redis.home import Home
from aleazero.runtimes.redis.link import Link, Unavailable, announce
from aleazero.runtimes.redis.registry import Registry
from aleazero.runtimes.redis.users import admit

logger = logging.getLogger(__name__)


class Coordinator:
    """Looks after the workers of a run."""

    def __init__(self, home: Home, config: RunConfig, link: Link, evals: Sink) -> None:
        """`evals` takes the reports of what is measured."""
        self._home, self._config, self._link, self._keys, self._evals = home, config, link, home.keys, evals
        self._known = home.known()
        self.registry = Registry()
        self._admitted: set[str] = set()
        self._state: State | None = None  # as it was said last
        self._said: dict[str, Any] = {}  # by worker: the orders it has
        self._wanted: dict[str, dict[str, Any]] = {}  # and those it is to have
        self._alive: set[str] = set()
        self._evaluation: Evaluation | None = None
        self._measured: dict[str, int] = {"version": -1, "rows": -1}  # last
        self._best: tuple[float, int] | None = None  # score against the first opponent, version

    def open(self) -> None:
        """Before the first worker: clears what belongs to another life of the run, and publishes the settings."""
        incarnation, clear = self._home.incarnation()
        if clear:
            self._link.call(self._clear, writes=False)
            self._home.cleared()
        publish_config(self._link, self._keys, self._config, incarnation)
        announce(self._link, self._keys.run)
        kept = self._link.call(lambda client: client.get(self._keys.evaluation), writes=False)
        if kept is not None:
            found: Any = msgpack.unpackb(kept)
            self._measured = found["measured"]
            self._evaluation = Evaluation.of(found["evaluation"]) if found["evaluation"] else None
            self._best = (found["best"][0], found["best"][1]) if found.get("best") else None

    def _clear(self, client: redis.Redis) -> None:
        for key in client.scan_iter(match=self._keys.everything, count=1000):
            if b":lock:" not in key:
                client.unlink(key)

    def admit(self, token: Token) -> None:
        """Makes a worker's user."""
        admit(self._link, token)
        self._admitted.add(token.name)

    def tick(self, state: State) -> None:
        """Once: never waits for the server."""
        with contextlib.suppress(Unavailable):
            names = self._known.names()
            for name in set(names) - self._admitted:
                self.admit(self._home.keyring().token(name))
            if state != self._state:
                publish_state(self._link, self._keys, state)
                self._state = state
            self._hear(names)
            self._measure()
            self._speak()

    @property
    def measuring(self) -> bool:
        """Whether a measurement is under way that somebody can go on with."""
        return self._evaluation is not None and bool(self.registry.alive(time.monotonic(), "eval"))

    # ---- workers

    def _hear(self, names: list[str]) -> None:
        beats, now = read_beats(self._link, self._keys, names), time.monotonic()
        benched, stops = self._link.attempt(self._requests, writes=False)
        self._wanted = {}
        for name, beat in beats.items():
            seen = self.registry.see(name, beat, now)
            if seen is None:
                continue
            instance, verdict, reason = seen[0], str(seen[1]), seen[2]
            if verdict == "welcome" and stops.get(name.encode()) == instance.encode():
                verdict, reason = "stop", "it was asked to"
            elif verdict == "welcome" and name in benched:
                verdict, reason = "benched", "the learner has refused too many of its slabs; see the head's logs"
            self._wanted[name] = {"instance": instance, "verdict": verdict, "reason": reason, "protocol": PROTOCOL}
        alive = set(self.registry.alive(now))
        for name in sorted(alive - self._alive):
            status = self.registry.seats[name].status
            logger.info("worker %s is there: %s on %s", name, status.get("kind"), status.get("host"))
        for name in sorted(self._alive - alive):
            left = self.registry.seats[name].left
            logger.log(
                logging.INFO if left else logging.WARNING, "worker %s %s", name, "has left" if left else "is dead"
            )
        self._alive = alive

    def _requests(self, client: redis.Redis) -> tuple[list[str], dict[bytes, bytes]]:
        """Whom the learner has benched, and which starts of workers somebody wants to stop."""
        said: Any = msgpack.unpackb(client.get(self._keys.learner) or b"\x80")
        stops: Any = client.hgetall(self._keys.stops)
        return list(said.get("benched", [])), stops

    def _speak(self) -> None:
        """Writes the orders that have changed."""
        for name, orders in self._wanted.items():
            if self._said.get(name) != orders:
                packed = msgpack.packb(orders)
                key = self._keys.orders(name)
                self._link.attempt(lambda client, k=key, p=packed: client.set(k, p), writes=True)  # type: ignore[misc]
                self._said[name] = orders

    # ---- measuring

    def _measure(self) -> None:
        now = time.monotonic()
        workers = self.registry.alive(now, "eval")
        if self._evaluation is None and workers:
            self._begin()
        job = self._evaluation
        if job is None:
            return
        before = len(job.results)
        for seat in workers.values():
            result = seat.status.get("result")
            if isinstance(result, dict) and result.get("version") == job.version:
                job.take(result.get("number"), result.get("points"), result.get("luck"))
        job.take_back(workers, now)
        can = {name: _texts(seat.status.get("can")) for name, seat in workers.items()}
        # Who has not said yet what it can play may be able to play everything.
        ready = workers and all(isinstance(seat.status.get("can"), list) for seat in workers.values())
        if ready and job.done({opponent for texts in can.values() for opponent in texts}):
            self._finish(job)
            self._begin()
            return
        for name, texts in can.items():
            chunk = job.hand_out(name, texts, now)
            if chunk is not None and name in self._wanted:
                self._wanted[name]["chunk"] = order_of(chunk)
        if len(job.results) > before:
            self._keep()

    def _begin(self) -> None:
        """A measurement, where the learner has offered something that was not measured yet."""
        settings, last = self._config.evaluate, self._measured
        raw = self._link.attempt(lambda client: client.get(self._keys.offer), writes=False)
        if raw is None or _unpacked(raw)["step"] == last["version"]:
            return

        def copy(client: redis.Redis) -> Any:
            """What is offered now, its weights under a name of their own."""
            with client.pipeline(transaction=True) as pipe:
                pipe.get(self._keys.offer)
                pipe.get(self._keys.offered)
                said, data = pipe.execute()
            client.set(measured(self._keys, _unpacked(said)["step"]), data)
            return _unpacked(said)

        offer = self._link.attempt(copy, writes=True)
        version = offer["step"]
        self._evaluation = Evaluation(
            version,
            offer["rows"],
            offer["seconds"],
            [*settings.opponents, PREVIOUS],
            previous=last["version"],
            pairs=settings.games // 2,
            seed=self._config.seed,
        )
        self._keep()
        logger.info("version %d is measured against %s", version, ", ".join(self._evaluation.opponents))

    def _finish(self, job: Evaluation) -> None:
        where = {"step": job.version, "rows": job.rows, "seconds": job.seconds}
        judge = next(iter(self._config.evaluate.opponents), None)
        file = self._home.folder.evals_file
        said = {(record["step"], record["opponent"]) for record in (read_jsonl(file) if file.exists() else [])}
        for match in job.matches():
            report = match_report(where, f"run:{self._keys.run}@{job.version}", match)
            if report is not None and match.opponent == judge and (self._best is None or report.score >= self._best[0]):
                self._best = report.score, job.version
            # A head that was killed here before may have said it already.
            if report is not None and (report.step, report.opponent) not in said:
                self._evals.emit(report)
                logger.info(
                    "version %d against %s: %.3f (95 %%: %.3f to %.3f)",
                    job.version,
                    report.opponent,
                    report.score,
                    report.score_low,
                    report.score_high,
                )
        skipped = {chunk.opponent for chunk in job.chunks if chunk.number not in job.results}
        if skipped:
            logger.warning("no evaluation worker can play %s", ", ".join(sorted(skipped)))
        self._measured, self._evaluation = {"version": job.version, "rows": job.rows}, None
        self._keep()
        if job.previous >= 0:
            old = measured(self._keys, job.previous)
            self._link.attempt(lambda client: client.unlink(old), writes=False)

    def _keep(self) -> None:
        job = self._evaluation.state() if self._evaluation else None
        kept = {"measured": self._measured, "evaluation": job, "best": self._best}
        self._link.attempt(lambda client: client.set(self._keys.evaluation, msgpack.packb(kept)), writes=True)


def _unpacked(raw: Any) -> Any:
    return msgpack.unpackb(raw)


def _texts(said: Any) -> list[str]:
    return [text for text in said if isinstance(text, str)] if isinstance(said, list) else []
