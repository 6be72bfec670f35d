"""What a run says of itself to all who take part: its settings, its state, how far it is. Small keys, read often.

The settings travel as the text of a settings file and are checked as one. Knows the keys; not who acts on them.
"""

from __future__ import annotations

import dataclasses
import tomllib
from typing import Any, Literal, get_args

import msgpack
import redis

from aleazero.config import RunConfig
from aleazero.core.errors import ConfigError
from aleazero.core.settings import Layer, build, to_toml
from aleazero.runtimes.redis.access import Keys
from aleazero.runtimes.redis.link import Link

State = Literal["running", "paused", "stopping", "done"]
STATES: tuple[str, ...] = get_args(State)


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a run is, as its learner says."""

    rows: int = 0  # taken
    games: int = 0  # of them over
    epoch: int = 0
    step: int = 0  # updates
    seconds: float = 0.0  # of the run
    rows_held: int = 0  # in the replay
    backlog_rows: int = 0  # sent, and not taken yet
    games_per_minute: float = 0.0
    trains: bool = False  # an epoch's updates are being made


@dataclasses.dataclass(frozen=True)
class Notices:
    """All of it, as it was read."""

    state: State
    progress: Progress
    incarnation: str  # another one: the run was begun anew, and what belongs to the one before counts no longer


def publish_config(link: Link, keys: Keys, config: RunConfig, incarnation: str) -> None:
    """As the head: the settings, before any worker is let in."""
    said = msgpack.packb({"toml": to_toml(config), "incarnation": incarnation})
    key = keys.public("config")
    if link.call(lambda client: client.get(key), writes=False) != said:  # a full server can be read
        link.call(lambda client: client.set(key, said), writes=True)


def publish_state(link: Link, keys: Keys, state: State) -> None:
    """As the head."""
    _put(link, keys, "state", state)


def publish_progress(link: Link, keys: Keys, progress: Progress) -> None:
    """As the learner."""
    _put(link, keys, "progress", dataclasses.asdict(progress))


def read_config(link: Link, keys: Keys) -> tuple[RunConfig, str]:
    """The settings, checked as a file's would be, and the incarnation."""
    raw: Any = link.call(lambda client: client.get(keys.public("config")), writes=False)
    said = _unpacked(raw)
    if not isinstance(said, dict) or not isinstance(said.get("toml"), str):
        raise ConfigError(f"the head of run {keys.run!r} has published no settings that can be read")
    try:
        values = tomllib.loads(said["toml"])
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the settings of the head of run {keys.run!r} are no TOML: {error}") from error
    return build(RunConfig, [Layer(f"the head of run {keys.run}", values)]), str(said.get("incarnation", ""))


def read_notices(client: redis.Redis, keys: Keys) -> Notices:
    """For `Link.attempt`: what may change from second to second."""
    with client.pipeline(transaction=False) as pipe:
        for name in ("state", "progress", "config"):
            pipe.get(keys.public(name))
        state, progress, config = (_unpacked(raw) for raw in pipe.execute())
    known = dataclasses.asdict(Progress())
    numbers = progress if isinstance(progress, dict) else {}
    sound: dict[str, Any] = {n: numbers[n] for n, plain in known.items() if isinstance(numbers.get(n), type(plain))}
    said: State = state if state in STATES else "running"
    return Notices(said, Progress(**sound), str(config.get("incarnation", "")) if isinstance(config, dict) else "")


def _put(link: Link, keys: Keys, name: str, value: Any) -> None:
    link.attempt(lambda client: client.set(keys.public(name), msgpack.packb(value)), writes=True)


def _unpacked(raw: Any) -> Any:
    """None where there is nothing, or nothing that can be read."""
    if raw is None:
        return None
    try:
        return msgpack.unpackb(raw)
    except (ValueError, TypeError, msgpack.UnpackException):
        return None
