"""Dealing: cards come from the end of the draw pile to the hand, which is sorted as the game sorts it."""

from __future__ import annotations

from typing import Any

from aleazero.games.balatro import bosses, cards, ids
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import E_STONE, F_FACE_DOWN, MAX_HAND


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
def put_back(g: Any) -> None:
    """The hand goes back on the draw pile: it was dealt for a pack only."""
    for i in range(int(g.hand_count)):
        cards.to_deck(g, i64(g.hand[i]))
    g.hand_count = 0
