"""A run is a folder: what lies where in it, which runs there are, and whether one is alive.

    config.toml      the resolved settings            checkpoints/    see `aleazero.checkpoint`
    metrics.jsonl    every report                     replay/         see `aleazero.replay.log`
    alea.log         what happened, in words          run.lock        held by the process that trains
    driver.log       the same, of the driver on Ray   driver.lock     held by the process that has others train
    run.pid, driver.pid    the processes that hold the locks
    profile/         traces, where they were asked for    versions/   weights of every checkpoint, as checkpoints
Knows neither roles nor networks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from aleazero import checkpoint as checkpoints
from aleazero.config import RunConfig
from aleazero.core.errors import AleaError, UnknownName
from aleazero.core.files import replace_file
from aleazero.core.settings import build, load_file, to_toml
from aleazero.observe.jsonl import read_jsonl

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LOCK_SECONDS = 0.2
RUN_LOCK, DRIVER_LOCK = "run.lock", "driver.lock"
LOCK_FILES = (RUN_LOCK, DRIVER_LOCK, "run.pid", "driver.pid")


class RunError(AleaError):
    """A run cannot be started, found or changed."""


def runs_root(given: Path | None = None) -> Path:
    """Where runs are kept: as given, else ALEA_RUNS, else `runs` here."""
    return given or Path(os.environ.get("ALEA_RUNS") or "runs")


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """One run on disk."""

    path: Path

    @property
    def name(self) -> str:
        """The run's name."""
        return self.path.name

    @property
    def config_file(self) -> Path:
        """The resolved settings."""
        return self.path / "config.toml"

    @property
    def metrics_file(self) -> Path:
        """Every report, as JSON Lines."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """The root of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def versions(self) -> Path:
        """The root of checkpoints that hold the playing weights alone: they stay when the whole ones go."""
        return self.path / "versions"

    def steps(self) -> list[int]:
        """The steps whose weights are there, ascending."""
        return sorted({*checkpoints.steps(self.checkpoints), *checkpoints.steps(self.versions)})

    @property
    def profile(self) -> Path:
        """Traces of where the time goes."""
        return self.path / "profile"

    @property
    def replay(self) -> Path:
        """The replay log."""
        return self.path / "replay"

    @property
    def log_file(self) -> Path:
        """What happened, in words."""
        return self.path / "alea.log"

    @property
    def stop_file(self) -> Path:
        """Its presence asks the run to stop."""
        return self.path / "stop"

    @property
    def pause_file(self) -> Path:
        """Its presence makes the run wait."""
        return self.path / "paused"

    def read_config(self) -> RunConfig:
        """The settings it was started with."""
        return build(RunConfig, [load_file(self.config_file)])

    def write_config(self, config: RunConfig) -> None:
        """Writes the settings, whole or not at all."""
        replace_file(self.config_file, to_toml(config).encode())

    @property
    def evals_file(self) -> Path:
        """Reports of matches that others than the run's own process have played, as JSON Lines."""
        return self.path / "evals.jsonl"

    @property
    def workers_file(self) -> Path:
        """Reports of the head on who takes part, as JSON Lines."""
        return self.path / "workers.jsonl"

    def read_reports(self) -> list[dict[str, Any]]:
        """Every report; those of others in their places by time."""
        own = read_jsonl(self.metrics_file) if self.metrics_file.exists() else []
        others = [read_jsonl(path) for path in (self.evals_file, self.workers_file) if path.exists()]
        if not others:
            return own
        return sorted([*own, *(record for file in others for record in file)], key=lambda record: record["time"])

    def owner(self) -> int | None:
        """The process that trains it now, or else the one that sees to it; None if nobody does."""
        found = self.holder(RUN_LOCK)
        return self.holder(DRIVER_LOCK) if found is None else found

    def holder(self, lock: str) -> int | None:
        """Return the process that holds a lock of the run; None if none does."""
        return holder_of(self.path / lock)

    @contextlib.contextmanager
    def held(self, lock: str = RUN_LOCK) -> Iterator[None]:
        """Make this process the only one that trains the run; the hold ends with the process, however it ends.

        Where a driver has others train, it holds a lock of its own, for as long as it lives.
        """

        def taken(pid: int) -> str:
            by = f"run {self.name!r} is being trained by process {pid} already"
            return f"{by}; stop it first: alea runs stop {self.name}"

        with hold(self.path / lock, taken):
            if lock == DRIVER_LOCK or self.holder(DRIVER_LOCK) is None:  # or else it may have been asked for meanwhile
                self.stop_file.unlink(missing_ok=True)
            yield


