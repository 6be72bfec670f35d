"""Looks at whole turns: every play of a roll, valued by the network at the position it leaves.

Plies are counted as GNU Backgammon counts them: 0-ply takes the play whose afterstate the network likes best. Plays are
streamed in chunks and only the best of each lane is kept, so no position has too many of them. Where tables know how a
game ends, they are believed and not the network.
Knows the game contract (`plays`, `ending`) and an opinion of afterstates; not who plays or learns.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.game import FlatPlays, Game, seat_sign
from aleazero.core.keys import fold, mix, unit
from aleazero.core.opinions import certain, expected_value
from aleazero.core.records import Knowledge, Opine
from aleazero.core.scopes import part
from aleazero.core.struct import struct, where_lanes

_WORST = -4.0  # below any value


@struct
class Turn:
    """The play chosen for each lane."""

    afterstates: Any  # [B]: the position it leaves
    value: Array  # [B] float32: what it is worth to the player who makes it
    opinion: Array  # [B, V] float32: the outcomes expected then, from that player's side
    known: Array  # [B] bool: that is no opinion: the game is over, or how it ends is known


@dataclasses.dataclass(frozen=True)
class Expectimax:
    """Chooses whole turns in one game by one network's opinions. Holds no arrays."""

    game: Game
    opine: Opine

    def best(self, knowledge: Knowledge, states: Any, lots: Array | None = None) -> Turn:
        """The best play of decision states `[B]`. Where `lots` `[B]` uint32 is not 0, it draws any play instead."""
        game = self.game

        def take(kept: tuple[Turn, Array], found: Turn, real: Array, owner: Array) -> tuple[Turn, Array]:
            merit = found.value
            if lots is not None:  # named by what the play leaves: the same in any chunk and beside any other lanes
                lot = lots[owner]
                merit = jnp.where(lot != 0, unit(mix(lot, fold(jax.vmap(game.pack)(found.afterstates)))), merit)
            return _better(*kept, found, jnp.where(real, merit, _WORST), owner)

        lanes = states.to_play.shape
        nothing = jax.tree.map(
            lambda x: jnp.zeros((*lanes, *x.shape[1:]), x.dtype), jax.eval_shape(self.judge, knowledge, states)
        )
        chosen: tuple[Turn, Array] = self.over_plays(knowledge, states, (nothing, jnp.full(lanes, _WORST)), take)
        return chosen[0]

    def over_plays(
        self, knowledge: Knowledge, states: Any, start: Any, take: Callable[[Any, Turn, Array, Array], Any]
    ) -> Any:
        """`kept = take(kept, found [M], real [M], owner [M])` for every chunk of plays, from `start` on."""
        game = self.game
        assert game.plays is not None
        assert game.plays_start is not None
        plays = part("rules")(game.plays)

        def unfinished(carry: tuple[Any, Any, Array]) -> Array:
            return ~carry[2]

        def look(carry: tuple[Any, Any, Array]) -> tuple[Any, Any, Array]:
            kept, cursor, _ = carry
            chunk = plays(states, cursor)
            found = self.judge(knowledge, chunk.afterstates)
            real = jnp.arange(found.value.shape[0]) < chunk.count
            return take(kept, found, real, chunk.owner), chunk.cursor, chunk.done

        return jax.lax.while_loop(unfinished, look, (start, game.plays_start(states), jnp.bool_(False)))[0]

    def judge(self, knowledge: Knowledge, afterstates: Any) -> Turn:
        """What afterstates `[M]` are worth to whoever has just moved: finished games and known endings exactly."""
        spec, over = self.game.spec, afterstates.terminated
        observation = jax.vmap(self.game.observe)(afterstates)
        opinion = self.opine(knowledge.weights, observation).astype(jnp.float32)
        known = over
        if knowledge.endings is not None and opinion.shape[-1] > 1:  # a network of one number judges endings itself
            assert self.game.ending is not None
            ending = part("rules")(self.game.ending)
            settled, chances = jax.vmap(ending, (None, 0))(knowledge.endings, afterstates)
            opinion, known = jnp.where(settled[:, None], chances, opinion), known | settled
        points = seat_sign(afterstates.to_play) * afterstates.returns[:, 0]
        opinion = jnp.where(over[:, None], certain(spec, points, opinion.shape[-1]), opinion)
        return Turn(afterstates, expected_value(spec, opinion), opinion, known)


def rank_turns(search: Expectimax, knowledge: Knowledge, states: Any) -> Turn:
    """Every play of one position, states `[1]`: the best first, of equals the one listed first. On the host."""
    cursor, parts, done = _first(search, states), [], False
    while not done:
        found, chunk = _next(search, knowledge, states, cursor)
        cursor, done, count = chunk.cursor, bool(chunk.done), int(chunk.count)
        parts.append(jax.tree.map(lambda x, count=count: np.asarray(x)[:count], found))
    turns = jax.tree.map(lambda *x: np.concatenate(x), *parts)
    order = np.argsort(-turns.value, kind="stable")
    ranked: Turn = jax.tree.map(lambda x: x[order], turns)
    return ranked


@functools.partial(jax.jit, static_argnums=0)
def _first(search: Expectimax, states: Any) -> Any:
    assert search.game.plays_start is not None
    return search.game.plays_start(states)


@functools.partial(jax.jit, static_argnums=0)
def _next(search: Expectimax, knowledge: Knowledge, states: Any, cursor: Any) -> tuple[Turn, FlatPlays]:
    assert search.game.plays is not None
    chunk = search.game.plays(states, cursor)
    return search.judge(knowledge, chunk.afterstates), chunk


def _better(turn: Turn, score: Array, found: Turn, merit: Array, owner: Array) -> tuple[Turn, Array]:
    """Each lane's turn `[B]`, or the one of `found` `[M]` that its owner likes more; of equals the first."""
    lanes, size = score.shape[0], merit.shape[0]
    top = jnp.full(lanes, _WORST).at[owner].max(merit)
    wins = (merit == top[owner]) & (merit > score[owner])
    first = jnp.full(lanes, size).at[owner].min(jnp.where(wins, jnp.arange(size), size))
    row = jnp.minimum(first, size - 1)
    picked = jax.tree.map(lambda x: x[row], found)
    return where_lanes(first < size, picked, turn), jnp.maximum(score, top)
