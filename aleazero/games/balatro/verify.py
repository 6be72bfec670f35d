"""Checks a folder of vectors (`rng.json`, `seeds.json`, `scores.json`): the pass rate of each kind, first differences.

Any of the files may be missing; a folder with none is an error. What is null is not scored. An entry that cannot be
read is one difference of a kind of its own, and ends nothing.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aleazero.core.errors import AleaError, ConfigError

FILES = ("rng.json", "seeds.json", "scores.json")
SHOWN = 5  # differences spelled out for each kind


@dataclasses.dataclass
class Rate:
    """How many entries of one kind were met."""

    kind: str
    passed: int
    total: int
    first: list[str]  # differences, spelled out


def verify(folder: Path) -> list[Rate]:
    """The rates of every kind of vector in a folder."""
    found = [name for name in FILES if (folder / name).is_file()]
    if not found:
        raise ConfigError(f"no vectors in {str(folder)!r}: a folder holds {', '.join(FILES)}, or some of them")
    rates: list[Rate] = []
    for name in found:
        malformed = Rate(f"malformed entries in {name}", 0, 0, [])
        rates += {"rng.json": _rng, "seeds.json": _seeds, "scores.json": _scores}[name](_read(folder / name), malformed)
        rates += [malformed] if malformed.total else []
    return rates


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{str(path)!r} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{str(path)!r} holds a {type(content).__name__}; vectors are an object")
    return content


def _entries(content: dict[str, Any], field: str) -> list[Any]:
    found = content.get(field)
    if not isinstance(found, list | None):
        raise ConfigError(f"{field!r} holds a {type(found).__name__}; it must be a list of entries")
    return [entry for entry in found or [] if entry is not None]


def _tried(check: Callable[[Any], Any], entry: Any, malformed: Rate) -> Any:
    """What a check of an entry says; None where the entry is not what the format says, which is noted."""
    try:
        return check(entry)
    except (AleaError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        names = [str(entry[word]) for word in ("id", "seed", "key") if word in entry] if isinstance(entry, dict) else []
        why = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        malformed.total += 1
        if len(malformed.first) < SHOWN:
            malformed.first.append(f"{' '.join(names) or str(entry)[:60]}: {why}")
        return None


def _rng(content: dict[str, Any], malformed: Rate) -> list[Rate]:
    from aleazero.games.balatro.vectors_rng import differences

    tried = [_tried(differences, vector, malformed) for vector in _entries(content, "vectors")]
    rows = [lines for lines in tried if lines is not None]
    wrong = [lines[0] for lines in rows if lines]
    return [Rate("rng", len(rows) - len(wrong), len(rows), wrong[:SHOWN])]


def _seeds(content: dict[str, Any], malformed: Rate) -> list[Rate]:
    from aleazero.games.balatro.vectors_seeds import KINDS, differences

    rates = {kind: Rate(kind, 0, 0, []) for kind in KINDS}
    for vector in _entries(content, "seeds"):
        counts, wrong = _tried(differences, vector, malformed) or ({}, [])
        for kind, count in counts.items():
            rates[kind].total += count
            rates[kind].passed += count
        for kind, line in wrong:
            rates[kind].passed -= 1
            if len(rates[kind].first) < SHOWN:
                rates[kind].first.append(line)
    return list(rates.values())


def _scores(content: dict[str, Any], malformed: Rate) -> list[Rate]:
    from aleazero.games.balatro.vectors_scores import differences

    rates = []
    for kind in ("unanimous", "majority"):
        scored = [entry for entry in _entries(content, kind) if not _expects_nothing(entry)]
        tried = [_tried(lambda entry: differences([entry]), entry, malformed) for entry in scored]
        rows = [lines for lines in tried if lines is not None]
        wrong = [line for lines in rows for line in lines]
        rates.append(Rate(f"{kind} scores", len(rows) - len(wrong), len(rows), wrong[:SHOWN]))
    return rates


def _expects_nothing(entry: Any) -> bool:
    return isinstance(entry, dict) and "expected" in entry and entry["expected"] is None
