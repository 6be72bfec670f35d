"""Checks vectors of generated content (`seeds.json`): boss, voucher, tags, shelves and packs of a seed's eight antes.

The line that the vectors follow: nothing bought, nothing rerolled or skipped, every pack opened in its turn.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from aleazero.core.errors import ConfigError
from aleazero.games.balatro import facts, packs, run, shop, tables
from aleazero.games.balatro.cards import shuffle_deck
from aleazero.games.balatro.jit import entry
from aleazero.games.balatro.keys import K_CASHOUT_SHUFFLE, K_ROUND_SHUFFLE
from aleazero.games.balatro.layout import G_CARD, G_JOKER, new_batch
from aleazero.games.balatro.rng import check_seed
from aleazero.games.balatro.vectors_rng import text_bytes

KINDS = ("boss", "voucher", "tag", "pack kind", "shelf", "pack contents")
MOST_ANTES = 12
_RANKS = {10: "T", 11: "J", 12: "Q", 13: "K", 14: "A"}


@entry
def begin(states: Any, seed: Any, deck: int, stake: int) -> None:
    """Starts a run in the first record."""
    run.start(states[0], seed, len(seed), deck, stake)


@entry
def visit_shop(states: Any) -> None:
    """A blind was beaten: the shuffles of its round, and the shop after it."""
    g = states[0]
    shuffle_deck(g, K_ROUND_SHUFFLE)
    run.name_cards(g)
    shop.stock(g)


@entry
def beat_boss(states: Any) -> None:
    """The boss was beaten and cashed out."""
    g = states[0]
    run.boss_beaten(g)
    shuffle_deck(g, K_CASHOUT_SHUFFLE)
    run.next_blinds(g)


@entry
def open_booster(states: Any, k: int) -> None:
    """Opens one of the shop's packs, and shows what it holds."""
    g = states[0]
    packs.fill_pack(g, int(g.booster[k]) - 1)


@entry
def close_booster(states: Any) -> None:
    """Skips the rest of the pack."""
    packs.close_pack(states[0])


def _edition(number: int) -> dict[str, str]:
    return {"edition": facts.EDITIONS[number]} if number else {}


def _shelf(g: Any) -> list[dict[str, str]]:
    rows = []
    for i in range(int(g.shelf_count)):
        item = int(g.shelf_id[i])
        if int(g.shelf_kind[i]) == G_JOKER:
            row = {"type": "Joker", "item": facts.name_of("jokers", item)}
            row |= {"rarity": str(tables.JOKER_RARITY[item])} | _edition(int(g.shelf_edition[i]))
        else:
            kind = "Tarot" if item < tables.FIRST_PLANET else "Planet"
            kind = kind if item < tables.FIRST_SPECTRAL else "Spectral"
            row = {"type": kind, "item": facts.name_of("consumables", item)}
        rows.append(row)
    return rows


def _contents(g: Any) -> list[Any]:
    cards: list[Any] = []
    for i in range(int(g.pack_count)):
        item, edition = int(g.pack_item[i]), int(g.pack_edition[i])
        if int(g.pack_what[i]) == G_CARD:
            rank, suit, enhancement, seal = (int(x) for x in g.pack_card[i])
            card = f"{facts.SUITS[suit][0]}_{_RANKS.get(rank, str(rank))}"
            cards.append(
                {
                    "card": card,
                    "enhancement": facts.ENHANCEMENTS[enhancement] or "No Enhancement",
                    "edition": facts.EDITIONS[edition] or "No Edition",
                    "seal": f"{facts.SEALS[seal]} Seal" if seal else "No Seal",
                }
            )
        elif int(g.pack_what[i]) == G_JOKER:
            cards.append(" ".join([*_edition(edition).values(), facts.name_of("jokers", item)]))
        else:
            cards.append(facts.name_of("consumables", item).replace("é", "e").replace("à", "a"))
    return cards


def generate(seed: str, deck: str = "Red Deck", stake: int = 1, antes: int = 8) -> list[dict[str, Any]]:
    """What a seed holds, in the form of the vectors."""
    states = new_batch(1)
    g = states[0]
    begin(states, text_bytes(check_seed(seed)), facts.number("decks", deck), stake)
    rows = []
    for ante in range(1, antes + 1):
        row: dict[str, Any] = {
            "ante": ante,
            "boss": facts.name_of("blinds", int(g.boss)),
            "voucher": facts.name_of("vouchers", int(g.voucher)),
            "tags": {"small": facts.name_of("tags", int(g.tag_small)), "big": facts.name_of("tags", int(g.tag_big))},
            "shops": [],
        }
        for visit in range(1, 3 if ante == 1 else 4):
            visit_shop(states)
            shown: dict[str, Any] = {"visit": visit, "shelf": _shelf(g), "packs": []}
            for k in range(2):
                open_booster(states, k)
                name = facts.name_of("packs", int(g.booster[k]) - 1)
                shown["packs"].append({"pack": name, "cards": _contents(g)})
                close_booster(states)
            row["shops"].append(shown)
        rows.append(row)
        beat_boss(states)
    return rows


def differences(vector: dict[str, Any]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """How many entries of each kind a seed has, and those that differ: their kind and a line that says how."""
    counts, wrong = dict.fromkeys(KINDS, 0), []

    def compare(kind: str, where: str, got: Any, expected: Any) -> None:
        if expected is None:
            return
        counts[kind] += 1
        if got != expected:
            wrong.append((kind, f"{vector['seed']} {where}: {got}, not {expected}"))

    rows = [row for row in vector.get("antes") or [] if row is not None]
    for row in rows:
        if not isinstance(row["ante"], int) or not 1 <= row["ante"] <= MOST_ANTES:
            raise ConfigError(f"ante {row['ante']!r}; antes are 1 to {MOST_ANTES}")
    last = max((row["ante"] for row in rows), default=0)
    line = generate(vector["seed"], vector.get("deck") or "Red Deck", _stake(vector.get("stake")), last)
    for row in rows:
        got, where = line[row["ante"] - 1], f"ante {row['ante']}"
        compare("boss", where, got["boss"], row.get("boss"))
        compare("voucher", where, got["voucher"], row.get("voucher"))
        for blind in ("small", "big"):
            compare("tag", f"{where} {blind}", got["tags"][blind], (row.get("tags") or {}).get(blind))
        for number, theirs in enumerate(row.get("shops") or [], start=1):
            if theirs is None:
                continue
            visit = theirs.get("visit") or number
            ours = {shop["visit"]: shop for shop in got["shops"]}.get(visit, {"shelf": None, "packs": []})
            place = f"{where} visit {visit}"
            compare("shelf", place, ours["shelf"], theirs.get("shelf"))
            for a, b in zip_longest(ours["packs"], theirs.get("packs") or []):
                if b is None:
                    continue
                a = a or {"pack": None, "cards": None}
                compare("pack kind", place, a["pack"], b.get("pack"))
                compare("pack contents", f"{place} {b.get('pack')}", a["cards"], b.get("cards"))
    return counts, wrong


def _stake(name: str | None) -> int:
    """The number of a stake, which a file may spell `White` or `White Stake`; the first where it names none."""
    return facts.number("stakes", name.removesuffix(" Stake")) + 1 if name is not None else 1
