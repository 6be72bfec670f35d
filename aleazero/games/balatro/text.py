"""Balatro in words: cards, things, actions where they are chosen, why an action is not legal, how a score came about.

Names are the game's; everything else is in our own words. Knows no more than a player sees.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro import account, actions, facts, ids
from aleazero.games.balatro.layout import (
    F_DEBUFFED,
    F_FACE_DOWN,
    F_FORCED,
    G_CARD,
    G_CONSUMABLE,
    G_JOKER,
    P_BLIND,
    P_OVER,
    P_PACK,
    P_PLAY,
    P_SHOP,
    ST_ETERNAL,
    ST_PERISHABLE,
    ST_RENTAL,
)
from aleazero.games.balatro.tables import SELECT_LEAST, SELECT_MOST

PHASES = {
    P_BLIND: "a blind is to be chosen",
    P_PLAY: "a blind is being played",
    P_SHOP: "the shop is open",
    P_PACK: "a pack is open",
    P_OVER: "the run is over",
}
_RANKS = {11: "J", 12: "Q", 13: "K", 14: "A"}
_SUITS = "♣♦♥♠"
_STICKERS = {ST_ETERNAL: "eternal", ST_PERISHABLE: "perishable", ST_RENTAL: "rental"}
_WHERE = {  # the phase that an action is for, where it has one
    **dict.fromkeys(("play", "discard", "play_selected", "discard_selected"), P_PLAY),
    **dict.fromkeys(("buy", "buy_and_use", "voucher", "booster", "reroll", "leave_shop"), P_SHOP),
    **dict.fromkeys(("choose", "skip_pack"), P_PACK),
    **dict.fromkeys(("select_blind", "skip_blind", "reroll_boss"), P_BLIND),
}


def bare_card(rank: int, suit: int, enhancement: int, edition: int, seal: int) -> str:
    """A playing card: `A♠`, with what was done to it."""
    front = "Stone" if enhancement == 6 else f"{_RANKS.get(rank, rank)}{_SUITS[suit]}"
    marks = [
        facts.ENHANCEMENTS[enhancement].lower() if enhancement != 6 else "",
        facts.EDITIONS[edition].lower(),
        f"{facts.SEALS[seal].lower()} seal" if seal else "",
    ]
    worn = ", ".join(mark for mark in marks if mark)
    return f"{front} ({worn})" if worn else front


def card(g: Any, c: int) -> str:
    """A card of a game, as the player sees it."""
    flags = int(g.card_flags[c])
    if flags & F_FACE_DOWN:
        return "??"
    text = bare_card(*(int(g[name][c]) for name in ("rank", "suit", "enhancement", "edition", "seal")))
    return text + (" debuffed" if flags & F_DEBUFFED else "") + (" forced" if flags & F_FORCED else "")


def thing(kind: int, number: int, edition: int, stickers: int, front: Any) -> str:
    """Something on the shelf or in a pack."""
    if kind == G_CARD:
        rank, suit, enhancement, seal = (int(x) for x in front)
        return bare_card(rank, suit, enhancement, edition, seal)
    name = facts.name_of("jokers" if kind == G_JOKER else "consumables", number)
    marks = [facts.EDITIONS[edition].lower(), *(word for bit, word in _STICKERS.items() if stickers & bit)]
    worn = ", ".join(mark for mark in marks if mark)
    return f"{name} ({worn})" if worn else name


def joker(g: Any, i: int) -> str:
    """An owned joker."""
    text = thing(G_JOKER, int(g.joker[i]), int(g.joker_edition[i]), int(g.joker_sticker[i]), ())
    return f"{text} [{float(g.joker_value[i]):g}]" if float(g.joker_value[i]) else text


def on_shelf(g: Any, i: int) -> str:
    """What lies on the shelf."""
    kind, number = int(g.shelf_kind[i]), int(g.shelf_id[i])
    return thing(kind, number, int(g.shelf_edition[i]), int(g.shelf_sticker[i]), g.shelf_card[i])


def in_pack(g: Any, i: int) -> str:
    """What lies in the open pack."""
    kind, number = int(g.pack_what[i]), int(g.pack_item[i])
    return thing(kind, number, int(g.pack_edition[i]), int(g.pack_sticker[i]), g.pack_card[i])


def _places(g: Any, bits: int) -> str:
    return " ".join(card(g, int(g.hand[i])) for i in range(int(g.hand_count)) if bits >> i & 1)


def split(action: int) -> tuple[str, int]:
    """An action's range and its place in it."""
    for name, first, last, _ in actions.action_table():
        if first <= action <= last:
            return name, action - first
    return "unused", action


