"""The actor: plays games against itself with the newest weights and passes on what it saw.

Knows a compiled rollout and two ports; not who learns, nor where.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.records import NOT_RESIGNED, RESIGNED, RIGHT, WRONG, Trajectory, Weights
from aleazero.core.struct import struct
from aleazero.roles.ports import EpisodeSink, WeightStore

Play = Callable[[Weights, Any, Any, Array], tuple[Any, Trajectory]]
"""`play(weights, games, pace, first_move) -> (games, trajectory)`, compiled."""


@struct
class PlayStats:
    """What a slab says in few numbers; arrays, so that nobody waits for them."""

    ended: Array  # [] int32: games the rules ended
    truncated: Array  # [] int32: games we stopped
    entropy: Array  # [] float32: mean over searched moves, of the policy targets, in nats
    legal_entropy: Array  # [] float32: of a uniform policy in the same places
    simulations: Array  # [] float32: evaluations asked for
    outcome_points: Array  # [T, B] float32: seat 0's points; NaN where no game ended
    fingerprints: Array  # [T, B] uint32: of games that ended or were stopped; 0 elsewhere
    resigns: Array  # [4] int32: moves by what `Trajectory.resign` says of them


class Actor:
    """Plays; `games` and `move` are all that it carries from step to step."""

    def __init__(
        self,
        play: Play,
        pace: Callable[[int], Any],
        games: Any,
        sink: EpisodeSink,
        weights: WeightStore,
        *,
        num_games: int,
        moves: int,
    ) -> None:
        """`pace(rows)` gives the knobs when that many rows have been played."""
        self._play, self._pace, self._sink, self._weights = play, pace, sink, weights
        self._num_games, self._moves = num_games, moves
        self.games = games
        self.move = 0  # moves of every lane so far
        self.version = -1  # of the weights last played with

    @property
    def rows(self) -> int:
        """Rows played so far."""
        return self.move * self._num_games

    def step(self) -> Trajectory:
        """One rollout: T moves of every game."""
        self.version, weights = self._weights.latest()
        first = jnp.uint32(self.move % 2**32)
        self.games, slab = self._play(weights, self.games, self._pace(self.rows), first)
        self.move += self._moves
        self.hand_over(slab)
        return slab

    def hand_over(self, slab: Trajectory) -> None:
        """Passes a slab on."""
        self._sink.add(slab)


def summarise(slab: Trajectory, full_budget: Array, fast_budget: Array) -> PlayStats:
    """The few numbers; pure, to be compiled."""
    policy = slab.policy.astype(jnp.float32)
    entropy = -jnp.where(policy > 0, policy * jnp.log(jnp.maximum(policy, 1e-9)), 0.0).sum(-1)
    uniform = jnp.log(jnp.maximum((slab.actions >= 0).sum(-1), 1).astype(jnp.float32))
    searched = jnp.maximum(slab.searched.sum(), 1)
    over = slab.ended | slab.truncated
    said = jnp.zeros(slab.ended.shape, jnp.int8) if slab.resign is None else slab.resign
    # The budget is one for the whole batch, move by move.
    budget = jnp.where(slab.searched.any(-1), full_budget, fast_budget).astype(jnp.float32)
    return PlayStats(
        ended=slab.ended.sum(),
        truncated=slab.truncated.sum(),
        entropy=jnp.where(slab.searched, entropy, 0.0).sum() / searched,
        legal_entropy=jnp.where(slab.searched, uniform, 0.0).sum() / searched,
        simulations=budget.sum() * slab.ended.shape[1],
        outcome_points=jnp.where(slab.ended, slab.points, jnp.nan),
        fingerprints=jnp.where(over, slab.fingerprint, jnp.uint32(0)),
        resigns=jnp.stack([(said == which).sum() for which in (NOT_RESIGNED, RESIGNED, RIGHT, WRONG)]),
    )


compiled_summary = jax.jit(summarise)


def summary_of(slab: Trajectory, full_budget: int, fast_budget: int) -> PlayStats:
    """The few numbers of a slab, compiled."""
    stats: PlayStats = compiled_summary(slab, jnp.int32(full_budget), jnp.int32(fast_budget))
    return stats
