"""How a run with a head stands, as its Redis has it: for `alea status`. Changes nothing."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import msgpack
import redis

from aleazero.core.errors import AleaError
from aleazero.runs import RunFolder
from aleazero.runtimes.redis.beats import Beat, read_beats
from aleazero.runtimes.redis.board import read_notices
from aleazero.runtimes.redis.home import Home
from aleazero.runtimes.redis.link import Link
from aleazero.runtimes.redis.registry import DEAD_SECONDS
from aleazero.runtimes.redis.weights import read_pointer


def look(folder: RunFolder) -> dict[str, Any]:
    """What is added to what the folder says."""
    home = Home(folder)
    address = home.address()
    head: dict[str, Any] = {"url": address.outside, "pid": home.owner(), "host": address.host}
    try:
        with contextlib.closing(home.connect()) as link:
            return _ask(home, link, head)
    except AleaError as error:
        return {"head": head | {"reachable": False, "trouble": str(error)}}


def _ask(home: Home, link: Link, head: dict[str, Any]) -> dict[str, Any]:
    keys = home.keys

    def do(client: redis.Redis) -> tuple[Any, Any, Any, Any]:
        memory = client.info("memory")
        pointer = read_pointer(client.get(keys.public("weights")))
        private = msgpack.unpackb(client.get(keys.learner) or b"\x80")
        return memory, pointer, private, read_notices(client, keys)

    memory, pointer, private, notices = link.attempt(do, writes=False)
    beats = read_beats(link, keys, home.known().names())
    progress = dataclasses.asdict(notices.progress)
    for name in ("trains", "seconds"):
        progress.pop(name)
    if not progress["rows"]:  # nothing was said yet: what the folder says holds
        progress = {name: progress[name] for name in ("rows_held", "games_per_minute")}
    state = notices.state if home.owner() is not None else "stopped"
    return {
        **progress,
        "state": "done" if notices.state == "done" else state,
        "weights_version": pointer["version"],
        "head": head
        | {
            "reachable": True,
            "trouble": "",
            "memory_bytes": int(memory["used_memory"]),
            "max_memory_bytes": int(memory["maxmemory"]),
        },
        "entries": private.get("entries", {}),
        "refused": private.get("refused", {}),
        "workers": [_worker(name, beat, private.get("benched", [])) for name, beat in sorted(beats.items())],
    }


def _worker(name: str, beat: Beat, benched: list[str]) -> dict[str, Any]:
    said = beat.status
    alive = beat.age_seconds <= DEAD_SECONDS
    state = "left" if said.get("leaving") else "benched" if name in benched else "alive" if alive else "dead"
    keys = ("kind", "host", "pid", "device", "num_games", "rows", "games", "rows_per_second", "games_per_minute")
    return {
        "name": name,
        "state": state,
        "age_seconds": round(beat.age_seconds, 1),
        **{key: said.get(key) for key in (*keys, "version", "blocked_share", "waiting")},
    }
