"""Result records: what was measured and all that is needed to believe it or to measure it again, as one JSON object.

A record is the report that a command prints with `--json`, and beside it the program that made it (version, commit and
whether its files were changed), the players' networks by their fingerprints, the time and the hardware. Written whole
or not at all, and never over another one unless that is asked for. Read back only if it is one: every problem is named.
Knows what every report has in common (`REPORT`); not what else is in it.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from aleazero import __version__, export
from aleazero.chess_players import StockfishPlayer
from aleazero.core.errors import AleaError
from aleazero.core.files import replace_file
from aleazero.core.settings import fingerprint
from aleazero.engine_players import EnginePlayer
from aleazero.engines.gnubg_program import GnubgProgram
from aleazero.players import AnyPlayer, NetworkPlayer, TurnNetworkPlayer
from aleazero.runs import find_run, runs_root

SCHEMA = 1
KINDS = ("eval", "rate", "openings")
GIT_SECONDS = 10
_NUMBER, _TEXT, _NOTHING = (int, float), (str,), type(None)
REPORT: Mapping[str, tuple[type, ...]] = {
    "game": _TEXT,
    "metric": _TEXT,  # what `value` is
    "value": _NUMBER,
    "low": (*_NUMBER, _NOTHING),  # of the 95 % interval; null: not known, or without bound
    "high": (*_NUMBER, _NOTHING),
    "games": (int, _NOTHING),  # that were played; null where none were
    "luck": (str, _NOTHING),  # who said what rolls are worth, so that luck could be taken off; null: no match
    "seed": (int, _NOTHING),
    "command": _TEXT,
}
PLAYER: Mapping[str, tuple[type, ...]] = {
    "player": _TEXT,  # as it is written
    "weights": (str, _NOTHING),  # sha256 of a network's weights, as exported
    "config": (str, _NOTHING),  # of a run: the fingerprint of its settings
    "engine": (str, _NOTHING),  # of a program: which one
}
ABOUT: Mapping[str, tuple[type, ...]] = {
    "schema": (int,),
    "kind": _TEXT,
    "version": _TEXT,  # the package's
    "commit": (str, _NOTHING),  # null where the package does not run from a checkout
    "dirty": (bool, _NOTHING),  # whether its files differ from that commit's
    "time": _TEXT,  # UTC
    "hardware": (dict,),
    "players": (dict,),
}


class RecordError(AleaError):
    """A record cannot be written, or a file is none."""


def make_record(
    kind: str, report: Mapping[str, Any], players: Mapping[str, AnyPlayer], runs: Path | None = None
) -> dict[str, Any]:
    """The record of a report; `players` by what they are in it, `runs` is where runs are kept."""
    commit, dirty = checkout(Path(__file__).resolve().parent)
    record = {
        "schema": SCHEMA,
        "kind": kind,
        **report,
        "players": {role: describe(player, runs) for role, player in players.items()},
        "version": __version__,
        "commit": commit,
        "dirty": dirty,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "hardware": hardware(),
    }
    problems = _problems(record)
    assert not problems, problems
    return record


def describe(player: AnyPlayer, runs: Path | None = None) -> dict[str, str | None]:
    """Which player it is, beyond doubt (`PLAYER`)."""
    network = isinstance(player, NetworkPlayer | TurnNetworkPlayer)
    kind, _, rest = player.name.partition(":")
    config = None
    if network and kind == "run":
        config = fingerprint(find_run(runs_root(runs), re.split("[,@]", rest)[0]).read_config())
    return {
        "player": player.name,
        "weights": export.fingerprint(player.weights) if network else None,  # type: ignore[union-attr]
        "config": config,
        "engine": _engine(player),
    }


def _engine(player: AnyPlayer) -> str | None:
    if isinstance(player, StockfishPlayer):
        return player.engine.name
    if not isinstance(player, EnginePlayer):
        return None
    return "gnubg" if isinstance(player.engine, GnubgProgram) else f"gnubg-nn {importlib.metadata.version('gnubg-nn')}"


def checkout(package: Path) -> tuple[str | None, bool | None]:
    """The commit a package's folder is of and whether files in it have changed; nothing where git does not track it."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(package), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=GIT_SECONDS).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # else the folder only happens to lie in somebody's checkout
        return git("rev-parse", "HEAD"), bool(git("status", "--porcelain", "--", "."))
    except (OSError, subprocess.SubprocessError):
        return None, None


