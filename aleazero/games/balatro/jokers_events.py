"""Jokers that act outside scoring: when a blind starts, cards are discarded, a round ends, something is sold or used.

As in scoring, copies act through `joker_target`, and jokers grow only by themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro import cards, create, hands, ids, keys, pools, rng, tables
from aleazero.games.balatro.cards import debuffed, is_face, is_suit, joker_off, odds, passives, rank_of
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.jokers_before import aim, card_added
from aleazero.games.balatro.layout import E_STONE, JACK, MAX_JOKERS, ST_ETERNAL
from aleazero.games.balatro.scoring import destroyed


@jit
def blind_started(g: Any) -> None:
    """Every joker's turn when a blind starts, left to right; jokers may vanish on the way."""
    aim(g)
    j = 0
    while j < int(g.joker_count):
        t = i64(g.joker_target[j])
        if t < 0:
            j += 1
            continue
        joker = i64(g.joker[t])
        gone = -1
        if joker == ids.J_BURGLAR:
            g.hands_left += 3
            g.discards_left = 0
        elif joker == ids.J_RIFF_RAFF:
            for _ in range(min(2, create.joker_room(g))):
                create.gain_joker(g, keys.S_RIF, 1)
        elif joker == ids.J_CARTOMANCER:
            create.gain_tarot(g, keys.S_CAR)
        elif joker == ids.J_MARBLE:
            front = rng.pick(g, keys.K_MARBLE, 52, 0)
            made = cards.new_card(g, int(tables.FRONT_RANK[front]), int(tables.FRONT_SUIT[front]), E_STONE, 0, 0)
            if made >= 0:
                cards.to_deck(g, made)
                card_added(g)
        elif joker == ids.J_MADNESS and t == j and int(g.blind) < 2:
            g.joker_value[j] += 0.5
            gone = _madness(g, j)
        elif joker == ids.J_CEREMONIAL and t == j and _mortal(g, j + 1):
            g.joker_value[j] += 2.0 * i64(g.joker_sell[j + 1])
            gone = j + 1
        if gone >= 0:
            create.remove_joker(g, gone)
            aim(g)
            if gone < j:
                j -= 1
        j += 1


@jit
def _mortal(g: Any, i: int) -> bool:
    """There is a joker at a place, and it can be destroyed."""
    return i < int(g.joker_count) and i64(g.joker_sticker[i]) & ST_ETERNAL == 0


@jit
def _madness(g: Any, j: int) -> int:
    """Another joker that is not eternal, drawn; -1 for none."""
    found = np.zeros(MAX_JOKERS, np.int64)
    n = 0
    for i in range(int(g.joker_count)):
        if i != j and _mortal(g, i):
            found[n] = i
            n += 1
    return int(found[rng.pick(g, keys.K_MADNESS, n, 0)]) if n > 0 else -1


@jit
def first_hand_drawn(g: Any) -> None:
    """Certificates add a sealed card to the first hand of a round."""
    aim(g)
    for j in range(int(g.joker_count)):
        t = i64(g.joker_target[j])
        if t >= 0 and i64(g.joker[t]) == ids.J_CERTIFICATE:
            front = rng.pick(g, keys.K_CERTIFICATE, 52, 0)
            seal = pools.seal_of(rng.roll(g, keys.K_CERTIFICATE_SEAL))
            made = cards.new_card(g, int(tables.FRONT_RANK[front]), int(tables.FRONT_SUIT[front]), 0, 0, seal)
            if made >= 0:
                cards.to_hand(g, made)
                card_added(g)


@jit
def before_discard(g: Any, chosen: Any, count: int) -> None:
    """Burnt Joker levels up the hand of a round's first discard."""
    aim(g)
    if int(g.discards_used) > 0:
        return
    hand, _, _ = hands.evaluate(g, chosen, count, passives(g))
    for j in range(int(g.joker_count)):
        t = i64(g.joker_target[j])
        if t >= 0 and i64(g.joker[t]) == ids.J_BURNT:
            g.level[hand] += 1


@jit
def card_discarded(g: Any, c: int, alone: bool) -> bool:
    """Every joker's turn for one discarded card; whether it was destroyed."""
    passive = passives(g)
    gone = False
    j = 0
    while j < int(g.joker_count):
        t = i64(g.joker_target[j])
        joker = i64(g.joker[t]) if t >= 0 else 0
        used_up = False
        if joker == ids.J_MAIL:
            if not debuffed(g, c) and rank_of(g, c) == int(g.mail_rank):
                g.money += 5
        elif t == j:
            if joker == ids.J_CASTLE:
                if is_suit(g, c, int(g.castle_suit), passive):
                    g.joker_value[j] += 3.0
            elif joker == ids.J_HIT_THE_ROAD:
                if not debuffed(g, c) and rank_of(g, c) == JACK:
                    g.joker_value[j] += 0.5
            elif joker == ids.J_YORICK:
                g.joker_value[j] -= 1.0
                if float(g.joker_value[j]) <= 0.0:
                    g.joker_value[j] = 23.0
                    g.joker_extra[j] += 1
            elif joker == ids.J_RAMEN:
                g.joker_value[j] -= 0.01
                used_up = float(g.joker_value[j]) <= 1.0 + 1e-9
            elif joker == ids.J_TRADING and int(g.discards_used) == 0 and alone and not gone:
                g.money += 3
                gone = True
        if used_up:
            create.remove_joker(g, j)
            aim(g)
        else:
            j += 1
    if gone:
        destroyed(g, c, passive)
    return gone


