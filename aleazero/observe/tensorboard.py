"""Reports as TensorBoard scalars, one for each metric, against the step.

Writes event files itself: records of a length, a message in the wire format of Protocol Buffers, and their checksums.
Of TensorBoard's messages it needs a few fields, so no package has to be installed; and a failure raises here, where a
writer with a thread behind a bounded queue waits for ever once the thread has died (a full disk).
Knows no metric by name.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time
from pathlib import Path

from aleazero.observe.reports import Report, RunReport

_FLUSH_SECONDS = 5.0  # a flush waits for the disk, so not at every report
_POLYNOMIAL = 0x82F63B78  # of CRC-32C, reversed
_STARTED = 1  # a session's status: what earlier files say of this step and later ones is void
# Fields of tensorflow.Event, Summary, Summary.Value and SessionLog.
_WALL_TIME, _STEP, _FILE_VERSION, _SUMMARY, _SESSION_LOG = 1, 2, 3, 5, 7
_VALUE, _TAG, _SIMPLE_VALUE, _STATUS = 1, 1, 2, 1


class TensorboardSink:
    """Writes an event file into a folder; a resumed run adds one to the same folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # Names hold whole seconds: without a number of its own, a run resumed at once would overwrite its old file.
        number = sum(1 for _ in folder.glob("events.out.tfevents.*"))
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{number}"
        self._file = (folder / name).open("xb")
        self._event(0, _bytes(_FILE_VERSION, b"brain.Event:2"))
        self.flush()

    def emit(self, report: Report) -> None:
        """Writes every metric of the report, with the time."""
        if isinstance(report, RunReport) and report.status == "resumed":
            # TensorBoard drops the later steps of earlier files: the run will play them again.
            self._event(report.step + 1, _bytes(_SESSION_LOG, _number(_STATUS, _STARTED)))
        values = [
            _bytes(_VALUE, _bytes(_TAG, name.encode()) + _key(_SIMPLE_VALUE, 5) + _float(value))
            for name, value in report.metrics().items()
        ]
        if values:
            self._event(report.step, _bytes(_SUMMARY, b"".join(values)))
        if time.monotonic() - self._flushed >= _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Forces what was written to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._flushed = time.monotonic()

    def close(self) -> None:
        """Forces what was written to the disk and closes the file; closing twice is closing once."""
        if not self._file.closed:
            self.flush()
            self._file.close()

    def _event(self, step: int, what: bytes) -> None:
        body = _key(_WALL_TIME, 1) + struct.pack("<d", time.time()) + _number(_STEP, step) + what
        length = struct.pack("<Q", len(body))
        self._file.write(length + _checksum(length) + body + _checksum(body))


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _float(value: float) -> bytes:
    """In four bytes; what is too large for them is infinite."""
    return struct.pack("<f", ctypes.c_float(value).value)


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _number(field: int, value: int) -> bytes:
    return _key(field, 0) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, 2) + _varint(len(value)) + value


def _table() -> list[int]:
    """What eight bits do to a CRC-32C."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_CRC = _table()


def _checksum(data: bytes) -> bytes:
    """The CRC-32C, masked as records want it: a checksum of data that holds checksums would be a weak one."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
