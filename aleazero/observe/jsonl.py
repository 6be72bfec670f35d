"""Reports as JSON Lines: the run's own record of itself, and how it is read and cut back.

One object a line, strict JSON. A process killed in the middle of a line leaves that one broken line at the end, which
reading skips and opening removes. What a full disk refuses waits for room. Knows no field of a report but `step`.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from aleazero.core.errors import AleaError
from aleazero.core.files import replace_file
from aleazero.observe.reports import Report

_log = logging.getLogger(__name__)

MOST_WAITING = 10_000  # lines, until there is room for them


class JsonlSink:
    """Appends every report to a file, with the `time` it came in unix seconds; NaN and infinities become null.

    A disk that refuses is no failure: that is said once, and what could not be written, up to `MOST_WAITING` lines, is
    written before the next report that can be.
    """

    def __init__(self, path: Path) -> None:
        _mend_tail(path)
        self._path = path
        # Unbuffered: each report reaches the operating system before `emit` returns.
        self._file = path.open("ab", buffering=0)
        self._waiting: collections.deque[bytes] = collections.deque()
        self._lost = 0
        self._failing = False

    def emit(self, report: Report) -> None:
        """Writes one line, after those that wait."""
        record = _strict({**report.as_dict(), "time": time.time()})
        self._waiting.append(json.dumps(record, allow_nan=False).encode() + b"\n")
        self._try(self._write)
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self._lost += 1

    def flush(self) -> None:
        """Forces what was written to the disk."""
        self._try(self._write)
        self._try(lambda: os.fsync(self._file.fileno()))

    def close(self) -> None:
        """Forces what was written to the disk and closes the file; closing twice is closing once."""
        if self._file.closed:
            return
        try:
            self.flush()
        finally:
            self._file.close()
        if lost := self._lost + len(self._waiting):
            _log.warning("%s lacks %d reports: there was no room for them", self._path, lost)

    def _try(self, action: Callable[[], None]) -> None:
        try:
            action()
        except OSError as error:
            if not self._failing:
                _log.warning("%s cannot be written to; the run goes on, and it is tried again: %s", self._path, error)
            self._failing = True

    def _write(self) -> None:
        """Everything that waits, line by line; of one that fits only in part, nothing."""
        while self._waiting:
            line, end = self._waiting[0], os.fstat(self._file.fileno()).st_size
            try:
                if self._file.write(line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                with contextlib.suppress(OSError):
                    self._file.truncate(end)
                raise
            self._waiting.popleft()
        if self._failing:
            self._failing = False
            _log.warning("%s can be written to again", self._path)


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The records of a file, oldest first. A broken last line is skipped; any other stops with its number."""
    return [record for _, record in _lines(path)]


def truncate_jsonl(path: Path, step: int) -> None:
    """Drops every report whose step is greater than `step`, and a broken last line; for a run that goes back to `step`.

    All or nothing: a crash leaves the old file or the new one. A missing file stays missing. A `JsonlSink` must open
    the file after this, not before: it would go on writing into the old one.
    """
    if not path.exists():
        return
    kept: list[bytes] = []
    for number, (line, record) in enumerate(_lines(path), start=1):
        if not isinstance(record.get("step"), int):
            raise AleaError(
                f"{path}, line {number}: no report: its step is {record.get('step')!r} and must be an integer; "
                "mend or delete the line"
            )
        if record["step"] <= step:
            kept.append(line + b"\n")
    replace_file(path, b"".join(kept))


def _lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Every whole line with its record."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise AleaError(f"no reports at {path}: name a run that has begun") from None
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, start=1):
        try:
            record = _parse(line)
        except ValueError as error:
            if number == len(lines):
                return
            raise AleaError(
                f"{path}, line {number} of {len(lines)}: no JSON object: {error}; only the last line may be broken, "
                "by a process that was killed: mend or delete the line"
            ) from error
        yield line, record


def _parse(line: bytes) -> dict[str, Any]:
    """The record of a line; ValueError where there is none."""
    record = json.loads(line.decode("utf-8"))
    if not isinstance(record, dict):
        raise ValueError(f"{type(record).__name__} where an object is expected")
    return record


def _mend_tail(path: Path) -> None:
    """Removes a broken last line, or ends one that only lacks its end: the next report must not become a part of it."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("r+b") as file:
        content = file.read()
        start = content.rfind(b"\n", 0, len(content) - 1) + 1
        try:
            _parse(content[start:])
        except ValueError:
            file.truncate(start)
        else:
            if not content.endswith(b"\n"):
                file.write(b"\n")


def _strict(value: Any) -> Any:
    """The value with null for every number that JSON cannot write."""
    if isinstance(value, dict):
        return {key: _strict(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
