"""A run's folder on the driver's machine, and a learner's copy of it on another one.

The copy is fetched when a learner begins. After every checkpoint, and now and then, what has changed goes back: files
that grew send what they grew by, checkpoints appear there whole, and what is gone here goes there last. The driver's
wishes, to stop or to pause, come the other way. Knows files; not what is in them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import ray
from ray import exceptions

from aleazero.runs import LOCK_FILES

logger = logging.getLogger(__name__)

CHUNK_BYTES = 64 * 2**20
EVERY_SECONDS = 1.0
FLAGS = ("stop", "paused")  # made by whoever is at the driver's machine
DRIVER_LOG = "driver.log"
LAST_LEARNER = "ray-learner"  # the number of the run's newest one
_SKIPPED = (*LOCK_FILES, *FLAGS, "ray-desk.json", "ray-crew", DRIVER_LOG, LAST_LEARNER)
_CALL_SECONDS = 120.0

Stamp = tuple[int, int, int]  # inode, size, when it was changed in ns


class Keeper:
    """The actor on the driver's machine that has the run's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def listing(self) -> list[str]:
        """Every file, relative to the folder; those of a checkpoint that is not whole are left out."""
        return sorted(_files(self._folder))

    def read(self, name: str, offset: int) -> bytes:
        """A piece of a file; less than a full one at its end."""
        with (self._folder / name).open("rb") as file:
            file.seek(offset)
            return file.read(CHUNK_BYTES)

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Writes a piece; what was behind it is gone. Doing it twice is as good as once."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
            file.truncate(offset)
            file.seek(offset)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def rename(self, old: str, new: str) -> None:
        """Makes a folder appear whole, in place of one that may be there; a second time changes nothing."""
        fresh, final = self._folder / old, self._folder / new
        if not fresh.exists():
            return
        aside = final.with_name(f".gone-{final.name}")
        shutil.rmtree(aside, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            final.rename(aside)
        fresh.rename(final)
        shutil.rmtree(aside, ignore_errors=True)

    def remove(self, names: list[str]) -> None:
        """Takes files away, and folders that are empty then."""
        for name in names:
            path = self._folder / name
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                path.parent.rmdir()

    def flags(self) -> list[str]:
        """Which wishes there are."""
        return [name for name in FLAGS if (self._folder / name).exists()]


class Mirror:
    """The learner's side."""

    def __init__(self, keeper: Any, path: Path) -> None:
        """`keeper` is the handle of a `Keeper`; `path` is where the copy is made."""
        self._keeper, self.path = keeper, path
        self._sent: dict[str, Stamp] = {}
        self._turn, self._over = threading.Lock(), threading.Event()

    def fetch(self) -> None:
        """Makes the copy."""
        self.path.mkdir(parents=True, exist_ok=True)
        for name in self._call("listing"):
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                while data := self._call("read", name, file.tell()):
                    file.write(data)
            # A replay log is cut where it goes on, and may have grown beyond its old length since: it is sent anew.
            self._sent[name] = (0, 0, 0) if name.startswith("replay/") else _stamp(target)

    def send(self) -> None:
        """Brings the folder up to date."""
        with self._turn:
            self._send()

    def _send(self) -> None:
        here = _files(self.path)
        for name in sorted(here, key=_order):
            if not name.startswith("checkpoints/") and here[name] != self._sent.get(name):
                self._send_file(name, name, here[name])
        self._send_checkpoints(here)
        gone = [name for name in self._sent if name not in here]
        if gone:
            self._call("remove", gone)
            for name in gone:
                del self._sent[name]

    def start(self) -> None:
        """From now on reports go there and wishes come here, also while the run is paused."""
        threading.Thread(target=self._work, name="alea-mirror", daemon=True).start()

    def stop(self) -> None:
        """No more of that."""
        self._over.set()

    def _work(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            try:
                with self._turn:
                    self.tend()
            except exceptions.RayError as error:  # it is tried again
                logger.warning("the driver's machine cannot be reached: %s", str(error).partition("\n")[0])

    def tend(self) -> None:
        """Reports go there, wishes come here."""
        for name in ("metrics.jsonl", "alea.log"):
            with contextlib.suppress(FileNotFoundError):
                stamp = _stamp(self.path / name)
                if stamp != self._sent.get(name):
                    self._send_file(name, name, stamp)
        wanted = self._call("flags")
        for name in FLAGS:
            if name in wanted:
                (self.path / name).touch()
            elif name == "paused":
                (self.path / name).unlink(missing_ok=True)

    def _send_checkpoints(self, here: dict[str, Stamp]) -> None:
        """Each under another name first."""
        fresh: dict[str, list[str]] = {}
        for name, stamp in here.items():
            if name.startswith("checkpoints/") and stamp != self._sent.get(name):
                fresh.setdefault(str(Path(name).parent), []).append(name)
        for folder, names in fresh.items():
            hidden = f"checkpoints/.coming-{Path(folder).name}"
            for name in names:
                self._send_file(name, f"{hidden}/{Path(name).name}", here[name])
            self._call("rename", hidden, folder)

    def _send_file(self, name: str, target: str, stamp: Stamp) -> None:
        before = self._sent.get(name)
        grew = before is not None and before[0] == stamp[0] and before[1] <= stamp[1]
        with contextlib.suppress(FileNotFoundError), (self.path / name).open("rb") as file:
            at = before[1] if grew and before is not None else 0
            file.seek(at)
            while True:
                data = file.read(min(CHUNK_BYTES, max(stamp[1] - at, 0)))
                self._call("write", target, at, data)
                at += len(data)
                if at >= stamp[1] or not data:
                    break
            self._sent[name] = stamp

    def _call(self, method: str, *arguments: Any) -> Any:
        return ray.get(getattr(self._keeper, method).remote(*arguments), timeout=_CALL_SECONDS)


def _files(folder: Path) -> dict[str, Stamp]:
    """The files of a run, by their names below the folder; hidden ones are not whole."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if name.name in _SKIPPED or any(part.startswith(".") for part in name.parts):
            continue
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                found[name.as_posix()] = _stamp(path)
    return found


def _stamp(path: Path) -> Stamp:
    seen = path.stat()
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


def _order(name: str) -> tuple[bool, str]:
    """Replay first: a checkpoint needs what it plays back."""
    return not name.startswith("replay/"), name
