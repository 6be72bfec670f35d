"""What may be drawn, and the drawing: jokers, consumables, vouchers, tags, bosses, packs, fronts and editions.

A pool keeps every entry in its place; what is not allowed now is a hole. A draw that hits a hole is drawn again from
a side stream of its own, so that the main stream moves on once whatever is allowed. A card is not allowed while any
copy of it exists, on a shelf, in an open pack or owned, unless Showman is there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro import ids, keys, rng, tables
from aleazero.games.balatro.cards import P_SHOWMAN, count_enhancement, passives
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import (
    E_STONE,
    ED_FOIL,
    ED_HOLO,
    ED_NEGATIVE,
    ED_NONE,
    ED_POLY,
    G_CONSUMABLE,
    G_JOKER,
    SEAL_BLUE,
    SEAL_GOLD,
    SEAL_PURPLE,
    SEAL_RED,
    ST_ETERNAL,
    ST_PERISHABLE,
    ST_RENTAL,
)


@jit
def has_voucher(g: Any, voucher: int) -> bool:
    """Whether a voucher was bought."""
    return (int(g.vouchers) >> voucher) & 1 != 0


@jit
def joker_exists(g: Any, joker: int) -> bool:
    """A copy is owned, on the shelf or in the open pack."""
    for i in range(int(g.joker_count)):
        if i64(g.joker[i]) == joker:
            return True
    for i in range(int(g.shelf_count)):
        if i64(g.shelf_kind[i]) == G_JOKER and i64(g.shelf_id[i]) == joker:
            return True
    for i in range(int(g.pack_count)):  # noqa: SIM110 - compiled code has no generators
        if i64(g.pack_what[i]) == G_JOKER and i64(g.pack_item[i]) == joker:
            return True
    return False


@jit
def consumable_exists(g: Any, consumable: int) -> bool:
    """A copy is owned, being used, on the shelf or in the open pack."""
    if int(g.in_use) == consumable:
        return True
    for i in range(int(g.consumable_count)):
        if i64(g.consumable[i]) == consumable:
            return True
    for i in range(int(g.shelf_count)):
        if i64(g.shelf_kind[i]) == G_CONSUMABLE and i64(g.shelf_id[i]) == consumable:
            return True
    for i in range(int(g.pack_count)):
        if i64(g.pack_what[i]) == G_CONSUMABLE and i64(g.pack_item[i]) == consumable:
            return True
    return False


@jit
def _joker_allowed(g: Any, joker: int, showman: bool) -> bool:
    if not showman and joker_exists(g, joker):
        return False
    extinct = int(g.pool_flags) & 1 != 0
    if tables.JOKER_NEEDS_FLAG[joker] != 0 and not extinct:
        return False
    if tables.JOKER_BLOCKED_BY[joker] != 0 and extinct:
        return False
    needed = int(tables.JOKER_NEEDS_CARD[joker])
    return needed == 0 or count_enhancement(g, needed) > 0


@jit
def _consumable_allowed(g: Any, consumable: int, showman: bool) -> bool:
    if consumable == ids.C_SOUL or consumable == ids.C_BLACK_HOLE:
        return False
    if not showman and consumable_exists(g, consumable):
        return False
    return tables.PLANET_SECRET[consumable] == 0 or i64(g.plays[int(tables.PLANET_HAND[consumable])]) > 0


@jit
def _draw(g: Any, key: int, allowed: Any, count: int, otherwise: int) -> int:
    """A place whose `allowed` is true; `otherwise` where none is."""
    some = False
    for i in range(count):
        some = some or allowed[i]
    if not some:
        return otherwise
    place = rng.pick(g, key, count, 0)
    times = 1
    while not allowed[place]:
        times += 1
        place = rng.pick(g, key, count, times)
    return place


@jit
def draw_joker(g: Any, source: int, rarity: int) -> int:
    """A joker; rarity 1..4, or 0 to roll for it. A legendary one still rolls, as the game does."""
    if rarity == 0 or rarity == 4:
        r = rng.roll(g, int(keys.RARITY[source]))
        if rarity == 0:
            rarity = 3 if r > 0.95 else (2 if r > 0.7 else 1)
    showman = passives(g) & P_SHOWMAN != 0
    count = int(tables.POOL_SIZE[rarity - 1])
    allowed = np.zeros(count, np.bool_)
    for i in range(count):
        allowed[i] = _joker_allowed(g, int(tables.POOL[rarity - 1, i]), showman)
    key = keys.K_LEGENDARY if rarity == 4 else int(keys.JOKER[source, rarity - 1])
    place = _draw(g, key, allowed, count, -1)
    return ids.J_JOKER if place < 0 else int(tables.POOL[rarity - 1, place])


@jit
def draw_consumable(g: Any, first: int, count: int, key: int, otherwise: int) -> int:
    """A consumable out of `count` from `first` on."""
    showman = passives(g) & P_SHOWMAN != 0
    allowed = np.zeros(count, np.bool_)
    for i in range(count):
        allowed[i] = _consumable_allowed(g, first + i, showman)
    place = _draw(g, key, allowed, count, -1)
    return otherwise if place < 0 else first + place


@jit
def draw_tarot(g: Any, source: int) -> int:
    """A tarot."""
    return draw_consumable(g, 1, tables.NUM_TAROTS, int(keys.TAROT[source]), ids.C_STRENGTH)


@jit
def draw_planet(g: Any, source: int) -> int:
    """A planet."""
    return draw_consumable(g, tables.FIRST_PLANET, tables.NUM_PLANETS, int(keys.PLANET[source]), ids.C_PLUTO)


@jit
def draw_spectral(g: Any, source: int) -> int:
    """A spectral."""
    key = int(keys.SPECTRAL[source])
    return draw_consumable(g, tables.FIRST_SPECTRAL, tables.NUM_SPECTRALS, key, ids.C_INCANTATION)


@jit
def soul_roll(g: Any, tarot: bool, planet: bool, key: int) -> int:
    """The Soul or Black Hole in place of a pack's card, or 0. A spectral card rolls for both; Black Hole wins."""
    showman = passives(g) & P_SHOWMAN != 0
    found = 0
    if tarot and (showman or not consumable_exists(g, ids.C_SOUL)) and rng.roll(g, key) > 0.997:
        found = ids.C_SOUL
    if planet and (showman or not consumable_exists(g, ids.C_BLACK_HOLE)) and rng.roll(g, key) > 0.997:
        found = ids.C_BLACK_HOLE
    return found


