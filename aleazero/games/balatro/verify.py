"""Checks a folder of vectors (`rng.json`, `seeds.json`, `scores.json`): the pass rate of each kind, first differences.

Any of the files may be missing; a folder with none is an error. Entries that are null are not scored.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from aleazero.core.errors import ConfigError

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
        rates += {"rng.json": _rng, "seeds.json": _seeds, "scores.json": _scores}[name](_read(folder / name))
    return rates


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{str(path)!r} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{str(path)!r} holds a {type(content).__name__}; vectors are an object")
    return content


def _rng(content: dict[str, Any]) -> list[Rate]:
    from aleazero.games.balatro.vectors_rng import differences

    rows = [differences(vector) for vector in content.get("vectors", [])]
    wrong = [lines[0] for lines in rows if lines]
    return [Rate("rng", len(rows) - len(wrong), len(rows), wrong[:SHOWN])]


def _seeds(content: dict[str, Any]) -> list[Rate]:
    from aleazero.games.balatro.vectors_seeds import KINDS, differences

    rates = {kind: Rate(kind, 0, 0, []) for kind in KINDS}
    for vector in content.get("seeds", []):
        counts, wrong = differences(vector)
        for kind, count in counts.items():
            rates[kind].total += count
            rates[kind].passed += count
        for kind, line in wrong:
            rates[kind].passed -= 1
            if len(rates[kind].first) < SHOWN:
                rates[kind].first.append(line)
    return list(rates.values())


def _scores(content: dict[str, Any]) -> list[Rate]:
    from aleazero.games.balatro.vectors_scores import differences

    rates = []
    for kind in ("unanimous", "majority"):
        vectors = content.get(kind, [])
        wrong = differences(vectors) if vectors else []
        rates.append(Rate(f"{kind} scores", len(vectors) - len(wrong), len(vectors), wrong[:SHOWN]))
    return rates
