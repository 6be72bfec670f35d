"""Every tarot, planet and spectral: what it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aleazero.games.balatro import consumables, create, facts, ids, tables
from aleazero.games.balatro.layout import ED_NEGATIVE, ED_POLY, ST_ETERNAL
from tests.games.balatro.table import everything, game, held, owned


def _use(name: str, g: Any, selected: int = 0) -> Any:
    item = facts.number("consumables", name)
    g.selected = selected
    assert consumables.can_use(g, item, False), name
    consumables.use(g, item)
    return g


def _card(g: Any, place: int = 0) -> tuple[int, int, str, str, str]:
    c = int(g.hand[place])
    return (
        int(g.rank[c]),
        int(g.suit[c]),
        facts.ENHANCEMENTS[int(g.enhancement[c])],
        facts.EDITIONS[int(g.edition[c])],
        facts.SEALS[int(g.seal[c])],
    )


@pytest.mark.parametrize(
    ("name", "enhancement"),
    [
        ("The Magician", "Lucky"),
        ("The Empress", "Mult"),
        ("The Hierophant", "Bonus"),
        ("The Lovers", "Wild"),
        ("The Chariot", "Steel"),
        ("Justice", "Glass"),
        ("The Devil", "Gold"),
        ("The Tower", "Stone"),
    ],
)
def test_tarots_that_enhance(name: str, enhancement: str) -> None:
    g = _use(name, game("", "HK S2 D3"), 1)
    assert _card(g)[2] == enhancement
    assert _card(g, 1)[2] == ""
    assert (int(g.tarots_used), int(g.selected)) == (1, 0)


@pytest.mark.parametrize(("name", "suit"), [("The Star", 1), ("The Moon", 0), ("The Sun", 2), ("The World", 3)])
def test_tarots_that_change_suits(name: str, suit: int) -> None:
    g = _use(name, game("", "HK S2 D3 C4"), 7)
    assert [_card(g, i)[1] for i in range(3)] == [suit] * 3
    assert _card(g, 3)[1] == 0


@pytest.mark.parametrize(
    ("name", "seal"), [("Talisman", "Gold"), ("Déjà Vu", "Red"), ("Trance", "Blue"), ("Medium", "Purple")]
)
def test_spectrals_that_seal(name: str, seal: str) -> None:
    assert _card(_use(name, game("", "HK S2"), 2), 1)[4] == seal


def test_strength_hanged_man_death_and_cryptid() -> None:
    g = _use("Strength", game("", "HK HA S2"), 3)
    assert [_card(g, i)[0] for i in range(3)] == [14, 2, 2]
    g = _use("The Hanged Man", game("Canio", "HK HA S2"), 3)
    assert (int(g.hand_count), everything(g), float(g.joker_value[0])) == (1, 53, 2.0)
    g = _use("Death", game("", "HK S2+Glass+Red_seal"), 3)
    assert _card(g) == (2, 3, "Glass", "", "Red")
    g = _use("Cryptid", game("Hologram", "HK+Gold S2"), 1)
    assert int(g.hand_count) == 4
    assert _card(g, 3) == (13, 2, "Gold", "", "")
    assert float(g.joker_value[0]) == 1.5


def test_aura_needs_a_card_without_edition() -> None:
    assert _card(_use("Aura", game("", "HK"), 1))[3] in ("Foil", "Holographic", "Polychrome")
    g = game("", "HK+Foil", selected=1)
    assert not consumables.can_use(g, ids.C_AURA, False)


def test_money_tarots() -> None:
    assert int(_use("The Hermit", game(money=13)).money) == 26
    assert int(_use("The Hermit", game(money=33)).money) == 53
    g = game("Joker,Egg", money=0)
    assert int(_use("Temperance", g).money) == sum(int(s) for s in g.joker_sell[:2])


def test_creating_tarots() -> None:
    g = _use("The High Priestess", game())
    assert all(tables.FIRST_PLANET <= facts.number("consumables", n) < tables.FIRST_SPECTRAL for n in held(g))
    assert len(held(g)) == 2
    g = _use("The Emperor", game())
    assert len(set(held(g))) == 2
    assert "The Emperor" not in held(g)
    g = game()
    assert not consumables.can_use(g, ids.C_FOOL, False)
    consumables.use(g, ids.C_MARS)
    assert held(_use("The Fool", g)) == ["Mars"]
    assert len(owned(_use("Judgement", game()))) == 1
    full = game("Joker,Joker,Joker,Joker,Joker")
    assert not consumables.can_use(full, ids.C_JUDGEMENT, False)


def test_the_wheel_turns_one_time_in_four() -> None:
    hits = 0
    for i in range(1, 101):
        g = _use("The Wheel of Fortune", game("Joker", seed=f"W{i}".replace("0", "O")))
        hits += int(g.joker_edition[0]) > 0
        assert int(g.joker_edition[0]) != ED_NEGATIVE
    assert 12 <= hits <= 40


@pytest.mark.parametrize("row", facts.table("planets"), ids=[row["name"] for row in facts.table("planets")])
def test_planets_raise_their_hand(row: dict[str, Any]) -> None:
    g = _use(row["name"], game("Constellation"))
    raised = [facts.name_of("hands", h) for h in range(12) if int(g.level[h]) == 2]
    assert raised == [row["hand"]]
    assert float(g.joker_value[0]) == 1.1


def test_black_hole_raises_all() -> None:
    assert [int(x) for x in _use("Black Hole", game()).level] == [2] * 12


@pytest.mark.parametrize(("name", "made", "ranks"), [
    ("Familiar", 3, {11, 12, 13}), ("Grim", 2, {14}), ("Incantation", 4, set(range(2, 11))),
])  # fmt: skip
def test_spectrals_that_add_cards(name: str, made: int, ranks: set[int]) -> None:
    g = _use(name, game("", "HK S2"))
    assert int(g.hand_count) == 1 + made
    new = [_card(g, 1 + i) for i in range(made)]
    assert {c[0] for c in new} <= ranks
    assert all(c[2] not in ("", "Stone") for c in new)


def test_sigil_ouija_and_immolate() -> None:
    g = _use("Sigil", game("", "HK S2 D3 C4"))
    assert len({_card(g, i)[1] for i in range(4)}) == 1
    g = game("", "HK S2 D3 C4")
    size = int(g.hand_size)
    _use("Ouija", g)
    assert len({_card(g, i)[0] for i in range(4)}) == 1
    assert int(g.hand_size) == size - 1
    g = _use("Immolate", game("", "HK S2 D3 C4 H5 H6 H7"))
    assert (int(g.hand_count), int(g.money), everything(g)) == (2, 24, 54)


def test_wraith_and_soul() -> None:
    g = _use("Wraith", game(money=9))
    assert int(g.money) == 0
    assert int(tables.JOKER_RARITY[int(g.joker[0])]) == 3
    g = _use("The Soul", game())
    assert int(tables.JOKER_RARITY[int(g.joker[0])]) == 4


def test_ectoplasm_costs_more_each_time() -> None:
    g = game("Joker,Egg")
    size = int(g.hand_size)
    _use("Ectoplasm", g)
    _use("Ectoplasm", g)
    assert [int(e) for e in g.joker_edition[:2]] == [ED_NEGATIVE] * 2
    assert int(g.hand_size) == size - 3


def test_hex_and_ankh_destroy_others_but_not_eternals() -> None:
    g = game("Joker,Egg,Banner")
    g.joker_sticker[2] = ST_ETERNAL
    _use("Hex", g)
    assert "Banner" in owned(g)
    assert ED_POLY in [int(e) for e in g.joker_edition[: int(g.joker_count)]]
    assert len(owned(g)) <= 2
    g = _use("Ankh", game("Negative Joker"))
    assert owned(g) == ["Joker", "Joker"]
    assert [int(e) for e in g.joker_edition[:2]] == [ED_NEGATIVE, 0]


def test_every_consumable_has_a_test_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    names = [row["name"] for row in facts.consumables() if "hand" not in row]
    assert [name for name in names if f'"{name}"' not in text and name != "The Fool"] == []
    assert create.consumable_room(game()) == 2
