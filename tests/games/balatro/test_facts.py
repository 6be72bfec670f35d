from __future__ import annotations

import subprocess
import sys

import pytest

from aleazero.core.errors import UnknownName
from aleazero.games.balatro import facts, ids, tables

PREFIXES = {"jokers": "J_", "vouchers": "V_", "tags": "T_", "blinds": "B_", "decks": "D_"}


def _constant(prefix: str, row: dict[str, str]) -> str:
    return prefix + row["id"].split("_", 1)[1].upper()


@pytest.mark.parametrize("kind", PREFIXES)
def test_numbers_are_places_in_the_tables(kind: str) -> None:
    start = 0 if kind in ("blinds", "decks") else 1
    for place, row in enumerate(facts.table(kind), start):
        assert getattr(ids, _constant(PREFIXES[kind], row)) == place
        assert facts.number(kind, row["name"]) == place
        assert facts.name_of(kind, place) == row["name"]


def test_consumables_are_numbered_in_one_row() -> None:
    for place, row in enumerate(facts.consumables(), 1):
        assert getattr(ids, _constant("C_", row)) == place


def test_the_tables_are_whole() -> None:
    sizes = {name: len(facts.table(name)) for name in facts.TABLES}
    assert sizes == {
        "jokers": 150, "tarots": 22, "planets": 12, "spectrals": 18, "vouchers": 32, "tags": 24, "blinds": 30,
        "decks": 15, "stakes": 8, "packs": 15, "hands": 12,
    }  # fmt: skip
    assert tables.POOL_SIZE.tolist() == [61, 64, 20, 5]
    assert abs(tables.BOOSTER_WEIGHT.sum() - 22.42) < 1e-9
    assert len(tables.BOOSTER_WEIGHT) == 32
    assert tables.HAND_PLANET[0] == ids.C_ERIS
    assert tables.HAND_PLANET[11] == ids.C_PLUTO


def test_an_unknown_name_gets_the_nearest_match() -> None:
    with pytest.raises(UnknownName, match="Blueprint"):
        facts.number("jokers", "Blue Print")
    with pytest.raises(UnknownName, match="Plasma Deck"):
        facts.number("decks", "Plasma")


def test_facts_are_cheap_to_import() -> None:
    code = "import sys, aleazero.games.balatro.facts as f; f.table('jokers'); print('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
