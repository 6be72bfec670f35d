"""What a run with a head keeps in its folder: secrets, where its Redis is, who the head is.

    redis/            the server's own files          redis/keys.json    tokens (mode 0600)
    redis/head.json   address and process (0600)      redis/head.lock    held by the head, process in head.pid
    redis/run         the incarnation, and whether what is in Redis is to be cleared first
    logs/             one file for every process that the head starts
Knows files; not what is said over them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aleazero.core.errors import AleaError
from aleazero.runs import RunFolder, hold, holder_of
from aleazero.runtimes.redis.access import HEAD, Keyring, Keys, Token, write_private
from aleazero.runtimes.redis.link import Link, connect
from aleazero.runtimes.redis.users import forget


class NoHead(AleaError):  # noqa: N818 - the name says what is wrong
    """The run has no head, or none that runs."""


@dataclasses.dataclass(frozen=True)
class Address:
    """Where a run's Redis is, and who its head is."""

    url: str  # from this machine; without a user or a password
    outside: str  # from other machines
    ca_file: str | None
    host: str
    pid: int


class Known:
    """The names and signing keys of a run's workers, read again when the file of tokens changes."""

    def __init__(self, path: Path, run: str) -> None:
        self._path, self._run = path, run
        self._stamp: tuple[int, int] | None = None
        self._ring = Keyring(path, run)

    def names(self) -> list[str]:
        """Those of the workers."""
        with contextlib.suppress(OSError):
            seen = self._path.stat()
            stamp = seen.st_mtime_ns, seen.st_ino
            if stamp != self._stamp:
                self._ring, self._stamp = Keyring(self._path, self._run), stamp
        return [name for name in self._ring.names if name != HEAD]

    def signing_key(self, name: str) -> bytes | None:
        """What a worker signs with."""
        return self._ring.signing_key(name)


@dataclasses.dataclass(frozen=True)
class Home:
    """The files of a run with a head."""

    folder: RunFolder

    @property
    def path(self) -> Path:
        """Where they are."""
        return self.folder.path / "redis"

    @property
    def logs(self) -> Path:
        """What the head's processes print."""
        return self.folder.path / "logs"

    @property
    def stop_file(self) -> Path:
        """Its presence asks the head to stop."""
        return self.path / "stop"

    @property
    def keys(self) -> Keys:
        """The run's keys."""
        return Keys(self.folder.name)

    @property
    def exists(self) -> bool:
        """Whether the run has ever had a head."""
        return self._keys_file.exists()

    @property
    def _keys_file(self) -> Path:
        return self.path / "keys.json"

    def keyring(self) -> Keyring:
        """The tokens."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Keyring(self._keys_file, self.folder.name)

    def known(self) -> Known:
        """The workers, as the file has them from moment to moment."""
        return Known(self._keys_file, self.folder.name)

    # ---- who the head is

    def write_address(self, address: Address) -> None:
        """As the head, once it can be reached."""
        write_private(self.path / "head.json", json.dumps(dataclasses.asdict(address)) + "\n")

    def address(self) -> Address:
        """Where the head is, or was."""
        try:
            return Address(**json.loads((self.path / "head.json").read_text("utf-8")))
        except (OSError, ValueError, TypeError) as error:
            name = self.folder.name
            raise NoHead(f"run {name!r} has no head yet: start one with alea head --run {name}") from error

    def connect(self) -> Link:
        """To the run's Redis, as the head's user."""
        found = self.address()
        return connect(found.url, self.head_token(), ca_file=Path(found.ca_file) if found.ca_file else None)

    def forget(self) -> str:
        """Removes what a Redis elsewhere holds of the run, before its folder goes; what is wrong, or nothing.

        A server of the run's own has its files in the folder.
        """
        if not (self.path / "head.json").exists() or (self.path / "redis.conf").exists():
            return ""
        try:
            with contextlib.closing(self.connect()) as link:
                forget(link, self.keys, self.keyring().names)
        except AleaError as error:
            return f"what Redis holds of run {self.folder.name!r} stays there: {error}"
        return ""

    def head_token(self) -> Token:
        """The head's own."""
        return self.keyring().token(HEAD)

    def owner(self) -> int | None:
        """Return the process that is the head now, on this machine."""
        return holder_of(self._lock)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Make this process the only head on this machine."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = self.folder.name

        def taken(pid: int) -> str:
            return (
                f"run {name!r} has a head already: process {pid} on this machine; stop it first: "
                f"alea head stop --run {name}"
            )

        with hold(self._lock, taken):
            self.stop_file.unlink(missing_ok=True)
            yield

    @property
    def _lock(self) -> Path:
        return self.path / "head.lock"

    # ---- beginning anew

    def incarnation(self) -> tuple[str, bool]:
        """The name of this life of the run, and whether what Redis holds of another one is to be cleared."""
        found: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            found = json.loads((self.path / "run").read_text("utf-8"))
        if "incarnation" not in found:
            found = {"incarnation": secrets.token_hex(4), "clear": True}
            self._write_incarnation(found)
        return str(found["incarnation"]), bool(found.get("clear"))

    def cleared(self) -> None:
        """What another life had left in Redis is gone."""
        self._write_incarnation({"incarnation": self.incarnation()[0], "clear": False})

    def _write_incarnation(self, found: dict[str, Any]) -> None:
        write_private(self.path / "run", json.dumps(found) + "\n")