@jit
def after_discard(g: Any, chosen: Any, count: int) -> None:
    """Faceless Joker pays for three faces; Green Joker shrinks."""
    passive = passives(g)
    faces = 0
    for i in range(count):
        if is_face(g, int(chosen[i]), passive):
            faces += 1
    for j in range(int(g.joker_count)):
        t = i64(g.joker_target[j])
        if t < 0:
            continue
        if i64(g.joker[t]) == ids.J_FACELESS and faces >= 3:
            g.money += 5
        elif i64(g.joker[t]) == ids.J_GREEN_JOKER and t == j:
            g.joker_value[j] = max(0.0, float(g.joker_value[j]) - 1.0)


@jit
def round_ended(g: Any, boss: bool) -> None:
    """Every joker's turn at the end of a round: growth, decay, death."""
    j = 0
    while j < int(g.joker_count):
        if not joker_off(g, j) and _ends(g, j, i64(g.joker[j]), boss):
            create.remove_joker(g, j)
        else:
            j += 1


@jit
def _ends(g: Any, j: int, joker: int, boss: bool) -> bool:
    """One joker's turn at the end of a round; whether it is destroyed."""
    if joker == ids.J_EGG:
        g.joker_sell[j] += 3
    elif joker == ids.J_GIFT:
        for i in range(int(g.joker_count)):
            g.joker_sell[i] += 1
        for i in range(int(g.consumable_count)):
            g.consumable_sell[i] += 1
    elif joker == ids.J_TURTLE_BEAN:
        g.joker_value[j] -= 1.0
        g.hand_size -= 1
        return float(g.joker_value[j]) <= 0.0
    elif joker == ids.J_POPCORN:
        g.joker_value[j] -= 4.0
        return float(g.joker_value[j]) <= 0.0
    elif joker == ids.J_GROS_MICHEL:
        if rng.roll(g, keys.K_GROS_MICHEL) < odds(g) / 6.0:
            g.pool_flags = int(g.pool_flags) | 1
            return True
    elif joker == ids.J_CAVENDISH:
        return rng.roll(g, keys.K_CAVENDISH) < odds(g) / 1000.0
    elif joker == ids.J_ROCKET:
        if boss:
            g.joker_value[j] += 2.0
    elif joker == ids.J_CAMPFIRE:
        if boss:
            g.joker_value[j] = 1.0
    elif joker == ids.J_HIT_THE_ROAD:
        g.joker_value[j] = 1.0
    elif joker == ids.J_INVISIBLE:
        g.joker_value[j] += 1.0
    elif joker == ids.J_TODO_LIST:
        g.joker_extra[j] = create.pick_hand(g, keys.K_TO_DO, i64(g.joker_extra[j]))
    return False


@jit
def payout(g: Any) -> int:
    """What jokers pay at the cash-out."""
    paid = 0
    for j in range(int(g.joker_count)):
        if joker_off(g, j):
            continue
        joker = i64(g.joker[j])
        if joker == ids.J_GOLDEN:
            paid += 4
        elif joker == ids.J_ROCKET:
            paid += i64(g.joker_value[j])
        elif joker == ids.J_CLOUD_9:
            for c in range(int(g.card_count)):
                if i64(g.place[c]) != 0 and rank_of(g, c) == 9:
                    paid += 1
        elif joker == ids.J_SATELLITE:
            seen = int(g.planets_seen)
            while seen != 0:
                paid += seen & 1
                seen >>= 1
        elif joker == ids.J_DELAYED_GRAT and int(g.discards_used) == 0:
            paid += 2 * max(0, int(g.discards_left))
    return paid


@jit
def something_sold(g: Any) -> None:
    """Campfires burn brighter."""
    for j in range(int(g.joker_count)):
        if i64(g.joker[j]) == ids.J_CAMPFIRE and not joker_off(g, j):
            g.joker_value[j] += 0.25


@jit
def each_grows(g: Any, joker: int, by: float) -> None:
    """Every joker of a kind grows: Constellation, Flash Card, Red Card."""
    for j in range(int(g.joker_count)):
        if i64(g.joker[j]) == joker and not joker_off(g, j):
            g.joker_value[j] += by


@jit
def pack_opened(g: Any) -> None:
    """Hallucinations may create a tarot."""
    aim(g)
    for j in range(int(g.joker_count)):
        t = i64(g.joker_target[j])
        sees = t >= 0 and i64(g.joker[t]) == ids.J_HALLUCINATION and create.consumable_room(g) > 0
        if sees and rng.roll(g, keys.K_HALLUCINATION) < odds(g) / 2.0:
            create.gain_tarot(g, keys.S_HAL)


@jit
def shop_left(g: Any) -> None:
    """Perkeo copies a consumable as Negative."""
    aim(g)
    for j in range(int(g.joker_count)):
        t = i64(g.joker_target[j])
        if t >= 0 and i64(g.joker[t]) == ids.J_PERKEO and int(g.consumable_count) > 0:
            i = rng.pick(g, keys.K_PERKEO, int(g.consumable_count), 0)
            create.add_consumable(g, i64(g.consumable[i]), True)
