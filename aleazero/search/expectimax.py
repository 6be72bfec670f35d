"""Looks at whole turns: every play of a roll, valued by the network at the position it leaves.

Plies are counted as GNU Backgammon counts them: 0-ply takes the play whose afterstate the network likes best. Plays are
streamed in chunks and only the best of each lane is kept, so no position has too many of them.
Knows the game contract (`plays`) and an opinion of afterstates; not who plays or learns.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.game import Game, seat_sign
from aleazero.core.keys import mix, unit
from aleazero.core.opinions import certain, expected_value
from aleazero.core.records import Opine, Weights
from aleazero.core.struct import struct, where_lanes

_WORST = -4.0  # below any value


@struct
class Turn:
    """The play chosen for each lane."""

    afterstates: Any  # [B]: the position it leaves
    value: Array  # [B] float32: what it is worth to the player who makes it
    opinion: Array  # [B, V] float32: the outcomes expected then, from that player's side


@dataclasses.dataclass(frozen=True)
class Expectimax:
    """Chooses whole turns in one game by one network's opinions. Holds no arrays."""

    game: Game
    opine: Opine

    def best(self, weights: Weights, states: Any, lots: Array | None = None) -> Turn:
        """The best play of decision states `[B]`. Where `lots` `[B]` uint32 is not 0, it draws any play instead."""
        game = self.game
        assert game.plays is not None
        assert game.plays_start is not None

        def unfinished(carry: tuple[Turn, Array, Any, Array, Array]) -> Array:
            return ~carry[3]

        def look(carry: tuple[Turn, Array, Any, Array, Array]) -> tuple[Turn, Array, Any, Array, Array]:
            turn, score, cursor, _, seen = carry
            chunk = game.plays(states, cursor)  # type: ignore[misc]
            found = self.judge(weights, chunk.afterstates)
            place = jnp.arange(found.value.shape[0], dtype=jnp.int32)
            merit = found.value
            if lots is not None:  # named by the play's number, so the same however plays are cut into chunks
                lot = lots[chunk.owner]
                merit = jnp.where(lot != 0, unit(mix(lot, (seen + place).astype(jnp.uint32))), merit)
            merit = jnp.where(place < chunk.count, merit, _WORST)
            turn, score = _better(turn, score, found, merit, chunk.owner)
            return turn, score, chunk.cursor, chunk.done, seen + chunk.count

        lanes = states.to_play.shape
        nothing = jax.tree.map(
            lambda x: jnp.zeros((*lanes, *x.shape[1:]), x.dtype), jax.eval_shape(self.judge, weights, states)
        )
        score = jnp.full(lanes, _WORST)
        start = (nothing, score, game.plays_start(states), jnp.bool_(False), jnp.int32(0))
        chosen: Turn = jax.lax.while_loop(unfinished, look, start)[0]
        return chosen

    def judge(self, weights: Weights, afterstates: Any) -> Turn:
        """What afterstates `[M]` are worth to whoever has just moved; finished games exactly."""
        spec = self.game.spec
        opinion = self.opine(weights, jax.vmap(self.game.observe)(afterstates)).astype(jnp.float32)
        points = seat_sign(afterstates.to_play) * afterstates.returns[:, 0]
        known = certain(spec, points, opinion.shape[-1])
        opinion = jnp.where(afterstates.terminated[:, None], known, opinion)
        return Turn(afterstates, expected_value(spec, opinion), opinion)


def _better(turn: Turn, score: Array, found: Turn, merit: Array, owner: Array) -> tuple[Turn, Array]:
    """Each lane's turn `[B]`, or the one of `found` `[M]` that its owner likes more; of equals the first."""
    lanes, size = score.shape[0], merit.shape[0]
    top = jnp.full(lanes, _WORST).at[owner].max(merit)
    wins = (merit == top[owner]) & (merit > score[owner])
    first = jnp.full(lanes, size).at[owner].min(jnp.where(wins, jnp.arange(size), size))
    row = jnp.minimum(first, size - 1)
    picked = jax.tree.map(lambda x: x[row], found)
    return where_lanes(first < size, picked, turn), jnp.maximum(score, top)
