"""Dealing: cards come from the end of the draw pile to the hand, which is sorted as the game sorts it."""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro import bosses, cards, ids, keys, rng
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import AT_DECK, AT_HAND, E_STONE, F_FACE_DOWN, JACK, KING, MAX_CARDS, MAX_HAND


@jit
def deal(g: Any) -> None:
    """Fills the hand from the draw pile, and sorts it. The Serpent lets exactly three cards come."""
    space = int(g.hand_size) - int(g.hand_count)
    if bosses.boss_now(g) == ids.B_SERPENT and (int(g.hands_played) > 0 or int(g.discards_used) > 0):
        space = 3
    space = min(space, MAX_HAND - int(g.hand_count))
    while space > 0 and int(g.deck_count) > 0:
        g.deck_count -= 1
        c = i64(g.draw_pile[int(g.deck_count)])
        cards.to_hand(g, c)
        if bosses.draws_face_down(g, c):
            g.card_flags[c] = i64(g.card_flags[c]) | F_FACE_DOWN
        space -= 1
    sort_hand(g)
    g.just_played, g.selected = 0, 0


@jit
def _order(g: Any, c: int) -> int:
    """High ranks first; of equals Spades, Hearts, Clubs, Diamonds; Stone cards last."""
    suit = i64(g.suit[c])
    key = (14 - i64(g.rank[c])) * 4 + (3 - suit if suit > 1 else 2 + suit)
    return key + (1000 if i64(g.enhancement[c]) == E_STONE else 0)


@jit
def sort_hand(g: Any) -> None:
    """By rank, high cards left."""
    for i in range(1, int(g.hand_count)):
        c = i64(g.hand[i])
        k = i
        while k > 0 and _order(g, i64(g.hand[k - 1])) > _order(g, c):
            g.hand[k] = g.hand[k - 1]
            k -= 1
        g.hand[k] = c


@jit
def hide_anew(g: Any) -> None:
    """Face-down cards of the hand become others that nobody has seen, each at the place of one; The Mark's are faces.

    The places that lie face down stay, so that nothing seen changes.
    """
    places = np.zeros(MAX_HAND, np.int64)
    k = 0
    for i in range(int(g.hand_count)):
        if i64(g.card_flags[i64(g.hand[i])]) & F_FACE_DOWN != 0:
            places[k] = i
            k += 1
    if k == 0:
        return
    marked = int(g.blind) == 2 and int(g.boss) == ids.B_MARK and cards.passives(g) & cards.P_PAREIDOLIA == 0
    unseen = np.zeros(MAX_CARDS, np.int64)
    n = 0
    for c in range(int(g.card_count)):
        hidden = i64(g.place[c]) == AT_HAND and i64(g.card_flags[c]) & F_FACE_DOWN != 0
        if hidden or (i64(g.place[c]) == AT_DECK and (not marked or JACK <= cards.rank_of(g, c) <= KING)):
            unseen[n] = c
            n += 1
    rng.shuffle(g, keys.K_SHUFFLE, unseen, n)
    for i in range(n):
        c = int(unseen[i])
        if i < k:
            g.card_flags[c] = i64(g.card_flags[c]) | F_FACE_DOWN
            g.place[c] = AT_HAND
            g.hand[int(places[i])] = c
        else:
            g.card_flags[c] = i64(g.card_flags[c]) & ~F_FACE_DOWN
            g.place[c] = AT_DECK


@jit
def put_back(g: Any) -> None:
    """The hand goes back on the draw pile: it was dealt for a pack only."""
    for i in range(int(g.hand_count)):
        cards.to_deck(g, i64(g.hand[i]))
    g.hand_count = 0
