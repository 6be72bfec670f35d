"""Backgammon positions as plain numbers, `[n, 2, 25]`, for engines and files; and back to states.

Row 0 is the opponent, row 1 the player to move or, before a roll, who has just moved; each counts its own points 1 to
24, then its bar. On the host.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.games.backgammon.board import PLACES, planes
from aleazero.games.backgammon.game import BackgammonState, state_of

_PLACES = np.arange(PLACES, dtype=np.uint32)
_states = jax.jit(jax.vmap(state_of))


def to_boards(states: Any) -> np.ndarray:
    """`[n, 2, 25]` int64 of states `[n]`."""
    mine, theirs = (_counts(np.asarray(side)) for side in (states.mine, states.theirs))
    return np.stack([theirs[:, ::-1][:, 1:], mine[:, 1:]], 1)


def to_dice(states: Any) -> np.ndarray:
    """`[n, 2]` int64: the dice to play, larger first."""
    return np.asarray(states.dice).astype(np.int64)


def afterstates(boards: np.ndarray, to_play: np.ndarray) -> BackgammonState:
    """The states `[n]` that players in seats `to_play` `[n]` leave with these boards."""
    mine, theirs = np.zeros((2, len(boards), PLACES), np.int64)
    mine[:, 1:], theirs[:, 1:] = boards[:, 1], boards[:, 0]
    both = (np.stack(planes(side), -1) for side in (mine, theirs[:, ::-1]))
    return _states(*(jnp.asarray(side) for side in both), jnp.asarray(to_play, jnp.int8))


def rolled(boards: np.ndarray, dice: np.ndarray, to_play: np.ndarray) -> BackgammonState:
    """The states `[n]` of players in seats `to_play` `[n]` who have these boards and dice `[n, 2]` to play."""
    states = afterstates(boards, to_play)
    dice = np.sort(np.asarray(dice), -1)[:, ::-1]
    left = np.where(dice[:, 0] == dice[:, 1], 4, 2)
    return _states(states.mine, states.theirs, states.to_play, jnp.asarray(dice, jnp.int8), jnp.asarray(left, jnp.int8))


def _counts(side: np.ndarray) -> np.ndarray:
    """`[n, 26]` from planes `[n, 4]`."""
    bits = (side[:, :, None] >> _PLACES) & 1
    return (bits.astype(np.int64) << np.arange(4)[None, :, None]).sum(1)
