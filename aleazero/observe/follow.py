"""Reports for services that may be slow, away or dead: a thread reads the run's own JSON Lines and sends them on.

The files are the buffer. A report costs the run nothing beyond the line it writes anyway; what cannot be sent now is
sent when the service is back, when the run is resumed, or by `Follower.drain`; and a run that is killed loses nothing.
How far it got is kept in a file beside the run. Knows no service: that is a `Backend`.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from aleazero.core.files import replace_file
from aleazero.observe.reports import Report

_log = logging.getLogger(__name__)

BATCH_RECORDS = 100  # sent together
EVERY_SECONDS = 5.0  # between two looks at the file
LONGEST_PAUSE = 60.0  # between two tries at a service that is away
PATIENCE_SECONDS = 30.0  # at the end of a run, for what is still to be sent

Record = dict[str, Any]


class Refused(Exception):  # noqa: N818 - the name says what happened
    """The service is there and does not take what it was sent; sending it again would not help."""


class Backend(Protocol):
    """A service. Any exception but `Refused` means that it cannot be reached now; the same call is made again later."""

    name: str
    state: dict[str, Any]  # what it must know again when the run is resumed; JSON

    def open(self) -> bool:
        """Begins, or goes on with what `state` names; whether it knows nothing yet, and is to be sent everything."""
        ...

    def send(self, records: list[Record]) -> None:
        """Sends reports; sending one twice must be as good as sending it once."""
        ...

    def close(self) -> None:
        """Ends well; everything was sent."""
        ...


class Follower:
    """A sink that hands a run's JSON Lines to a backend, from a thread of its own."""

    def __init__(
        self,
        journal: Path,
        state_file: Path,
        backend: Backend,
        *,
        every_seconds: float = EVERY_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
        others: Sequence[Path] = (),
    ) -> None:
        """`journal` and `others` are what `JsonlSink`s write; one that is cut back is gone on with behind the cut."""
        self._journal, self._state_file, self._backend = journal, state_file, backend
        self._every, self._patience = every_seconds, patience_seconds
        state = _read_state(state_file)
        sent = state.get("sent", {})
        self._places = [_Place(path, **sent.get(path.name, {})) for path in (journal, *others)]
        backend.state |= state.get("backend", {})
        self._opened = self._away = False
        self._until = 0.0  # tries go on so long after the end
        self._over, self._wake = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"follower of {backend.name}", daemon=True)
        self._thread.start()

    def emit(self, report: Report) -> None:
        """Nothing: the report is in the file."""

    def flush(self) -> None:
        """What there is may be sent now. Does not wait."""
        self._wake.set()

    def close(self) -> None:
        """Sends the rest, but waits no longer than its patience; what is left then stays in the file."""
        self._over.set()
        self._wake.set()
        if not self._thread.is_alive():
            return
        self._thread.join(self._patience)
        if self._thread.is_alive() or self._away:
            _log.warning(
                "%s did not take everything; the rest stays in %s and is sent when the run is resumed, or by: "
                "alea monitor send %s",
                *(self._backend.name, self._journal, self._journal.parent.name),
            )

    def drain(self, seconds: float, insist: bool = False) -> bool:
        """Sends everything and ends; whether that was done in so many seconds.

        `insist`: a service that is away is tried again until then; else a last try is made.
        """
        self._patience = seconds
        self._until = time.monotonic() + seconds if insist else 0.0
        self.close()
        return not (self._thread.is_alive() or self._away)

    def _work(self) -> None:
        pause = 1.0
        while True:
            over = self._over.is_set()  # before the file is looked at: what comes later is not ours any more
            try:
                self._send_all()
                if self._away:
                    self._away = False
                    _log.warning("%s is back; what had waited is sent", self._backend.name)
                if over:
                    self._backend.close()
                    self._keep()
                    return
                pause = 1.0
                self._wake.wait(self._every)
                self._wake.clear()
            except Exception as error:
                self._say(error)
                if over and time.monotonic() + pause > self._until:
                    return
                if over:
                    time.sleep(pause)
                else:
                    self._over.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _send_all(self) -> None:
        if not self._opened:
            if self._backend.open():
                for place in self._places:
                    place.bytes, place.time = 0, None
            self._opened = True
            self._keep()
        for place in self._places:
            while True:
                records, end = place.read()
                if not records:
                    place.bytes = end  # behind lines that cannot be read
                    break
                try:
                    self._backend.send(records)
                except Refused as error:
                    _log.warning("%s does not take %d reports: %s", self._backend.name, len(records), error)
                place.bytes, place.time = end, records[-1].get("time")
                self._keep()

    def _keep(self) -> None:
        sent = {place.path.name: {"bytes": place.bytes, "time": place.time} for place in self._places}
        state = {"sent": sent, "backend": self._backend.state}
        replace_file(self._state_file, json.dumps(state, indent=1).encode() + b"\n")

    def _say(self, error: Exception) -> None:
        if not self._away:
            self._away = True
            text = str(error).partition("\n")[0][:300]
            _log.warning(
                "%s cannot be reached; the run goes on, and reports are sent later: %s: %s",
                *(self._backend.name, type(error).__name__, text),
            )
        _log.debug("%s failed", self._backend.name, exc_info=error)


class _Place:
    """How far a file was sent. It may be replaced by a shorter one at any time, by a run that goes back."""

    def __init__(self, path: Path, bytes: int = 0, time: float | None = None) -> None:
        self.path, self.time = path, time
        self.bytes, self._file = _resumed_at(path, bytes, time), _number(path)

    def read(self) -> tuple[list[Record], int]:
        """The next records, and where they end."""
        if (file := _number(self.path)) != self._file:
            self.bytes, self._file = _resumed_at(self.path, self.bytes, self.time), file
        return _read(self.path, self.bytes)


def _number(path: Path) -> int | None:
    """Of the file that has this name now."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _read(journal: Path, offset: int) -> tuple[list[Record], int]:
    """The next whole records from an offset on, and where they end."""
    records: list[Record] = []
    try:
        with journal.open("rb") as file:
            file.seek(offset)
            while len(records) < BATCH_RECORDS:
                line = file.readline()
                if not line.endswith(b"\n"):
                    break
                offset += len(line)
                try:
                    records.append(json.loads(line))
                except ValueError as error:
                    _log.warning("a line of %s, before byte %d, is damaged and not sent: %s", journal, offset, error)
    except FileNotFoundError:
        return [], offset
    return records, offset


def _resumed_at(journal: Path, sent: int, last: float | None) -> int:
    """Where to go on: at `sent`, or, if the file was cut back since, behind what is not newer than the `last` sent."""
    if last is None or not journal.exists():
        return 0
    offset = 0
    with journal.open("rb") as file:
        for line in file:
            if offset >= sent or not line.endswith(b"\n") or _time_of(line, last) > last:
                break
            offset += len(line)
    return offset


def _time_of(line: bytes, otherwise: float) -> float:
    """When a report came; a damaged line has no time of its own."""
    try:
        return float(json.loads(line).get("time", otherwise))
    except (ValueError, AttributeError):
        return otherwise


def _read_state(path: Path) -> dict[str, Any]:
    try:
        state = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}
