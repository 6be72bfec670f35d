"""Self-play by whole turns: B games at once, each turn a roll and the play the network likes best.

What is learned is the value of afterstates, so the positions recorded are those before a roll. Where it is known how a
game ends, it is over: its last row has the exact chances as its opinion. As in `rollout.py` every
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

from aleazero.core.game import Game, seat_sign
from aleazero.core.keys import Role, fold, lane_keys, lane_words, mix
from aleazero.core.opinions import expected_value
from aleazero.core.records import Knowledge, Trajectory
from aleazero.core.scopes import part
from aleazero.core.struct import where_lanes
from aleazero.play.rollout import Games, Pace, begin, draw


def next_fingerprint(before: Array, drew: Array, left: Array) -> Array:
    """A game's fingerprint after a turn: what nature drew, and `left`, what the turn left (`fold` of it, packed).

    No two outcomes have the same one where the rest is the same: so a roll that is not recorded can be told.
    """
    return mix(mix(before, drew + 1), left)


class Chooser(Protocol):
    """What a rollout of turns needs of a search."""

    def best(self, knowledge: Knowledge, states: Any, lots: Array | None = None) -> Any:
        """The turn of decision states; any turn where a lot is not 0."""

    def judge(self, knowledge: Knowledge, afterstates: Any) -> Any:
        """`opinion` of afterstates, and where it is `known`."""


@dataclasses.dataclass(frozen=True)
class TurnRollout:
    """Self-play of one game by turns. Holds no arrays."""

    game: Game
    search: Chooser
    moves: int  # T: turns
    random_plies: int
    look_ahead: Callable[[Knowledge, Any], Array] | None = None  # opinions of afterstates that see further
    other_start: Callable[[Array], Any] | None = None  # of one state before a roll, from a key
    other_fraction: float = 1.0
    other_plies: int | None = None

    def start(self, seed: Array, lanes: Array) -> Games:
        """First games for lanes `[B]` (their own numbers)."""
        return begin(self, seed, jnp.uint32(0), lanes)

    def run(
        self, knowledge: Knowledge, games: Games, pace: Pace, seed: Array, first: Array, lanes: Array
    ) -> tuple[Games, Trajectory]:
        """T turns of every lane; `first` is the number of the first of them, uint32, in the life of the run."""

        def turn(games: Games, number: Array) -> tuple[Games, Trajectory]:
            return self._turn(knowledge, games, seed, number, lanes)

        return jax.lax.scan(turn, games, first + jnp.arange(self.moves, dtype=jnp.uint32))

    def _turn(
        self, knowledge: Knowledge, games: Games, seed: Array, number: Array, lanes: Array
    ) -> tuple[Games, Trajectory]:
        game, before = self.game, games.states
        opening = games.openings > 0
        lots = None
        if self.random_plies:
            (words,) = lane_words(lane_keys(seed, Role.ACTION, number, lanes), 1)
            lots = jnp.where(opening, words | 1, jnp.uint32(0))
        rolled, drew = draw(game, before, lane_keys(seed, Role.CHANCE, number, lanes))
        after = part("search")(self.search.best)(knowledge, rolled, lots).afterstates
        judged = part("search")(self.search.judge)(knowledge, before)
        opinion, settled = judged.opinion, judged.known
        if self.look_ahead is not None:  # nothing precedes an opening roll, and the network knows that position well
            later = jax.vmap(game.chance_probs)(before)[:, game.num_later_outcomes :].sum(-1) == 0
            seen = part("search")(self.look_ahead)(knowledge, before)
            opinion = jnp.where(later[:, None], seen, opinion)
        drawn = self._end(before, opinion, lane_keys(seed, Role.ENDING, number, lanes))
        ended = after.terminated | settled
        ply = games.ply + 2
        truncated = ~ended & (ply >= game.spec.max_plies)
        last = jnp.where(settled, drawn.astype(jnp.int32).astype(jnp.uint32), fold(jax.vmap(game.pack)(after)))
        fingerprint = next_fingerprint(games.fingerprint, drew, last)
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
            random=opening & ~settled,
            ended=ended,
            settled=settled,
            truncated=truncated,
            points=jnp.where(settled, drawn, jnp.where(after.terminated, after.returns[:, 0], 0.0)),
            fingerprint=fingerprint,
        )
        going = Games(after, ply, jnp.maximum(games.openings - 1, 0), games.taste, fingerprint)
        return where_lanes(ended | truncated, begin(self, seed, number + 1, lanes), going), row

    def _end(self, states: Any, opinion: Array, keys: Array) -> Array:
        """`[B]` float32: seat 0's points of one ending each, drawn from to_play's chances."""
        if opinion.shape[-1] == 1:  # one number: no ending is known before it is played
            return jnp.zeros(keys.shape, jnp.float32)
        points = jnp.asarray([outcome.points for outcome in self.game.spec.outcomes], jnp.float32)
        outcome = jax.vmap(jax.random.categorical)(keys, jnp.log(opinion))
        return seat_sign(states.to_play) * points[outcome]
