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
from aleazero.core.keys import Role, lane_keys, lane_words, mix, unit
from aleazero.core.opinions import expected_value, other_side
from aleazero.core.records import Opine, Trajectory, Weights
from aleazero.core.struct import where_lanes
from aleazero.play.rollout import Games, Pace, draw


class Chooser(Protocol):
    """What a rollout of turns needs of a search."""

    def best(self, weights: Weights, states: Any, lots: Array | None = None) -> Any:
        """The turn of decision states; any turn where a lot is not 0."""


@dataclasses.dataclass(frozen=True)
class TurnRollout:
    """Self-play of one game by turns. Holds no arrays. `every_roll` looks at all rolls before one is drawn."""

    game: Game
    search: Chooser
    opine: Opine
    moves: int  # T: turns
    random_plies: int
    every_roll: bool = False
    other_start: Callable[[Array], Any] | None = None  # of one state before a roll, from a key
    other_fraction: float = 1.0
    other_plies: int | None = None

    def start(self, seed: Array, lanes: Array) -> Games:
        """First games for lanes `[B]` (their own numbers)."""
        return self._fresh(seed, jnp.uint32(0), lanes)

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
        if self.every_roll:
            opinion, after = self._look_at_every_roll(weights, before, drew, lots)
        else:
            opinion = self.opine(weights, jax.vmap(game.observe)(before)).astype(jnp.float32)
            after = self.search.best(weights, rolled, lots).afterstates
        ply = games.ply + 2
        truncated = ~after.terminated & (ply >= game.spec.max_plies)
        fingerprint = mix(mix(games.fingerprint, drew + 1), _fold(jax.vmap(game.pack)(after)))
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
        return where_lanes(after.terminated | truncated, self._fresh(seed, number + 1, lanes), going), row

    def _look_at_every_roll(self, weights: Weights, before: Any, drew: Array, lots: Array | None) -> tuple[Array, Any]:
        """The mean over all rolls of what is expected after the best answer, and the answer to the roll drawn."""
        game = self.game
        chances = jax.vmap(game.chance_probs)(before)

        def look(carry: tuple[Array, Any], roll: Array) -> tuple[tuple[Array, Any], None]:
            opinion, after = carry
            states = jax.vmap(game.apply_chance, (0, None))(before, roll)
            turn = self.search.best(weights, states, lots)
            # An answer's opinion is the other player's, unless the roll gave the turn to whoever moved before.
            theirs = (states.to_play != before.to_play)[:, None]
            seen = jnp.where(theirs, other_side(game.spec, turn.opinion), turn.opinion)
            chance = chances[:, roll][:, None]
            opinion = opinion + jnp.where(chance > 0, chance * seen, 0.0)
            return (opinion, where_lanes(drew == roll, turn.afterstates, after)), None

        width = jax.eval_shape(lambda: self.opine(weights, jax.vmap(game.observe)(before))).shape
        start = (jnp.zeros(width), before)
        (opinion, after), _ = jax.lax.scan(look, start, jnp.arange(game.spec.num_chance_outcomes))
        return opinion, after

    def _fresh(self, seed: Array, number: Array, lanes: Array) -> Games:
        """A new game in every lane, before its first roll."""
        states = jax.vmap(self.game.init)(lane_keys(seed, Role.INIT, number, lanes))
        length, taste, where = lane_words(lane_keys(seed, Role.TASTE, number, lanes), 3)
        ply = jnp.zeros(lanes.shape, jnp.int32)
        if self.other_start is not None:
            elsewhere = unit(where) < self.other_fraction
            others = jax.vmap(self.other_start)(lane_keys(seed, Role.START, number, lanes))
            states = where_lanes(elsewhere, others, states)
            if self.other_plies is not None:
                ply = jnp.where(elsewhere, max(self.game.spec.max_plies - self.other_plies, 0), ply)
        return Games(
            states=states,
            ply=ply,
            openings=(unit(length) * (self.random_plies + 1)).astype(jnp.int32),
            taste=taste,
            fingerprint=jnp.zeros(lanes.shape, jnp.uint32),
        )


def _fold(rows: Array) -> Array:
    """`[B]` uint32 of packed rows `[B, P]`: tells positions apart well enough to notice games that repeat."""
    weights = mix(jnp.uint32(1), jnp.arange(rows.shape[-1], dtype=jnp.uint32))
    return (rows.astype(jnp.uint32) * weights[None]).sum(-1, dtype=jnp.uint32)
