"""Baselines: players that choose by rule. They know what a player sees: no face-down card, no order of the draw pile.

`greedy` plays the best hand it holds and buys any joker it can pay. `expectimax` looks one step ahead: it discards
where the best hand expected after the draw is better than the one it holds. Chances inside scoring are drawn from
streams that are not the game's. Both choose among the first eight cards of the hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro import actions, bosses, create, hands, ids, rng, rounds, tables
from aleazero.games.balatro.cards import debuffed, passives
from aleazero.games.balatro.jit import entry, i64, jit
from aleazero.games.balatro.layout import (
    AT_DECK,
    AT_HAND,
    E_BONUS,
    E_GLASS,
    E_LUCKY,
    E_MULT,
    E_STONE,
    F_FACE_DOWN,
    G_CONSUMABLE,
    G_JOKER,
    MAX_CARDS,
    MAX_HAND,
    P_PACK,
    P_PLAY,
    P_SHOP,
)
from aleazero.games.balatro.packs import most_played
from aleazero.games.balatro.tables import PACK_KIND, PACK_KINDS

GREEDY, EXPECTIMAX = 1, 2
_SCORED = 6  # plays that are scored in full, the best by estimate
_GLANCES, _LOOKED_AT, _DRAWS = 3, 10, 24  # draws of every discard; the best are looked at again; with so many draws
_BUFFOON, _CELESTIAL = PACK_KINDS.index("Buffoon"), PACK_KINDS.index("Celestial")
_NEUTRAL = np.array(list(b"ALEAZERO"), np.int64)  # the streams that hands are tried with
_HARMLESS = np.array(
    [
        ids.C_HIGH_PRIESTESS,
        ids.C_EMPEROR,
        ids.C_HERMIT,
        ids.C_TEMPERANCE,
        ids.C_JUDGEMENT,
        ids.C_BLACK_HOLE,
        ids.C_SOUL,
    ],
    np.int64,
)


@jit
def _refused(g: Any, hand: int, count: int) -> bool:
    """Whether the boss would refuse a hand."""
    boss = bosses.boss_now(g)
    if boss == ids.B_PSYCHIC:
        return count < 5
    if boss == ids.B_EYE:
        return i64(g.round_plays[hand]) > 0
    return boss == ids.B_MOUTH and int(g.first_hand) >= 0 and int(g.first_hand) != hand


@jit
def appraise(g: Any, chosen: Any, count: int, passive: int) -> tuple[int, float]:
    """The poker hand of cards, and what it would score with its level and their own worth: no jokers, no held cards."""
    hand, _, scoring = hands.evaluate(g, chosen, count, passive)
    if _refused(g, hand, count):
        return hand, 0.0
    level = i64(g.level[hand])
    chips = float(tables.HAND_CHIPS[hand] + (level - 1) * tables.HAND_CHIPS_STEP[hand])
    mult = float(tables.HAND_MULT[hand] + (level - 1) * tables.HAND_MULT_STEP[hand])
    for i in range(count):
        c = int(chosen[i])
        if scoring >> i & 1 == 0 or debuffed(g, c):
            continue
        enhancement = i64(g.enhancement[c])
        chips += float(g.bonus[c])
        chips += 50.0 if enhancement == E_STONE else float(tables.RANK_CHIPS[i64(g.rank[c])])
        if enhancement == E_BONUS:
            chips += 30.0
        elif enhancement in (E_MULT, E_LUCKY):
            mult += 4.0
        elif enhancement == E_GLASS:
            mult *= 2.0
        more, added, times = create.edition_chips_mult(i64(g.edition[c]))
        chips += more
        mult = (mult + added) * times
    return hand, chips * mult


@jit
def _put(target: Any, source: Any) -> None:
    for k in range(len(source)):
        target[k] = source[k]


@jit
def try_play(row: Any, spare: Any, spare_row: Any, bits: int) -> float:
    """What playing these places would score, tried on a copy whose chances are not the game's.

    Held cards that lie face down are put back into the deck first: what they are, nobody knows.
    """
    _put(spare_row, row)
    rng.set_seed(spare, _NEUTRAL, 8)
    seen, count = 0, 0
    for i in range(int(spare.hand_count)):
        c = i64(spare.hand[i])
        if bits >> i & 1 == 0 and i64(spare.card_flags[c]) & F_FACE_DOWN != 0:
            spare.place[c] = AT_DECK
        else:
            seen |= (bits >> i & 1) << count
            spare.hand[count] = c
            count += 1
    spare.hand_count = count
    rounds.lay_and_score(spare, seen, np.zeros(MAX_HAND, np.int64), np.zeros((0, 5), np.float64))
    return float(spare.hand_score)


@jit
def all_seen(g: Any, bits: int) -> bool:
    """Whether none of the cards at these places lies face down."""
    for i in range(int(g.hand_count)):
        if bits >> i & 1 != 0 and i64(g.card_flags[i64(g.hand[i])]) & F_FACE_DOWN != 0:
            return False
    return True


@jit
def gather(g: Any, bits: int, out: Any) -> int:
    """The cards at these places go to `out`; how many."""
    n = 0
    for i in range(int(g.hand_count)):
        if bits >> i & 1 != 0:
            out[n] = i64(g.hand[i])
            n += 1
    return n


@jit
def best_play(g: Any, row: Any, spare: Any, spare_row: Any, mask: Any) -> tuple[int, float, float]:
    """The play that scores most, its score, and the best estimate; of equals the one with more cards."""
    passive = passives(g)
    worth = np.full(actions.NUM_SUBSETS, -1.0)
    chosen = np.zeros(MAX_HAND, np.int64)
    forced = actions.forced_bits(g)
    last = 0
    for k in range(actions.NUM_SUBSETS):
        bits = int(actions.SUBSETS[k]) | forced
        if mask[actions.A_PLAY + k]:
            last = k
            if all_seen(g, bits):
                worth[k] = appraise(g, chosen, gather(g, bits, chosen), passive)[1]
    best, score, highest = last, -1.0, float(worth.max())
    for _ in range(_SCORED):
        k = 0
        for other in range(actions.NUM_SUBSETS):
            if worth[other] >= worth[k]:
                k = other
        if worth[k] < 0.0:
            break
        worth[k] = -1.0
        got = try_play(row, spare, spare_row, int(actions.SUBSETS[k]) | forced)
        if got > score:
            best, score = k, got
    return best, score, max(0.0, highest)


@jit
def _expected(g: Any, keep: int, passive: int, draws: int, word: int) -> float:
    """The best estimate expected once all but the places of `keep` are drawn anew, by so many draws.

    A card that lies face down is one more that is drawn.
    """
    held = np.zeros(MAX_HAND, np.int64)
    kept = 0
    for i in range(min(8, int(g.hand_count))):
        c = i64(g.hand[i])
        if keep >> i & 1 != 0 and i64(g.card_flags[c]) & F_FACE_DOWN == 0:
            held[kept] = c
            kept += 1
    size = min(8, int(g.hand_count))
    pool = np.zeros(MAX_CARDS, np.int64)
    n = 0
    for c in range(int(g.card_count)):
        hidden = i64(g.place[c]) == AT_HAND and i64(g.card_flags[c]) & F_FACE_DOWN != 0
        if i64(g.place[c]) == AT_DECK or hidden:
            pool[n] = c
            n += 1
    size = min(size, kept + n)
    chosen = np.zeros(MAX_HAND, np.int64)
    total = 0.0
    for _ in range(draws):
        for i in range(size - kept):
            word = (word * 48271) % 2147483647
            j = i + word % (n - i)
            card = pool[j]
            pool[j] = pool[i]
            pool[i] = card
            held[kept + i] = card
        best = 0.0
        for k in range(actions.NUM_SUBSETS):
            bits = int(actions.SUBSETS[k])
            if bits >> size != 0:
                continue
            count = 0
            for i in range(size):
                if bits >> i & 1 != 0:
                    chosen[count] = held[i]
                    count += 1
            if count == min(5, size):  # more cards never make a hand worse
                best = max(best, appraise(g, chosen, count, passive)[1])
        total += best
    return total / draws


@jit
def _best_discard(g: Any, mask: Any, word: int) -> tuple[int, float]:
    """The discard after which the best hand is expected, and its estimate; -1 where none is legal."""
    passive = passives(g)
    whole = (1 << min(8, int(g.hand_count))) - 1
    worth = np.full(actions.NUM_SUBSETS, -1.0)
    for k in range(actions.NUM_SUBSETS):
        if mask[actions.A_DISCARD + k]:
            worth[k] = _expected(g, whole & ~int(actions.SUBSETS[k]), passive, _GLANCES, word + k)
    best, value = -1, -1.0
    for _ in range(_LOOKED_AT):
        k = int(np.argmax(worth))
        if worth[k] < 0.0:
            break
        worth[k] = -1.0
        got = _expected(g, whole & ~int(actions.SUBSETS[k]), passive, _DRAWS, word + 1000 + k)
        if got > value:
            best, value = k, got
    return best, value


@jit
def _in_shop(g: Any, mask: Any, kind: int) -> int:
    """Jokers first; expectimax then also planets of its favourite hand, and packs of jokers and planets."""
    for i in range(int(g.shelf_count)):
        if i64(g.shelf_kind[i]) == G_JOKER and mask[actions.A_BUY + i]:
            return actions.A_BUY + i
    if kind == EXPECTIMAX:
        favourite = int(tables.HAND_PLANET[max(0, most_played(g))])
        for i in range(int(g.shelf_count)):
            wanted = i64(g.shelf_kind[i]) == G_CONSUMABLE and i64(g.shelf_id[i]) == favourite
            if wanted and mask[actions.A_BUY_AND_USE + i]:
                return actions.A_BUY_AND_USE + i
        for k in range(2):
            if mask[actions.A_BOOSTER + k]:
                what = int(PACK_KIND[i64(g.booster[k]) - 1])
                if what in (_BUFFOON, _CELESTIAL):
                    return actions.A_BOOSTER + k
    return actions.A_LEAVE_SHOP


@jit
def _consumable(g: Any, mask: Any) -> int:
    """A consumable that can only help: a planet, or one that needs no cards and costs nothing; -1 for none."""
    for i in range(int(g.consumable_count)):
        item = i64(g.consumable[i])
        helps = tables.FIRST_PLANET <= item < tables.FIRST_SPECTRAL
        for k in range(len(_HARMLESS)):
            helps = helps or item == int(_HARMLESS[k])
        if helps and mask[actions.A_USE + i]:
            return actions.A_USE + i
    return -1


@jit
def choose(g: Any, row: Any, spare: Any, spare_row: Any, mask: Any, kind: int, word: int) -> int:
    """The action of a baseline."""
    helpful = _consumable(g, mask)
    if helpful >= 0:
        return helpful
    phase = int(g.phase)
    if phase == P_SHOP:
        return _in_shop(g, mask, kind)
    if phase == P_PACK:
        for i in range(int(g.pack_count)):
            if mask[actions.A_CHOOSE + i]:
                return actions.A_CHOOSE + i
        return actions.A_SKIP_PACK
    if phase != P_PLAY:
        return actions.A_SELECT_BLIND
    k, score, now = best_play(g, row, spare, spare_row, mask)
    if kind == EXPECTIMAX and score < float(g.target) - float(g.round_score) and int(g.discards_left) > 0:
        discard, later = _best_discard(g, mask, word)
        if discard >= 0 and later > now:
            return actions.A_DISCARD + discard
    return actions.A_PLAY + k


@entry
def choose_range(
    states: Any,
    rows: Any,
    spares: Any,
    spare_rows: Any,
    masks: Any,
    kind: int,
    word: int,
    out: Any,
    low: int,
    high: int,
) -> None:
    """Chooses for a range of lanes; lanes that are over keep action 0. The first spare of the range is used."""
    for b in range(low, high):
        if masks[b].any():
            lane_word = (word * 7919 + b * 104729) % 2147483646 + 1
            out[b] = choose(states[b], rows[b], spares[low], spare_rows[low], masks[b], kind, lane_word)
