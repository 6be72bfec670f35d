"""Jokers and consumables that come to the player: gained, copied, taken away, and what that changes at once.

A joker that changes slots, hand size, hands or discards does so while it is owned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro import ids, keys, pools, rng, tables
from aleazero.games.balatro.cards import joker_off
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import (
    ED_FOIL,
    ED_HOLO,
    ED_NEGATIVE,
    ED_NONE,
    ED_POLY,
    ERR_CONSUMABLES,
    ERR_JOKERS,
    MAX_CONSUMABLES,
    MAX_JOKERS,
    NUM_HANDS,
    ST_RENTAL,
)

_EDITION_PRICE = np.array([0, 2, 3, 5, 5], np.int64)
_PERISH_ROUNDS = 5
_SPARE = MAX_JOKERS - 1  # a place kept free, for exchanges


@jit
def discount(g: Any) -> int:
    """What is left of a price, in percent."""
    if pools.has_voucher(g, ids.V_LIQUIDATION):
        return 50
    return 75 if pools.has_voucher(g, ids.V_CLEARANCE_SALE) else 100


@jit
def price(g: Any, base: int, edition: int) -> int:
    """What a card costs in the shop."""
    cost = (base + int(_EDITION_PRICE[edition]) + 0.5) * discount(g) / 100.0
    return max(1, int(np.floor(cost)))


@jit
def joker_price(g: Any, joker: int, edition: int, stickers: int) -> int:
    """What a joker costs in the shop."""
    return 1 if stickers & ST_RENTAL != 0 else price(g, int(tables.JOKER_COST[joker]), edition)


@jit
def joker_worth(g: Any, i: int) -> int:
    """A joker's sell value as its price is now, without what it has gained."""
    return max(1, joker_price(g, i64(g.joker[i]), i64(g.joker_edition[i]), i64(g.joker_sticker[i])) // 2)


@jit
def consumable_worth(g: Any, i: int) -> int:
    """The same of a consumable."""
    edition = ED_NEGATIVE if i64(g.consumable_negative[i]) != 0 else ED_NONE
    return max(1, price(g, int(tables.CONSUMABLE_COST[i64(g.consumable[i])]), edition) // 2)


@jit
def worth_counts(g: Any, sign: int) -> None:
    """Takes what everything is worth out of its sell value (-1), or puts it in (1): around a change of prices."""
    for i in range(int(g.joker_count)):
        g.joker_sell[i] += sign * joker_worth(g, i)
    for i in range(int(g.consumable_count)):
        g.consumable_sell[i] += sign * consumable_worth(g, i)


@jit
def set_edition(g: Any, i: int, edition: int) -> None:
    """A joker gets another edition, and is worth more or less."""
    before = joker_worth(g, i)
    g.joker_edition[i] = edition
    g.joker_sell[i] += joker_worth(g, i) - before


@jit
def joker_room(g: Any) -> int:
    """Free joker slots; negative ones take none."""
    used = 0
    for i in range(int(g.joker_count)):
        if i64(g.joker_edition[i]) != ED_NEGATIVE:
            used += 1
    return int(g.joker_slots) - used


@jit
def consumable_room(g: Any) -> int:
    """Free consumable slots."""
    used = 0
    for i in range(int(g.consumable_count)):
        if i64(g.consumable_negative[i]) == 0:
            used += 1
    return int(g.consumable_slots) - used


@jit
def _start_value(joker: int) -> float:
    """What a joker's counter starts at."""
    if joker == ids.J_ICE_CREAM:
        return 100.0
    if joker == ids.J_POPCORN:
        return 20.0
    if joker == ids.J_RAMEN:
        return 2.0
    if joker == ids.J_TURTLE_BEAN:
        return 5.0
    if joker == ids.J_SELZER:
        return 10.0
    if joker == ids.J_YORICK:
        return 23.0
    if joker == ids.J_ROCKET:
        return 1.0
    if (
        joker == ids.J_CONSTELLATION
        or joker == ids.J_HOLOGRAM
        or joker == ids.J_VAMPIRE
        or joker == ids.J_MADNESS
        or joker == ids.J_OBELISK
        or joker == ids.J_LUCKY_CAT
        or joker == ids.J_GLASS
        or joker == ids.J_CAMPFIRE
        or joker == ids.J_HIT_THE_ROAD
        or joker == ids.J_CAINO
    ):
        return 1.0
    return 0.0


@jit
def pick_hand(g: Any, key: int, other_than: int) -> int:
    """A poker hand that is not secret any more, in the order the game walks through them; not `other_than`."""
    known = np.zeros(NUM_HANDS, np.int64)
    n = 0
    for i in range(NUM_HANDS):
        h = int(tables.HAND_WALK[i])
        if (not tables.HAND_SECRET[h] or i64(g.plays[h]) > 0) and h != other_than:
            known[n] = h
            n += 1
    return int(known[rng.pick(g, key, n, 0)])


@jit
def while_owned(g: Any, joker: int, value: float, sign: int) -> None:
    """What a joker changes by being there (sign 1) or leaving (sign -1)."""
    if joker == ids.J_JUGGLER:
        g.hand_size += sign
    elif joker == ids.J_TROUBADOUR:
        g.hand_size += 2 * sign
        g.round_hands -= sign
    elif joker == ids.J_MERRY_ANDY:
        g.hand_size -= sign
        g.round_discards += 3 * sign
        g.discards_left = max(0, int(g.discards_left) + 3 * sign)
    elif joker == ids.J_STUNTMAN:
        g.hand_size -= 2 * sign
    elif joker == ids.J_TURTLE_BEAN:
        g.hand_size += int(value) * sign
    elif joker == ids.J_DRUNKARD:
        g.round_discards += sign
        g.discards_left = max(0, int(g.discards_left) + sign)
    elif joker == ids.J_CHAOS:
        g.free_rerolls = max(0, int(g.free_rerolls) + sign)


@jit
def add_joker(g: Any, joker: int, edition: int, stickers: int) -> int:
    """Puts a joker at the right end; its place."""
    if int(g.joker_count) >= _SPARE:
        g.error = ERR_JOKERS
        return -1
    i = int(g.joker_count)
    g.joker_count += 1
    g.joker[i] = joker
    g.joker_edition[i] = edition
    g.joker_sticker[i] = stickers
    g.joker_perish[i] = _PERISH_ROUNDS
    g.joker_value[i] = _start_value(joker)
    g.joker_extra[i] = 0
    if joker == ids.J_TODO_LIST:
        g.joker_extra[i] = pick_hand(g, keys.K_TO_DO, -1)
    elif joker == ids.J_YORICK:
        g.joker_extra[i] = 1
    elif joker == ids.J_LOYALTY_CARD:
        g.joker_extra[i] = int(g.hands_total)
    g.joker_sell[i] = joker_worth(g, i)
    g.joker_target[i] = i
    while_owned(g, joker, float(g.joker_value[i]), 1)
    return i


@jit
def remove_joker(g: Any, i: int) -> None:
    """Takes a joker away; those to its right move up."""
    if not joker_off(g, i):
        while_owned(g, i64(g.joker[i]), float(g.joker_value[i]), -1)
    for k in range(i, int(g.joker_count) - 1):
        _copy_place(g, k + 1, k)
    g.joker_count -= 1
    disabled = int(g.joker_disabled)
    if disabled == i:
        g.joker_disabled = -1
    elif disabled > i:
        g.joker_disabled = disabled - 1


@jit
def _copy_place(g: Any, a: int, b: int) -> None:
    g.joker[b] = g.joker[a]
    g.joker_edition[b] = g.joker_edition[a]
    g.joker_sticker[b] = g.joker_sticker[a]
    g.joker_perish[b] = g.joker_perish[a]
    g.joker_value[b] = g.joker_value[a]
    g.joker_extra[b] = g.joker_extra[a]
    g.joker_sell[b] = g.joker_sell[a]


@jit
def duplicate_joker(g: Any, i: int) -> int:
    """A copy of a joker with all it has grown to; the copy is not Negative."""
    if int(g.joker_count) >= _SPARE:
        g.error = ERR_JOKERS
        return -1
    k = int(g.joker_count)
    g.joker_count += 1
    _copy_place(g, i, k)
    if i64(g.joker_edition[k]) == ED_NEGATIVE:
        set_edition(g, k, ED_NONE)
    if not joker_off(g, k):
        while_owned(g, i64(g.joker[k]), float(g.joker_value[k]), 1)
    return k


@jit
def set_disabled(g: Any, i: int) -> None:
    """Crimson Heart disables the joker at a place and lets go of another; -1 for none. What it gave goes with it."""
    old = int(g.joker_disabled)
    g.joker_disabled = -1
    if old >= 0 and not joker_off(g, old):
        while_owned(g, i64(g.joker[old]), float(g.joker_value[old]), 1)
    if i >= 0 and not joker_off(g, i):
        while_owned(g, i64(g.joker[i]), float(g.joker_value[i]), -1)
    g.joker_disabled = i


@jit
def swap_jokers(g: Any, a: int, b: int) -> None:
    """Two jokers change places; what Crimson Heart disables goes with its joker."""
    _copy_place(g, a, _SPARE)
    _copy_place(g, b, a)
    _copy_place(g, _SPARE, b)
    if int(g.joker_disabled) == a:
        g.joker_disabled = b
    elif int(g.joker_disabled) == b:
        g.joker_disabled = a


@jit
def gain_joker(g: Any, source: int, rarity: int) -> int:
    """Draws a joker outside shop and packs, and gives it to the player; room is the caller's concern."""
    joker = pools.draw_joker(g, source, rarity)
    edition = pools.roll_edition(g, int(keys.EDITION[source]), 1.0, True)
    return add_joker(g, joker, edition, 0)


@jit
def add_consumable(g: Any, consumable: int, negative: bool) -> None:
    """Puts a consumable among the player's."""
    if int(g.consumable_count) >= MAX_CONSUMABLES:
        g.error = ERR_CONSUMABLES
        return
    i = int(g.consumable_count)
    g.consumable_count += 1
    g.consumable[i] = consumable
    g.consumable_negative[i] = 1 if negative else 0
    g.consumable_sell[i] = consumable_worth(g, i)


@jit
def remove_consumable(g: Any, i: int) -> None:
    """Takes a consumable away."""
    for k in range(i, int(g.consumable_count) - 1):
        g.consumable[k] = g.consumable[k + 1]
        g.consumable_negative[k] = g.consumable_negative[k + 1]
        g.consumable_sell[k] = g.consumable_sell[k + 1]
    g.consumable_count -= 1


@jit
def gain_tarot(g: Any, source: int) -> bool:
    """A tarot, where there is room."""
    if consumable_room(g) <= 0:
        return False
    add_consumable(g, pools.draw_tarot(g, source), False)
    return True


@jit
def gain_spectral(g: Any, source: int) -> bool:
    """A spectral, where there is room."""
    if consumable_room(g) <= 0:
        return False
    add_consumable(g, pools.draw_spectral(g, source), False)
    return True


@jit
def edition_chips_mult(edition: int) -> tuple[float, float, float]:
    """Chips added, mult added, mult multiplied by an edition."""
    if edition == ED_FOIL:
        return 50.0, 0.0, 1.0
    if edition == ED_HOLO:
        return 0.0, 10.0, 1.0
    if edition == ED_POLY:
        return 0.0, 0.0, 1.5
    return 0.0, 0.0, 1.0
