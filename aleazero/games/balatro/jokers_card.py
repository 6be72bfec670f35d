"""Jokers that act on each scored card: their effect on one trigger of one card, and how often a card triggers.

`j` is the joker whose turn it is, `t` the joker whose ability it uses: itself, or what Blueprint and Brainstorm lead
to. Jokers grow only by themselves, never through a copy.
"""

from __future__ import annotations

from typing import Any

from aleazero.games.balatro import create, ids, keys, rng
from aleazero.games.balatro.cards import is_face, is_suit, odds, rank_of
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import CLUBS, DIAMONDS, E_GOLD, HEARTS, KING, QUEEN, SEAL_RED, SPADES


@jit
def triggers(g: Any, c: int, first: bool, passive: int) -> int:
    """How often a scored card triggers."""
    n = 2 if i64(g.seal[c]) == SEAL_RED else 1
    rank = rank_of(g, c)
    for j in range(int(g.joker_count)):
        t = i64(g.joker_target[j])
        if t < 0:
            continue
        joker = i64(g.joker[t])
        if joker == ids.J_SOCK_AND_BUSKIN:
            if is_face(g, c, passive):
                n += 1
        elif joker == ids.J_HANGING_CHAD:
            if first:
                n += 2
        elif joker == ids.J_DUSK:
            if int(g.hands_left) == 0:
                n += 1
        elif joker == ids.J_SELZER or (joker == ids.J_HACK and 2 <= rank <= 5):
            n += 1
    return n


@jit
def on_card(g: Any, j: int, c: int, first_face: int, passive: int) -> None:
    """A joker's answer to one trigger of a scored card."""
    t = i64(g.joker_target[j])
    if t < 0:
        return
    joker = i64(g.joker[t])
    _by_suit(g, joker, c, passive)
    _by_rank(g, joker, c)
    _by_face(g, joker, c, first_face, passive)
    if joker == ids.J_HIKER:
        g.bonus[c] += 5
    elif joker == ids.J_WEE:
        if t == j and rank_of(g, c) == 2:
            g.joker_value[j] += 8.0
    elif joker == ids.J_TICKET:
        if i64(g.enhancement[c]) == E_GOLD:
            g.money += 4
    elif joker == ids.J_8_BALL:
        if rank_of(g, c) == 8 and create.consumable_room(g) > 0 and rng.roll(g, keys.K_8_BALL) < odds(g) / 4.0:
            create.gain_tarot(g, keys.S_8BA)
    elif joker == ids.J_LUCKY_CAT and t == j and int(g.lucky) != 0:
        g.joker_value[j] += 0.25


@jit
def _by_suit(g: Any, joker: int, c: int, passive: int) -> None:
    if joker == ids.J_GREEDY_JOKER:
        if is_suit(g, c, DIAMONDS, passive):
            g.mult += 3.0
    elif joker == ids.J_LUSTY_JOKER:
        if is_suit(g, c, HEARTS, passive):
            g.mult += 3.0
    elif joker == ids.J_WRATHFUL_JOKER:
        if is_suit(g, c, SPADES, passive):
            g.mult += 3.0
    elif joker == ids.J_GLUTTENOUS_JOKER:
        if is_suit(g, c, CLUBS, passive):
            g.mult += 3.0
    elif joker == ids.J_ROUGH_GEM:
        if is_suit(g, c, DIAMONDS, passive):
            g.money += 1
    elif joker == ids.J_ARROWHEAD:
        if is_suit(g, c, SPADES, passive):
            g.chips += 50.0
    elif joker == ids.J_ONYX_AGATE:
        if is_suit(g, c, CLUBS, passive):
            g.mult += 7.0
    elif joker == ids.J_BLOODSTONE:
        if is_suit(g, c, HEARTS, passive) and rng.roll(g, keys.K_BLOODSTONE) < odds(g) / 2.0:
            g.mult *= 1.5
    elif joker == ids.J_ANCIENT:
        if is_suit(g, c, int(g.ancient_suit), passive):
            g.mult *= 1.5
    elif joker == ids.J_IDOL and rank_of(g, c) == int(g.idol_rank) and is_suit(g, c, int(g.idol_suit), passive):
        g.mult *= 2.0


@jit
def _by_rank(g: Any, joker: int, c: int) -> None:
    rank = rank_of(g, c)
    if rank == 0:
        return
    if joker == ids.J_FIBONACCI:
        if rank == 14 or rank == 2 or rank == 3 or rank == 5 or rank == 8:
            g.mult += 8.0
    elif joker == ids.J_EVEN_STEVEN:
        if rank <= 10 and rank % 2 == 0:
            g.mult += 4.0
    elif joker == ids.J_ODD_TODD:
        if rank == 14 or (rank <= 9 and rank % 2 == 1):
            g.chips += 31.0
    elif joker == ids.J_SCHOLAR:
        if rank == 14:
            g.chips += 20.0
            g.mult += 4.0
    elif joker == ids.J_WALKIE_TALKIE:
        if rank == 10 or rank == 4:
            g.chips += 10.0
            g.mult += 4.0
    elif joker == ids.J_TRIBOULET and (rank in (QUEEN, KING)):
        g.mult *= 2.0


@jit
def _by_face(g: Any, joker: int, c: int, first_face: int, passive: int) -> None:
    if joker == ids.J_SCARY_FACE:
        if is_face(g, c, passive):
            g.chips += 30.0
    elif joker == ids.J_SMILEY:
        if is_face(g, c, passive):
            g.mult += 5.0
    elif joker == ids.J_PHOTOGRAPH:
        if c == first_face:
            g.mult *= 2.0
    elif joker == ids.J_BUSINESS and is_face(g, c, passive) and rng.roll(g, keys.K_BUSINESS) < odds(g) / 2.0:
        g.money += 2
