"""The replay log: slabs of trajectories on disk, numbered and append-only, so that a killed run gets its replay back.

Records lie one after another in segment files, each with a header and two checksums. A kill in the middle of a write
leaves a torn tail, which is ignored when the log is opened and cut off when it is written again. What `flush` has
returned for survives a loss of power. `BackgroundLog` writes from a thread, so that training does not wait.

Knows neither what the arrays mean nor which records are still needed. One process at a time writes a log.
"""

from __future__ import annotations

import io
import os
import queue
import re
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from aleazero.core.errors import AleaError
from aleazero.core.files import sync

SEGMENT_BYTES = 64 * 2**20
QUEUE_RECORDS = 4

_MAGIC = b"aleaslab"
_FIELDS = struct.Struct("<8sQQI")  # magic, number, bytes of payload, crc32 of payload
_CHECK = struct.Struct("<I")  # crc32 of the fields
_HEADER_BYTES = _FIELDS.size + _CHECK.size
_SEGMENT = re.compile(r"segment-(\d{12,})\.log")
# What safetensors both writes and reads as numpy arrays.
_DTYPE = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)")

Slab = Mapping[str, Any]  # name -> array


class ReplayLogError(AleaError):
    """The replay log cannot be written, or does not hold what is asked of it."""


@dataclass
class _Segment:
    """One file, and where its intact records lie."""

    path: Path
    first: int
    bounds: list[int]  # [records + 1]: where each record begins, and where the last one ends

    @property
    def stop(self) -> int:
        """The number after its last record's."""
        return self.first + len(self.bounds) - 1


