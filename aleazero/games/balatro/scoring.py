"""What a played hand is worth, in the game's order, in double precision.

The boss's word on the hand; base chips and mult; jokers before; scoring cards left to right with their retriggers;
held cards; jokers left to right, Foil and Holographic before, Polychrome after; planets of an Observatory; Plasma's
balance. Then what breaks and what wears off. Cards must lie in `played`, the rest of the hand in `hand`.
Knows neither the round nor what the score is for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro import (
    account,
    bosses,
    create,
    hands,
    ids,
    jokers_card,
    jokers_held,
    jokers_main,
    keys,
    pools,
    rng,
    tables,
)
from aleazero.games.balatro.cards import debuffed, is_face, joker_off, odds, passives, rank_of
from aleazero.games.balatro.jit import i64, jit
from aleazero.games.balatro.jokers_before import aim, before_hand
from aleazero.games.balatro.layout import (
    AT_GONE,
    E_BONUS,
    E_GLASS,
    E_LUCKY,
    E_MULT,
    E_STONE,
    SEAL_GOLD,
)


@jit
def score_hand(g: Any, log: Any) -> int:
    """Scores the played cards: sets chips, mult and hand_score, and returns the poker hand.

    `log` takes the account (`account`); one of length 0 for none.
    """
    passive = passives(g)
    hand, contained, scoring = hands.evaluate(g, g.played, int(g.played_count), passive)
    for i in range(5):
        g.scoring[i] = scoring >> i & 1
    g.plays[hand] += 1
    g.round_plays[hand] += 1
    g.last_hand = hand
    g.boss_fired = int(g.boss_pressed)
    aim(g)
    refused = bosses.refuses(g, hand)
    g.money_before = int(g.money)
    if refused:
        g.chips, g.mult, g.hand_score = 0.0, 0.0, 0.0
        for j in range(int(g.joker_count)):
            t = i64(g.joker_target[j])
            if t >= 0 and i64(g.joker[t]) == ids.J_MATADOR:
                g.money += 8
    else:
        before_hand(g, hand, contained, passive)
        level = i64(g.level[hand])
        g.chips = float(tables.HAND_CHIPS[hand] + (level - 1) * tables.HAND_CHIPS_STEP[hand])
        g.mult = float(tables.HAND_MULT[hand] + (level - 1) * tables.HAND_MULT_STEP[hand])
        account.note(log, g, account.BASE, hand, level)
        bosses.halves(g)
        account.note(log, g, account.BOSS, 0, 0)
        _score_cards(g, passive, log)
        jokers_held.score_held(g, passive, log)
        _score_jokers(g, hand, contained, passive, log)
        g.hand_score = total(float(g.chips), float(g.mult), int(g.deck) == ids.D_PLASMA)
        _break_cards(g, passive)
    if int(g.first_hand) < 0:
        g.first_hand = hand
    _wear_off(g)
    return hand


@jit
def total(chips: float, mult: float, balanced: bool) -> float:
    """The score of chips and mult; with Plasma Deck both become their mean, rounded down."""
    if balanced:
        mean = float(np.floor((chips + mult) / 2.0))
        return mean * mean
    return float(np.floor(chips * mult))


@jit
def _score_cards(g: Any, passive: int, log: Any) -> None:
    first, first_face = -1, -1
    for i in range(int(g.played_count)):
        c = i64(g.played[i])
        if i64(g.scoring[i]) != 0:
            if first < 0:
                first = c
            if first_face < 0 and is_face(g, c, passive):
                first_face = c
    for i in range(int(g.played_count)):
        c = i64(g.played[i])
        if i64(g.scoring[i]) == 0:
            continue
        if debuffed(g, c):
            g.boss_fired = 1
            continue
        for _ in range(jokers_card.triggers(g, c, c == first, passive)):
            _score_card(g, c)
            account.note(log, g, account.CARD, c, 0)
            for j in range(int(g.joker_count)):
                jokers_card.on_card(g, j, c, first_face, passive)
                account.note(log, g, account.CARD_JOKER, c, j)


@jit
def _score_card(g: Any, c: int) -> None:
    """One trigger of a scored card by itself."""
    enhancement = i64(g.enhancement[c])
    g.lucky = 0
    g.chips += float(g.bonus[c])
    if enhancement == E_STONE:
        g.chips += 50.0
    else:
        g.chips += float(tables.RANK_CHIPS[i64(g.rank[c])])
    if enhancement == E_BONUS:
        g.chips += 30.0
    elif enhancement == E_MULT:
        g.mult += 4.0
    elif enhancement == E_LUCKY:
        if rng.roll(g, keys.K_LUCKY_MULT) < odds(g) / 5.0:
            g.mult += 20.0
            g.lucky = 1
        if rng.roll(g, keys.K_LUCKY_MONEY) < odds(g) / 15.0:
            g.money += 20
            g.lucky = 1
    elif enhancement == E_GLASS:
        g.mult *= 2.0
    if i64(g.seal[c]) == SEAL_GOLD:
        g.money += 3
    chips, mult, times = create.edition_chips_mult(i64(g.edition[c]))
    g.chips += chips
    g.mult += mult
    g.mult *= times


@jit
def _score_jokers(g: Any, hand: int, contained: int, passive: int, log: Any) -> None:
    for j in range(int(g.joker_count)):
        working = not joker_off(g, j)
        chips, mult, times = create.edition_chips_mult(i64(g.joker_edition[j]) if working else 0)
        g.chips += chips
        g.mult += mult
        account.note(log, g, account.EDITION, j, 0)
        jokers_main.on_hand(g, j, hand, contained, passive)
        account.note(log, g, account.JOKER, j, 0)
        jokers_main.on_joker(g, j, int(tables.JOKER_RARITY[i64(g.joker[j])]))
        account.note(log, g, account.OTHER_JOKER, j, 0)
        g.mult *= times
        account.note(log, g, account.EDITION, j, 0)
    if pools.has_voucher(g, ids.V_OBSERVATORY):
        for i in range(int(g.consumable_count)):
            if i64(g.consumable[i]) == int(tables.HAND_PLANET[hand]):
                g.mult *= 1.5
                account.note(log, g, account.PLANET, i, 0)


@jit
def destroyed(g: Any, c: int, passive: int) -> None:
    """A card is destroyed: it is gone, and jokers that mourn it grow."""
    glass = i64(g.enhancement[c]) == E_GLASS
    face = is_face(g, c, passive)
    g.place[c] = AT_GONE
    for j in range(int(g.joker_count)):
        if joker_off(g, j):
            continue
        if i64(g.joker[j]) == ids.J_CAINO and face:
            g.joker_value[j] += 1.0
        elif i64(g.joker[j]) == ids.J_GLASS and glass:
            g.joker_value[j] += 0.75


@jit
def _break_cards(g: Any, passive: int) -> None:
    """Sixth Sense takes its 6; Glass may break."""
    for i in range(int(g.played_count)):
        c = i64(g.played[i])
        if i64(g.scoring[i]) == 0:
            continue
        gone = False
        for j in range(int(g.joker_count)):
            single = int(g.hands_played) == 0 and int(g.played_count) == 1 and rank_of(g, c) == 6
            if single and i64(g.joker[j]) == ids.J_SIXTH_SENSE and i64(g.joker_target[j]) == j:
                create.gain_spectral(g, keys.S_SIXTH)
                gone = True
        if not gone and i64(g.enhancement[c]) == E_GLASS and not debuffed(g, c):
            gone = rng.roll(g, keys.K_GLASS) < odds(g) / 4.0
        if gone:
            destroyed(g, c, passive)


@jit
def _wear_off(g: Any) -> None:
    """Ice Cream melts, Seltzer runs out."""
    for j in range(int(g.joker_count) - 1, -1, -1):
        if joker_off(g, j):
            continue
        joker = i64(g.joker[j])
        if joker == ids.J_ICE_CREAM:
            g.joker_value[j] -= 5.0
        elif joker == ids.J_SELZER:
            g.joker_value[j] -= 1.0
        else:
            continue
        if float(g.joker_value[j]) <= 0.0:
            create.remove_joker(g, j)