def describe(g: Any, action: int) -> str:
    """A legal action in words, where it is chosen."""
    name, k = split(action)
    if name in ("play", "discard"):
        return f"{name} {_places(g, int(actions.SUBSETS[k]))}"
    if name in ("play_selected", "discard_selected"):
        return f"{name.split('_')[0]} {_places(g, int(g.selected))}"
    if name == "toggle":
        verb = "deselect" if int(g.selected) >> k & 1 else "select"
        return f"{verb} {card(g, int(g.hand[k]))}"
    if name in ("use", "sell_consumable"):
        return f"{name.split('_')[0]} {facts.name_of('consumables', int(g.consumable[k]))}"
    if name == "sell_joker":
        return f"sell {joker(g, k)} for {int(g.joker_sell[k])}"
    if name == "swap_jokers":
        return f"swap {joker(g, k)} and {joker(g, k + 1)}"
    if name == "swap_cards":
        return f"swap {card(g, int(g.hand[k]))} and {card(g, int(g.hand[k + 1]))}"
    if name in ("buy", "buy_and_use"):
        return f"{name.replace('_', ' ')} {on_shelf(g, k)} for {int(g.shelf_cost[k])}"
    if name == "voucher":
        return f"buy the voucher {facts.name_of('vouchers', int(g.voucher if k == 0 else g.voucher_extra))}"
    if name == "booster":
        return f"open {facts.name_of('packs', int(g.booster[k]) - 1)} for {int(g.booster_cost[k])}"
    if name == "choose":
        return f"take {in_pack(g, k)}"
    if name == "reroll":
        return "reroll" if int(g.free_rerolls) else f"reroll for {int(g.reroll_cost)}"
    return name.replace("_", " ")


def why_not(g: Any, action: int) -> str:
    """Why an action that is not legal is not."""
    name, k = split(action)
    phase = int(g.phase)
    if int(g.error):
        return "the game stopped with an error"
    if not 0 <= action < actions.NUM_ACTIONS or name == "unused":
        return f"numbers of actions end at {actions.A_END - 1}"
    if phase == P_OVER or _WHERE.get(name, phase) != phase:
        wanted = f", and it is for when {PHASES[_WHERE[name]]}" if name in _WHERE else ""
        return f"{PHASES[phase]}{wanted}"
    if name in ("play", "discard", "play_selected", "discard_selected"):
        return _why_no_hand(g, name, k)
    if name in ("toggle", "swap_cards"):
        return _why_no_move(g, k + (name == "swap_cards"), int(g.hand_count), "card")
    if name == "swap_jokers":
        return _why_no_move(g, k + 1, int(g.joker_count), "joker")
    if name in ("use", "sell_consumable"):
        if k >= int(g.consumable_count):
            return f"there are {int(g.consumable_count)} consumables"
        return _why_no_use(g, int(g.consumable[k]))
    if name == "sell_joker":
        return "it is eternal" if k < int(g.joker_count) else f"there are {int(g.joker_count)} jokers"
    if name == "choose":
        return _why_not_taken(g, k)
    if name == "skip_blind":
        return "a boss cannot be skipped"
    if name == "reroll_boss":
        return "it takes a voucher that allows it, once an ante or always, and 10 of money"
    return _why_not_bought(g, name, k)


