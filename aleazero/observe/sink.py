"""Where reports go: the `Sink` protocol, and a fanout that no failing sink can stop.

Knows nothing of what a sink does with a report.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from aleazero.observe.reports import Report

_log = logging.getLogger(__name__)


class Sink(Protocol):
    """Takes reports and renders them somewhere."""

    def emit(self, report: Report) -> None:
        """Takes one report."""
        ...

    def flush(self) -> None:
        """Makes what was taken so far safe, or visible."""
        ...

    def close(self) -> None:
        """Flushes and lets go of everything held; nothing is emitted afterwards."""
        ...


class Fanout:
    """A sink that hands every report to several. One that raises is warned about once and never used again.

    Any thread may emit: sinks are called by one at a time.
    """

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = list(sinks)
        self._turn = threading.RLock()  # a sink may itself emit

    def add(self, sink: Sink) -> None:
        """One more, for what comes from now on."""
        with self._turn:
            self._sinks.append(sink)

    def emit(self, report: Report) -> None:
        """Hands a report to every sink that still works."""
        self._each(lambda sink: sink.emit(report))

    def flush(self) -> None:
        """Flushes every sink that still works."""
        self._each(lambda sink: sink.flush())

    def close(self) -> None:
        """Closes every sink that still works; closing twice is closing once."""
        with self._turn:
            self._each(lambda sink: sink.close())
            self._sinks = []

    def _each(self, action: Callable[[Sink], None]) -> None:
        with self._turn:
            for sink in tuple(self._sinks):
                try:
                    action(sink)
                except Exception as error:
                    # At once, not after the loop: an interrupt in a later sink must not bring this one back.
                    self._sinks = [other for other in self._sinks if other is not sink]
                    name = type(sink).__name__
                    _log.warning("%s failed; the run goes on without it: %s: %s", name, type(error).__name__, error)
                    _log.debug("where %s failed", name, exc_info=error)
