"""Reports as JSON Lines: the run's own record of itself, and how it is read and cut back.

One object a line, strict JSON. A process killed in the middle of a line leaves that one broken line at the end, which
reading skips and opening removes. Knows no field of a report but `step`.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aleazero.core.errors import AleaError
from aleazero.observe.reports import Report


class JsonlSink:
    """Appends every report to a file, with the `time` it came in unix seconds; NaN and infinities become null."""

    def __init__(self, path: Path) -> None:
        _mend_tail(path)
        # Line-buffered: each report reaches the operating system before `emit` returns.
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def emit(self, report: Report) -> None:
        """Writes one line."""
        record = _strict({**report.as_dict(), "time": time.time()})
        self._file.write(json.dumps(record, allow_nan=False) + "\n")

    def flush(self) -> None:
        """Forces what was written to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Forces what was written to the disk and closes the file; closing twice is closing once."""
        if not self._file.closed:
            try:
                self.flush()
            finally:
                self._file.close()


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


def replace_file(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Writes a file whole or not at all: a temporary file beside it, forced to the disk, then renamed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)  # of a process that had this number before; it may have another mode
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename itself is an entry of the folder
    finally:
        os.close(folder)


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