@jit
def edition_rate(g: Any) -> float:
    """How much more often editions come: Hone and Glow Up."""
    if has_voucher(g, ids.V_GLOW_UP):
        return 4.0
    return 2.0 if has_voucher(g, ids.V_HONE) else 1.0


@jit
def roll_edition(g: Any, key: int, factor: float, negative: bool) -> int:
    """An edition at the listed odds, or none."""
    r = rng.roll(g, key)
    rate = edition_rate(g) * factor
    if negative and r > 1 - 0.003 * factor:
        return ED_NEGATIVE
    if r > 1 - 0.006 * rate:
        return ED_POLY
    if r > 1 - 0.02 * rate:
        return ED_HOLO
    return ED_FOIL if r > 1 - 0.04 * rate else ED_NONE


@jit
def sure_edition(g: Any, key: int) -> int:
    """Foil, Holographic or Polychrome: Aura and The Wheel of Fortune."""
    r = rng.roll(g, key)
    return ED_POLY if r > 1 - 0.006 * 25 else (ED_HOLO if r > 1 - 0.02 * 25 else ED_FOIL)


@jit
def roll_stickers(g: Any, joker: int, shop: bool) -> int:
    """Stickers of a shop's or pack's joker. The first roll is made at every stake."""
    p = rng.roll(g, keys.K_SHOP_STICKER if shop else keys.K_PACK_STICKER)
    stickers = 0
    stake = int(g.stake)
    if stake >= 4 and p > 0.7:
        if tables.JOKER_ETERNAL[joker] != 0:
            stickers |= ST_ETERNAL
    elif stake >= 7 and 0.4 < p <= 0.7 and tables.JOKER_PERISHABLE[joker] != 0:
        stickers |= ST_PERISHABLE
    if stake >= 8 and rng.roll(g, keys.K_SHOP_RENTAL if shop else keys.K_PACK_RENTAL) > 0.7:
        stickers |= ST_RENTAL
    return stickers


