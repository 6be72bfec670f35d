"""The fact tables: names, prices and odds of everything in the game, effects in our own words.

Read from JSON when first asked for. Numbers of things are places in these tables (`aleazero.games.balatro.ids`).
Knows no rules.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from aleazero.core.errors import UnknownName

TABLES = (
    "jokers", "tarots", "planets", "spectrals", "vouchers", "tags", "blinds", "decks", "stakes", "packs", "hands",
)  # fmt: skip
RANKS = ("2", "3", "4", "5", "6", "7", "8", "9", "10", "Jack", "Queen", "King", "Ace")  # numbers 2..14
SUITS = ("Clubs", "Diamonds", "Hearts", "Spades")  # numbers 0..3
ENHANCEMENTS = ("", "Bonus", "Mult", "Wild", "Glass", "Steel", "Stone", "Gold", "Lucky")
EDITIONS = ("", "Foil", "Holographic", "Polychrome", "Negative")
SEALS = ("", "Gold", "Red", "Blue", "Purple")


@cache
def table(name: str) -> tuple[dict[str, Any], ...]:
    """One of `TABLES`, in the order of the game's pools."""
    if name not in TABLES:
        raise UnknownName("fact table", name, TABLES)
    return tuple(_read(name))


@cache
def base_targets() -> tuple[tuple[int, ...], ...]:
    """`[scaling][ante]`: what a blind of factor one asks for, antes 0 to 16."""
    return tuple(tuple(row) for row in _read("targets"))


@cache
def consumables() -> tuple[dict[str, Any], ...]:
    """Tarots, planets and spectrals, in one row of numbers."""
    return table("tarots") + table("planets") + table("spectrals")


@cache
def _numbers(kind: str) -> dict[str, int]:
    rows = consumables() if kind == "consumables" else table(kind)
    start = 0 if kind in ("blinds", "decks", "stakes", "hands", "packs") else 1
    return {row["name"]: place for place, row in enumerate(rows, start)}


def number(kind: str, name: str) -> int:
    """The number of a thing by its name; an unknown one raises with the nearest match."""
    known = _numbers(kind)
    if not isinstance(name, str) or name not in known:
        raise UnknownName(kind.removesuffix("s"), str(name), known)
    return known[name]


def name_of(kind: str, number: int) -> str:
    """The name of a thing by its number."""
    rows = consumables() if kind == "consumables" else table(kind)
    start = 0 if kind in ("blinds", "decks", "stakes", "hands", "packs") else 1
    return str(rows[number - start]["name"])


def _read(name: str) -> list[Any]:
    text = resources.files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    rows = json.loads(text)
    assert isinstance(rows, list)
    return rows
