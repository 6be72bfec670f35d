"""Tarots, planets and spectrals: when they can be used, and what they do.

Targets are the cards at the `selected` places of the hand, left to right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro import cards, create, ids, keys, pools, rng, tables
from aleazero.games.balatro.bosses import debuff_card
from aleazero.games.balatro.cards import odds, passives
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.jokers_before import card_added
from aleazero.games.balatro.jokers_events import each_grows
from aleazero.games.balatro.layout import (
    CLUBS,
    DIAMONDS,
    E_BONUS,
    E_GLASS,
    E_GOLD,
    E_LUCKY,
    E_MULT,
    E_STEEL,
    E_STONE,
    E_WILD,
    ED_NEGATIVE,
    ED_NONE,
    ED_POLY,
    HEARTS,
    MAX_HAND,
    MAX_JOKERS,
    NUM_HANDS,
    SEAL_BLUE,
    SEAL_GOLD,
    SEAL_PURPLE,
    SEAL_RED,
    SPADES,
    ST_ETERNAL,
)
from aleazero.games.balatro.scoring import destroyed

_OUIJA_RANKS = np.array([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14], np.int64)
_SIGIL_SUITS = np.array([SPADES, HEARTS, DIAMONDS, CLUBS], np.int64)


@jit
def chosen_count(g: Any) -> int:
    """How many cards are selected."""
    bits, n = int(g.selected), 0
    while bits != 0:
        n += bits & 1
        bits >>= 1
    return n


@jit
def _plain_jokers(g: Any, out: Any) -> int:
    """The jokers without edition."""
    n = 0
    for i in range(int(g.joker_count)):
        if i64(g.joker_edition[i]) == ED_NONE:
            out[n] = i
            n += 1
    return n


@jit
def can_use(g: Any, item: int, owned: bool) -> bool:
    """Whether a consumable could be used now; `owned` ones make room for what they create."""
    n = chosen_count(g)
    least, most = int(tables.SELECT_LEAST[item]), int(tables.SELECT_MOST[item])
    if most > 0:
        if item == ids.C_AURA and n == 1:
            c = _selected_card(g, 0)
            return i64(g.edition[c]) == ED_NONE
        return least <= n <= most
    free = create.consumable_room(g) + (1 if owned else 0)
    if item == ids.C_FOOL:
        return free > 0 and int(g.last_consumable) > 0 and int(g.last_consumable) != ids.C_FOOL
    if item == ids.C_HIGH_PRIESTESS or item == ids.C_EMPEROR:
        return free > 0
    if item == ids.C_JUDGEMENT or item == ids.C_WRAITH or item == ids.C_SOUL:
        return create.joker_room(g) > 0
    if item == ids.C_ANKH:
        return int(g.joker_count) > 0 and int(g.joker_slots) > 1
    if item == ids.C_WHEEL_OF_FORTUNE or item == ids.C_ECTOPLASM or item == ids.C_HEX:
        return _plain_jokers(g, np.zeros(MAX_JOKERS, np.int64)) > 0
    if item == ids.C_FAMILIAR or item == ids.C_GRIM or item == ids.C_INCANTATION:
        return int(g.hand_count) > 1
    if item == ids.C_IMMOLATE or item == ids.C_SIGIL or item == ids.C_OUIJA:
        return int(g.hand_count) > 1
    return True


@jit
def _selected_card(g: Any, k: int) -> int:
    """The k-th selected card."""
    for i in range(int(g.hand_count)):
        if int(g.selected) >> i & 1 != 0:
            if k == 0:
                return i64(g.hand[i])
            k -= 1
    return -1


@jit
def use(g: Any, item: int) -> None:
    """A consumable takes effect; the caller has taken it away. It may not be drawn while it does."""
    g.in_use = item
    if tables.FIRST_PLANET <= item < tables.FIRST_SPECTRAL:
        g.level[int(tables.PLANET_HAND[item])] += 1
        g.planets_seen = int(g.planets_seen) | (1 << (item - tables.FIRST_PLANET))
        each_grows(g, ids.J_CONSTELLATION, 0.1)
    elif int(tables.SELECT_MOST[item]) > 0:
        _on_cards(g, item)
    elif item < tables.FIRST_PLANET:
        _tarot(g, item)
    elif item == ids.C_BLACK_HOLE:
        for h in range(NUM_HANDS):
            g.level[h] += 1
    else:
        _on_jokers(g, item)
        _on_hand(g, item)
    if item < tables.FIRST_PLANET:
        g.tarots_used += 1
    if item < tables.FIRST_SPECTRAL:
        g.last_consumable = item
    g.in_use = 0
    g.selected = 0


@jit
def _tarot(g: Any, item: int) -> None:
    """Tarots that need no cards."""
    if item == ids.C_FOOL:
        create.add_consumable(g, int(g.last_consumable), False)
    elif item == ids.C_HIGH_PRIESTESS:
        for _ in range(min(2, create.consumable_room(g))):
            create.add_consumable(g, pools.draw_planet(g, keys.S_PRI), False)
    elif item == ids.C_EMPEROR:
        for _ in range(min(2, create.consumable_room(g))):
            create.add_consumable(g, pools.draw_tarot(g, keys.S_EMP), False)
    elif item == ids.C_HERMIT:
        g.money += max(0, min(20, int(g.money)))
    elif item == ids.C_TEMPERANCE:
        worth = 0
        for i in range(int(g.joker_count)):
            worth += i64(g.joker_sell[i])
        g.money += min(50, worth)
    elif item == ids.C_JUDGEMENT:
        create.gain_joker(g, keys.S_JUD, 0)
    elif item == ids.C_WHEEL_OF_FORTUNE and rng.roll(g, keys.K_WHEEL_OF_FORTUNE) < odds(g) / 4.0:
        found = np.zeros(MAX_JOKERS, np.int64)
        n = _plain_jokers(g, found)
        i = int(found[rng.pick(g, keys.K_WHEEL_OF_FORTUNE, n, 0)])
        create.set_edition(g, i, pools.sure_edition(g, keys.K_WHEEL_OF_FORTUNE))


@jit
def _enhancement_of(item: int) -> int:
    if item == ids.C_MAGICIAN:
        return E_LUCKY
    if item == ids.C_EMPRESS:
        return E_MULT
    if item == ids.C_HEIROPHANT:
        return E_BONUS
    if item == ids.C_LOVERS:
        return E_WILD
    if item == ids.C_CHARIOT:
        return E_STEEL
    if item == ids.C_JUSTICE:
        return E_GLASS
    if item == ids.C_DEVIL:
        return E_GOLD
    return E_STONE if item == ids.C_TOWER else 0


@jit
def _suit_of(item: int) -> int:
    if item == ids.C_STAR:
        return DIAMONDS
    if item == ids.C_MOON:
        return CLUBS
    if item == ids.C_SUN:
        return HEARTS
    return SPADES if item == ids.C_WORLD else -1


@jit
def _seal_of(item: int) -> int:
    if item == ids.C_TALISMAN:
        return SEAL_GOLD
    if item == ids.C_DEJA_VU:
        return SEAL_RED
    if item == ids.C_TRANCE:
        return SEAL_BLUE
    return SEAL_PURPLE if item == ids.C_MEDIUM else 0


@jit
def _on_cards(g: Any, item: int) -> None:
    """Consumables that change the selected cards."""
    n = chosen_count(g)
    chosen = np.zeros(MAX_HAND, np.int64)
    for k in range(n):
        chosen[k] = _selected_card(g, k)
    if item == ids.C_DEATH:
        _become(g, int(chosen[0]), int(chosen[1]))
        return
    if item == ids.C_CRYPTID:
        for _ in range(2):
            made = cards.copy_card(g, int(chosen[0]))
            if made >= 0:
                cards.to_hand(g, made)
                debuff_card(g, made)
                card_added(g)
        return
    for k in range(n):
        c = int(chosen[k])
        if item == ids.C_STRENGTH:
            g.rank[c] = cards.next_rank(i64(g.rank[c]))
        elif item == ids.C_HANGED_MAN:
            cards.out_of_hand(g, c, 0)
            destroyed(g, c, passives(g))
            continue
        elif item == ids.C_AURA:
            g.edition[c] = pools.sure_edition(g, keys.K_AURA)
        elif _enhancement_of(item) > 0:
            g.enhancement[c] = _enhancement_of(item)
        elif _suit_of(item) >= 0:
            g.suit[c] = _suit_of(item)
        elif _seal_of(item) > 0:
            g.seal[c] = _seal_of(item)
        debuff_card(g, c)


@jit
def _become(g: Any, a: int, b: int) -> None:
    """Card `a` becomes a copy of card `b`."""
    g.rank[a] = g.rank[b]
    g.suit[a] = g.suit[b]
    g.enhancement[a] = g.enhancement[b]
    g.edition[a] = g.edition[b]
    g.seal[a] = g.seal[b]
    g.bonus[a] = g.bonus[b]
    debuff_card(g, a)


@jit
def _on_jokers(g: Any, item: int) -> None:
    """Spectrals that make or change jokers."""
    found = np.zeros(MAX_JOKERS, np.int64)
    if item == ids.C_WRAITH:
        create.gain_joker(g, keys.S_WRA, 3)
        g.money = min(0, int(g.money))
    elif item == ids.C_SOUL:
        create.gain_joker(g, keys.S_SOU, 4)
    elif item == ids.C_ECTOPLASM:
        n = _plain_jokers(g, found)
        create.set_edition(g, int(found[rng.pick(g, keys.K_ECTOPLASM, n, 0)]), ED_NEGATIVE)
        g.ectoplasms += 1
        g.hand_size -= int(g.ectoplasms)
    elif item == ids.C_HEX:
        n = _plain_jokers(g, found)
        kept = int(found[rng.pick(g, keys.K_HEX, n, 0)])
        create.set_edition(g, kept, ED_POLY)
        _destroy_others(g, kept)
    elif item == ids.C_ANKH:
        kept = rng.pick(g, keys.K_ANKH, int(g.joker_count), 0)
        kept = _destroy_others(g, kept)
        create.duplicate_joker(g, kept)


@jit
def _destroy_others(g: Any, kept: int) -> int:
    """Destroys every other joker that is not eternal; where the kept one now is."""
    for i in range(int(g.joker_count) - 1, -1, -1):
        if i != kept and i64(g.joker_sticker[i]) & ST_ETERNAL == 0:
            create.remove_joker(g, i)
            if i < kept:
                kept -= 1
    return kept


@jit
def _on_hand(g: Any, item: int) -> None:
    """Spectrals that act on the held cards."""
    if item == ids.C_SIGIL:
        suit = int(_SIGIL_SUITS[rng.pick(g, keys.K_SIGIL, 4, 0)])
        for i in range(int(g.hand_count)):
            g.suit[i64(g.hand[i])] = suit
            debuff_card(g, i64(g.hand[i]))
    elif item == ids.C_OUIJA:
        rank = int(_OUIJA_RANKS[rng.pick(g, keys.K_OUIJA, 13, 0)])
        for i in range(int(g.hand_count)):
            g.rank[i64(g.hand[i])] = rank
            debuff_card(g, i64(g.hand[i]))
        g.hand_size -= 1
    elif item == ids.C_IMMOLATE:
        pool = np.zeros(MAX_HAND, np.int64)
        n = cards.held(g, pool)
        rng.shuffle(g, keys.K_IMMOLATE, pool, n)
        for i in range(min(5, n)):
            cards.out_of_hand(g, int(pool[i]), 0)
            destroyed(g, int(pool[i]), passives(g))
        g.money += 20
    elif item == ids.C_FAMILIAR:
        _destroy_one(g)
        for _ in range(3):
            rank = 11 + rng.pick(g, keys.K_FAMILIAR, 3, 0)
            _add_enhanced(g, rank, keys.K_FAMILIAR)
    elif item == ids.C_GRIM:
        _destroy_one(g)
        for _ in range(2):
            _add_enhanced(g, 14, keys.K_GRIM)
    elif item == ids.C_INCANTATION:
        _destroy_one(g)
        for _ in range(4):
            rank = 2 + rng.pick(g, keys.K_INCANTATION, 9, 0)
            _add_enhanced(g, rank, keys.K_INCANTATION)


@jit
def _destroy_one(g: Any) -> None:
    pool = np.zeros(MAX_HAND, np.int64)
    n = cards.held(g, pool)
    c = int(pool[rng.pick(g, keys.K_RANDOM_DESTROY, n, 0)])
    cards.out_of_hand(g, c, 0)
    destroyed(g, c, passives(g))


@jit
def _add_enhanced(g: Any, rank: int, key: int) -> None:
    """A card of a rank, a drawn suit and a drawn enhancement other than Stone joins the hand."""
    suit = int(_SIGIL_SUITS[rng.pick(g, key, 4, 0)])
    made = cards.new_card(g, rank, suit, pools.draw_enhancement_without_stone(g, keys.K_SPE_CARD), 0, 0)
    if made >= 0:
        cards.to_hand(g, made)
        debuff_card(g, made)
        card_added(g)