@contextlib.contextmanager
def hold(lock: Path, taken: Callable[[int], str]) -> Iterator[None]:
    """Hold a lock file; raise `RunError` with what `taken` makes of the process that holds it already.

    The process is named in a file beside the lock, because Windows lets no other process read a locked file.
    """
    try:  # `holder_of` takes it for a moment: worth another try
        held = FileLock(lock).acquire(timeout=_LOCK_SECONDS, poll_interval=0.02)
    except Timeout:
        raise RunError(taken(_pid(lock))) from None
    with held:
        lock.with_suffix(".pid").write_text(str(os.getpid()))
        yield


def holder_of(lock: Path) -> int | None:
    """Return the process that holds a lock file; None if none does."""
    if not lock.exists():
        return None
    try:
        with FileLock(lock, timeout=0):
            return None
    except Timeout:
        return _pid(lock)
    except OSError:
        return None


def _pid(lock: Path) -> int:
    """Return the process that is named beside a lock; 0 where it has not yet written its number."""
    try:
        return int(lock.with_suffix(".pid").read_text())
    except (OSError, ValueError):
        return 0


def new_run(root: Path, name: str | None, stem: str) -> RunFolder:
    """An empty folder for a run: by name, or the first free of `stem-1`, `stem-2`, ..."""
    if name is not None:
        if not _NAME.fullmatch(name):
            raise RunError(f"{name!r} is no name for a run: letters, digits, dots, dashes and underscores only")
        folder = root / name
        try:
            folder.mkdir(parents=True)
        except FileExistsError as error:
            raise RunError(
                f"there is a run {name!r} in {root} already: resume it (alea runs resume {name}), delete it "
                f"(alea runs delete {name}) or choose another name"
            ) from error
        except OSError as error:
            raise RunError(f"could not make {folder}: {error}") from error
        return RunFolder(folder)
    number = 1
    while True:
        with contextlib.suppress(RunError):
            if not (root / f"{stem}-{number}").exists():
                return new_run(root, f"{stem}-{number}", stem)
        number += 1
        if number > 10_000:
            raise RunError(f"could not make a folder for a run in {root}: is it writable?")


def find_run(root: Path, name: str) -> RunFolder:
    """The run of this name, or in this folder."""
    for folder in (root / name, Path(name)):
        if (folder / "config.toml").is_file():
            return RunFolder(folder)
    raise UnknownName(f"run (in {root})", name, [run.name for run in all_runs(root)])


def all_runs(root: Path) -> list[RunFolder]:
    """Every run below a root, by name."""
    return [RunFolder(path.parent) for path in sorted(root.glob("*/config.toml"))]


def delete_run(run: RunFolder) -> None:
    """Deletes a run that nobody trains: renamed first, so that no half of it is left under its name."""
    owner = run.owner()
    if owner is not None:
        raise RunError(
            f"run {run.name!r} is being trained by process {owner}; stop it first: alea runs stop {run.name}"
        )
    doomed = run.path.with_name(f".deleted-{run.name}-{os.getpid()}")
    run.path.rename(doomed)
    shutil.rmtree(doomed)


def reset_run(run: RunFolder, archive: Path) -> None:
    """Moves what a run nobody trains has into `archive`; its settings stay, and what workers elsewhere know it by."""
    kept = [run.config_file.name, *(f"redis/{name}" for name in ("keys.json", "redis.conf", "users.acl"))]
    archive.parent.mkdir(parents=True, exist_ok=True)
    run.path.rename(archive)
    for name in kept:
        if (archive / name).exists():
            (run.path / name).parent.mkdir(mode=0o700 if "/" in name else 0o777, parents=True, exist_ok=True)
            shutil.copy2(archive / name, run.path / name)
