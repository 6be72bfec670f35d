"""Looks further than the next position: expectation over rolls, each answered by the best play.

Plies as GNU Backgammon counts them. At n plies a position is worth the mean over all rolls of what the other side's
best answer at 0-ply leaves, looked at with one ply less. Plays are chosen among the best few at 0-ply (the candidates).
Knows whole turns and opinions; not who plays or learns.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.opinions import expected_value, other_side
from aleazero.core.records import Knowledge
from aleazero.core.struct import replace, where_lanes
from aleazero.search.expectimax import Expectimax, Turn

CANDIDATES = 8  # plays that are looked at more closely
WITHIN = 0.16  # and how many points below the best at 0-ply they may be, at most
_NONE = -4.0  # below any value


@dataclasses.dataclass(frozen=True)
class Plies:
    """Chooses whole turns at some ply. Holds no arrays."""

    search: Expectimax
    ply: int
    candidates: int = CANDIDATES
    within: float = WITHIN  # points

    def best(self, knowledge: Knowledge, states: Any, lots: Array | None = None) -> Turn:
        """The best play of decision states `[B]`; where `lots` is not 0, any play."""
        if self.ply == 0:
            return self.search.best(knowledge, states, lots)
        lanes, spec = states.to_play.shape[0], self.search.game.spec
        turns, score = self.shortlist(knowledge, states)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), turns.afterstates)
        opinion = self.opinion(knowledge, flat, self.ply).reshape(lanes, self.candidates, -1)
        value = expected_value(spec, opinion)
        near = (score > _NONE) & (score >= score[:, :1] - self.within / spec.scale)
        chosen = jnp.argmax(jnp.where(near, value, _NONE), -1)
        turns = replace(turns, value=value, opinion=opinion)
        best: Turn = jax.tree.map(lambda x: x[jnp.arange(lanes), chosen], turns)
        if lots is not None:
            best = where_lanes(lots != 0, self.search.best(knowledge, states, lots), best)
        return best

    def judge(self, knowledge: Knowledge, afterstates: Any) -> Turn:
        """What afterstates are worth to whoever has just moved, at 0-ply."""
        return self.search.judge(knowledge, afterstates)

    def opinion(self, knowledge: Knowledge, afterstates: Any, ply: int) -> Array:
        """`[N, V]`: what afterstates promise whoever has just moved, at some ply; what is known, exactly."""
        judged = self.search.judge(knowledge, afterstates)
        if ply == 0:
            return judged.opinion
        game = self.search.game
        rolls = jnp.arange(game.num_later_outcomes)
        chances = jax.vmap(game.chance_probs)(afterstates)[:, : len(rolls)]

        def after(roll: Array) -> Array:
            states = jax.vmap(game.apply_chance, (0, None))(afterstates, roll)
            answer = self.search.best(knowledge, states)
            # Answered at 0-ply, and looked at with one ply less.
            theirs = answer.opinion if ply == 1 else self.opinion(knowledge, answer.afterstates, ply - 1)
            return other_side(game.spec, theirs)

        def add(total: Array, roll: Array) -> tuple[Array, None]:
            return total + chances[:, roll][:, None] * after(roll), None

        mean, _ = jax.lax.scan(add, jnp.zeros_like(judged.opinion), rolls)
        return jnp.where(judged.known[:, None], judged.opinion, mean)

    def shortlist(self, knowledge: Knowledge, states: Any) -> tuple[Turn, Array]:
        """The best plays at 0-ply, `[B, K]`, the best first, and their values; -4 where there are no more."""
        lanes, kept = states.to_play.shape[0], self.candidates

        def merge(carry: tuple[Turn, Array], found: Turn, real: Array, owner: Array) -> tuple[Turn, Array]:
            turns, score = carry
            # Those kept and those new, by lane and then by value; of equals the first.
            owners = jnp.concatenate([jnp.repeat(jnp.arange(lanes), kept), jnp.where(real, owner, lanes)])
            scores = jnp.concatenate([score.reshape(-1), jnp.where(real, found.value, _NONE)])
            place = jnp.arange(owners.shape[0])
            owners, scores, place = jax.lax.sort((owners, -scores, place), num_keys=2)
            first = jnp.searchsorted(owners, jnp.arange(lanes + 1))
            rank = jnp.arange(owners.shape[0]) - first[owners]
            slot = jnp.where((rank < kept) & (owners < lanes), owners * kept + rank, lanes * kept)
            source = jnp.zeros(lanes * kept, jnp.int32).at[slot].set(place, mode="drop")
            score = jnp.full(lanes * kept, _NONE).at[slot].set(-scores, mode="drop")

            def pick(old: Array, new: Array) -> Array:
                rows = jnp.concatenate([old.reshape(-1, *old.shape[2:]), new])[source]
                return rows.reshape(old.shape)

            return jax.tree.map(pick, turns, found), score.reshape(lanes, kept)

        like = jax.eval_shape(self.search.judge, knowledge, states)
        turns = jax.tree.map(lambda x: jnp.zeros((lanes, kept, *x.shape[1:]), x.dtype), like)
        start = (turns, jnp.full((lanes, kept), _NONE))
        shortlist: tuple[Turn, Array] = self.search.over_plays(knowledge, states, start, merge)
        return shortlist
