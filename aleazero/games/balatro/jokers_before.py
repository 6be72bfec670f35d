"""Jokers that act before a hand's cards are scored: they grow, level up, enhance, copy, pay or create.

Also the targets of Blueprint and Brainstorm, worked out once a hand.
"""

from __future__ import annotations

from typing import Any

from aleazero.games.balatro import cards, ids, keys, rng, tables
from aleazero.games.balatro.cards import debuffed, is_face, joker_off, odds
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import E_GOLD, E_NONE, H_STRAIGHT, H_TWO_PAIR, NUM_HANDS


@jit
def aim(g: Any) -> None:
    """Whose ability each joker uses: -1 where it does nothing."""
    n = int(g.joker_count)
    for j in range(n):
        t = j
        for _ in range(n + 1):
            if joker_off(g, t):
                t = -1
                break
            joker = i64(g.joker[t])
            if joker == ids.J_BLUEPRINT:
                t = t + 1 if t + 1 < n else -1
            elif joker == ids.J_BRAINSTORM:
                t = 0 if t != 0 else -1
            else:
                break
            if t < 0:
                break
        if t >= 0:
            joker = i64(g.joker[t])
            looping = joker == ids.J_BLUEPRINT or joker == ids.J_BRAINSTORM
            if looping or (t != j and tables.JOKER_COPYABLE[joker] == 0):
                t = -1
        g.joker_target[j] = t


@jit
def before_hand(g: Any, hand: int, contained: int, passive: int) -> None:
    """Every joker's turn before the cards, left to right."""
    for j in range(int(g.joker_count)):
        t = i64(g.joker_target[j])
        if t < 0:
            continue
        joker = i64(g.joker[t])
        if t == j:
            _grow(g, j, joker, hand, contained, passive)
        if joker == ids.J_SPACE:
            if rng.roll(g, keys.K_SPACE) < odds(g) / 4.0:
                g.level[hand] += 1
        elif joker == ids.J_TODO_LIST:
            if i64(g.joker_extra[t]) == hand:
                g.money += 4
        elif joker == ids.J_DNA and int(g.hands_played) == 0 and int(g.played_count) == 1:
            made = cards.copy_card(g, i64(g.played[0]))
            if made >= 0:
                cards.to_hand(g, made)
                card_added(g)


@jit
def card_added(g: Any) -> None:
    """A playing card joined the deck: Holograms grow."""
    for j in range(int(g.joker_count)):
        if i64(g.joker[j]) == ids.J_HOLOGRAM and not joker_off(g, j):
            g.joker_value[j] += 0.25


@jit
def _grow(g: Any, j: int, joker: int, hand: int, contained: int, passive: int) -> None:
    if joker == ids.J_RUNNER:
        if contained >> H_STRAIGHT & 1 != 0:
            g.joker_value[j] += 15.0
    elif joker == ids.J_SQUARE:
        if int(g.played_count) == 4:
            g.joker_value[j] += 4.0
    elif joker == ids.J_TROUSERS:
        if contained >> H_TWO_PAIR & 1 != 0:
            g.joker_value[j] += 2.0
    elif joker == ids.J_GREEN_JOKER:
        g.joker_value[j] += 1.0
    elif joker == ids.J_RIDE_THE_BUS:
        _ride(g, j, passive)
    elif joker == ids.J_OBELISK:
        _obelisk(g, j, hand)
    elif joker == ids.J_MIDAS_MASK:
        for i in range(int(g.played_count)):
            c = i64(g.played[i])
            if i64(g.scoring[i]) != 0 and is_face(g, c, passive):
                g.enhancement[c] = E_GOLD
    elif joker == ids.J_VAMPIRE:
        drained = 0
        for i in range(int(g.played_count)):
            c = i64(g.played[i])
            if i64(g.scoring[i]) != 0 and i64(g.enhancement[c]) != E_NONE and not debuffed(g, c):
                g.enhancement[c] = E_NONE
                drained += 1
        g.joker_value[j] += 0.1 * drained


@jit
def _ride(g: Any, j: int, passive: int) -> None:
    for i in range(int(g.played_count)):
        if i64(g.scoring[i]) != 0 and is_face(g, i64(g.played[i]), passive):
            g.joker_value[j] = 0.0
            return
    g.joker_value[j] += 1.0


@jit
def _obelisk(g: Any, j: int, hand: int) -> None:
    """Grows while another hand was played at least as often; else starts again."""
    for h in range(NUM_HANDS):
        if h != hand and i64(g.plays[h]) >= i64(g.plays[hand]):
            g.joker_value[j] += 0.2
            return
    g.joker_value[j] = 1.0
