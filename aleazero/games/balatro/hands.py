"""Poker hands: which one the played cards make, what else they contain, and which of them score.

Follows the game where jokers bend the rules: with Four Fingers a straight of four takes in every card of its ranks;
with Shortcut one rank may be missing between two; a Flush that Smeared Joker makes scores all its cards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro.cards import (
    P_FOUR_FINGERS,
    P_SHORTCUT,
    P_SPLASH,
    rank_of,
    suit_for_flush,
)
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import (
    ACE,
    CLUBS,
    DIAMONDS,
    E_STONE,
    H_FIVE,
    H_FLUSH,
    H_FLUSH_FIVE,
    H_FLUSH_HOUSE,
    H_FOUR,
    H_FULL_HOUSE,
    H_HIGH_CARD,
    H_PAIR,
    H_STRAIGHT,
    H_STRAIGHT_FLUSH,
    H_THREE,
    H_TWO_PAIR,
    HEARTS,
    NUM_HANDS,
    SPADES,
)

_SUIT_ORDER = np.array([SPADES, HEARTS, CLUBS, DIAMONDS], np.int64)


@jit
def flush_bits(g: Any, cards: Any, count: int, passive: int) -> int:
    """The places of the cards that make a Flush, as bits; 0 for none."""
    need = 4 if (passive & P_FOUR_FINGERS) != 0 else 5
    if count < need:
        return 0
    for s in range(4):
        bits, n = 0, 0
        for i in range(count):
            if suit_for_flush(g, int(cards[i]), int(_SUIT_ORDER[s]), passive):
                bits |= 1 << i
                n += 1
        if n >= need:
            return bits
    return 0


@jit
def straight_bits(g: Any, cards: Any, count: int, passive: int) -> int:
    """The places of the cards that make a Straight, as bits; 0 for none. An Ace is high or low."""
    need = 4 if (passive & P_FOUR_FINGERS) != 0 else 5
    if count < need:
        return 0
    may_skip = (passive & P_SHORTCUT) != 0
    length, bits, found, skipped = 0, 0, False, False
    for j in range(1, 15):
        rank = ACE if j == 1 else j
        here = 0
        for i in range(count):
            if rank_of(g, int(cards[i])) == rank:
                here |= 1 << i
        if here != 0:
            length += 1
            skipped = False
            bits |= here
        elif may_skip and not skipped and j != ACE:
            skipped = True
        else:
            length, skipped = 0, False
            if found:
                break
            bits = 0
        if length >= need:
            found = True
    return bits if found else 0


@jit
def _groups(g: Any, cards: Any, count: int, size: int) -> int:
    """The places of all cards whose rank comes exactly `size` times, as bits."""
    bits = 0
    for i in range(count):
        rank = rank_of(g, int(cards[i]))
        if rank == 0:
            continue
        n = 0
        for j in range(count):
            if rank_of(g, int(cards[j])) == rank:
                n += 1
        if n == size:
            bits |= 1 << i
    return bits


@jit
def _ones(bits: int) -> int:
    n = 0
    while bits != 0:
        n += bits & 1
        bits >>= 1
    return n


@jit
def _highest(g: Any, cards: Any, count: int) -> int:
    best, where = -1, 0
    for i in range(count):
        rank = rank_of(g, int(cards[i]))
        if rank > best:
            best, where = rank, i
    return 1 << where if count > 0 else 0


@jit
def evaluate(g: Any, cards: Any, count: int, passive: int) -> tuple[int, int, int]:
    """The poker hand, the bits of all hands it contains, and the bits of the places that score."""
    fives, fours = _groups(g, cards, count, 5), _groups(g, cards, count, 4)
    threes, twos = _groups(g, cards, count, 3), _groups(g, cards, count, 2)
    flush, straight = flush_bits(g, cards, count, passive), straight_bits(g, cards, count, passive)
    rows = np.zeros(NUM_HANDS, np.int64)
    house = threes | twos if threes != 0 and twos != 0 else 0
    rows[H_FLUSH_FIVE] = fives if flush != 0 else 0
    rows[H_FLUSH_HOUSE] = house if flush != 0 else 0
    rows[H_FIVE] = fives
    rows[H_STRAIGHT_FLUSH] = flush | straight if flush != 0 and straight != 0 else 0
    rows[H_FOUR] = fours | fives
    rows[H_FULL_HOUSE] = house
    rows[H_FLUSH] = flush
    rows[H_STRAIGHT] = straight
    rows[H_THREE] = threes | rows[H_FOUR]
    rows[H_TWO_PAIR] = house if house != 0 else (twos if _ones(twos) == 4 else 0)
    rows[H_PAIR] = twos | rows[H_THREE]
    rows[H_HIGH_CARD] = _highest(g, cards, count)
    hand, contained = H_HIGH_CARD, 0
    for h in range(NUM_HANDS - 1, -1, -1):
        if rows[h] != 0:
            hand = h
            contained |= 1 << h
    scoring = int(rows[hand])
    for i in range(count):
        if (passive & P_SPLASH) != 0 or i64(g.enhancement[int(cards[i])]) == E_STONE:
            scoring |= 1 << i
    return hand, contained, scoring
