"""Jokers that act once a hand, after its cards: what they add to chips and mult, or multiply mult by."""

from __future__ import annotations

from typing import Any

from aleazero.games.balatro import create, ids, keys, rng
from aleazero.games.balatro.cards import (
    count_enhancement,
    full_deck,
    is_suit,
    rank_of,
    suit_for_flush,
)
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import (
    ACE,
    CLUBS,
    DIAMONDS,
    E_STEEL,
    E_STONE,
    E_WILD,
    H_FLUSH,
    H_FOUR,
    H_PAIR,
    H_STRAIGHT,
    H_STRAIGHT_FLUSH,
    H_THREE,
    H_TWO_PAIR,
    HEARTS,
    SPADES,
)

# Bull and Bootstraps count the money there was when the hand was played. In the game's own code what a Gold seal or a
# Lucky card has paid in this very hand is already counted; the shared vectors, made by three public calculators, leave
# it out (c1425), and they decide here.
_COUNT_THIS_HAND = False


@jit
def _money_seen(g: Any) -> int:
    return max(0, int(g.money) if _COUNT_THIS_HAND else int(g.money_before))


@jit
def on_hand(g: Any, j: int, hand: int, contained: int, passive: int) -> None:
    """A joker's turn after the cards."""
    t = i64(g.joker_target[j])
    if t < 0:
        return
    joker = i64(g.joker[t])
    _by_contained(g, joker, contained)
    _by_counter(g, joker, t)
    _by_round(g, joker, hand)
    _by_possession(g, joker, t)
    _by_cards(g, joker, contained, passive)


@jit
def _by_contained(g: Any, joker: int, contained: int) -> None:
    pair, three = contained >> H_PAIR & 1 != 0, contained >> H_THREE & 1 != 0
    straight, flush = contained >> H_STRAIGHT & 1 != 0, contained >> H_FLUSH & 1 != 0
    two_pair = contained >> H_TWO_PAIR & 1 != 0
    if joker == ids.J_JOKER:
        g.mult += 4.0
    elif joker == ids.J_JOLLY and pair:
        g.mult += 8.0
    elif joker == ids.J_ZANY and three:
        g.mult += 12.0
    elif joker == ids.J_MAD and two_pair:
        g.mult += 10.0
    elif joker == ids.J_CRAZY and straight:
        g.mult += 12.0
    elif joker == ids.J_DROLL and flush:
        g.mult += 10.0
    elif joker == ids.J_SLY and pair:
        g.chips += 50.0
    elif joker == ids.J_WILY and three:
        g.chips += 100.0
    elif joker == ids.J_CLEVER and two_pair:
        g.chips += 80.0
    elif joker == ids.J_DEVIOUS and straight:
        g.chips += 100.0
    elif joker == ids.J_CRAFTY and flush:
        g.chips += 80.0
    elif joker == ids.J_DUO and pair:
        g.mult *= 2.0
    elif joker == ids.J_TRIO and three:
        g.mult *= 3.0
    elif joker == ids.J_FAMILY and contained >> H_FOUR & 1 != 0:
        g.mult *= 4.0
    elif joker == ids.J_ORDER and straight:
        g.mult *= 3.0
    elif joker == ids.J_TRIBE and flush:
        g.mult *= 2.0


@jit
def _by_counter(g: Any, joker: int, t: int) -> None:
    """Jokers that give what they have grown to."""
    value = float(g.joker_value[t])
    if (
        joker == ids.J_CEREMONIAL
        or joker == ids.J_RIDE_THE_BUS
        or joker == ids.J_GREEN_JOKER
        or joker == ids.J_RED_CARD
        or joker == ids.J_FLASH
        or joker == ids.J_POPCORN
        or joker == ids.J_TROUSERS
    ):
        g.mult += value
    elif (
        joker == ids.J_RUNNER
        or joker == ids.J_ICE_CREAM
        or joker == ids.J_SQUARE
        or joker == ids.J_CASTLE
        or joker == ids.J_WEE
    ):
        g.chips += value
    elif (
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
        or joker == ids.J_RAMEN
    ):
        if value > 1.0:
            g.mult *= value
    elif joker == ids.J_YORICK:
        if i64(g.joker_extra[t]) > 1:
            g.mult *= float(g.joker_extra[t])
    elif joker == ids.J_LOYALTY_CARD and (int(g.hands_total) - i64(g.joker_extra[t])) % 6 == 5:
        g.mult *= 4.0


@jit
def _by_round(g: Any, joker: int, hand: int) -> None:
    """Jokers that look at the round or the run."""
    if joker == ids.J_HALF:
        if int(g.played_count) <= 3:
            g.mult += 20.0
    elif joker == ids.J_BANNER:
        g.chips += 30.0 * max(0, int(g.discards_left))
    elif joker == ids.J_MYSTIC_SUMMIT:
        if int(g.discards_left) == 0:
            g.mult += 15.0
    elif joker == ids.J_MISPRINT:
        g.mult += float(rng.pick(g, keys.K_MISPRINT, 24, 0))
    elif joker == ids.J_GROS_MICHEL:
        g.mult += 15.0
    elif joker == ids.J_CAVENDISH:
        g.mult *= 3.0
    elif joker == ids.J_SUPERNOVA:
        g.mult += float(g.plays[hand])
    elif joker == ids.J_CARD_SHARP:
        if i64(g.round_plays[hand]) > 1:
            g.mult *= 3.0
    elif joker == ids.J_ACROBAT:
        if int(g.hands_left) == 0:
            g.mult *= 3.0
    elif joker == ids.J_FORTUNE_TELLER:
        g.mult += float(g.tarots_used)
    elif joker == ids.J_THROWBACK:
        g.mult *= 1.0 + 0.25 * int(g.skips)
    elif joker == ids.J_STUNTMAN:
        g.chips += 250.0
    elif joker == ids.J_VAGABOND:
        if int(g.money_before) <= 4:
            create.gain_tarot(g, keys.S_VAG)
    elif joker == ids.J_MATADOR and int(g.boss_fired) != 0:
        g.money += 8


