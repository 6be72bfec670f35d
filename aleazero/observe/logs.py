"""The `aleazero` logger: a run's `alea.log` for people or for programs, and warnings on standard error.

Log lines are words; numbers go through sinks. Knows no run.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aleazero.core.errors import UnknownName

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")

_undo_last: Callable[[], None] | None = None


class _JsonLines(logging.Formatter):
    """One JSON object a record; a traceback is a part of it."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": record.created,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class _StandardError(logging.StreamHandler):
    """Writes to whatever standard error is at the time, so that a live display can keep its place below."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


class _File(logging.FileHandler):
    """Appends to a file. A disk that is full costs lines, and is said once: neither a run nor its end fails by it."""

    _failing = False

    def _open(self) -> Any:
        # Unbuffered: what could not be written is not kept, to fail again later.
        raw = open(self.baseFilename, "ab", buffering=0)  # noqa: SIM115 - as long as the handler
        return io.TextIOWrapper(raw, encoding="utf-8", write_through=True)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library's name
        """One line in place of a traceback for every record."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self._failing:
            self._failing = True
            with contextlib.suppress(OSError):  # it may lie on the same disk
                sys.stderr.write(f"alea: {self.baseFilename} cannot be written to; it will lack lines: {error}\n")

    def close(self) -> None:
        """What cannot be written any more is given up."""
        with contextlib.suppress(OSError):
            super().close()


def configure_logging(path: Path | None, json_lines: bool, level: str) -> Callable[[], None]:
    """Sends what `aleazero` logs to a file, and warnings to standard error too; returns what undoes it.

    Calling it again replaces what the last call set up.

    Args:
        path: the file to append to; None for none.
        json_lines: one JSON object a line (`time, level, logger, message`), not text for people.
        level: the least level that is logged at all, one of `LEVELS`.
    """
    global _undo_last
    if level.upper() not in LEVELS:
        raise UnknownName("log level", level, LEVELS)
    handlers: list[logging.Handler] = [_StandardError()]
    handlers[0].setLevel(logging.WARNING)
    if path is not None:
        handlers.append(_File(path))
    if _undo_last is not None:
        _undo_last()

    logger = logging.getLogger("aleazero")
    before = logger.level, logger.propagate
    for handler in handlers:
        handler.setFormatter(
            _JsonLines() if json_lines else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
        )
        logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False  # a handler on the root logger would say everything twice

    def undo() -> None:
        global _undo_last
        if _undo_last is not undo:
            return
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()
        logger.level, logger.propagate = before
        _undo_last = None

    _undo_last = undo
    return undo
