"""The course of a run: how it starts, and how one ante leads to the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro import create, ids, keys, pools, rng, tables
from aleazero.games.balatro.cards import full_deck, new_card, shuffle_deck, to_deck
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import (
    AT_GONE,
    CLUBS,
    DIAMONDS,
    E_STONE,
    F_PLAYED_THIS_ANTE,
    HEARTS,
    JACK,
    KING,
    MAX_CARDS,
    NUM_HANDS,
    P_BLIND,
    SPADES,
)

_SUITS = np.array([SPADES, HEARTS, CLUBS, DIAMONDS], np.int64)


@jit
def start(g: Any, seed: Any, length: int, deck: int, stake: int) -> None:
    """A new run in an empty record."""
    rng.set_seed(g, seed, length)
    g.deck, g.stake, g.ante, g.phase = deck, stake, 1, P_BLIND
    g.money, g.reroll_base = 4, 5
    g.round_hands, g.round_discards, g.hand_size = 4, 3, 8
    g.joker_slots, g.consumable_slots = 5, 2
    g.last_hand, g.first_hand, g.most_played = -1, -1, -1
    g.joker_disabled, g.pack_kind, g.ancient_suit = -1, -1, -1
    for h in range(NUM_HANDS):
        g.level[h] = 1
    if stake >= 5:
        g.round_discards -= 1
    _apply_deck(g)
    g.boss = pools.draw_boss(g)
    g.voucher = pools.draw_voucher(g, False)
    g.tag_small = pools.draw_tag(g)
    g.tag_big = pools.draw_tag(g)
    _make_deck(g)
    g.starting_cards = full_deck(g)
    shuffle_deck(g, keys.K_SHUFFLE)
    name_cards(g)
    choose_orbitals(g)


@jit
def _apply_deck(g: Any) -> None:
    deck = int(g.deck)
    if deck == ids.D_RED:
        g.round_discards += 1
    elif deck == ids.D_BLUE:
        g.round_hands += 1
    elif deck == ids.D_YELLOW:
        g.money += 10
    elif deck == ids.D_BLACK:
        g.round_hands -= 1
        g.joker_slots += 1
    elif deck == ids.D_MAGIC:
        redeem(g, ids.V_CRYSTAL_BALL)
        create.add_consumable(g, ids.C_FOOL, False)
        create.add_consumable(g, ids.C_FOOL, False)
    elif deck == ids.D_NEBULA:
        redeem(g, ids.V_TELESCOPE)
        g.consumable_slots -= 1
    elif deck == ids.D_GHOST:
        create.add_consumable(g, ids.C_HEX, False)
    elif deck == ids.D_ZODIAC:
        redeem(g, ids.V_TAROT_MERCHANT)
        redeem(g, ids.V_PLANET_MERCHANT)
        redeem(g, ids.V_OVERSTOCK_NORM)
    elif deck == ids.D_PAINTED:
        g.hand_size += 2
        g.joker_slots -= 1


@jit
def redeem(g: Any, voucher: int) -> None:
    """A voucher takes effect. Those that change odds and prices are looked up where these are made."""
    g.vouchers = int(g.vouchers) | (1 << voucher)
    if voucher == ids.V_GRABBER or voucher == ids.V_NACHO_TONG:
        g.round_hands += 1
    elif voucher == ids.V_WASTEFUL or voucher == ids.V_RECYCLOMANCY:
        g.round_discards += 1
    elif voucher == ids.V_CRYSTAL_BALL:
        g.consumable_slots += 1
    elif voucher == ids.V_ANTIMATTER:
        g.joker_slots += 1
    elif voucher == ids.V_PAINT_BRUSH or voucher == ids.V_PALETTE:
        g.hand_size += 1
    elif voucher == ids.V_REROLL_SURPLUS or voucher == ids.V_REROLL_GLUT:
        g.reroll_base -= 2
        g.reroll_cost = max(0, int(g.reroll_cost) - 2)
    elif voucher == ids.V_HIEROGLYPH:
        g.ante -= 1
        g.round_hands -= 1
    elif voucher == ids.V_PETROGLYPH:
        g.ante -= 1
        g.round_discards -= 1


@jit
def _make_deck(g: Any) -> None:
    """The starting cards, made in the order of their names; Erratic Deck draws each anew and sorts them."""
    deck = int(g.deck)
    counts = np.zeros(52, np.int64)
    for i in range(52):
        counts[rng.pick(g, keys.K_ERRATIC, 52, 0) if deck == ids.D_ERRATIC else i] += 1
    for front in range(52):
        rank, suit = int(tables.FRONT_RANK[front]), int(tables.FRONT_SUIT[front])
        if deck == ids.D_ABANDONED and JACK <= rank <= KING:
            continue
        if deck == ids.D_CHECKERED:
            suit = SPADES if suit in (CLUBS, SPADES) else HEARTS
        for _ in range(counts[front]):
            to_deck(g, new_card(g, rank, suit, 0, 0, 0))


@jit
def _pick_card(g: Any, key: int) -> int:
    """A card of the full deck that is not Stone; -1 where there is none (and nothing is drawn)."""
    found = np.zeros(MAX_CARDS, np.int64)
    n = 0
    for c in range(int(g.card_count)):
        if i64(g.place[c]) != AT_GONE and i64(g.enhancement[c]) != E_STONE:
            found[n] = c
            n += 1
    return int(found[rng.pick(g, key, n, 0)]) if n > 0 else -1


@jit
def name_cards(g: Any) -> None:
    """What The Idol, Mail-In Rebate, Ancient Joker and Castle look for until the next round."""
    g.idol_rank, g.idol_suit, g.mail_rank, g.castle_suit = 14, SPADES, 14, SPADES
    c = _pick_card(g, keys.K_IDOL)
    if c >= 0:
        g.idol_rank, g.idol_suit = i64(g.rank[c]), i64(g.suit[c])
    c = _pick_card(g, keys.K_MAIL)
    if c >= 0:
        g.mail_rank = i64(g.rank[c])
    others = np.zeros(4, np.int64)
    n = 0
    for i in range(4):
        # The first suit of a run is drawn as if Spades had been named before.
        last = int(g.ancient_suit) if int(g.ancient_suit) >= 0 else SPADES
        if int(_SUITS[i]) != last:
            others[n] = _SUITS[i]
            n += 1
    g.ancient_suit = int(others[rng.pick(g, keys.K_ANCIENT, n, 0)])
    c = _pick_card(g, keys.K_CASTLE)
    if c >= 0:
        g.castle_suit = i64(g.suit[c])


@jit
def choose_orbitals(g: Any) -> None:
    """The hands that Orbital Tags of this ante would raise: one draw for each blind, the boss's unused."""
    g.orbital_small = create.pick_hand(g, keys.K_ORBITAL, -1)
    g.orbital_big = create.pick_hand(g, keys.K_ORBITAL, -1)
    create.pick_hand(g, keys.K_ORBITAL, -1)


@jit
def boss_beaten(g: Any) -> None:
    """The next ante begins: its voucher is drawn before anything else."""
    g.ante += 1
    rng.forget_old_streams(g)
    g.voucher = pools.draw_voucher(g, False)
    for c in range(int(g.card_count)):
        g.card_flags[c] = i64(g.card_flags[c]) & ~F_PLAYED_THIS_ANTE


@jit
def next_blinds(g: Any) -> None:
    """At the cash-out after a boss: new tags and a new boss."""
    g.tag_small = pools.draw_tag(g)
    g.tag_big = pools.draw_tag(g)
    g.boss = pools.draw_boss(g)
    g.boss_off = 0
    g.boss_rerolls = 0
    choose_orbitals(g)
