"""What bosses do: which cards they debuff or turn face down, which hands they refuse, what they cost.

A boss works while its blind is played and nobody has disabled it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro import create, ids, keys, rng
from aleazero.games.balatro.cards import P_PAREIDOLIA, P_SMEARED, odds, passives, rank_of, suit_for_flush
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.layout import (
    AT_GONE,
    CLUBS,
    DIAMONDS,
    F_DEBUFFED,
    F_FACE_DOWN,
    F_FORCED,
    F_PLAYED_THIS_ANTE,
    HEARTS,
    JACK,
    KING,
    P_PACK,
    P_PLAY,
    SPADES,
)


@jit
def boss_now(g: Any) -> int:
    """The boss whose effect holds now; -1 for none."""
    playing = int(g.phase) == P_PLAY or (int(g.phase) == P_PACK and int(g.pack_return) == P_PLAY)
    if playing and int(g.blind) == 2 and int(g.boss_off) == 0:
        return int(g.boss)
    return -1


@jit
def _takes(g: Any, boss: int, c: int, passive: int) -> bool:
    """Whether a boss debuffs a card."""
    if boss == ids.B_CLUB:
        return suit_for_flush(g, c, CLUBS, passive & P_SMEARED)
    if boss == ids.B_GOAD:
        return suit_for_flush(g, c, SPADES, passive & P_SMEARED)
    if boss == ids.B_WINDOW:
        return suit_for_flush(g, c, DIAMONDS, passive & P_SMEARED)
    if boss == ids.B_HEAD:
        return suit_for_flush(g, c, HEARTS, passive & P_SMEARED)
    if boss == ids.B_PLANT:
        return passive & P_PAREIDOLIA != 0 or JACK <= rank_of(g, c) <= KING
    if boss == ids.B_PILLAR:
        return i64(g.card_flags[c]) & F_PLAYED_THIS_ANTE != 0
    return boss == ids.B_FINAL_LEAF


@jit
def debuff_card(g: Any, c: int) -> None:
    """Works out anew whether a card is debuffed."""
    flags = i64(g.card_flags[c]) & ~F_DEBUFFED
    g.card_flags[c] = flags
    boss = boss_now(g)
    if boss >= 0 and _takes(g, boss, c, passives(g)):
        g.card_flags[c] = flags | F_DEBUFFED


@jit
def debuff_all(g: Any) -> None:
    """The same for every card."""
    for c in range(int(g.card_count)):
        if i64(g.place[c]) != AT_GONE:
            debuff_card(g, c)


@jit
def draws_face_down(g: Any, c: int) -> bool:
    """Whether a card that is drawn now lies face down."""
    boss = boss_now(g)
    if boss == ids.B_HOUSE:
        return int(g.hands_played) == 0 and int(g.discards_used) == 0
    if boss == ids.B_WHEEL:
        return rng.roll(g, keys.K_WHEEL) < odds(g) / 7.0
    if boss == ids.B_MARK:
        return passives(g) & P_PAREIDOLIA != 0 or JACK <= rank_of(g, c) <= KING
    if boss == ids.B_FISH:
        return int(g.just_played) != 0
    return False


@jit
def refuses(g: Any, hand: int) -> bool:
    """Whether the boss refuses the hand just played; Arm and Ox act here and let it pass."""
    boss = boss_now(g)
    if boss == ids.B_PSYCHIC and int(g.played_count) < 5:
        g.boss_fired = 1
        return True
    if boss == ids.B_EYE and i64(g.round_plays[hand]) > 1:
        g.boss_fired = 1
        return True
    if boss == ids.B_MOUTH and int(g.first_hand) >= 0 and int(g.first_hand) != hand:
        g.boss_fired = 1
        return True
    if boss == ids.B_ARM and i64(g.level[hand]) > 1:
        g.boss_fired = 1
        g.level[hand] -= 1
    elif boss == ids.B_OX and hand == int(g.most_played):
        g.boss_fired = 1
        g.money = min(0, int(g.money))
    return False


@jit
def halves(g: Any) -> None:
    """The Flint halves base chips and mult, rounded up."""
    if boss_now(g) == ids.B_FLINT:
        g.boss_fired = 1
        g.mult = max(1.0, float(np.floor(float(g.mult) * 0.5 + 0.5)))
        g.chips = max(0.0, float(np.floor(float(g.chips) * 0.5 + 0.5)))


@jit
def disable(g: Any) -> None:
    """The boss's effect ends: cards recover, what it took comes back."""
    if int(g.boss_off) != 0:
        return
    boss = int(g.boss)
    active = boss_now(g) >= 0
    g.boss_off = 1
    if not active:
        return
    if boss == ids.B_WATER:
        g.discards_left += int(g.boss_took)
    elif boss == ids.B_NEEDLE:
        g.hands_left += int(g.boss_took)
    elif boss == ids.B_WALL:
        g.target = float(g.target) / 2.0
    elif boss == ids.B_FINAL_VESSEL:
        g.target = float(g.target) / 3.0
    elif boss == ids.B_MANACLE:
        g.hand_size += 1
    g.boss_took = 0
    create.set_disabled(g, -1)
    for c in range(int(g.card_count)):
        g.card_flags[c] = i64(g.card_flags[c]) & ~(F_DEBUFFED | F_FACE_DOWN | F_FORCED)
