"""The account of a scored hand: a line for each thing that changed chips or mult, kept where somebody asks for it.

An account is an array `[N, 5]` of lines (what, which, by which, chips after, mult after), zero at first; its line 0
counts those after it. One of length 0 keeps nothing, as in play. Lines beyond its room are not kept.
"""

from __future__ import annotations

from typing import Any

from aleazero.games.balatro.jit import jit

BASE, CARD, CARD_JOKER, HELD, HELD_JOKER, EDITION, JOKER, OTHER_JOKER, PLANET, BOSS = range(1, 11)
LINES = 400


@jit
def note(log: Any, g: Any, what: int, which: int, by: int) -> None:
    """Keeps a line, if chips or mult are not what they were."""
    if len(log) == 0:
        return
    last = int(log[0, 0])
    if last + 1 >= len(log):
        return
    if what != BASE and log[last, 3] == float(g.chips) and log[last, 4] == float(g.mult):
        return
    log[0, 0] = last + 1
    log[last + 1, 0] = what
    log[last + 1, 1] = which
    log[last + 1, 2] = by
    log[last + 1, 3] = float(g.chips)
    log[last + 1, 4] = float(g.mult)
