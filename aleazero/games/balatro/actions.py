"""The actions: a thousand numbers in documented ranges, which of them are legal, and what each does.

Cards are chosen in two ways: 218 subsets of the first eight places of the hand, played or discarded in one action; or
place by place (`toggle`), for larger hands and for the targets of consumables, which take what is selected. Choosing
and ordering are free moves; only `FREE_MOVES` of them follow one another.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from aleazero.games.balatro import consumables, create, rounds, shop, tags, trade
from aleazero.games.balatro.dealing import deal
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.jokers_events import shop_left
from aleazero.games.balatro.layout import (
    F_FORCED,
    G_CONSUMABLE,
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
)

NUM_ACTIONS = 1000
FREE_MOVES = 12
SUBSETS = np.array(
    [sum(1 << i for i in places) for size in range(1, 6) for places in combinations(range(8), size)], np.int64
)
NUM_SUBSETS = len(SUBSETS)

_RANGES = (
    ("play", NUM_SUBSETS, "play a subset of the first eight cards"),
    ("discard", NUM_SUBSETS, "discard a subset of the first eight cards"),
    ("toggle", MAX_HAND, "select or deselect the card at a place of the hand"),
    ("play_selected", 1, "play the selected cards"),
    ("discard_selected", 1, "discard the selected cards"),
    ("use", MAX_CONSUMABLES, "use a consumable, on the selected cards where it needs any"),
    ("sell_consumable", MAX_CONSUMABLES, "sell a consumable"),
    ("sell_joker", MAX_JOKERS - 1, "sell a joker"),
    ("swap_jokers", MAX_JOKERS - 2, "exchange a joker with the one to its right"),
    ("swap_cards", MAX_HAND - 1, "exchange a card of the hand with the one to its right"),
    ("buy", MAX_SHELF, "buy a card from the shelf"),
    ("buy_and_use", MAX_SHELF, "buy a consumable from the shelf and use it at once"),
    ("voucher", 2, "buy the ante's voucher, or the one of a Voucher Tag"),
    ("booster", 2, "buy a pack and open it"),
    ("reroll", 1, "a new shelf"),
    ("leave_shop", 1, "go on to the next blind"),
    ("choose", MAX_PACK, "take a card out of the open pack"),
    ("skip_pack", 1, "leave the rest of the pack"),
    ("select_blind", 1, "play the blind"),
    ("skip_blind", 1, "skip the blind for its tag"),
    ("reroll_boss", 1, "another boss for 10"),
)
_STARTS = np.concatenate([[0], np.cumsum([size for _, size, _ in _RANGES])])
(
    A_PLAY, A_DISCARD, A_TOGGLE, A_PLAY_SELECTED, A_DISCARD_SELECTED, A_USE, A_SELL_CONSUMABLE, A_SELL_JOKER,
    A_SWAP_JOKERS, A_SWAP_CARDS, A_BUY, A_BUY_AND_USE, A_VOUCHER, A_BOOSTER, A_REROLL, A_LEAVE_SHOP, A_CHOOSE,
    A_SKIP_PACK, A_SELECT_BLIND, A_SKIP_BLIND, A_REROLL_BOSS, A_END,
) = (int(x) for x in _STARTS)  # fmt: skip


def action_table() -> list[tuple[str, int, int, str]]:
    """The ranges: name, first and last number, what it does. Numbers after the last range are never legal."""
    return [
        (name, int(first), int(first) + size - 1, text)
        for (name, size, text), first in zip(_RANGES, _STARTS, strict=False)
    ]


def action_name(action: int) -> str:
    """An action in words: its range and its place in it."""
    for name, first, last, _ in action_table():
        if first <= action <= last:
            return name if first == last else f"{name} {action - first}"
    return f"unused {action}"


@jit
def _count(bits: int) -> int:
    n = 0
    while bits != 0:
        n += bits & 1
        bits >>= 1
    return n


@jit
def forced_bits(g: Any) -> int:
    """The places of cards that must be chosen (Cerulean Bell)."""
    bits = 0
    for i in range(int(g.hand_count)):
        if i64(g.card_flags[i64(g.hand[i])]) & F_FORCED != 0:
            bits |= 1 << i
    return bits


@jit
def legal_mask(g: Any, out: Any) -> None:
    """Which actions are legal, `[1000]` bool."""
    for a in range(NUM_ACTIONS):
        out[a] = False
    phase = int(g.phase)
    if phase == P_OVER or int(g.error) != 0:
        return
    if phase == P_PLAY:
        _mask_hand(g, out)
    elif phase == P_SHOP:
        _mask_shop(g, out)
    elif phase == P_PACK:
        for i in range(int(g.pack_count)):
            out[A_CHOOSE + i] = trade.can_choose(g, i)
        out[A_SKIP_PACK] = True
    else:
        out[A_SELECT_BLIND] = True
        out[A_SKIP_BLIND] = int(g.blind) < 2
        out[A_REROLL_BOSS] = trade.can_reroll_boss(g)
    for i in range(int(g.consumable_count)):
        negative = i64(g.consumable_negative[i]) != 0
        out[A_USE + i] = consumables.can_use(g, i64(g.consumable[i]), not negative)
        out[A_SELL_CONSUMABLE + i] = True
    for i in range(int(g.joker_count)):
        out[A_SELL_JOKER + i] = trade.may_sell(g, i)
    if int(g.free_moves) < FREE_MOVES:
        chosen = _count(int(g.selected))
        for i in range(int(g.joker_count) - 1):
            out[A_SWAP_JOKERS + i] = True
        for i in range(int(g.hand_count)):
            out[A_TOGGLE + i] = chosen < 5 or int(g.selected) >> i & 1 != 0
            if i + 1 < int(g.hand_count):
                out[A_SWAP_CARDS + i] = True


@jit
def _mask_hand(g: Any, out: Any) -> None:
    n, forced = int(g.hand_count), forced_bits(g)
    held = (1 << min(n, 8)) - 1
    near = forced & 255  # a forced card within the subsets must be in them; one beyond comes by itself
    discards = int(g.discards_left) > 0
    for k in range(NUM_SUBSETS):
        bits = int(SUBSETS[k])
        fits = bits & ~held == 0 and near & ~bits == 0 and _count(bits | forced) <= 5
        out[A_PLAY + k] = fits
        out[A_DISCARD + k] = fits and discards
    chosen = int(g.selected)
    fits = chosen != 0 and _count(chosen | forced) <= 5
    out[A_PLAY_SELECTED] = fits
    out[A_DISCARD_SELECTED] = fits and discards


@jit
def _mask_shop(g: Any, out: Any) -> None:
    for i in range(int(g.shelf_count)):
        pays = trade.can_pay(g, i64(g.shelf_cost[i]))
        kind = i64(g.shelf_kind[i])
        out[A_BUY + i] = pays and trade.room_for(g, kind, i64(g.shelf_edition[i]))
        if kind == G_CONSUMABLE and pays:
            out[A_BUY_AND_USE + i] = consumables.can_use(g, i64(g.shelf_id[i]), False)
    price = trade.voucher_price(g)
    out[A_VOUCHER] = int(g.voucher) > 0 and trade.can_pay(g, price)
    out[A_VOUCHER + 1] = int(g.voucher_extra) > 0 and trade.can_pay(g, price)
    for k in range(2):
        out[A_BOOSTER + k] = i64(g.booster[k]) > 0 and trade.can_pay(g, i64(g.booster_cost[k]))
    out[A_REROLL] = int(g.free_rerolls) > 0 or trade.can_pay(g, int(g.reroll_cost))
    out[A_LEAVE_SHOP] = True


@jit
def apply(g: Any, a: int) -> None:
    """Plays a legal action."""
    g.gained = 0
    if a < A_DISCARD:
        rounds.play(g, int(SUBSETS[a - A_PLAY]) | forced_bits(g))
    elif a < A_TOGGLE:
        rounds.discard(g, int(SUBSETS[a - A_DISCARD]) | forced_bits(g))
    elif a < A_PLAY_SELECTED:
        g.selected = int(g.selected) ^ (1 << (a - A_TOGGLE))
        g.free_moves += 1
    elif a == A_PLAY_SELECTED:
        rounds.play(g, int(g.selected) | forced_bits(g))
    elif a == A_DISCARD_SELECTED:
        rounds.discard(g, int(g.selected) | forced_bits(g))
    elif a < A_SELL_CONSUMABLE:
        _use(g, a - A_USE)
    elif a < A_SELL_JOKER:
        trade.sell_consumable(g, a - A_SELL_CONSUMABLE)
    elif a < A_SWAP_JOKERS:
        trade.sell_joker(g, a - A_SELL_JOKER)
    elif a < A_SWAP_CARDS:
        create.swap_jokers(g, a - A_SWAP_JOKERS, a - A_SWAP_JOKERS + 1)
        g.free_moves += 1
    elif a < A_BUY:
        _swap_cards(g, a - A_SWAP_CARDS)
    elif a < A_CHOOSE:
        _in_shop(g, a)
    elif a < A_SKIP_PACK:
        trade.choose(g, a - A_CHOOSE)
    elif a == A_SKIP_PACK:
        trade.skip_pack(g)
    elif a == A_SELECT_BLIND:
        rounds.start_blind(g)
    elif a == A_SKIP_BLIND:
        _skip_blind(g)
    elif a == A_REROLL_BOSS:
        trade.reroll_boss(g)
    if a < A_TOGGLE or a >= A_BUY:
        g.free_moves = 0


@jit
def _in_shop(g: Any, a: int) -> None:
    if a < A_BUY_AND_USE:
        trade.buy(g, a - A_BUY)
    elif a < A_VOUCHER:
        trade.buy_and_use(g, a - A_BUY_AND_USE)
    elif a < A_BOOSTER:
        trade.buy_voucher(g, a == A_VOUCHER + 1)
    elif a < A_REROLL:
        trade.buy_booster(g, a - A_BOOSTER)
    elif a == A_REROLL:
        trade.reroll(g)
    else:
        shop_left(g)
        shop.clear(g)
        g.phase = P_BLIND
        tags.at_blind_choice(g)


@jit
def _use(g: Any, i: int) -> None:
    item = i64(g.consumable[i])
    create.remove_consumable(g, i)
    consumables.use(g, item)
    if int(g.phase) == P_PLAY and int(g.hand_count) == 0:
        deal(g)
        if int(g.hand_count) == 0:
            rounds.lose(g)


@jit
def _swap_cards(g: Any, i: int) -> None:
    held = i64(g.hand[i])
    g.hand[i] = g.hand[i + 1]
    g.hand[i + 1] = held
    low, high = int(g.selected) >> i & 1, int(g.selected) >> (i + 1) & 1
    g.selected = int(g.selected) & ~(3 << i) | (high << i) | (low << (i + 1))
    g.free_moves += 1


@jit
def _skip_blind(g: Any) -> None:
    g.skips += 1
    small = int(g.blind) == 0
    tag = int(g.tag_small) if small else int(g.tag_big)
    hand = int(g.orbital_small) if small else int(g.orbital_big)
    g.blind += 1
    tags.gain_tag(g, tag, hand)
    tags.at_blind_choice(g)
