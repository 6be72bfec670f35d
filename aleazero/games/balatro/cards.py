"""Playing cards: what a card counts as, and where cards lie (draw pile, hand, played, discarded, gone).

Jokers that change what cards count as are handed in as `passive` bits, so that nobody searches for them twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro import ids, rng
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import (
    ACE,
    AT_DECK,
    AT_GONE,
    AT_HAND,
    DIAMONDS,
    E_STONE,
    E_WILD,
    ERR_CARDS,
    ERR_HAND,
    F_DEBUFFED,
    F_FACE_DOWN,
    F_FORCED,
    HEARTS,
    JACK,
    KING,
    MAX_CARDS,
    MAX_HAND,
    ST_PERISHABLE,
)

P_SPLASH, P_FOUR_FINGERS, P_SHORTCUT, P_SMEARED, P_PAREIDOLIA, P_SHOWMAN = 1, 2, 4, 8, 16, 32


@jit
def joker_off(g: Any, i: int) -> bool:
    """A joker that does nothing: a perishable past its time, or the one Crimson Heart disables."""
    if int(g.joker_disabled) == i:
        return True
    return (i64(g.joker_sticker[i]) & ST_PERISHABLE) != 0 and i64(g.joker_perish[i]) <= 0


@jit
def count_joker(g: Any, joker: int) -> int:
    """How many of a joker work."""
    n = 0
    for i in range(int(g.joker_count)):
        if i64(g.joker[i]) == joker and not joker_off(g, i):
            n += 1
    return n


@jit
def passives(g: Any) -> int:
    """The bits of those jokers that change what cards and hands count as."""
    bits = 0
    for i in range(int(g.joker_count)):
        if joker_off(g, i):
            continue
        joker = i64(g.joker[i])
        if joker == ids.J_SPLASH:
            bits |= P_SPLASH
        elif joker == ids.J_FOUR_FINGERS:
            bits |= P_FOUR_FINGERS
        elif joker == ids.J_SHORTCUT:
            bits |= P_SHORTCUT
        elif joker == ids.J_SMEARED:
            bits |= P_SMEARED
        elif joker == ids.J_PAREIDOLIA:
            bits |= P_PAREIDOLIA
        elif joker == ids.J_RING_MASTER:
            bits |= P_SHOWMAN
    return bits


@jit
def odds(g: Any) -> float:
    """The factor of every listed chance: doubled by each Oops! All 6s."""
    return 2.0 ** count_joker(g, ids.J_OOPS)


@jit
def debuffed(g: Any, c: int) -> bool:
    """The boss took the card's powers."""
    return (i64(g.card_flags[c]) & F_DEBUFFED) != 0


@jit
def rank_of(g: Any, c: int) -> int:
    """2..14; 0 for a Stone card."""
    return 0 if i64(g.enhancement[c]) == E_STONE else i64(g.rank[c])


@jit
def is_face(g: Any, c: int, passive: int) -> bool:
    """Jack, Queen or King, or any card with Pareidolia."""
    if debuffed(g, c):
        return False
    return (passive & P_PAREIDOLIA) != 0 or JACK <= rank_of(g, c) <= KING


@jit
def _same_colour(a: int, b: int) -> bool:
    red_a = a in (DIAMONDS, HEARTS)
    red_b = b in (DIAMONDS, HEARTS)
    return red_a == red_b


@jit
def suit_for_flush(g: Any, c: int, suit: int, passive: int) -> bool:
    """Whether a card counts as a suit where hands are told apart: a debuffed card keeps its own suit."""
    enhancement = i64(g.enhancement[c])
    if enhancement == E_STONE:
        return False
    if enhancement == E_WILD and not debuffed(g, c):
        return True
    own = i64(g.suit[c])
    if (passive & P_SMEARED) != 0 and _same_colour(own, suit):
        return True
    return own == suit


@jit
def is_suit(g: Any, c: int, suit: int, passive: int) -> bool:
    """Whether a card counts as a suit for jokers."""
    return not debuffed(g, c) and suit_for_flush(g, c, suit, passive)