@jit
def _by_possession(g: Any, joker: int, t: int) -> None:
    """Jokers that look at money, jokers and the full deck."""
    if joker == ids.J_STENCIL:
        free = int(g.joker_slots) - int(g.joker_count)
        for i in range(int(g.joker_count)):
            if i64(g.joker[i]) == ids.J_STENCIL:
                free += 1
        if free > 1:
            g.mult *= float(free)
    elif joker == ids.J_ABSTRACT:
        g.mult += 3.0 * int(g.joker_count)
    elif joker == ids.J_BULL:
        g.chips += 2.0 * _money_seen(g)
    elif joker == ids.J_BOOTSTRAPS:
        g.mult += 2.0 * (_money_seen(g) // 5)
    elif joker == ids.J_SWASHBUCKLER:
        for i in range(int(g.joker_count)):
            if i != t:
                g.mult += float(g.joker_sell[i])
    elif joker == ids.J_BLUE_JOKER:
        g.chips += 2.0 * int(g.deck_count)
    elif joker == ids.J_EROSION:
        g.mult += 4.0 * max(0, int(g.starting_cards) - full_deck(g))
    elif joker == ids.J_STEEL_JOKER:
        g.mult *= 1.0 + 0.2 * count_enhancement(g, E_STEEL)
    elif joker == ids.J_STONE:
        g.chips += 25.0 * count_enhancement(g, E_STONE)
    elif joker == ids.J_DRIVERS_LICENSE and count_enhancement(g, 0) >= 16:
        g.mult *= 3.0


@jit
def _by_cards(g: Any, joker: int, contained: int, passive: int) -> None:
    """Jokers that look at the cards of the hand together."""
    if joker == ids.J_BLACKBOARD:
        for i in range(int(g.hand_count)):
            c = i64(g.hand[i])
            if not suit_for_flush(g, c, CLUBS, passive) and not suit_for_flush(g, c, SPADES, passive):
                return
        g.mult *= 3.0
    elif joker == ids.J_FLOWER_POT:
        if _suits_seen(g, passive) == 15:
            g.mult *= 3.0
    elif joker == ids.J_SEEING_DOUBLE:
        if _sees_double(g, passive):
            g.mult *= 2.0
    elif joker == ids.J_SEANCE:
        if contained >> H_STRAIGHT_FLUSH & 1 != 0:
            create.gain_spectral(g, keys.S_SEA)
    elif joker == ids.J_SUPERPOSITION and contained >> H_STRAIGHT & 1 != 0:
        for i in range(int(g.played_count)):
            if i64(g.scoring[i]) != 0 and rank_of(g, i64(g.played[i])) == ACE:
                create.gain_tarot(g, keys.S_SUP)
                return


@jit
def _suits_seen(g: Any, passive: int) -> int:
    """The suits of the scoring cards as bits; each card fills one that is still missing, Wild cards last."""
    seen = 0
    for wild in range(2):
        for i in range(int(g.played_count)):
            c = i64(g.played[i])
            if i64(g.scoring[i]) == 0 or (i64(g.enhancement[c]) == E_WILD) != (wild == 1):
                continue
            for suit in (HEARTS, DIAMONDS, SPADES, CLUBS):
                fits = is_suit(g, c, suit, passive) if wild == 1 else suit_for_flush(g, c, suit, passive)
                if fits and seen >> suit & 1 == 0:
                    seen |= 1 << suit
                    break
    return seen


@jit
def _sees_double(g: Any, passive: int) -> bool:
    seen = 0
    for i in range(int(g.played_count)):
        c = i64(g.played[i])
        if i64(g.scoring[i]) != 0 and i64(g.enhancement[c]) != E_WILD:
            for suit in range(4):
                if is_suit(g, c, suit, passive):
                    seen |= 1 << suit
    for i in range(int(g.played_count)):
        c = i64(g.played[i])
        if i64(g.scoring[i]) != 0 and i64(g.enhancement[c]) == E_WILD:
            for suit in (CLUBS, DIAMONDS, SPADES, HEARTS):
                if is_suit(g, c, suit, passive) and seen >> suit & 1 == 0:
                    seen |= 1 << suit
                    break
    return seen >> CLUBS & 1 != 0 and seen & ~(1 << CLUBS) != 0


@jit
def on_joker(g: Any, i: int, rare: int) -> None:
    """Baseball Card's answer to joker `i`, whose rarity is `rare`: once for every joker that acts as one."""
    if rare != 2:
        return
    for j in range(int(g.joker_count)):
        t = i64(g.joker_target[j])
        if t >= 0 and t != i and i64(g.joker[t]) == ids.J_BASEBALL:
            g.mult *= 1.5
