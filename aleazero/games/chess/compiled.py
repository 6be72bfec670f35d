"""The game's functions, compiled once, for those who look at one position at a time on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from aleazero.games.chess.game import Chess


def compiled(game: Chess, name: str) -> Any:
    """A function of the game by its name."""
    programs = game.__dict__.setdefault("_compiled", {})
    if name not in programs:
        programs[name] = jax.jit(getattr(game, name))
    return programs[name]


def legal_actions(game: Chess, state: Any) -> list[int]:
    """The legal actions, in the order of the list."""
    return [int(action) for action in np.asarray(compiled(game, "legal_list")(state)) if action >= 0]


def after(game: Chess, state: Any, action: int) -> Any:
    """The state that an action leads to."""
    return compiled(game, "apply_action")(state, jnp.int32(action))
