"""The law for games that ask which positions were there before: a walk through packed rows ends the game as play does.

A part of `check_game`. Knows the contract only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import GameContractError
from aleazero.core.game import Game
from aleazero.games.wander import Steps


def walks_alike(game: Game, flat: Steps, blame: Callable[[str, Any, str], None]) -> None:
    """Packs every state, plays on from the row and counts keys: that leads where the whole state leads.

    `blame(law, wrong, message)` raises for rows `[n]` that are wrong.
    """
    key, past, seen = game.position_key, game.past_keys, game.seen_before
    if key is None or past is None or seen is None:
        if any(hook is not None for hook in (key, past, seen)):
            raise GameContractError("seen_before", "position_key, past_keys and seen_before need one another: give all")
        return

    def walk(state: Any, action: Array) -> tuple[Array, Array, Array]:
        after = game.apply_action(game.unpack(game.pack(state)), action)
        before = jnp.concatenate([key(state)[None], past(state)])
        times = (before == key(after)[None]).all(-1).sum()
        own = jax.lax.bitcast_convert_type(key(after), jnp.uint8).reshape(-1)
        return game.pack(seen(after, times)), game.pack(game.apply_action(state, action)), own

    acts = np.asarray(flat.action) >= 0
    walked, whole, own = (np.asarray(x) for x in jax.jit(jax.vmap(walk))(flat.state, np.maximum(flat.action, 0)))
    differs = acts & (walked != whole).any(-1)
    blame("seen_before", differs, "with its keys counted, a packed row leads to another state than the state itself")
    blame("position_key", acts & (own != whole[:, :8]).any(-1), "a packed row does not begin with the position's key")
