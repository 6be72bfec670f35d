"""What plays and discards promise: the score of every subset of the first eight cards, by the rules.

Of every poker hand the best play is tried in full on a copy whose chances are not the game's; the other plays of that
hand are put in proportion to it. A discard promises the best play among the cards that are kept. A face-down card
promises nothing. All of it can be worked out from what is seen; networks need not learn to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aleazero.games.balatro import actions, tables
from aleazero.games.balatro.baselines import all_seen, appraise, gather, try_play
from aleazero.games.balatro.cards import passives
from aleazero.games.balatro.engine import Batch, spread
from aleazero.games.balatro.jit import entry, jit
from aleazero.games.balatro.layout import MAX_HAND, P_PLAY

SIZE = 2 * actions.NUM_SUBSETS  # plays, then discards, in the order of their actions
ENOUGH = 7.0  # is promised where the score is just what the blind still asks for; 0: nothing is promised
_HANDS = len(tables.HAND_CHIPS)
_LEAST, _MOST = -6.0, 3.0  # that the log of a score's share of it is held within


@jit
def _share(score: float, need: float) -> float:
    return ENOUGH + min(_MOST, max(_LEAST, np.log((score + 1e-9) / need)))


@jit
def _promise(g: Any, row: Any, spare: Any, spare_row: Any, mask: Any, out: Any) -> None:
    """Fills in plays that are legal and seen, and discards that are legal."""
    passive = passives(g)
    forced = actions.forced_bits(g)
    chosen = np.zeros(MAX_HAND, np.int64)
    kind = np.full(actions.NUM_SUBSETS, -1, np.int64)
    worth = np.zeros(actions.NUM_SUBSETS)
    best = np.full(_HANDS, -1, np.int64)
    for k in range(actions.NUM_SUBSETS):
        bits = int(actions.SUBSETS[k]) | forced
        if mask[actions.A_PLAY + k] and all_seen(g, bits):
            hand, value = appraise(g, chosen, gather(g, bits, chosen), passive)
            kind[k] = hand
            worth[k] = value
            if best[hand] < 0 or value >= worth[best[hand]]:
                best[hand] = k
    lift = np.zeros(_HANDS)
    for hand in range(_HANDS):
        if best[hand] >= 0 and worth[best[hand]] > 0.0:
            bits = int(actions.SUBSETS[best[hand]]) | forced
            lift[hand] = try_play(row, spare, spare_row, bits) / worth[best[hand]]
    need = max(1.0, float(g.target) - float(g.round_score))
    kept = np.zeros(256)  # by the places of the first eight cards that are kept: the best play among them
    for k in range(actions.NUM_SUBSETS):
        if kind[k] >= 0:
            score = worth[k] * lift[kind[k]]
            out[k] = _share(score, need)
            kept[int(actions.SUBSETS[k])] = score
    for i in range(8):
        for places in range(256):
            if places >> i & 1 != 0:
                kept[places] = max(kept[places], kept[places ^ 1 << i])
    for k in range(actions.NUM_SUBSETS):
        if mask[actions.A_DISCARD + k]:
            out[actions.NUM_SUBSETS + k] = _share(kept[255 & ~int(actions.SUBSETS[k])], need)


@entry
def _promise_range(
    states: Any, rows: Any, spares: Any, spare_rows: Any, masks: Any, out: Any, first: int, low: int, high: int
) -> None:
    """For a range of lanes; the first spare of the range is used."""
    for b in range(low, high):
        row = out[b, first:]
        row[:SIZE] = 0.0
        if int(states[b].phase) == P_PLAY:
            _promise(states[b], rows[b], spares[low], spare_rows[low], masks[b], row)


def promise(batch: Batch, out: np.ndarray, first: int = 0) -> None:
    """Writes what is promised into `SIZE` columns of `out` `[B, ...]` from `first` on; zeros for what is not legal."""
    spares = np.empty(len(batch), batch.states.dtype).view(np.recarray)  # only a few are ever touched
    rows, spare_rows = (x.view(np.ndarray).view(np.uint8).reshape(len(x), -1) for x in (batch.states, spares))
    spread(_promise_range, len(batch), batch.threads, batch.states, rows, spares, spare_rows, batch.masks, out, first)