def _why_no_hand(g: Any, name: str, k: int) -> str:
    bits = int(g.selected) if name.endswith("selected") else int(actions.SUBSETS[k])
    if bits == 0:
        return "no card is selected"
    if bits >> int(g.hand_count):
        return f"the hand has {int(g.hand_count)} cards"
    if name.startswith("discard") and int(g.discards_left) <= 0:
        return "no discards are left"
    return "the boss forces a card, which has to be among at most five"


def _why_no_move(g: Any, k: int, count: int, what: str) -> str:
    if k >= count:
        return f"there are {count} {what}s"
    if int(g.free_moves) >= actions.FREE_MOVES:
        return f"{actions.FREE_MOVES} moves that only choose or order have followed one another"
    return "five cards are selected"


def _why_no_use(g: Any, item: int) -> str:
    least, most = int(SELECT_LEAST[item]), int(SELECT_MOST[item])
    name = facts.name_of("consumables", item)
    if most:
        chosen = int(g.selected).bit_count()
        return f"{name} takes {least if least == most else f'{least} to {most}'} selected cards, {chosen} are selected"
    return f"{name} has nothing to act on, or no room for what it makes"


def _why_not_taken(g: Any, k: int) -> str:
    if k >= int(g.pack_count):
        return f"the pack has {int(g.pack_count)} cards"
    return _why_no_use(g, int(g.pack_item[k])) if int(g.pack_what[k]) == G_CONSUMABLE else "there is no room for it"


def _why_not_bought(g: Any, name: str, k: int) -> str:
    there = {
        "buy": int(g.shelf_count) > k,
        "buy_and_use": int(g.shelf_count) > k,
        "voucher": int(g.voucher if k == 0 else g.voucher_extra) > 0,
        "booster": name == "booster" and int(g.booster[k % 2]) > 0,
    }
    if not there.get(name, True):
        return "there is none"
    money = int(g.money)
    if name in ("buy", "buy_and_use"):
        if int(g.shelf_cost[k]) > max(0, money):
            return f"it costs {int(g.shelf_cost[k])}, and there is {money}"
        if name == "buy_and_use":
            usable = int(g.shelf_kind[k]) == G_CONSUMABLE
            return _why_no_use(g, int(g.shelf_id[k])) if usable else "only consumables can be used at once"
        return "there is no room for it"
    return f"there is not enough money ({money})"


def account_lines(before: Any, scored: Any, rows: np.ndarray) -> list[str]:
    """How a score came about, line by line; `before` is the game as it was, `scored` after (`Batch.account`)."""
    lines = [_account_line(before, scored, row) for row in rows]
    balanced = " (balanced)" if int(scored.deck) == ids.D_PLASMA else ""
    return [*lines, f"{'score':44} {float(scored.hand_score):,.0f}{balanced}"]


def _account_line(g: Any, scored: Any, row: np.ndarray) -> str:
    what, which, by = int(row[0]), int(row[1]), int(row[2])
    if what == account.BASE:
        text = f"{facts.name_of('hands', which)}, level {by}"
    elif what == account.CARD:
        text = card(scored, which)
    elif what == account.HELD:
        text = f"held {card(scored, which)}"
    elif what in (account.CARD_JOKER, account.HELD_JOKER):
        text = f"{card(scored, which)}: {facts.name_of('jokers', int(g.joker[by]))}"
    elif what == account.EDITION:
        text = f"{facts.name_of('jokers', int(g.joker[which]))}: {facts.EDITIONS[int(g.joker_edition[which])]}"
    elif what == account.JOKER:
        text = facts.name_of("jokers", int(g.joker[which]))
    elif what == account.OTHER_JOKER:
        text = f"Baseball Card for {facts.name_of('jokers', int(g.joker[which]))}"
    elif what == account.PLANET:
        text = f"Observatory: {facts.name_of('consumables', int(g.consumable[which]))}"
    else:
        text = f"the boss, {facts.name_of('blinds', int(g.boss))}"
    return f"{text:44} {row[3]:,.0f} x {row[4]:,.10g}"
