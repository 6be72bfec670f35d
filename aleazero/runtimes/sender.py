"""A process of its own that sends a run's reports to a service: `python -m aleazero.runtimes.sender`.

Importing such a service's client, and writing to its database, holds up every thread of a Python process for tenths of
a second at a time; so training does not share its process with it. The first line of standard input says what is to be
done, as JSON; the end of it, because the run has ended or was killed, says that no more will come. Imports no JAX
before weights are to be exported.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

from filelock import BaseFileLock, FileLock

from aleazero.observe.follow import EVERY_SECONDS, PATIENCE_SECONDS, Backend, Follower
from aleazero.observe.logs import configure_logging
from aleazero.observe.mlflow import MlflowBackend, MlflowPlan
from aleazero.observe.reports import Report
from aleazero.observe.wandb import WandbBackend, WandbPlan

logger = logging.getLogger(__name__)

NICENESS = 10  # training comes first
GRACE_SECONDS = 5.0  # beyond a sender's own patience


@dataclasses.dataclass(frozen=True)
class Order:
    """What a sender is to do: JSON, so that it can be told to another process."""

    service: Literal["mlflow", "wandb"]
    folder: str  # the run's
    root: str  # of the runs
    plan: dict[str, Any]  # of the backend
    json_logs: bool = False
    log_level: str = "INFO"
    every_seconds: float = EVERY_SECONDS
    patience_seconds: float = PATIENCE_SECONDS

    @property
    def journal(self) -> Path:
        """What is sent."""
        return Path(self.folder) / "metrics.jsonl"

    @property
    def others(self) -> list[Path]:
        """And what others than the run's own process have reported: matches."""
        return [Path(self.folder) / "evals.jsonl"]

    def follow(self, every_seconds: float) -> Follower:
        """Begins to send."""
        return Follower(self.journal, self.state_file, self.backend(), every_seconds=every_seconds, others=self.others)

    @property
    def state_file(self) -> Path:
        """How far it got."""
        return Path(self.folder) / f"{self.service}.json"

    def backend(self) -> Backend:
        """The service."""
        if self.service == "wandb":
            return WandbBackend(WandbPlan(**{**self.plan, "folder": Path(self.folder)}))
        paths: dict[str, Any] = {"checkpoints": Path(self.folder) / "checkpoints"}
        paths |= {name: [Path(path) for path in self.plan[name]] for name in ("first_files", "last_files")}
        return MlflowBackend(MlflowPlan(**{**self.plan, **paths}, export=self._export))

    def _export(self, step: int, into: Path) -> None:
        from aleazero.runtimes.desk import write_network

        write_network(Path(self.folder), Path(self.root), step, into)


class Sender:
    """A sink that has a process of its own read the run's JSON Lines and send them on."""

    def __init__(self, order: Order) -> None:
        self._order = order
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
            "JAX_PLATFORMS": "cpu",  # the accelerator is the run's
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "aleazero.runtimes.sender"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the run, which then tells it
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended at once: `close` will say so
            self._process.stdin.write(json.dumps(dataclasses.asdict(order)).encode() + b"\n")
            self._process.stdin.flush()

    def emit(self, report: Report) -> None:
        """Nothing: the report is in the file."""

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """Says that no more will come, and waits until all is sent; not for ever."""
        if self._process.stdin is None or self._process.stdin.closed:
            return
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            code: int | None = self._process.wait(self._order.patience_seconds + GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            code = None
        if code != 0:
            logger.warning(
                "%s did not take everything; the rest stays in %s and is sent when the run is resumed, or by: "
                "alea monitor send %s",
                *(self._order.service, self._order.journal, Path(self._order.folder).name),
            )


def alone(order: Order) -> BaseFileLock:
    """Return the lock of a run's sender to a service: that of a run that was killed may still be at work."""
    return FileLock(order.state_file.with_suffix(".lock"))


def send_rest(order: Order, seconds: float) -> bool:
    """Sends what there is, in this process; whether all of it was sent in time."""
    with alone(order):
        return order.follow(0.1).drain(seconds, insist=True)


def main() -> int:
    """Sends until standard input ends; 0 if everything was sent."""
    os.nice(NICENESS)
    given = Order(**json.loads(sys.stdin.buffer.readline()))
    configure_logging(Path(given.folder) / "alea.log", given.json_logs, given.log_level)
    with alone(given):
        follower = given.follow(given.every_seconds)
        sys.stdin.buffer.read()
        return 0 if follower.drain(given.patience_seconds) else 1


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    os._exit(code)  # a thread that hangs in a service's client must not keep the process
