"""A player that costs nothing to ask, and a charm by which it sees shops and packs: bridges need no skill."""

from __future__ import annotations

import numpy as np

from aleazero.games.balatro import actions
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.layout import P_PLAY

_FIRST_FIVE = actions.A_PLAY + int(np.flatnonzero(actions.SUBSETS == 0b11111)[0])
_WANTED = (  # outside hands, in this order
    *range(actions.A_BUY, actions.A_BUY_AND_USE),
    *range(actions.A_BOOSTER, actions.A_REROLL),
    *range(actions.A_CHOOSE, actions.A_SKIP_PACK),
    actions.A_SKIP_PACK,
    actions.A_LEAVE_SHOP,
    actions.A_SELECT_BLIND,
)


def simple(batch: Batch, move: int) -> np.ndarray:
    """Plays the first five cards, buys what it can, takes the first of a pack."""
    return np.array([_choice(batch, lane) for lane in range(len(batch))], np.int64)


def _choice(batch: Batch, lane: int) -> int:
    mask = batch.masks[lane]
    if not mask.any():
        return 0
    if int(batch.states["phase"][lane]) == P_PLAY:
        return _FIRST_FIVE if mask[_FIRST_FIVE] else int(np.flatnonzero(mask)[0])
    return next(action for action in _WANTED if mask[action])


def charm(batch: Batch) -> None:
    """Any hand beats the blind."""
    np.minimum(batch.states["target"], 1.0, out=batch.states["target"])
