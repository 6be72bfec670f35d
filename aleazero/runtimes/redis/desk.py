"""The head's part of the operations desk: who takes part, in numbers, and where each of them can be scraped.

Once in a while it looks at the workers' signs of life and at what the learner says, makes a `WorkersReport` of them,
and tells Prometheus who serves metrics, by a file and by a page. It also starts the processes that send the run's
reports to MLflow or W&B, because the last matches come after the learner's end. What a worker says of itself is
believed only as far as it can do no harm: numbers must be numbers, an address must look like one. Decides nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import re
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack
import redis

from aleazero.config import RunConfig
from aleazero.observe.endpoint import EVERYWHERE, LOOPBACK, PORTS, Endpoint
from aleazero.observe.jsonl import JsonlSink
from aleazero.observe.prometheus import PATH, PrometheusSink
from aleazero.observe.reports import WorkersReport
from aleazero.observe.sink import Fanout, Sink
from aleazero.observe.targets import PATH as TARGETS_PATH
from aleazero.observe.targets import Target, read_targets, targets_json, write_targets
from aleazero.runtimes.desk import head_targets, orders, run_targets
from aleazero.runtimes.redis.board import Progress, read_notices
from aleazero.runtimes.redis.home import Home
from aleazero.runtimes.redis.link import Link, Unavailable
from aleazero.runtimes.redis.page import own_address
from aleazero.runtimes.redis.registry import Registry, Seat
from aleazero.runtimes.sender import Sender

logger = logging.getLogger(__name__)

FORGET_SECONDS = 3600.0  # a worker that died is on the list so long, for an alert to say so
MOST_TARGETS = 1024
KINDS = ("game", "eval")
_TOKEN = re.compile(r"[0-9a-f]{1,64}")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9][A-Za-z0-9.-]{0,252}):[0-9]{1,5}")


class HeadDesk:
    """A run's desk at its head. `tick` as often as you like."""

    def __init__(self, home: Home, root: Path, config: RunConfig, link: Link) -> None:
        self._home, self._root, self._link, self._keys = home, root, link, home.keys
        self._settings, self._labels = config.observe, {"run": home.folder.name, "game": config.game}
        self._every = self._settings.hardware_seconds or self._settings.every_seconds
        self._next = 0.0
        self._known, self._warned = home.known(), False
        self._targets: list[Target] = []
        self._written: list[Target] | None = None
        self._endpoint: Endpoint | None = None
        evals: list[Sink] = [JsonlSink(home.folder.evals_file)]
        self.workers = Fanout([JsonlSink(home.folder.workers_file)])  # takes reports of who takes part
        if self._settings.prometheus:
            page = PrometheusSink(self._settings.metrics_prefix)
            served = {PATH: page.page, TARGETS_PATH: lambda: ("application/json", targets_json(self.all_targets()))}
            port = PORTS["head"] if self._settings.metrics_port else 0
            self._endpoint = Endpoint(served, port, self._settings.metrics_bind)
            evals.append(page)
            self.workers.add(page)
            logger.info("metrics: http://%s%s; who serves them: %s", self._endpoint.address, PATH, self.url)
        self.evals = Fanout(evals)  # takes reports of matches
        self._senders = [Sender(order) for order in orders(config, home.folder, root)]

    @property
    def url(self) -> str | None:
        """Where `http_sd` is served; None where nothing is."""
        return None if self._endpoint is None else f"http://{self._endpoint.address}{TARGETS_PATH}"

    def tick(self, registry: Registry) -> None:
        """Looks, where it is time to; never waits for the server."""
        now = time.monotonic()
        self._list(registry, now)
        if now >= self._next:
            self._next = now + self._every
            with contextlib.suppress(Unavailable):
                self.workers.emit(self._report(registry, now))

    def all_targets(self) -> list[Target]:
        """Who can be scraped: the head, its workers, and the learner, which writes a file of its own."""
        own = read_targets(run_targets(self._root, self._labels["run"]))
        return [*self._targets, *(dataclasses.replace(one, address=self._outward(one.address)) for one in own)]

    def close(self) -> None:
        """Prometheus forgets the run's workers; what is still to be sent is sent."""
        head_targets(self._root, self._labels["run"]).unlink(missing_ok=True)
        if self._endpoint is not None:
            self._endpoint.close()
        sinks: list[Sink] = [self.evals, self.workers, *self._senders]
        for sink in sinks:
            sink.close()

    # ---- the report

    def _report(self, registry: Registry, now: float) -> WorkersReport:
        progress, refused = self._link.attempt(self._read, writes=False)
        alive = {name: seat.status for name, seat in registry.alive(now).items()}
        active = {kind: float(sum(said.get("kind") == kind for said in alive.values())) for kind in KINDS}
        machines = {name: _table(said.get("hardware")) for name, said in alive.items()}
        return WorkersReport(
            progress.step,
            progress.rows,
            progress.seconds,
            active=active,
            queue_rows=progress.backlog_rows,
            quarantined=int(sum(refused.values())),
            refused=refused,
            games_per_minute=_numbers(alive, "games_per_minute"),
            rows_per_second=_numbers(alive, "rows_per_second"),
            cpu_percent=_numbers(machines, "cpu_percent"),
            memory_percent=_numbers(machines, "memory_percent"),
            gpu_utilization_percent=_of_gpus(machines, "gpu_utilization_percent", _mean),
            gpu_memory_percent=_of_gpus(machines, "gpu_memory_percent", _mean),
            gpu_temperature_celsius=_of_gpus(machines, "gpu_temperature_celsius", max),
            gpu_power_watts=_of_gpus(machines, "gpu_power_watts", sum),
        )

    def _read(self, client: redis.Redis) -> tuple[Progress, dict[str, float]]:
        said: Any = msgpack.unpackb(client.get(self._keys.learner) or b"\x80")
        return read_notices(client, self._keys).progress, _of(said.get("reasons"))

    # ---- who serves metrics

    def _list(self, registry: Registry, now: float) -> None:
        if self._endpoint is None:
            return
        known = set(self._known.names())
        labels, token = self._labels | {"role": "head"}, self._endpoint.token
        head = Target(self._outward(self._endpoint.address), labels, token)
        seats = [(name, seat) for name, seat in sorted(registry.seats.items()) if name in known and not seat.left]
        found = [self._target(name, seat) for name, seat in seats if seat.age(now) < FORGET_SECONDS]
        self._targets = [head, *(target for target in found if target is not None)][:MOST_TARGETS]
        if self._targets != self._written:
            try:
                write_targets(head_targets(self._root, self._labels["run"]), self._targets)
            except OSError as error:  # a full disk is no reason to end a run
                if not self._warned:
                    logger.warning("Prometheus is not told who serves metrics: %s; it is tried again", error)
                self._warned = True
                return
            self._written, self._warned = self._targets, False

    def _target(self, name: str, seat: Seat) -> Target | None:
        address, kind, host = (seat.status.get(word) for word in ("metrics", "kind", "host"))
        if kind not in KINDS or not isinstance(address, str) or not _ADDRESS.fullmatch(address):
            return None
        if address.startswith(f"{LOOPBACK}:"):
            if host != socket.gethostname():
                return None  # it serves its own machine alone
            address = self._outward(address)
        token = seat.status.get("metrics_token")
        token = token if isinstance(token, str) and _TOKEN.fullmatch(token) else ""
        return Target(address, self._labels | {"role": str(kind), "worker": name}, token)

    def _outward(self, address: str) -> str:
        """An address of this machine as others see it, where it listens to others."""
        host, _, port = address.rpartition(":")
        if host != LOOPBACK or self._settings.metrics_bind not in EVERYWHERE:
            return address
        return f"{own_address(('192.0.2.1', 9)) or host}:{port}"


def _table(said: Any) -> dict[str, Any]:
    return said if isinstance(said, dict) else {}


def _of(said: Any) -> dict[str, float]:
    """The numbers of a table from elsewhere."""
    return {
        str(name): float(value)
        for name, value in _table(said).items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def _numbers(tables: Mapping[str, Mapping[str, Any]], field: str) -> dict[str, float]:
    """A number of each table that has it."""
    return _of({name: table.get(field) for name, table in tables.items()})


def _of_gpus(machines: Mapping[str, Mapping[str, Any]], field: str, joined: Any) -> dict[str, float]:
    """One number for all GPUs of each machine that has any."""
    found = {name: list(_of(machine.get(field)).values()) for name, machine in machines.items()}
    return {name: float(joined(values)) for name, values in found.items() if values}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
