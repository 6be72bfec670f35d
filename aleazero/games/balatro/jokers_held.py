"""Jokers that act on cards held in hand while others are played."""

from __future__ import annotations

from typing import Any

from aleazero.games.balatro import account, ids, keys, rng, tables
from aleazero.games.balatro.cards import debuffed, is_face, odds, rank_of
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import E_STEEL, E_STONE, KING, QUEEN, SEAL_RED


@jit
def lowest_held(g: Any) -> int:
    """The card Raised Fist looks at: the lowest rank, the right-most of equals, no Stone card; -1 for none."""
    best, card = 15, -1
    for i in range(int(g.hand_count)):
        c = i64(g.hand[i])
        if i64(g.enhancement[c]) != E_STONE and i64(g.rank[c]) <= best:
            best, card = i64(g.rank[c]), c
    return card


@jit
def score_held(g: Any, passive: int, log: Any) -> None:
    """Every held card, left to right, with its retriggers: Steel, then the jokers."""
    low = lowest_held(g)
    mimes = 0
    for j in range(int(g.joker_count)):
        t = i64(g.joker_target[j])
        if t >= 0 and i64(g.joker[t]) == ids.J_MIME:
            mimes += 1
    for i in range(int(g.hand_count)):
        c = i64(g.hand[i])
        if debuffed(g, c):
            continue
        again = 1 + mimes + (1 if i64(g.seal[c]) == SEAL_RED else 0)
        for _ in range(again):
            if i64(g.enhancement[c]) == E_STEEL:
                g.mult *= 1.5
                account.note(log, g, account.HELD, c, 0)
            for j in range(int(g.joker_count)):
                _on_held(g, j, c, low, passive)
                account.note(log, g, account.HELD_JOKER, c, j)


@jit
def _on_held(g: Any, j: int, c: int, low: int, passive: int) -> None:
    t = i64(g.joker_target[j])
    if t < 0:
        return
    joker = i64(g.joker[t])
    if joker == ids.J_BARON:
        if rank_of(g, c) == KING:
            g.mult *= 1.5
    elif joker == ids.J_SHOOT_THE_MOON:
        if rank_of(g, c) == QUEEN:
            g.mult += 13.0
    elif joker == ids.J_RAISED_FIST:
        if c == low:
            g.mult += 2.0 * tables.RANK_CHIPS[i64(g.rank[c])]
    elif joker == ids.J_RESERVED_PARKING and is_face(g, c, passive) and rng.roll(g, keys.K_PARKING) < odds(g) / 2.0:
        g.money += 1