def hardware() -> dict[str, Any]:
    """What computed."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        named = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
        processor = named[1] if named else processor
    devices = jax.local_devices()
    return {"device": f"{len(devices)} x {devices[0].device_kind}", "processor": processor, "cores": os.cpu_count()}


# ---- files


def place_problems(path: Path | None, force: bool = False) -> list[str]:
    """Why no record can be written to a place, if one is to be: asked before the work is done, and once more after."""
    if path is None:
        return []
    if path.is_dir() or not path.parent.is_dir():
        return [f"record {path}: it must be a file, in a folder that is there"]
    if path.exists() and not force:
        return [f"record {path}: there is one already; name another file, or write over it with --force"]
    return []


def write_record(path: Path, record: Mapping[str, Any], force: bool = False) -> None:
    """Writes a record, whole or not at all."""
    problems = place_problems(path, force)
    if problems:
        raise RecordError("\n".join(problems))
    text = json.dumps(record, indent=2, allow_nan=False) + "\n"
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise RecordError(f"record {path}: {error}") from error


def read_record(path: Path) -> dict[str, Any]:
    """The record in a file; RecordError with all that is wrong if it is none."""
    try:
        record = json.loads(path.read_text("utf-8"), parse_constant=_no_number)
    except (OSError, ValueError) as error:
        raise RecordError(f"record {path}: {error}") from error
    problems = _problems(record)
    if problems:
        raise RecordError("\n".join(f"record {path}: {problem}" for problem in problems))
    return dict(record)


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number in JSON")


def _problems(record: Any) -> list[str]:
    """What keeps an object from being a record."""
    if not isinstance(record, dict):
        return ["it is no JSON object"]
    if type(record.get("schema")) is int and record["schema"] != SCHEMA:
        return [f"schema is {record['schema']}; this version reads {SCHEMA}"]
    problems = _wrong_types(record, {**ABOUT, **REPORT})
    if problems:
        return problems
    if record["kind"] not in KINDS:
        problems.append(f"kind is {record['kind']!r}; it must be one of {', '.join(KINDS)}")
    if record["commit"] is not None and not re.fullmatch(r"[0-9a-f]{40,64}", record["commit"]):
        problems.append(f"commit is {record['commit']!r}; it must be all of its hexadecimal digits")
    if (record["commit"] is None) != (record["dirty"] is None):
        problems.append("commit and dirty are null together or not at all")
    low, value, high = (record[name] for name in ("low", "value", "high"))
    if not (-math.inf if low is None else low) <= value <= (math.inf if high is None else high):
        problems.append(f"value is {value}; it must lie between low ({low}) and high ({high})")
    if not record["command"].startswith("alea "):
        problems.append(f"command is {record['command']!r}; it must begin with alea")
    return problems + _time_problems(record["time"]) + _player_problems(record["players"])


def _time_problems(text: str) -> list[str]:
    try:
        if datetime.datetime.fromisoformat(text).utcoffset() == datetime.timedelta(0):
            return []
    except ValueError:
        pass
    return [f"time is {text!r}; it must be a date and time in UTC, as in 2026-01-31T12:00:00+00:00"]


def _player_problems(players: dict[str, Any]) -> list[str]:
    problems = [] if players else ["players is empty; there must be one at least"]
    for role, player in players.items():
        if not isinstance(player, dict):
            problems.append(f"players.{role} is no JSON object")
            continue
        problems += [f"players.{role}: {problem}" for problem in _wrong_types(player, PLAYER)]
        weights = player.get("weights")
        if isinstance(weights, str) and not re.fullmatch(r"[0-9a-f]{64}", weights):
            problems.append(f"players.{role}: weights is {weights!r}; it must be a sha256")
    return problems


def _wrong_types(found: Mapping[str, Any], wanted: Mapping[str, tuple[type, ...]]) -> list[str]:
    problems = []
    for name, types in wanted.items():
        if name not in found:
            problems.append(f"{name} is missing")
        elif not isinstance(found[name], types) or (isinstance(found[name], bool) and bool not in types):
            words = " or ".join("null" if kind is _NOTHING else kind.__name__ for kind in types)
            problems.append(f"{name} is {found[name]!r}; it must be {words}")
    return problems
