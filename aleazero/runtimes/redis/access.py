"""Who may do what on a run's Redis: tokens, the users they belong to, and the keys a run has.

A token is one secret, of which two are derived: the user's password, which Redis knows only the SHA-256 of, and the key
that slabs are signed with, which Redis never sees. A worker may add to its own stream of slabs and to its heartbeat,
and read what is public in its run; that is all. Streams are not shared, because who may add to one may also empty it
or, by a very large id, close it to others. Rules are lists of what is allowed, never of what is not.
Knows neither connections nor what the keys hold.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

from aleazero.core.errors import AleaError
from aleazero.core.files import replace_file

LEAST_VERSION = (7, 0)  # of Redis: the first with permissions by key
HEAD = "head"  # the name of the user who may do everything in a run
HEAD_CATEGORIES = ("+@read", "+@write", "+@stream", "+@transaction", "-@dangerous")
HEAD_COMMANDS = (
    *("+ping", "+time", "+info", "+shutdown"),
    *("+acl|setuser", "+acl|deluser", "+acl|getuser", "+acl|save", "+acl|whoami"),
)
# Nobody can log in as the default user. But when Redis reads its append-only file again it acts as that user, and a
# transaction that the user may not execute is then left out: acknowledged writes would be lost.
DEFAULT_RULES = ("off", "resetpass", "~*", "&*", "+@all")
WORKER_COMMANDS = ("+ping", "+get", "+xadd", "+multi", "+exec")

_FORM = "alea1"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SECRET_BYTES = 32


class AccessError(AleaError):
    """A token or a name that cannot be used."""


@dataclasses.dataclass(frozen=True)
class Keys:
    """The keys of a run."""

    run: str

    def __post_init__(self) -> None:
        _check_name("run", self.run)

    @property
    def everything(self) -> str:
        """The pattern of all of them."""
        return f"alea:{self.run}:*"

    def slabs(self, worker: str) -> str:
        """The stream that a worker adds to."""
        return f"alea:{self.run}:slabs:{worker}"

    @property
    def quarantine(self) -> str:
        """The stream of what was refused."""
        return f"alea:{self.run}:quarantine"

    def public(self, name: str) -> str:
        """What every worker may read: `protocol`, `config`, `schedule`, `weights`, ..."""
        return f"alea:{self.run}:public:{name}"

    def weights(self, version: int) -> str:
        """One version of the weights."""
        return self.public(f"weights:{version}")

    def orders(self, worker: str) -> str:
        """What the head has to say to one worker, who may read it."""
        return f"alea:{self.run}:orders:{worker}"

    @property
    def learner(self) -> str:
        """What the learner says to the head alone."""
        return f"alea:{self.run}:learner"

    @property
    def evaluation(self) -> str:
        """How far the head is with measuring, and what was best."""
        return f"alea:{self.run}:evaluation"

    @property
    def offer(self) -> str:
        """What the learner wants to have measured: its version, and when that was."""
        return f"alea:{self.run}:offer"

    @property
    def offered(self) -> str:
        """The weights of that version, which a checkpoint holds."""
        return f"alea:{self.run}:offered"

    @property
    def stops(self) -> str:
        """The starts of workers that are to stop, by worker."""
        return f"alea:{self.run}:stops"

    def lock(self, role: str) -> str:
        """Who is the one of a role that there can be only one of."""
        return f"alea:{self.run}:lock:{role}"

    def beat(self, worker: str) -> str:
        """One worker's heartbeat: a stream of one entry, whose id is the server's own time."""
        return f"alea:{self.run}:beat:{worker}"


@dataclasses.dataclass(frozen=True)
class Token:
    """What a worker needs to take part in a run, as one string (`text`). Its `repr` does not tell the secret."""

    run: str
    name: str
    secret: bytes = dataclasses.field(repr=False)

    @classmethod
    def new(cls, run: str, name: str) -> Token:
        """A fresh one."""
        _check_name("run", run)
        _check_name("worker", name)
        return cls(run, name, secrets.token_bytes(_SECRET_BYTES))

    @classmethod
    def parse(cls, text: str) -> Token:
        """The token that a text is. What is wrong with it is said without repeating it."""
        form, *rest = text.strip().split(":")
        if form != _FORM or len(rest) != 3:
            raise AccessError(
                f"the token is not one: tokens look like {_FORM}:RUN:NAME:SECRET. "
                "Copy the whole line that the head printed"
            )
        run, name, coded = rest
        _check_name("run", run)
        _check_name("worker", name)
        try:
            secret = base64.b64decode(coded + "=" * (-len(coded) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            secret = b""
        if len(secret) != _SECRET_BYTES:
            raise AccessError(
                f"the token of {name!r} is cut short or changed: copy the whole line that the head printed"
            )
        return cls(run, name, secret)

    @classmethod
    def read(cls, path: Path) -> Token:
        """The token in a file."""
        try:
            return cls.parse(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise AccessError(f"could not read the token in {path}: {error}") from error

    def store(self, path: Path) -> None:
        """Writes it to a file that nobody else can read."""
        write_private(path, f"{self.text}\n")

    @property
    def text(self) -> str:
        """The whole of it. Never to be logged."""
        return f"{_FORM}:{self.run}:{self.name}:{base64.urlsafe_b64encode(self.secret).decode().rstrip('=')}"

    @property
    def user(self) -> str:
        """The name of the Redis user."""
        return self.user_of(self.run, self.name)

    @staticmethod
    def user_of(run: str, name: str) -> str:
        """The name of somebody's Redis user."""
        return f"alea:{run}:{name}"

    @property
    def is_head(self) -> bool:
        """Whether it is the head's own."""
        return self.name == HEAD

    @property
    def password(self) -> str:
        """The user's."""
        return self._derive("password of a Redis user").hex()

    @property
    def signing_key(self) -> bytes:
        """What slabs are signed with."""
        return self._derive("signature of slabs")

    def _derive(self, purpose: str) -> bytes:
        return hmac.digest(self.secret, f"aleazero, {self.run}, {self.name}: {purpose}".encode(), "sha256")


