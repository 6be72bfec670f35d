"""The shop: what is on the shelf, which packs lie beside it, and what all of it costs.

Buying and selling are in `trade`.
"""

from __future__ import annotations

from typing import Any

from aleazero.games.balatro import create, ids, keys, pools, rng, tables
from aleazero.games.balatro.cards import count_joker
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import (
    ED_FOIL,
    ED_HOLO,
    ED_NEGATIVE,
    ED_NONE,
    ED_POLY,
    G_CARD,
    G_CONSUMABLE,
    G_JOKER,
    ST_RENTAL,
)
from aleazero.games.balatro.packs import CELESTIAL


@jit
def shelf_size(g: Any) -> int:
    """How many cards the shelf holds."""
    size = 2
    if pools.has_voucher(g, ids.V_OVERSTOCK_NORM):
        size += 1
    if pools.has_voucher(g, ids.V_OVERSTOCK_PLUS):
        size += 1
    return size


@jit
def drop_tag(g: Any, i: int) -> None:
    """A tag is used up."""
    for k in range(i, int(g.tag_count) - 1):
        g.tags[k] = g.tags[k + 1]
        g.tag_hand[k] = g.tag_hand[k + 1]
    g.tag_count -= 1


@jit
def find_tag(g: Any, tag: int) -> int:
    """The place of the oldest tag of a kind, -1 for none."""
    for i in range(int(g.tag_count)):
        if i64(g.tags[i]) == tag:
            return i
    return -1


@jit
def rates(g: Any) -> tuple[float, float, float, float, float]:
    """How often the shelf holds jokers, tarots, planets, playing cards and spectrals."""
    tarot, planet, card, spectral = 4.0, 4.0, 0.0, 0.0
    if pools.has_voucher(g, ids.V_TAROT_TYCOON):
        tarot = 32.0
    elif pools.has_voucher(g, ids.V_TAROT_MERCHANT):
        tarot = 9.6
    if pools.has_voucher(g, ids.V_PLANET_TYCOON):
        planet = 32.0
    elif pools.has_voucher(g, ids.V_PLANET_MERCHANT):
        planet = 9.6
    if pools.has_voucher(g, ids.V_MAGIC_TRICK):
        card = 4.0
    if int(g.deck) == ids.D_GHOST:
        spectral = 2.0
    return 20.0, tarot, planet, card, spectral


@jit
def _shelf_joker(g: Any, i: int, source: int, rarity: int) -> None:
    joker = pools.draw_joker(g, source, rarity)
    g.shelf_kind[i] = G_JOKER
    g.shelf_id[i] = joker
    g.shelf_sticker[i] = pools.roll_stickers(g, joker, True)
    g.shelf_edition[i] = pools.roll_edition(g, int(keys.EDITION[source]), 1.0, True)


@jit
def _forced_joker(g: Any, i: int) -> bool:
    """An Uncommon or Rare Tag fills the place, for nothing; the oldest goes first."""
    for k in range(int(g.tag_count)):
        tag = i64(g.tags[k])
        if tag == ids.T_UNCOMMON:
            drop_tag(g, k)
            _shelf_joker(g, i, keys.S_UTA, 2)
            return True
        if tag == ids.T_RARE:
            drop_tag(g, k)
            _shelf_joker(g, i, keys.S_RTA, 3)
            return True
    return False


@jit
def _edition_tag(g: Any, i: int) -> bool:
    """The oldest edition tag gives its edition to a joker without one, for nothing."""
    if i64(g.shelf_kind[i]) != G_JOKER or i64(g.shelf_edition[i]) != ED_NONE:
        return False
    for k in range(int(g.tag_count)):
        tag, edition = i64(g.tags[k]), ED_NONE
        if tag == ids.T_FOIL:
            edition = ED_FOIL
        elif tag == ids.T_HOLO:
            edition = ED_HOLO
        elif tag == ids.T_POLYCHROME:
            edition = ED_POLY
        elif tag == ids.T_NEGATIVE:
            edition = ED_NEGATIVE
        if edition != ED_NONE:
            g.shelf_edition[i] = edition
            drop_tag(g, k)
            return True
    return False


@jit
def add_to_shelf(g: Any) -> None:
    """One more card on the shelf."""
    i = int(g.shelf_count)
    free = _forced_joker(g, i)
    if not free:
        _rolled_card(g, i)
    free = _edition_tag(g, i) or free
    g.shelf_count = i + 1
    g.shelf_cost[i] = 0 if free else shelf_price(g, i)


