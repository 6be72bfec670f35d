"""A run is a folder: what lies where in it, which runs there are, and whether one is alive.

    config.toml      the resolved settings            checkpoints/    see `aleazero.checkpoint`
    metrics.jsonl    every report                     replay/         see `aleazero.replay.log`
    alea.log         what happened, in words          run.lock        held by the process that trains
    driver.log       the same, of the driver on Ray   driver.lock     held by the process that has others train
    profile/         traces, where they were asked for    versions/   weights of every checkpoint, as checkpoints
Knows neither roles nor networks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from aleazero import checkpoint as checkpoints
from aleazero.config import RunConfig
from aleazero.core.errors import AleaError, UnknownName
from aleazero.core.files import replace_file
from aleazero.core.settings import build, load_file, to_toml
from aleazero.observe.jsonl import read_jsonl

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LOCK_TRIES = 10
RUN_LOCK, DRIVER_LOCK = "run.lock", "driver.lock"


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
        """The process that holds a lock; None if nobody does."""
        try:
            with open(self.path / lock, "r+") as file:
                if not _locked(file, 1):
                    return int(file.read().strip() or 0)
        except OSError:
            return None
        return None

    @contextlib.contextmanager
    def held(self, lock: str = RUN_LOCK) -> Iterator[None]:
        """Makes this process the only one that trains the run; the hold ends with the process, however it ends.

        Where a driver has others train, it holds a lock of its own, for as long as it lives.
        """
        with open(self.path / lock, "a+") as file:
            if not _locked(file, _LOCK_TRIES):
                file.seek(0)
                raise RunError(
                    f"run {self.name!r} is being trained by process {file.read().strip() or '?'} already; "
                    f"stop it first: alea runs stop {self.name}"
                )
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            if lock == DRIVER_LOCK or self.holder(DRIVER_LOCK) is None:  # or else it may have been asked for meanwhile
                self.stop_file.unlink(missing_ok=True)
            yield


def _locked(file: IO[str], tries: int) -> bool:
    """Whether the lock is ours now. Somebody who only asks for the owner has it for a moment: worth another try."""
    for attempt in range(tries):
        if attempt:
            time.sleep(0.02)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


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