@jit
def new_card(g: Any, rank: int, suit: int, enhancement: int, edition: int, seal: int) -> int:
    """Makes a card that lies nowhere yet; its place in the tables, or -1 where there is no room."""
    if int(g.card_count) >= MAX_CARDS:
        g.error = ERR_CARDS
        return -1
    c = int(g.card_count)
    g.card_count += 1
    g.rank[c] = rank
    g.suit[c] = suit
    g.enhancement[c] = enhancement
    g.edition[c] = edition
    g.seal[c] = seal
    g.card_flags[c] = 0
    g.bonus[c] = 0
    g.place[c] = AT_DECK
    return c


@jit
def copy_card(g: Any, c: int) -> int:
    """A card like another, made now."""
    d = new_card(g, i64(g.rank[c]), i64(g.suit[c]), i64(g.enhancement[c]), i64(g.edition[c]), i64(g.seal[c]))
    if d >= 0:
        g.bonus[d] = g.bonus[c]
    return d


@jit
def to_hand(g: Any, c: int) -> None:
    """Puts a card at the right end of the hand."""
    if int(g.hand_count) >= MAX_HAND:
        g.error = ERR_HAND
        return
    g.hand[int(g.hand_count)] = c
    g.hand_count += 1
    g.place[c] = AT_HAND


@jit
def to_deck(g: Any, c: int) -> None:
    """Puts a card on top of the draw pile."""
    g.draw_pile[int(g.deck_count)] = c
    g.deck_count += 1
    g.place[c] = AT_DECK


@jit
def out_of_hand(g: Any, c: int, place: int) -> None:
    """Takes a card out of the hand."""
    n = 0
    for i in range(int(g.hand_count)):
        if i64(g.hand[i]) != c:
            g.hand[n] = g.hand[i]
            n += 1
    g.hand_count = n
    g.place[c] = place


@jit
def held(g: Any, out: Any) -> int:
    """The cards of the hand in the order they were made, as picks go through them; how many."""
    n = 0
    for c in range(int(g.card_count)):
        if i64(g.place[c]) == AT_HAND:
            out[n] = c
            n += 1
    return n


@jit
def full_deck(g: Any) -> int:
    """How many cards the player owns."""
    n = 0
    for c in range(int(g.card_count)):
        if i64(g.place[c]) != AT_GONE:
            n += 1
    return n


@jit
def count_enhancement(g: Any, enhancement: int) -> int:
    """How many owned cards have an enhancement; 0 counts those that have any."""
    n = 0
    for c in range(int(g.card_count)):
        if i64(g.place[c]) != AT_GONE:
            own = i64(g.enhancement[c])
            if (own == enhancement) if enhancement != 0 else (own != 0):
                n += 1
    return n


@jit
def gather(g: Any) -> None:
    """All cards go back to the draw pile, in the order they were made; places of destroyed ones are closed."""
    n = 0
    for c in range(int(g.card_count)):
        if i64(g.place[c]) == AT_GONE:
            continue
        g.rank[n] = g.rank[c]
        g.suit[n] = g.suit[c]
        g.enhancement[n] = g.enhancement[c]
        g.edition[n] = g.edition[c]
        g.seal[n] = g.seal[c]
        g.card_flags[n] = i64(g.card_flags[c]) & ~(F_FACE_DOWN | F_DEBUFFED | F_FORCED)
        g.bonus[n] = g.bonus[c]
        g.place[n] = AT_DECK
        g.draw_pile[n] = n
        n += 1
    g.card_count = n
    g.deck_count = n
    g.hand_count = 0
    g.played_count = 0


@jit
def shuffle_deck(g: Any, key: int) -> None:
    """Shuffles the draw pile: first into the order of creation, as the game does."""
    n = 0
    pile = np.zeros(MAX_CARDS, np.int64)
    for c in range(int(g.card_count)):
        if i64(g.place[c]) == AT_DECK:
            pile[n] = c
            n += 1
    rng.shuffle(g, key, pile, n)
    for i in range(n):
        g.draw_pile[i] = pile[i]


@jit
def next_rank(rank: int) -> int:
    """The rank above; a 2 above the Ace."""
    return 2 if rank == ACE else rank + 1
