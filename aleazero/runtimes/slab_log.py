"""A run's replay log: every slab on disk as it comes, and read back when the run is resumed.

Replay that begins anew from weights gets a log of its own, so that no older checkpoint reads a later log. A log that
cannot be written is given up: the run goes on, and can then only be resumed from its weights.
Knows the run's folder and checkpoints; neither who plays nor who learns.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from aleazero import checkpoint as checkpoints
from aleazero.core.records import Trajectory
from aleazero.replay.log import BackgroundLog, ReplayLog, ReplayLogError
from aleazero.runs import RunFolder

logger = logging.getLogger(__name__)


class SlabLog:
    """The log of a run, once it is opened; before that, and once it is given up, nothing is kept."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._disk: ReplayLog | None = None
        self._log: BackgroundLog | None = None

    @property
    def is_open(self) -> bool:
        """Whether slabs are kept."""
        return self._log is not None

    def open(self, base_steps: int) -> None:
        """The log of replay that began after so many updates."""
        self._disk = ReplayLog(self._place(base_steps))
        self._log = BackgroundLog(self._disk)

    def add(self, number: int, slab: Trajectory, source: int) -> None:
        """Keeps a slab, in the background."""
        if self._log is not None:
            try:
                self._log.append(number, slab.arrays() | {"source": np.int64(source)})
            except ReplayLogError as error:
                self._give_up(error)

    def flush(self) -> None:
        """Returns when all slabs are on the disk, or the log is given up."""
        try:
            if self._log is not None:
                self._log.flush()
        except ReplayLogError as error:
            self._give_up(error)

    def close(self) -> None:
        """Lets go of the files."""
        if self._log is not None:
            with contextlib.suppress(ReplayLogError):  # said already, and nothing depends on it any more
                self._log.close()

    def trim(self, base_steps: int, slabs: int, room: int) -> None:
        """Drops what no kept checkpoint would play back, now that there are so many slabs and the ring has `room`."""
        if self._log is None or self._disk is None:
            return
        needed = {base_steps: slabs}  # by log: slabs at its oldest checkpoint
        for step in checkpoints.steps(self._folder.checkpoints):
            with contextlib.suppress(checkpoints.DamagedCheckpoint):
                facts = checkpoints.read_facts(self._folder.checkpoints, step)
                base = facts["base_steps"]
                needed[base] = min(needed.get(base, facts["slabs"]), facts["slabs"])
        self._disk.drop_before(max(needed[base_steps] - room, 0))
        for old in self._folder.replay.iterdir():
            if old not in [self._place(base) for base in needed]:
                shutil.rmtree(old, ignore_errors=True)

    def forget(self, base_steps: int) -> None:
        """Drops the log of an earlier try from the same weights."""
        shutil.rmtree(self._place(base_steps), ignore_errors=True)

    def play_back(self, first: int, stop: int, like: Trajectory) -> Iterator[tuple[Trajectory, int]]:
        """The slabs `first` to `stop - 1` with their sources; what came later is cut off. The log must be open."""
        assert self._disk is not None
        self._disk.truncate(stop)
        shapes = like.arrays()
        for number, arrays in self._disk.read(first, stop):
            missing = sorted({*shapes, "source"} - arrays.keys())
            if missing:
                raise ReplayLogError(
                    f"record {number} of the replay log in {self._folder.replay} has no {', '.join(missing)}: an "
                    "earlier version wrote it; resume from the weights (--resume weights)"
                )
            fields: dict[str, Any] = {name: jnp.asarray(arrays[name], leaf.dtype) for name, leaf in shapes.items()}
            yield Trajectory(**fields), int(arrays["source"])

    def _give_up(self, error: ReplayLogError) -> None:
        logger.warning("the replay log is given up, so this run can only be resumed from its weights: %s", error)
        self.close()
        self._log = None

    def _place(self, base_steps: int) -> Path:
        return self._folder.replay / f"{base_steps:012d}"