@jit
def _rolled_card(g: Any, i: int) -> None:
    joker, tarot, planet, card, spectral = rates(g)
    polled = rng.roll(g, keys.K_SHOP_TYPE) * (joker + tarot + planet + card + spectral)
    illusion = pools.has_voucher(g, ids.V_ILLUSION)
    enhanced = illusion and rng.roll(g, keys.K_ILLUSION) > 0.6
    g.shelf_edition[i] = ED_NONE
    g.shelf_sticker[i] = 0
    if polled <= joker:
        _shelf_joker(g, i, keys.S_SHO, 0)
    elif polled <= joker + tarot:
        g.shelf_kind[i] = G_CONSUMABLE
        g.shelf_id[i] = pools.draw_tarot(g, keys.S_SHO)
    elif polled <= joker + tarot + planet:
        g.shelf_kind[i] = G_CONSUMABLE
        g.shelf_id[i] = pools.draw_planet(g, keys.S_SHO)
    elif polled <= joker + tarot + planet + card:
        _shelf_playing_card(g, i, enhanced, illusion)
    else:
        g.shelf_kind[i] = G_CONSUMABLE
        g.shelf_id[i] = pools.draw_spectral(g, keys.S_SHO)


@jit
def _shelf_playing_card(g: Any, i: int, enhanced: bool, illusion: bool) -> None:
    g.shelf_kind[i] = G_CARD
    g.shelf_id[i] = 0
    g.shelf_card[i, 2] = 1 + rng.pick(g, keys.K_ENHANCED_SHO, 8, 0) if enhanced else 0
    front = rng.pick(g, keys.K_FRONT_SHO, 52, 0)
    g.shelf_card[i, 0] = tables.FRONT_RANK[front]
    g.shelf_card[i, 1] = tables.FRONT_SUIT[front]
    g.shelf_card[i, 3] = 0
    if illusion and rng.roll(g, keys.K_ILLUSION) > 0.8:
        r = rng.roll(g, keys.K_ILLUSION)
        g.shelf_edition[i] = ED_POLY if r > 0.85 else (ED_HOLO if r > 0.5 else ED_FOIL)


@jit
def shelf_price(g: Any, i: int) -> int:
    """What a card on the shelf costs."""
    kind, item, edition = i64(g.shelf_kind[i]), i64(g.shelf_id[i]), i64(g.shelf_edition[i])
    if kind == G_JOKER:
        return create.joker_price(g, item, edition, i64(g.shelf_sticker[i]) & ST_RENTAL)
    if kind == G_CARD:
        return create.price(g, 1, edition)
    planet = tables.FIRST_PLANET <= item < tables.FIRST_SPECTRAL
    if planet and count_joker(g, ids.J_ASTRONOMER) > 0:
        return 0
    return create.price(g, int(tables.CONSUMABLE_COST[item]), edition)


@jit
def booster_price(g: Any, pack: int) -> int:
    """What a pack costs."""
    if tables.PACK_KIND[pack] == CELESTIAL and count_joker(g, ids.J_ASTRONOMER) > 0:
        return 0
    return create.price(g, int(tables.PACK_COST[pack]), ED_NONE)


@jit
def stock(g: Any) -> None:
    """A fresh shop: shelf, packs, an extra voucher or free goods where a tag says so."""
    g.shelf_count = 0
    six = find_tag(g, ids.T_D_SIX)
    g.reroll_cost = int(g.reroll_base)
    if six >= 0:
        drop_tag(g, six)
        g.reroll_cost = 0
    g.free_rerolls = count_joker(g, ids.J_CHAOS)
    for _ in range(shelf_size(g)):
        add_to_shelf(g)
    for k in range(2):
        pack = pools.draw_booster(g)
        g.booster[k] = pack + 1
        g.booster_cost[k] = booster_price(g, pack)
    g.voucher_extra = 0
    voucher = find_tag(g, ids.T_VOUCHER)
    if voucher >= 0:
        drop_tag(g, voucher)
        g.voucher_extra = pools.draw_voucher(g, True)
    coupon = find_tag(g, ids.T_COUPON)
    if coupon >= 0:
        drop_tag(g, coupon)
        for i in range(int(g.shelf_count)):
            g.shelf_cost[i] = 0
        for k in range(2):
            g.booster_cost[k] = 0


@jit
def reprice(g: Any) -> None:
    """New prices after a voucher or a joker changed them; what is free stays free."""
    for i in range(int(g.shelf_count)):
        if i64(g.shelf_cost[i]) > 0:
            g.shelf_cost[i] = shelf_price(g, i)
    for k in range(2):
        if i64(g.booster[k]) > 0 and i64(g.booster_cost[k]) > 0:
            g.booster_cost[k] = booster_price(g, i64(g.booster[k]) - 1)


@jit
def clear(g: Any) -> None:
    """The shop closes; what was not bought may come again."""
    g.shelf_count = 0
    g.booster[0] = 0
    g.booster[1] = 0
    g.voucher_extra = 0
