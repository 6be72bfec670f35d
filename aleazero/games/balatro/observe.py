"""What a player sees, as arrays: cards, jokers and the table, each entry documented and bounded.

Nothing hidden is in it: not the order of the draw pile, not what a face-down card is, not the random streams.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aleazero.games.balatro.engine import Batch, spread
from aleazero.games.balatro.jit import entry, i64, jit
from aleazero.games.balatro.layout import (
    AT_DECK,
    AT_GONE,
    AT_HAND,
    F_DEBUFFED,
    F_FACE_DOWN,
    G_JOKER,
    NUM_HANDS,
    P_PACK,
    ST_ETERNAL,
    ST_PERISHABLE,
    ST_RENTAL,
)

CARD_ROWS, CARD_COLUMNS = 52, 4
JOKER_ROWS, JOKER_COLUMNS = 150, 8
STATE_SIZE = 50

CARD_ENTRIES = (
    "copies in the hand that can be seen, in quarters",
    "copies in the draw pile or face down, in quarters",
    "copies owned that are enhanced, sealed or have an edition, in quarters",
    "a copy in the hand is debuffed",
)
JOKER_ENTRIES = (
    "owned",
    "place among the owned, the left-most highest",
    "edition, in quarters",
    "eternal, perishable or rental, a third each",
    "its counter, squashed",
    "sell value, in fortieths",
    "on the shelf",
    "in the open pack",
)
STATE_ENTRIES = (
    "phase", "ante", "blind: 0 small, 1 big, 2 boss", "boss", "boss disabled", "stake", "deck", "money",
    "log10 of 1 + target", "log10 of 1 + round score", "hands left", "discards left", "hand size", "cards in the hand",
    "cards in the draw pile", "cards owned", "jokers", "joker slots", "consumables", "consumable slots", "reroll cost",
    "free rerolls", "voucher of the ante", "first pack of the shop", "second pack of the shop",
    "tag for skipping small", "tag for skipping big", "tags held",
    "kind of the open pack, from 1", "cards to choose", "selected cards",
    "blinds skipped", "tarots used", "hands played this round", "won", "interest now", "last poker hand, from 1",
    "vouchers owned",
    *(f"level of poker hand {h}" for h in range(NUM_HANDS)),
)  # fmt: skip
assert len(STATE_ENTRIES) == STATE_SIZE


@jit
def _row(rank: int, suit: int) -> int:
    return suit * 13 + rank - 2


@jit
def observe_cards(g: Any, out: Any) -> None:
    """`[52, 4]`, one row for every rank of every suit; all in 0..1."""
    for r in range(CARD_ROWS):
        for k in range(CARD_COLUMNS):
            out[r, k] = 0.0
    for c in range(int(g.card_count)):
        place = i64(g.place[c])
        if place == AT_GONE:
            continue
        r = _row(i64(g.rank[c]), i64(g.suit[c]))
        hidden = i64(g.card_flags[c]) & F_FACE_DOWN != 0
        if place == AT_HAND and not hidden:
            out[r, 0] = min(1.0, out[r, 0] + 0.25)
            if i64(g.card_flags[c]) & F_DEBUFFED != 0:
                out[r, 3] = 1.0
        elif place in (AT_DECK, AT_HAND):
            out[r, 1] = min(1.0, out[r, 1] + 0.25)
        if i64(g.enhancement[c]) + i64(g.edition[c]) + i64(g.seal[c]) > 0:
            out[r, 2] = min(1.0, out[r, 2] + 0.25)


@jit
def observe_jokers(g: Any, out: Any) -> None:
    """`[150, 8]`, one row for every joker; all in 0..1. Of several copies the right-most is seen."""
    for r in range(JOKER_ROWS):
        for k in range(JOKER_COLUMNS):
            out[r, k] = 0.0
    for i in range(int(g.joker_count)):
        r = i64(g.joker[i]) - 1
        stickers = i64(g.joker_sticker[i])
        out[r, 0] = 1.0
        out[r, 1] = 1.0 / (1 + i)
        out[r, 2] = i64(g.joker_edition[i]) / 4.0
        count = (1 if stickers & ST_ETERNAL else 0) + (1 if stickers & ST_PERISHABLE else 0)
        out[r, 3] = (count + (1 if stickers & ST_RENTAL else 0)) / 3.0
        value = abs(float(g.joker_value[i]))
        out[r, 4] = value / (value + 10.0)
        out[r, 5] = min(1.0, i64(g.joker_sell[i]) / 40.0)
    for i in range(int(g.shelf_count)):
        if i64(g.shelf_kind[i]) == G_JOKER:
            out[i64(g.shelf_id[i]) - 1, 6] = 1.0
    if int(g.phase) == P_PACK:
        for i in range(int(g.pack_count)):
            if i64(g.pack_what[i]) == G_JOKER:
                out[i64(g.pack_item[i]) - 1, 7] = 1.0


@jit
def _ones(bits: int) -> int:
    n = 0
    while bits != 0:
        n += bits & 1
        bits >>= 1
    return n


@jit
def observe_state(g: Any, out: Any) -> None:
    """`[50]`, as `STATE_ENTRIES` says; unbounded."""
    owned = 0
    for c in range(int(g.card_count)):
        if i64(g.place[c]) != AT_GONE:
            owned += 1
    out[0] = int(g.phase)
    out[1] = int(g.ante)
    out[2] = int(g.blind)
    out[3] = int(g.boss)
    out[4] = int(g.boss_off)
    out[5] = int(g.stake)
    out[6] = int(g.deck)
    out[7] = int(g.money)
    out[8] = math.log10(1.0 + float(g.target))
    out[9] = math.log10(1.0 + float(g.round_score))
    out[10] = int(g.hands_left)
    out[11] = int(g.discards_left)
    out[12] = int(g.hand_size)
    out[13] = int(g.hand_count)
    out[14] = int(g.deck_count)
    out[15] = owned
    out[16] = int(g.joker_count)
    out[17] = int(g.joker_slots)
    out[18] = int(g.consumable_count)
    out[19] = int(g.consumable_slots)
    out[20] = int(g.reroll_cost)
    out[21] = int(g.free_rerolls)
    out[22] = int(g.voucher)
    out[23] = i64(g.booster[0])
    out[24] = i64(g.booster[1])
    out[25] = int(g.tag_small)
    out[26] = int(g.tag_big)
    out[27] = int(g.tag_count)
    out[28] = int(g.pack_kind) + 1
    out[29] = int(g.pack_left)
    out[30] = _ones(int(g.selected))
    out[31] = int(g.skips)
    out[32] = int(g.tarots_used)
    out[33] = int(g.hands_played)
    out[34] = int(g.won)
    out[35] = min(5, max(0, int(g.money)) // 5)
    out[36] = int(g.last_hand) + 1
    out[37] = _ones(int(g.vouchers))
    for h in range(NUM_HANDS):
        out[38 + h] = i64(g.level[h])


@entry
def _observe(states: Any, cards: Any, jokers: Any, table: Any, low: int, high: int) -> None:
    for b in range(low, high):
        g = states[b]
        observe_cards(g, cards[b])
        observe_jokers(g, jokers[b])
        observe_state(g, table[b])


def observe_batch(batch: Batch, into: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
    """What is seen of every game: `cards` [B, 52, 4], `jokers` [B, 150, 8], `game_state` [B, 50], `action_mask`.

    `into` is what an earlier call for as many games gave, to be written over: new memory costs a third of the time.
    """
    count = len(batch)
    seen = into or {
        "cards": np.empty((count, CARD_ROWS, CARD_COLUMNS), np.float32),
        "jokers": np.empty((count, JOKER_ROWS, JOKER_COLUMNS), np.float32),
        "game_state": np.empty((count, STATE_SIZE), np.float32),
    }
    spread(_observe, count, batch.threads, batch.states, seen["cards"], seen["jokers"], seen["game_state"])
    return {**seen, "action_mask": batch.masks}


def observation_table() -> list[tuple[str, str, str]]:
    """Every entry: its array, its place, what it is."""
    rows = [("cards", f"[:, {k}]", text) for k, text in enumerate(CARD_ENTRIES)]
    rows += [("jokers", f"[:, {k}]", text) for k, text in enumerate(JOKER_ENTRIES)]
    return rows + [("game_state", f"[{k}]", text) for k, text in enumerate(STATE_ENTRIES)]