class ReplayLog:
    """An append-only log of numbered slabs in a folder. Opening reads headers and changes nothing."""

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._file: io.FileIO | None = None  # the last segment, opened by the first write
        try:
            folder.mkdir(parents=True, exist_ok=True)
            matches = [match for path in folder.iterdir() if (match := _SEGMENT.fullmatch(path.name))]
            firsts = sorted((int(match[1]), folder / match[0]) for match in matches)
            self._segments = [_scan(path, first) for first, path in firsts]
        except OSError as error:
            raise ReplayLogError(f"could not open the replay log {folder}: {error}") from error

    @property
    def first_number(self) -> int:
        """The number of the oldest record, or of the next one where there is none."""
        return self._segments[0].first if self._segments else 0

    @property
    def next_number(self) -> int:
        """The number that the next record must have."""
        return self._segments[-1].stop if self._segments else 0

    def append(self, number: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Writes one record, whose number must be `next_number`; `flush` makes it last."""
        if number != self.next_number:
            raise ReplayLogError(
                f"record {number} cannot be appended to the replay log {self._folder}: the next one is "
                f"{self.next_number}; truncate the log to where the run resumes"
            )
        record = _encode(number, arrays)
        try:
            last = self._segments[-1] if self._segments else None
            if last is None or (len(last.bounds) > 1 and last.bounds[-1] + len(record) > self._segment_bytes):
                self._roll(number)
            self._write(record)
        except OSError as error:
            # The next write opens the segment again, and cuts off what this one may have left there.
            self._release()
            raise ReplayLogError(
                f"could not write record {number} of the replay log {self._folder}: {error}; the records before it "
                "are untouched. Check the space left on that disk"
            ) from error
        self._segments[-1].bounds.append(self._segments[-1].bounds[-1] + len(record))

    def flush(self) -> None:
        """Returns when every record appended is on the disk."""
        try:
            if self._segments:
                os.fsync(self._open().fileno())
        except OSError as error:
            raise ReplayLogError(f"could not flush the replay log {self._folder}: {error}") from error

    def truncate(self, number: int) -> None:
        """Drops every record from `number` on, and a torn tail; `number` comes next."""
        if number == 0 and not self._segments:
            return
        if not self.first_number <= number <= self.next_number:
            raise ReplayLogError(
                f"the replay log {self._folder} cannot be truncated to {number}: it begins with record "
                f"{self.first_number}, and {self.next_number} comes next; resume from a checkpoint between them, or "
                "from weights alone"
            )
        holder = [segment for segment in self._segments if segment.first <= number][-1]
        if number > holder.stop:
            self._locate(number - 1)  # raises: what should lie before is damaged
        self._release()
        try:
            # Newest first: a kill in between leaves a log without a gap.
            while self._segments[-1].first > number:
                self._segments.pop().path.unlink()
            sync(self._folder)
            last = self._segments[-1]
            del last.bounds[number - last.first + 1 :]
            os.fsync(self._open().fileno())
        except OSError as error:
            raise ReplayLogError(f"could not truncate the replay log {self._folder}: {error}") from error

    def drop_before(self, number: int) -> None:
        """Deletes segments with no record from `number` on; the last stays, as it tells which number comes next."""
        try:
            while len(self._segments) > 1 and self._segments[1].first <= number:
                self._segments[0].path.unlink()
                del self._segments[0]
        except OSError as error:
            raise ReplayLogError(f"could not drop old segments of the replay log {self._folder}: {error}") from error

    def read(self, first: int, stop: int) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
        """The records from `first` up to, but not with, `stop`, each verified; raises at once where one is missing."""
        places = [(number, *self._locate(number)) for number in range(first, stop)]
        return ((number, _decode(number, path, start, end)) for number, path, start, end in places)

    def close(self) -> None:
        """Flushes, and lets go of the file; a later call opens it again."""
        if self._file is not None:
            self.flush()
            self._release()

    def _locate(self, number: int) -> tuple[Path, int, int]:
        """The segment of a record, where it begins in it and where it ends."""
        older = [segment for segment in self._segments if segment.first <= number]
        if not older:
            raise ReplayLogError(
                f"record {number} is missing: the replay log {self._folder} begins with record {self.first_number}"
            )
        segment = older[-1]
        if number >= segment.stop:
            raise ReplayLogError(
                f"record {number} is missing or damaged: {segment.path} has intact records {segment.first} to "
                f"{segment.stop - 1}, and none behind its byte {segment.bounds[-1]}"
            )
        at = number - segment.first
        return segment.path, segment.bounds[at], segment.bounds[at + 1]

    def _roll(self, number: int) -> None:
        """Begins a segment; the one before is on the disk first, so that only the last one can be torn."""
        self.flush()
        self._release()
        segment = _Segment(self._folder / f"segment-{number:012d}.log", number, [0])
        segment.path.touch(exist_ok=False)
        self._segments.append(segment)
        sync(self._folder)

    def _open(self) -> io.FileIO:
        """The last segment, ready to be written behind its last intact record."""
        if self._file is None:
            last = self._segments[-1]
            self._file = io.FileIO(last.path, "r+")
            self._file.truncate(last.bounds[-1])
            self._file.seek(last.bounds[-1])
        return self._file

    def _write(self, record: bytes) -> None:
        file, rest = self._open(), memoryview(record)
        while rest:
            rest = rest[file.write(rest) :]

    def _release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class BackgroundLog:
    """Appends to a log from a thread. Between `flush` and the next `append` the log itself may be used.

    Arrays may be JAX arrays: they are copied from the device in the thread, so they must not be donated meanwhile.
    After an error nothing more is written, and every later call raises it.
    """

    def __init__(self, log: ReplayLog, queue_records: int = QUEUE_RECORDS) -> None:
        self._log = log
        self._queue: queue.Queue[tuple[int, Slab | Callable[[], Slab]] | None] = queue.Queue(queue_records)
        self._failure: tuple[int, BaseException] | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="replay-log", daemon=True)
        self._thread.start()

    def append(self, number: int, arrays: Slab | Callable[[], Slab]) -> None:
        """Queues one record, given as arrays or as a function that makes them; waits only while the queue is full."""
        self._check()
        self._queue.put((number, arrays))

    def flush(self) -> None:
        """Returns when everything queued is on the disk."""
        self._check()
        self._queue.join()
        self._check()
        self._log.flush()

    def close(self) -> None:
        """Writes what is queued, then ends the thread and closes the log; closing twice is closing once."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._thread.join()
        self._log.close()
        self._raise_failure()

    def _check(self) -> None:
        self._raise_failure()
        if self._closed:
            raise ReplayLogError("this replay log is closed: open it again to append")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            number, cause = self._failure
            raise ReplayLogError(f"record {number} was not written in the background: {cause}") from cause

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            if self._failure is None:
                self._append(*item)
            del item  # lets go of device memory before the next wait
            self._queue.task_done()

    def _append(self, number: int, arrays: Slab | Callable[[], Slab]) -> None:
        try:
            slab = arrays() if callable(arrays) else arrays
            self._log.append(number, {name: np.asarray(array) for name, array in slab.items()})
        except BaseException as error:  # whatever it is, the thread that trains must hear of it
            self._failure = (number, error)


def _encode(number: int, arrays: Mapping[str, np.ndarray]) -> bytes:
    # safetensors writes memory as it lies, whatever the strides say.
    dense = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    wrong = [f"{name} is {array.dtype}" for name, array in dense.items() if not _DTYPE.fullmatch(array.dtype.name)]
    if wrong:
        raise ReplayLogError(
            f"record {number} cannot be logged: {', '.join(wrong)}; allowed are bool, integers and floats of 16 to "
            "64 bits (view others as unsigned integers)"
        )
    payload = safetensors.numpy.save(dense)
    fields = _FIELDS.pack(_MAGIC, number, len(payload), zlib.crc32(payload))
    return fields + _CHECK.pack(zlib.crc32(fields)) + payload


def _payload(header: bytes, number: int) -> tuple[int, int] | None:
    """Length and crc32 of the payload, or None where this is not the whole and unchanged header of that record."""
    if len(header) != _HEADER_BYTES:
        return None
    magic, own, length, crc = _FIELDS.unpack(header[: _FIELDS.size])
    (check,) = _CHECK.unpack(header[_FIELDS.size :])
    whole = magic == _MAGIC and own == number and check == zlib.crc32(header[: _FIELDS.size])
    return (length, crc) if whole else None


def _scan(path: Path, first: int) -> _Segment:
    """The segment with all records up to the first whose header is damaged or whose payload is cut short."""
    segment = _Segment(path, first, [0])
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        while True:
            file.seek(segment.bounds[-1])
            payload = _payload(file.read(_HEADER_BYTES), segment.stop)
            if payload is None or (end := segment.bounds[-1] + _HEADER_BYTES + payload[0]) > size:
                return segment
            segment.bounds.append(end)


def _decode(number: int, path: Path, start: int, end: int) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as file:
            file.seek(start)
            record = file.read(end - start)
    except OSError as error:
        raise ReplayLogError(f"record {number} cannot be read from {path}: {error.strerror}") from error
    data = record[_HEADER_BYTES:]
    if _payload(record[:_HEADER_BYTES], number) != (len(data), zlib.crc32(data)) or len(record) != end - start:
        raise ReplayLogError(
            f"record {number} is damaged: {path} has changed between bytes {start} and {end} since it was written; "
            "resume from weights alone"
        )
    return safetensors.numpy.load(data)
