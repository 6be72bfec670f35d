"""Self-play by whole turns: B games at once, each turn a roll and the play the network likes best.

What is learned is the value of afterstates, so the positions recorded are those before a roll. As in `rollout.py` every
lane's randomness is named by seed, role, move and lane, and a game that ends makes room for the next.
Knows the game contract and a chooser of turns; not what the trajectories are for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.game import Game
from aleazero.core.keys import Role, fold, lane_keys, lane_words, mix
from aleazero.core.opinions import expected_value
from aleazero.core.records import Opine, Trajectory, Weights
from aleazero.core.struct import where_lanes
from aleazero.play.rollout import Games, Pace, begin, draw


class Chooser(Protocol):
    """What a rollout of turns needs of a search."""

    def best(self, weights: Weights, states: Any, lots: Array | None = None) -> Any:
        """The turn of decision states; any turn where a lot is not 0."""


@dataclasses.dataclass(frozen=True)
class TurnRollout:
    """Self-play of one game by turns. Holds no arrays."""

    game: Game
    search: Chooser
    opine: Opine
    moves: int  # T: turns
    random_plies: int
    look_ahead: Callable[[Weights, Any], Array] | None = None  # opinions of afterstates that see further than opine's
    other_start: Callable[[Array], Any] | None = None  # of one state before a roll, from a key
    other_fraction: float = 1.0
    other_plies: int | None = None

    def start(self, seed: Array, lanes: Array) -> Games:
        """First games for lanes `[B]` (their own numbers)."""
        return begin(self, seed, jnp.uint32(0), lanes)

    def run(
        self, weights: Weights, games: Games, pace: Pace, seed: Array, first: Array, lanes: Array
    ) -> tuple[Games, Trajectory]:
        """T turns of every lane; `first` is the number of the first of them, uint32, in the life of the run."""

        def turn(games: Games, number: Array) -> tuple[Games, Trajectory]:
            return self._turn(weights, games, seed, number, lanes)

        return jax.lax.scan(turn, games, first + jnp.arange(self.moves, dtype=jnp.uint32))

    def _turn(
        self, weights: Weights, games: Games, seed: Array, number: Array, lanes: Array
    ) -> tuple[Games, Trajectory]:
        game, before = self.game, games.states
        opening = games.openings > 0
        lots = None
        if self.random_plies:
            (words,) = lane_words(lane_keys(seed, Role.ACTION, number, lanes), 1)
            lots = jnp.where(opening, words | 1, jnp.uint32(0))
        rolled, drew = draw(game, before, lane_keys(seed, Role.CHANCE, number, lanes))
        after = self.search.best(weights, rolled, lots).afterstates
        opinion = self.opine(weights, jax.vmap(game.observe)(before)).astype(jnp.float32)
        if self.look_ahead is not None:  # nothing precedes an opening roll, and the network knows that position well
            later = jax.vmap(game.chance_probs)(before)[:, game.num_later_outcomes :].sum(-1) == 0
            opinion = jnp.where(later[:, None], self.look_ahead(weights, before), opinion)
        ply = games.ply + 2
        truncated = ~after.terminated & (ply >= game.spec.max_plies)
        fingerprint = mix(mix(games.fingerprint, drew + 1), fold(jax.vmap(game.pack)(after)))
        none = jnp.full((*lanes.shape, 1), -1, jnp.int16)
        row = Trajectory(
            state=jax.vmap(game.pack)(before),
            to_play=before.to_play.astype(jnp.int8),
            actions=none,
            policy=jnp.zeros(none.shape, jnp.float16),
            action=none[:, 0],
            opinion=opinion.astype(jnp.float16),
            value=expected_value(game.spec, opinion),
            searched=jnp.zeros_like(opening),
            random=opening,
            ended=after.terminated,
            truncated=truncated,
            points=jnp.where(after.terminated, after.returns[:, 0], 0.0),
            fingerprint=fingerprint,
        )
        going = Games(after, ply, jnp.maximum(games.openings - 1, 0), games.taste, fingerprint)
        return where_lanes(after.terminated | truncated, begin(self, seed, number + 1, lanes), going), row
