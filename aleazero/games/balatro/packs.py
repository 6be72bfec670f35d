"""Booster packs: what they hold. Cards are made one after another, and each keeps later ones from being the same.

Choosing cards and what becomes of them is the shop's and the player's concern.
"""

from __future__ import annotations

from typing import Any

from aleazero.games.balatro import ids, keys, pools, rng, tables
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import ED_NONE, G_CARD, G_CONSUMABLE, G_JOKER, NUM_HANDS

ARCANA, CELESTIAL, STANDARD, BUFFOON, SPECTRAL = range(5)


@jit
def fill_pack(g: Any, pack: int) -> None:
    """Opens a pack: its cards lie in `pack_item` and the fields beside it."""
    kind = int(tables.PACK_KIND[pack])
    g.pack_kind = kind
    g.pack_left = int(tables.PACK_CHOOSE[pack])
    g.pack_count = 0
    for i in range(int(tables.PACK_CARDS[pack])):
        g.pack_edition[i] = ED_NONE
        g.pack_sticker[i] = 0
        if kind == BUFFOON:
            g.pack_item[i] = pools.draw_joker(g, keys.S_BUF, 0)
            g.pack_what[i] = G_JOKER
            g.pack_sticker[i] = pools.roll_stickers(g, i64(g.pack_item[i]), False)
            g.pack_edition[i] = pools.roll_edition(g, int(keys.EDITION[keys.S_BUF]), 1.0, True)
        elif kind == STANDARD:
            g.pack_item[i] = 0
            g.pack_what[i] = G_CARD
            _playing_card(g, i)
        else:
            g.pack_item[i] = _consumable(g, kind, i)
            g.pack_what[i] = G_CONSUMABLE
        g.pack_count = i + 1


@jit
def _consumable(g: Any, kind: int, i: int) -> int:
    if kind == ARCANA:
        if pools.has_voucher(g, ids.V_OMEN_GLOBE) and rng.roll(g, keys.K_OMEN) > 0.8:
            found = pools.soul_roll(g, True, True, keys.K_SOUL_SPECTRAL)
            return found if found != 0 else pools.draw_spectral(g, keys.S_AR2)
        found = pools.soul_roll(g, True, False, keys.K_SOUL_TAROT)
        return found if found != 0 else pools.draw_tarot(g, keys.S_AR1)
    if kind == CELESTIAL:
        if i == 0 and pools.has_voucher(g, ids.V_TELESCOPE):
            hand = most_played(g)
            if hand >= 0:
                return int(tables.HAND_PLANET[hand])
        found = pools.soul_roll(g, False, True, keys.K_SOUL_PLANET)
        return found if found != 0 else pools.draw_planet(g, keys.S_PL1)
    found = pools.soul_roll(g, True, True, keys.K_SOUL_SPECTRAL)
    return found if found != 0 else pools.draw_spectral(g, keys.S_SPE)


@jit
def most_played(g: Any) -> int:
    """The poker hand played most this run, the better of equals; -1 if none was."""
    best, hand = 0, -1
    for h in range(NUM_HANDS):
        if i64(g.plays[h]) > best:
            best, hand = i64(g.plays[h]), h
    return hand


@jit
def _playing_card(g: Any, i: int) -> None:
    enhancement = 0
    if rng.roll(g, keys.K_STD_SET) > 0.6:
        enhancement = 1 + rng.pick(g, keys.K_ENHANCED_STA, 8, 0)
    front = rng.pick(g, keys.K_FRONT_STA, 52, 0)
    g.pack_card[i, 0] = tables.FRONT_RANK[front]
    g.pack_card[i, 1] = tables.FRONT_SUIT[front]
    g.pack_card[i, 2] = enhancement
    g.pack_edition[i] = pools.roll_edition(g, keys.K_STD_EDITION, 2.0, False)
    g.pack_card[i, 3] = 0
    if rng.roll(g, keys.K_STD_SEAL) > 1 - 0.02 * 10:
        g.pack_card[i, 3] = pools.seal_of(rng.roll(g, keys.K_STD_SEAL_TYPE))


@jit
def close_pack(g: Any) -> None:
    """What was not chosen is gone."""
    g.pack_count = 0
    g.pack_kind = -1
    g.pack_left = 0
