"""Reports as TensorBoard scalars, one for each metric, against the step.

Writes through tensorboardX's event file itself, not through its `SummaryWriter`: that one writes from a thread behind
a bounded queue, and when the thread dies (a full disk) the next reports wait for ever. Here a failure raises.
Knows no metric by name.
"""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path

from aleazero.core.errors import MissingExtra
from aleazero.observe.reports import Report, RunReport

_FLUSH_SECONDS = 5.0  # a flush waits for the disk, so not at every report


class TensorboardSink:
    """Writes an event file into a folder; a resumed run adds one to the same folder."""

    def __init__(self, folder: Path) -> None:
        try:
            writers = import_module("tensorboardX.event_file_writer")
            self._events = import_module("tensorboardX.proto.event_pb2")
            self._summaries = import_module("tensorboardX.proto.summary_pb2")
        except ImportError as error:
            raise MissingExtra("TensorBoard logs", "tensorboardX", "tensorboard") from error
        folder.mkdir(parents=True, exist_ok=True)
        # Names hold whole seconds: without a number of its own, a run resumed at once would overwrite its old file.
        number = sum(1 for _ in folder.glob("events.out.tfevents.*"))
        self._writer = writers.EventsWriter(str(folder / "events"), f".{number}")
        self._flushed = time.monotonic()
        self._closed = False

    def emit(self, report: Report) -> None:
        """Writes every metric of the report, with the time."""
        if isinstance(report, RunReport) and report.status == "resumed":
            self._forget_after(report.step)
        values = [
            self._summaries.Summary.Value(tag=name, simple_value=float(value))
            for name, value in report.metrics().items()
        ]
        if values:
            summary = self._summaries.Summary(value=values)
            self._writer.write_event(self._events.Event(wall_time=time.time(), step=report.step, summary=summary))
        if time.monotonic() - self._flushed >= _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Forces what was written to the disk."""
        self._writer.flush()
        self._flushed = time.monotonic()

    def close(self) -> None:
        """Forces what was written to the disk and closes the file; closing twice is closing once."""
        if not self._closed:
            self._closed = True
            self._writer.close()

    def _forget_after(self, step: int) -> None:
        """Tells TensorBoard to drop the later steps of earlier files: the run will play them again."""
        log = self._events.SessionLog
        restart = log(status=log.START)
        self._writer.write_event(self._events.Event(wall_time=time.time(), step=step + 1, session_log=restart))
