"""The actor that learns: a local run whose slabs come from players. Works in the run's folder, or in a copy of it.

The folder is the driver's. Where the learner is on another machine, it works on a copy there and what it saves goes
back (`aleazero.runtimes.ray.mirror`). Knows a local run and its intake; not who started it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import ray
from ray import exceptions

from aleazero.assemble import Parts, build_parts
from aleazero.core.compilation import set_up_compiling
from aleazero.observe.sink import Sink
from aleazero.roles.ports import SourcedSink, WeightStore
from aleazero.runs import RunFolder
from aleazero.runtimes.desk import journal_alone
from aleazero.runtimes.local import LocalRun
from aleazero.runtimes.ray.inference import blind
from aleazero.runtimes.ray.intake import NO_GPU, Intake
from aleazero.runtimes.ray.mirror import Mirror
from aleazero.runtimes.ray.weights import StoredWeights
from aleazero.runtimes.selfplay import Resume
from aleazero.runtimes.start import Finished, Until, train_in

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Task:
    """What a learner is to do."""

    folder: Path  # of the run, on the driver's machine
    root: Path  # where runs are kept there
    how: Resume | None  # None where the run is new
    until: Until
    number: int  # larger than that of any learner of the run before it


class Learner:
    """Learns in a process of its own."""

    def __init__(self) -> None:
        set_up_compiling()

    @ray.method(concurrency_group="life")
    def alive(self) -> int:
        """Answered whatever else it does: the number of its process."""
        return os.getpid()

    def train(self, task: Task, players: Sequence[Any], server: tuple[str, str] | None, keeper: Any) -> Finished:
        """Trains to the end, or until it is told to stop.

        `server` is where the inference server is found; `keeper`, where given, has the run's folder elsewhere.
        """
        with _place(task, keeper) as (folder, root, mirror):
            parts = build_parts(folder.read_config(), [jax.local_devices()[0]], root)
            maker = _run_maker(players, server, mirror, task.number)
            finished = train_in(
                parts, folder, root, task.how, task.until, True, maker, sends=False, sinks=journal_alone
            )
            return dataclasses.replace(finished, folder=RunFolder(task.folder), plot=task.folder / "curves.svg")


@contextlib.contextmanager
def _place(task: Task, keeper: Any) -> Iterator[tuple[RunFolder, Path, Mirror | None]]:
    if keeper is None:
        yield RunFolder(task.folder), task.root, None
        return
    scratch = Path(tempfile.mkdtemp(prefix="alea-learner-"))
    mirror = Mirror(keeper, scratch / task.folder.name)
    try:
        mirror.fetch()
        mirror.start()
        try:
            yield RunFolder(mirror.path), scratch, mirror
        except BaseException:  # why it failed is in its last reports
            with contextlib.suppress(exceptions.RayError, OSError):
                mirror.send()
            raise
        mirror.send()
    finally:
        mirror.stop()
        shutil.rmtree(scratch, ignore_errors=True)


def _run_maker(
    players: Sequence[Any], server: tuple[str, str] | None, mirror: Mirror | None, number: int
) -> Callable[..., LocalRun]:
    def make_run(parts: Parts, folder: RunFolder, sink: Sink, root: Path) -> LocalRun:
        if blind():
            logger.warning(NO_GPU, "the learner")
        weights = StoredWeights(0 if parts.config.ray.lock_step else parts.config.ray.sync_every, number)

        def make_intake(parts: Parts, sink: SourcedSink, _: WeightStore) -> Intake:
            kind = Intake if mirror is None else _Mirrored
            made = kind(parts, sink, weights, players, server)
            if mirror is not None:
                made.mirror = mirror  # type: ignore[attr-defined]
            return made

        return LocalRun(parts, folder, sink, root=root, weights=weights, make_producer=make_intake)

    return make_run


class _Mirrored(Intake):
    """An intake of a learner that works on a copy: what is saved goes back before anybody lets go of anything."""

    mirror: Mirror

    def saved(self) -> None:
        """Only what the driver's machine has is safe."""
        self.mirror.send()
        super().saved()