@jit
def seal_of(r: float) -> int:
    """The seal that a roll gives."""
    if r > 0.75:
        return SEAL_RED
    if r > 0.5:
        return SEAL_BLUE
    return SEAL_GOLD if r > 0.25 else SEAL_PURPLE


@jit
def draw_enhancement_without_stone(g: Any, key: int) -> int:
    """One of the seven enhancements other than Stone."""
    e = 1 + rng.pick(g, key, 7, 0)
    return e + 1 if e >= E_STONE else e


@jit
def draw_voucher(g: Any, from_tag: bool) -> int:
    """A voucher not owned, not shown, whose requirement is owned."""
    allowed = np.zeros(tables.NUM_VOUCHERS, np.bool_)
    for i in range(tables.NUM_VOUCHERS):
        v = i + 1
        needs = int(tables.VOUCHER_NEEDS[v])
        free = not has_voucher(g, v) and (needs == 0 or has_voucher(g, needs))
        allowed[i] = free and not (from_tag and v == int(g.voucher))
    place = _draw(g, keys.K_VOUCHER_TAG if from_tag else keys.K_VOUCHER, allowed, tables.NUM_VOUCHERS, -1)
    return ids.V_BLANK if place < 0 else place + 1


@jit
def draw_tag(g: Any) -> int:
    """A tag allowed at this ante."""
    allowed = np.zeros(tables.NUM_TAGS, np.bool_)
    for i in range(tables.NUM_TAGS):
        allowed[i] = tables.TAG_ANTE[i + 1] <= int(g.ante)
    place = _draw(g, keys.K_TAG, allowed, tables.NUM_TAGS, -1)
    return ids.T_HANDY if place < 0 else place + 1


@jit
def draw_boss(g: Any) -> int:
    """A boss among those used least often this run."""
    ante = int(g.ante)
    showdown = ante % 8 == 0 and ante >= 2
    least, count = 127, 0
    for i in range(len(tables.BOSSES)):
        b = int(tables.BOSSES[i])
        if tables.BLIND_SHOWDOWN[b] == showdown and (showdown or tables.BLIND_ANTE[b] <= max(1, ante)):
            least = min(least, i64(g.boss_uses[b]))
    eligible = np.zeros(len(tables.BOSSES), np.int64)
    for i in range(len(tables.BOSSES)):
        b = int(tables.BOSSES[i])
        fits = tables.BLIND_SHOWDOWN[b] == showdown and (showdown or tables.BLIND_ANTE[b] <= max(1, ante))
        if fits and i64(g.boss_uses[b]) == least:
            eligible[count] = b
            count += 1
    boss = int(eligible[rng.pick(g, keys.K_BOSS, count, 0)])
    g.boss_uses[boss] += 1
    return boss


@jit
def draw_booster(g: Any) -> int:
    """A pack by weight. The first of a run is a Buffoon pack and draws nothing."""
    if int(g.first_pack) == 0:
        g.first_pack = 1
        for i in range(len(tables.BOOSTER_PACK)):
            if tables.PACK_KIND[tables.BOOSTER_PACK[i]] == 3:
                return int(tables.BOOSTER_PACK[i])
    total = 0.0
    for i in range(len(tables.BOOSTER_WEIGHT)):
        total += tables.BOOSTER_WEIGHT[i]
    poll = rng.roll(g, keys.K_SHOP_PACK) * total
    reached = 0.0
    for i in range(len(tables.BOOSTER_WEIGHT)):
        weight = tables.BOOSTER_WEIGHT[i]
        reached += weight
        if reached >= poll and reached - weight <= poll:
            return int(tables.BOOSTER_PACK[i])
    return int(tables.BOOSTER_PACK[len(tables.BOOSTER_PACK) - 1])