class Keyring:
    """The head's file of tokens, by name."""

    def __init__(self, path: Path, run: str) -> None:
        self._path, self._run = path, run
        self._tokens = self._read()

    def _read(self) -> dict[str, Token]:
        if not self._path.exists():
            return {}
        try:
            texts = json.loads(self._path.read_text("utf-8"))
            return {name: Token.parse(text) for name, text in texts.items()}
        except (OSError, ValueError, AttributeError) as error:
            raise AccessError(
                f"could not read the tokens in {self._path}: {error}; delete it to make new ones: all workers then "
                "need new tokens too"
            ) from error

    @property
    def names(self) -> list[str]:
        """Who has a token."""
        return sorted(self._tokens)

    def token(self, name: str) -> Token:
        """Somebody's token, made and stored if there is none."""
        if name not in self._tokens:
            fresh = Token.new(self._run, name)
            with self._changing():
                self._tokens.setdefault(name, fresh)
        return self._tokens[name]

    def drop(self, name: str) -> None:
        """Forgets a token: what is signed with it counts no longer."""
        with self._changing():
            self._tokens.pop(name, None)

    def signing_key(self, name: str) -> bytes | None:
        """What a worker signs with (`codec.SecretOf`)."""
        token = self._tokens.get(name)
        return None if token is None else token.signing_key

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Changes the file as it is now: a head and commands may do so at the same time."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._path.with_suffix(".lock"), mode=0o600):
            self._tokens = self._read()
            yield
            texts = {name: token.text for name, token in self._tokens.items()}
            write_private(self._path, json.dumps(texts, indent=2) + "\n")


def rules(token: Token) -> list[str]:
    """Return the rules of a token's user, as `ACL SETUSER` takes them."""
    keys = Keys(token.run)
    known = ["reset", "on", f"#{hashlib.sha256(token.password.encode()).hexdigest()}", "resetchannels", "-@all"]
    if token.is_head:
        return [*known, f"~{keys.everything}", *HEAD_CATEGORIES, *HEAD_COMMANDS]
    allowed = [f"%R~{key}" for key in (keys.public("*"), keys.orders(token.name))]
    allowed += [f"%W~{key}" for key in (keys.slabs(token.name), keys.beat(token.name))]
    return [*known, *allowed, *WORKER_COMMANDS]


def write_private(path: Path, text: str) -> None:
    """Writes a file, whole or not at all, that only its owner may read (mode 0600)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        replace_file(path, text.encode(), mode=0o600)
    except OSError as error:
        raise AccessError(f"could not write {path}: {error}") from error


def _check_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise AccessError(
            f"{kind} name {name!r} cannot be used: letters, digits, '.', '_' and '-', at most 64, no others"
        )
