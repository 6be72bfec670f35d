"""What BalatroBot tells of a live game, as a record of the simulator; and actions as BalatroBot's methods.

Both ways of naming that its versions have are understood (`RED` and `b_red`, `HOLO` and `e_holo`). What it does not
tell is as in a fresh run: the counters of growing jokers, cards that were discarded, what a Boss has done so far.
The order of the draw pile is never used. Knows no connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from aleazero.core.errors import AleaError, NotationError
from aleazero.games.balatro import actions, create, facts, tables, text
from aleazero.games.balatro.engine import LAST_ANTE, Batch
from aleazero.games.balatro.layout import (
    AT_DECK,
    AT_GONE,
    AT_HAND,
    F_DEBUFFED,
    F_FACE_DOWN,
    G_CARD,
    G_CONSUMABLE,
    G_JOKER,
    MAX_CARDS,
    MAX_CONSUMABLES,
    MAX_HAND,
    MAX_JOKERS,
    MAX_PACK,
    MAX_SHELF,
    P_BLIND,
    P_OVER,
    P_PACK,
    P_PLAY,
    P_SHOP,
    ST_ETERNAL,
    ST_PERISHABLE,
    ST_RENTAL,
)

PHASES = {
    "BLIND_SELECT": P_BLIND,
    "SELECTING_HAND": P_PLAY,
    "SHOP": P_SHOP,
    "SMODS_BOOSTER_OPENED": P_PACK,
    "GAME_OVER": P_OVER,
}
PAID = "ROUND_EVAL"  # the round is over, and is to be cashed out
MENU = "MENU"
_SUITS = {"C": 0, "D": 1, "H": 2, "S": 3}
_RANKS = {**{str(n): n for n in range(2, 10)}, "T": 10, "J": 11, "Q": 12, "K": 13, "A": 14}
_EDITIONS = {"foil": 1, "holo": 2, "holographic": 2, "polychrome": 3, "negative": 4}
_SEALS = {"gold": 1, "red": 2, "blue": 3, "purple": 4}
_ENHANCEMENTS = {name.lower(): k for k, name in enumerate(facts.ENHANCEMENTS) if name}
_BLINDS = ("small", "big", "boss")
NOT_THERE = ("buy_and_use", "reroll_boss")  # actions that BalatroBot has no method for


class NotUnderstood(AleaError):  # noqa: N818 - as the other errors that name what is wrong
    """A live game told what cannot be read."""


def read(state: Mapping[str, Any], selected: Sequence[int] = ()) -> Batch:
    """The live game as a run `[1]`, with these places of the hand selected."""
    try:
        return _read(state, selected)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise NotUnderstood(f"the live game told what cannot be read: {type(error).__name__}: {error}") from error


def _read(state: Mapping[str, Any], selected: Sequence[int]) -> Batch:
    name = state["state"]
    if name not in PHASES:
        raise NotUnderstood(f"the live game is in state {name!r}, in which nothing is decided")
    fresh = Batch.start(
        ["ALEAZERO"], _named("decks", state.get("deck"), "Red Deck"), _named("stakes", state.get("stake"), "White")
    )
    g = fresh.states[0]
    g.phase, g.ante, g.money = PHASES[name], _whole(state["ante_num"], -8, 40), _whole(state["money"], -(10**6), 10**9)
    g.money, g.won, g.last_ante = min(int(g.money), 10**6), int(bool(state.get("won"))), LAST_ANTE
    _blinds(g, _table(state.get("blinds")))
    _round(g, _table(state.get("round")))
    _hands(g, _table(state.get("hands")))
    g.beaten = 3 * max(0, int(g.ante) - 1) + int(g.blind)
    for key in _table(state.get("used_vouchers")):
        g.vouchers = int(g.vouchers) | 1 << _number("vouchers", key)
    _jokers(g, _table(state.get("jokers")))
    _consumables(g, _table(state.get("consumables")))
    _cards(g, _table(state.get("cards")), _table(state.get("hand")))
    if int(g.phase) == P_SHOP:
        _shop(g, state)
    if int(g.phase) == P_PACK:
        _pack(g, _table(state.get("pack")))
    for place in selected:
        if 0 <= place < int(g.hand_count):
            g.selected = int(g.selected) | 1 << place
    found = Batch(fresh.states)
    for action_name, first, last, _ in actions.action_table():
        if action_name in NOT_THERE:
            found.masks[0, first : last + 1] = False
    return found


def method_of(batch: Batch, action: int) -> tuple[str, dict[str, Any]]:
    """An action that is legal as a method and its parameters; NotationError where BalatroBot has none."""
    g = batch.states[0]
    name, k = text.split(action)
    chosen = [i for i in range(int(g.hand_count)) if int(g.selected) >> i & 1]
    if name in ("play", "discard"):
        return name, {"cards": [i for i in range(8) if int(actions.SUBSETS[k]) >> i & 1]}
    if name in ("play_selected", "discard_selected"):
        return name.removesuffix("_selected"), {"cards": chosen}
    if name == "use":
        return "use", {"consumable": k, **({"cards": chosen} if chosen else {})}
    if name in ("swap_jokers", "swap_cards"):
        count = int(g.joker_count if name == "swap_jokers" else g.hand_count)
        order = list(range(count))
        order[k], order[k + 1] = order[k + 1], order[k]
        return "rearrange", {"jokers" if name == "swap_jokers" else "hand": order}
    if name == "choose":
        return "pack", {"card": k, **({"targets": chosen} if chosen else {})}
    simple: dict[str, tuple[str, dict[str, Any]]] = {
        "sell_consumable": ("sell", {"consumable": k}),
        "sell_joker": ("sell", {"joker": k}),
        "buy": ("buy", {"card": k}),
        "voucher": ("buy", {"voucher": k}),
        "booster": ("buy", {"pack": k}),
        "reroll": ("reroll", {}),
        "leave_shop": ("next_round", {}),
        "skip_pack": ("pack", {"skip": True}),
        "select_blind": ("select", {}),
        "skip_blind": ("skip", {}),
    }
    if name not in simple:
        raise NotationError(f"{actions.action_name(action)} cannot be done in a live game: BalatroBot has no method")
    return simple[name]


# ---- parts of a state


def _blinds(g: Any, blinds: Mapping[str, Any]) -> None:
    rows = [_table(blinds.get(name)) for name in _BLINDS]
    open_ = [k for k, row in enumerate(rows) if row.get("status") in ("SELECT", "CURRENT")]
    past = [k for k, row in enumerate(rows) if row.get("status") in ("DEFEATED", "SKIPPED")]
    g.blind = open_[0] if open_ else min(2, max(past) + 1 if past else 0)
    if rows[2].get("name") in {row["name"] for row in facts.table("blinds")}:
        g.boss = facts.number("blinds", str(rows[2]["name"]))
    for field, row in (("tag_small", rows[0]), ("tag_big", rows[1])):
        tag = _table(row.get("tag")).get("name") or row.get("tag_name")
        if tag in {known["name"] for known in facts.table("tags")}:
            g[field] = facts.number("tags", str(tag))
    g.target = float(rows[int(g.blind)].get("score") or 0)


def _round(g: Any, told: Mapping[str, Any]) -> None:
    for ours, theirs in (
        ("hands_left", "hands_left"),
        ("discards_left", "discards_left"),
        ("hands_played", "hands_played"),
        ("discards_used", "discards_used"),
        ("reroll_cost", "reroll_cost"),
    ):
        if theirs in told:
            g[ours] = _whole(told[theirs], 0, 1000)
    g.round_score = float(told.get("chips") or 0)
    if int(g.phase) == P_PLAY:
        g.round_hands = int(g.hands_left) + int(g.hands_played)


def _hands(g: Any, hands: Mapping[str, Any]) -> None:
    for h, row in enumerate(facts.table("hands")):
        told = _table(hands.get(row["name"]))
        g.level[h] = _whole(told.get("level", 1), 1, 10_000)
        g.plays[h] = _whole(told.get("played", 0), 0, 30_000)
        g.round_plays[h] = _whole(told.get("played_this_round", 0), 0, 1000)
    if max(int(n) for n in g.plays) > 0:
        g.most_played = int(np.argmax(g.plays))


def _jokers(g: Any, area: Mapping[str, Any]) -> None:
    cards = _list(area)[: MAX_JOKERS - 1]
    start = getattr(create._start_value, "py_func", create._start_value)
    for i, card in enumerate(cards):
        worn = _table(card.get("modifier"))
        g.joker[i] = _number("jokers", card["key"])
        g.joker_edition[i] = _kind(worn.get("edition"), "e_", _EDITIONS)
        g.joker_sticker[i] = _stickers(worn)
        g.joker_perish[i] = _whole(worn.get("perishable") or 0, 0, 5)
        g.joker_sell[i] = _whole(_table(card.get("cost")).get("sell", 0), 0, 10_000)
        g.joker_value[i] = start(int(g.joker[i]))
        g.joker_target[i] = i
    g.joker_count = len(cards)
    extra = sum(int(g.joker_edition[i]) == _EDITIONS["negative"] for i in range(len(cards)))
    g.joker_slots = _whole(area.get("limit", 5), 0, 100) - extra


def _consumables(g: Any, area: Mapping[str, Any]) -> None:
    cards = _list(area)[: MAX_CONSUMABLES - 1]
    for i, card in enumerate(cards):
        g.consumable[i] = _number("consumables", card["key"])
        g.consumable_negative[i] = int(
            _kind(_table(card.get("modifier")).get("edition"), "e_", _EDITIONS) == _EDITIONS["negative"]
        )
        g.consumable_sell[i] = _whole(_table(card.get("cost")).get("sell", 0), 0, 10_000)
    g.consumable_count = len(cards)
    g.consumable_slots = _whole(area.get("limit", 2), 0, 100) - int(g.consumable_negative[: len(cards)].sum())


def _cards(g: Any, deck: Mapping[str, Any], hand: Mapping[str, Any]) -> None:
    """The hand and the draw pile; other cards are not told."""
    held, drawn = _list(hand)[:MAX_HAND], _list(deck)
    if len(held) + len(drawn) > MAX_CARDS:
        raise NotUnderstood(f"the live game has {len(held) + len(drawn)} cards; a record has room for {MAX_CARDS}")
    g.place[:] = AT_GONE
    for c, card in enumerate([*held, *drawn]):
        g.rank[c], g.suit[c], g.enhancement[c], g.edition[c], g.seal[c] = _front(card)
        told = _table(card.get("state"))
        flags = F_DEBUFFED if told.get("debuff") else 0
        g.card_flags[c] = flags | (F_FACE_DOWN if told.get("hidden") and c < len(held) else 0)
        g.place[c] = AT_HAND if c < len(held) else AT_DECK
        g.bonus[c] = 0
    for i in range(len(held)):
        g.hand[i] = i
    for i in range(len(drawn)):
        g.draw_pile[i] = len(held) + i
    g.hand_count, g.deck_count, g.card_count = len(held), len(drawn), len(held) + len(drawn)
    if "limit" in hand:
        g.hand_size = _whole(hand["limit"], 0, MAX_HAND)


def _shop(g: Any, state: Mapping[str, Any]) -> None:
    shelf = _list(_table(state.get("shop")))[:MAX_SHELF]
    for i, card in enumerate(shelf):
        g.shelf_kind[i], g.shelf_id[i], g.shelf_edition[i], g.shelf_sticker[i], front = _thing(card)
        g.shelf_card[i] = front
        g.shelf_cost[i] = _price(card)
    g.shelf_count = len(shelf)
    vouchers = [_number("vouchers", card["key"]) for card in _list(_table(state.get("vouchers")))[:2]]
    g.voucher, g.voucher_extra = [*vouchers, 0, 0][:2]
    packs = _list(_table(state.get("packs")))[:2]
    for k in range(2):
        g.booster[k] = _pack_number(packs[k]) + 1 if k < len(packs) else 0
        g.booster_cost[k] = _price(packs[k]) if k < len(packs) else 0


def _pack(g: Any, area: Mapping[str, Any]) -> None:
    cards = _list(area)[:MAX_PACK]
    for i, card in enumerate(cards):
        g.pack_what[i], g.pack_item[i], g.pack_edition[i], g.pack_sticker[i], front = _thing(card)
        g.pack_card[i] = front
    g.pack_count, g.pack_left = len(cards), 1
    kinds = {"JOKER": "Buffoon", "TAROT": "Arcana", "PLANET": "Celestial", "SPECTRAL": "Spectral"}
    kind = kinds.get(str(cards[0].get("set")), "Standard") if cards else "Standard"
    g.pack_kind = tables.PACK_KINDS.index(kind)
    g.pack_return = P_SHOP


def _thing(card: Mapping[str, Any]) -> tuple[int, int, int, int, list[int]]:
    """What lies on a shelf or in a pack: kind, number, edition, stickers, front."""
    worn = _table(card.get("modifier"))
    edition, kind = _kind(worn.get("edition"), "e_", _EDITIONS), str(card.get("set"))
    if kind == "JOKER":
        return G_JOKER, _number("jokers", card["key"]), edition, _stickers(worn), [0, 0, 0, 0]
    if kind in ("TAROT", "PLANET", "SPECTRAL"):
        return G_CONSUMABLE, _number("consumables", card["key"]), edition, 0, [0, 0, 0, 0]
    rank, suit, enhancement, _, seal = _front(card)
    return G_CARD, 0, edition, 0, [rank, suit, enhancement, seal]


def _front(card: Mapping[str, Any]) -> tuple[int, int, int, int, int]:
    """Rank, suit, enhancement, edition, seal; a card that lies face down, or a stone, is none in particular."""
    value, worn = _table(card.get("value")), _table(card.get("modifier"))
    rank, suit = _RANKS.get(str(value.get("rank"))), _SUITS.get(str(value.get("suit")))
    enhancement = _kind(worn.get("enhancement"), "m_", _ENHANCEMENTS)
    blank = bool(_table(card.get("state")).get("hidden")) or enhancement == _ENHANCEMENTS["stone"]
    if not blank and (rank is None or suit is None):
        raise NotUnderstood(f"the live game shows a card of {str(dict(value))[:80]}, whose rank or suit is not known")
    return (
        rank or 2,
        suit or 0,
        enhancement,
        _kind(worn.get("edition"), "e_", _EDITIONS),
        _kind(worn.get("seal"), "", _SEALS),
    )


def _stickers(worn: Mapping[str, Any]) -> int:
    bits = {"eternal": ST_ETERNAL, "perishable": ST_PERISHABLE, "rental": ST_RENTAL}
    return sum(bit for name, bit in bits.items() if worn.get(name))


def _price(card: Mapping[str, Any]) -> int:
    return _whole(_table(card.get("cost")).get("buy", 0), 0, 30_000)


def _pack_number(card: Mapping[str, Any]) -> int:
    """By its label, or by a key as in p_arcana_jumbo_1."""
    names = {row["name"]: k for k, row in enumerate(facts.table("packs"))}
    if card.get("label") in names:
        return names[card["label"]]
    _, kind, size, *_ = str(card["key"]).split("_")
    name = f"{'' if size == 'normal' else size.capitalize() + ' '}{kind.capitalize()} Pack"
    return facts.number("packs", name)


# ---- names and numbers


@cache
def _keys(kind: str) -> dict[str, int]:
    rows = facts.consumables() if kind == "consumables" else facts.table(kind)
    return {row["id"]: place for place, row in enumerate(rows, 1)}


def _number(kind: str, key: Any) -> int:
    """The number of a thing by its key, as in j_joker."""
    found = _keys(kind).get(str(key))
    if found is None:
        raise NotUnderstood(f"the live game names {str(key)[:40]!r}, which is none of the {kind} that are known")
    return found


def _named(kind: str, told: Any, otherwise: str) -> str:
    """The name of a deck or stake, told as RED, b_red or stake_red."""
    plain = str(told or otherwise).lower().removeprefix("b_").removeprefix("stake_").removesuffix(" deck")
    for row in facts.table(kind):
        if row["name"].lower().removesuffix(" deck") == plain:
            return str(row["name"])
    raise NotUnderstood(f"the live game names the {kind.removesuffix('s')} {str(told)[:40]!r}, which is not known")


def _kind(told: Any, prefix: str, known: Mapping[str, int]) -> int:
    if not told:
        return 0
    return known[str(told).lower().removeprefix(prefix)]


def _whole(value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{value!r} is no number in {low}..{high}")
    return int(value)


def _table(value: Any) -> Mapping[str, Any]:
    """A table; what Lua writes for an empty one is a list."""
    return value if isinstance(value, Mapping) else {}


def _list(area: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    cards = area.get("cards")
    return [card for card in cards if isinstance(card, Mapping)] if isinstance(cards, list) else []
