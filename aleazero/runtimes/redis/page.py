"""What a worker shows of itself: a page for Prometheus, and its machine's numbers in its signs of life.

What the page says is what the signs of life say, so the head knows the same. A worker that cannot serve a page works
all the same. Knows a worker's status as a table of numbers; not what the worker does.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from typing import Any

from aleazero.config import RunConfig
from aleazero.core.errors import AleaError
from aleazero.observe.endpoint import EVERYWHERE, LOOPBACK, PORTS, Endpoint
from aleazero.observe.hardware import HardwareSampler
from aleazero.observe.prometheus import PATH, PrometheusSink
from aleazero.observe.reports import HardwareReport, Report, WorkerReport
from aleazero.observe.sink import Fanout
from aleazero.runtimes.redis.link import Link

logger = logging.getLogger(__name__)

_NUMBERS = ("version", "games", "games_per_minute", "rows_per_second", "blocked_share", "waiting", "chunks")
_HARDWARE = (
    "cpu_percent",
    "memory_percent",
    "gpu_utilization_percent",
    "gpu_memory_percent",
    "gpu_temperature_celsius",
    "gpu_power_watts",
)


class WorkerPage:
    """One worker's page and its sampler; `open` when the run's settings are known, `said` at every sign of life."""

    def __init__(self, kind: str, link: Link) -> None:
        """`link` goes to the run's Redis: others find this machine at the address that it has towards it."""
        self._kind, self._link = kind, link
        self._began = time.monotonic()
        self._out = Fanout([])
        self._sampler: HardwareSampler | None = None
        self._endpoint: Endpoint | None = None
        self._hardware: HardwareReport | None = None
        self._turn = threading.Lock()
        self._opened = self._closed = False

    def open(self, config: RunConfig) -> None:
        """Serves and samples as the run's settings ask for; the first that are heard hold until the worker ends."""
        settings = config.observe
        with self._turn:
            if self._opened or self._closed:
                return
            self._opened = True
            if settings.prometheus:
                try:
                    sink = PrometheusSink(settings.metrics_prefix)
                    port = PORTS[self._kind] if settings.metrics_port else 0
                    self._endpoint = Endpoint({PATH: sink.page}, port, settings.metrics_bind)
                    self._out.add(sink)
                    logger.info("metrics: http://%s%s", self._endpoint.address, PATH)
                except AleaError as error:  # playing does not depend on it
                    logger.warning("this worker serves no metrics: %s", error)
            if settings.hardware_seconds:
                self._sampler = HardwareSampler(self, settings.hardware_seconds)

    def said(self, status: dict[str, Any]) -> dict[str, Any]:
        """A status with what is added to it; the page says the same numbers from now on."""
        if not self._opened or self._closed:
            return status
        numbers: Any = {name: status.get(name) for name in _NUMBERS}
        where = status.get("version", 0), status.get("rows", 0), time.monotonic() - self._began
        self._out.emit(WorkerReport(*where, **numbers))
        found: dict[str, Any] = {}
        if (hardware := self._hardware) is not None:
            self._out.emit(hardware)
            found["hardware"] = {name: getattr(hardware, name) for name in _HARDWARE}
        if (endpoint := self._endpoint) is not None:
            found |= {"metrics": self._address(endpoint), "metrics_token": endpoint.token}
        return status | found

    def _address(self, endpoint: Endpoint) -> str:
        """Where others find it: a machine has several addresses, and the one towards the run's Redis is meant."""
        if endpoint.bind not in EVERYWHERE:
            return endpoint.address
        server = self._link.client.connection_pool.connection_kwargs
        found = own_address((str(server.get("host", LOOPBACK)), int(server.get("port", 6379))))
        return f"{found or socket.gethostname()}:{endpoint.port}"

    # ---- as a sink

    def emit(self, report: Report) -> None:
        """Remembers what the machine is like."""
        if isinstance(report, HardwareReport):
            self._hardware = report

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """Ends both; closing twice is closing once."""
        with self._turn:
            if self._closed:
                return
            self._closed = True
        for part in (self._sampler, self._out, self._endpoint):
            if part is not None:
                part.close()


def own_address(server: tuple[str, int]) -> str | None:
    """This machine's address in the network that a server is in; None where there is no way to it."""
    with contextlib.suppress(OSError):
        family, kind, protocol, _, place = socket.getaddrinfo(*server, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(place)  # sends nothing: asks which address would be used
            found = str(probe.getsockname()[0])
            return f"[{found}]" if ":" in found else found
    return None
