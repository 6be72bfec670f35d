"""Laws that every reachable state keeps. Each has a number and a name; fuzzing asks for the first that is broken."""

from __future__ import annotations

from typing import Any

from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import (
    AT_DECK,
    AT_GONE,
    AT_HAND,
    AT_PLAYED,
    ED_NEGATIVE,
    MAX_CARDS,
    NUM_HANDS,
    P_BLIND,
    P_OVER,
    P_PLAY,
    P_SHOP,
    ST_ETERNAL,
    ST_PERISHABLE,
)

LAWS = (
    "all is well",
    "the draw pile holds each of its cards once",
    "the hand holds each of its cards once",
    "a card lies where it says it lies",
    "ranks, suits, enhancements, editions and seals are known ones",
    "levels are at least one",
    "owned jokers fit their slots, eternal copies aside",
    "consumables fit their slots",
    "counts are not negative",
    "outside a round nothing is held, played or discarded",
    "a joker is not eternal and perishable at once",
    "a round that goes on has hands left and is not won yet",
    # Of steps, not of states: `conservation`.
    "debts come from what may be owed, from a boss or from rents",
    "what is bought, sold or moved costs its price",
    "cards are made and destroyed by what makes and destroys cards",
)


@jit
def _piles(g: Any) -> int:
    seen_deck, seen_hand = 0, 0
    for c in range(int(g.card_count)):
        place, n = i64(g.place[c]), 0
        for i in range(int(g.deck_count)):
            if i64(g.draw_pile[i]) == c:
                n += 1
        if n != (1 if place == AT_DECK else 0):
            return 1
        seen_deck += n
        n = 0
        for i in range(int(g.hand_count)):
            if i64(g.hand[i]) == c:
                n += 1
        if n != (1 if place == AT_HAND else 0):
            return 2
        seen_hand += n
        known = 2 <= i64(g.rank[c]) <= 14 and 0 <= i64(g.suit[c]) < 4 and 0 <= i64(g.enhancement[c]) < 9
        if not (known and 0 <= i64(g.edition[c]) < 5 and 0 <= i64(g.seal[c]) < 5):
            return 4
        loose = place != AT_DECK and place != AT_GONE
        if loose and (int(g.phase) == P_BLIND or int(g.phase) == P_SHOP):
            return 9
        if place == AT_PLAYED:
            return 3
    return 3 if seen_deck != int(g.deck_count) or seen_hand != int(g.hand_count) else 0


@jit
def broken_law(g: Any) -> int:
    """The number of the first law that is broken; 0 for none."""
    if int(g.phase) == P_OVER:
        return 0
    if not 0 < int(g.card_count) <= MAX_CARDS:
        return 8
    law = _piles(g)
    if law != 0:
        return law
    for h in range(NUM_HANDS):
        if i64(g.level[h]) < 1 or i64(g.plays[h]) < 0:
            return 5
    used, eternal = 0, 0
    for i in range(int(g.joker_count)):
        stickers = i64(g.joker_sticker[i])
        if i64(g.joker_edition[i]) != ED_NEGATIVE:
            used += 1
        if stickers & ST_ETERNAL != 0:
            eternal += 1
            if stickers & ST_PERISHABLE != 0:
                return 10
    if used > int(g.joker_slots) + eternal:
        return 6
    used = 0
    for i in range(int(g.consumable_count)):
        if i64(g.consumable_negative[i]) == 0:
            used += 1
    if used > int(g.consumable_slots):
        return 7
    if int(g.discards_left) < 0 or int(g.tag_count) < 0 or int(g.joker_count) < 0 or int(g.pack_count) < 0:
        return 8
    if int(g.phase) == P_PLAY and (int(g.hands_left) <= 0 or float(g.round_score) >= float(g.target)):
        return 11
    return 0
