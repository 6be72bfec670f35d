"""Laws that every step keeps: what an action may do to money, and which cards it may make or destroy.

They compare a game before and after one action, and name what was broken by its number in `invariants.LAWS`.
"""

from __future__ import annotations

from typing import Any

from aleazero.games.balatro import actions, consumables, ids, trade
from aleazero.games.balatro.cards import count_enhancement, count_joker, full_deck
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import AT_GONE, E_GLASS, G_CARD, G_CONSUMABLE

DEBT, PRICE, CARDS = 12, 13, 14  # numbers of laws


@jit
def broken_step(before: Any, g: Any, a: int) -> int:
    """The number of the law that the action `a` has broken; 0 for none. Says nothing of games that stopped."""
    if int(g.error) != 0:
        return 0
    law = _money(before, g, a)
    return law if law != 0 else _cards(before, g, a)


@jit
def _plays(a: int) -> bool:
    return a < actions.A_DISCARD or a == actions.A_PLAY_SELECTED


@jit
def _discards(a: int) -> bool:
    return actions.A_DISCARD <= a < actions.A_TOGGLE or a == actions.A_DISCARD_SELECTED


@jit
def _price(g: Any, a: int) -> int:
    """What an action costs; less than nothing where it pays."""
    if actions.A_SELL_CONSUMABLE <= a < actions.A_SELL_JOKER:
        return -i64(g.consumable_sell[a - actions.A_SELL_CONSUMABLE])
    if actions.A_SELL_JOKER <= a < actions.A_SWAP_JOKERS:
        return -i64(g.joker_sell[a - actions.A_SELL_JOKER])
    if actions.A_BUY <= a < actions.A_BUY_AND_USE:
        return i64(g.shelf_cost[a - actions.A_BUY])
    if actions.A_VOUCHER <= a < actions.A_BOOSTER:
        return trade.voucher_price(g)
    if actions.A_BOOSTER <= a < actions.A_REROLL:
        return i64(g.booster_cost[a - actions.A_BOOSTER])
    if a == actions.A_REROLL:
        return 0 if int(g.free_rerolls) > 0 else int(g.reroll_cost)
    return 10 if a == actions.A_REROLL_BOSS else 0


@jit
def _money(before: Any, g: Any, a: int) -> int:
    had, has = int(before.money), int(g.money)
    if _plays(a):  # The Ox takes all, The Tooth a coin a card; the end of a round asks for rents
        return DEBT if has < min(had, 0) - 5 - 3 * int(before.joker_count) else 0
    buys = actions.A_BUY <= a < actions.A_LEAVE_SHOP or a == actions.A_REROLL_BOSS
    owed = 20 * count_joker(before, ids.J_CREDIT_CARD) if buys else 0
    if has < min(had, -owed):
        return DEBT
    uses = actions.A_USE <= a < actions.A_SELL_CONSUMABLE or actions.A_BUY_AND_USE <= a < actions.A_VOUCHER
    if uses or _discards(a) or actions.A_CHOOSE <= a < actions.A_SKIP_PACK or a == actions.A_SKIP_BLIND:
        return 0  # what is used, or a tag, may pay anything
    return PRICE if has != had - _price(before, a) else 0


@jit
def _made_by(g: Any, item: int) -> int:
    """How many cards more there are after a consumable."""
    if item == ids.C_CRYPTID or item == ids.C_FAMILIAR:
        return 2
    if item == ids.C_GRIM:
        return 1
    if item == ids.C_INCANTATION:
        return 3
    if item == ids.C_IMMOLATE:
        return -min(5, int(g.hand_count))
    return -consumables.chosen_count(g) if item == ids.C_HANGED_MAN else 0


@jit
def _made(g: Any, a: int) -> int:
    """How many cards more there are after an action that leaves nothing to chance."""
    if actions.A_USE <= a < actions.A_SELL_CONSUMABLE:
        return _made_by(g, i64(g.consumable[a - actions.A_USE]))
    if actions.A_BUY <= a < actions.A_BUY_AND_USE:
        return 1 if i64(g.shelf_kind[a - actions.A_BUY]) == G_CARD else 0
    if actions.A_CHOOSE <= a < actions.A_SKIP_PACK:
        kind, item = i64(g.pack_what[a - actions.A_CHOOSE]), i64(g.pack_item[a - actions.A_CHOOSE])
        if kind == G_CONSUMABLE:
            return _made_by(g, item)
        return 1 if kind == G_CARD else 0
    return 0


@jit
def _cards(before: Any, g: Any, a: int) -> int:
    more = full_deck(g) - full_deck(before)
    jokers = int(before.joker_count)
    if _plays(a):
        breaks = count_enhancement(before, E_GLASS) > 0 or count_joker(before, ids.J_SIXTH_SENSE) > 0
        makes = count_joker(before, ids.J_DNA) > 0
        return 0 if (-5 if breaks else 0) <= more <= (jokers if makes else 0) else CARDS
    if _discards(a):
        fits = more == 0 or (more == -1 and count_joker(before, ids.J_TRADING) > 0)
    elif a == actions.A_SELECT_BLIND:
        makes = count_joker(before, ids.J_MARBLE) > 0 or count_joker(before, ids.J_CERTIFICATE) > 0
        fits = 0 <= more <= (jokers if makes else 0)
    else:
        fits = more == _made(before, a)
    uses = actions.A_USE <= a < actions.A_SELL_CONSUMABLE or actions.A_CHOOSE <= a < actions.A_SKIP_PACK
    changed = more == 0 and not uses and _sum_of_cards(g) != _sum_of_cards(before)
    return 0 if fits and not changed else CARDS


@jit
def _sum_of_cards(g: Any) -> int:
    """A number of the owned cards in whatever order."""
    total = 0
    for c in range(int(g.card_count)):
        if i64(g.place[c]) == AT_GONE:
            continue
        front = (i64(g.rank[c]) * 4 + i64(g.suit[c])) * 9 + i64(g.enhancement[c])
        mixed = (((front * 5 + i64(g.edition[c])) * 5 + i64(g.seal[c])) * 48271 + 11) % 2147483647
        total += mixed * mixed % 2147483647
    return total
