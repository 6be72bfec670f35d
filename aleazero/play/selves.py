"""Fragments of device games for policy gradients: the learner's network plays past selves, all in one compiled program.

Lanes are shared out evenly over the past selves, so each is met as often as the others; which seat the learner has
is drawn anew for every game. A game for one has no opponents. Every lane's randomness is named by seed, role, move
and lane, as in `aleazero.play.rollout`. Knows the game contract and a network's signature; not which selves are kept.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.game import Game, legal_mask
from aleazero.core.keys import Role, lane_keys, lane_words
from aleazero.core.records import Evaluate, Fragment, Prediction, Weights
from aleazero.core.struct import struct, where_lanes
from aleazero.play.rollout import act, draw


@struct
class Bouts:
    """Games in flight, `[B]` lanes."""

    states: Any  # decision states
    ply: Array  # [B] int32: moves, nature's included, since the game began
    seat: Array  # [B] int32: the learner's


@struct
class BoutStats:
    """What a fragment says in few numbers; sums over its rows."""

    ended: Array  # []
    truncated: Array  # []
    won: Array  # [] games that brought the learner points
    points: Array  # [] of the learner, over the games that are over
    entropy: Array  # [] nats, over the learner's moves
    legal_entropy: Array  # []
    mine: Array  # [] moves of the learner


@dataclasses.dataclass(frozen=True)
class SelvesPlay:
    """Play of one device game by one network and `opponents` earlier ones. Holds no arrays."""

    game: Game
    evaluate: Evaluate
    num_games: int  # B, a multiple of `opponents`
    moves: int  # T
    opponents: int  # S: past selves; 0 in a game for one

    def start(self, seed: Array) -> Bouts:
        """First games."""
        return self._fresh(seed, jnp.uint32(0))

    def run(
        self, weights: Weights, selves: Weights, bouts: Bouts, seed: Array, first: Array
    ) -> tuple[Bouts, Fragment, BoutStats]:
        """T moves of every lane; `selves` are the weights of past selves, `[S, ...]` each.

        `first` is the number of the first move, uint32, in the life of the run.
        """

        def move(bouts: Bouts, number: Array) -> tuple[Bouts, tuple[Fragment, BoutStats]]:
            return self._move(weights, selves, bouts, seed, number)

        numbers = first + jnp.arange(self.moves, dtype=jnp.uint32)
        bouts, (rows, stats) = jax.lax.scan(move, bouts, numbers)
        last = self._worth(weights, bouts.states, bouts.seat)
        return bouts, dataclasses.replace(rows, last=last), jax.tree.map(lambda x: x.sum(0), stats)

    def _move(
        self, weights: Weights, selves: Weights, bouts: Bouts, seed: Array, number: Array
    ) -> tuple[Bouts, tuple[Fragment, BoutStats]]:
        game, states, lanes = self.game, bouts.states, self._lanes
        seen, mine = jax.vmap(game.observe)(states), states.to_play == bouts.seat
        legal = legal_mask(jax.vmap(game.legal_list)(states), game.spec.num_actions)
        said = self.evaluate(weights, seen)
        logits = jnp.where(mine[:, None], said.logits, self._others(selves, seen, said))
        policy = jax.nn.log_softmax(jnp.where(legal, logits.astype(jnp.float32), -1e9))
        noise = jax.vmap(lambda key: jax.random.gumbel(key, legal.shape[1:]))(
            lane_keys(seed, Role.ACTION, number, lanes)
        )
        action = jnp.argmax(jnp.where(legal, policy + noise, -jnp.inf), -1).astype(jnp.int32)
        after, drew = act(game, states, action, lane_keys(seed, Role.CHANCE, number, lanes))
        ply = bouts.ply + 1 + (drew >= 0)
        ended, truncated = after.terminated, ~after.terminated & (ply >= game.spec.max_plies)
        over, total = ended | truncated, _of_seat(after.returns, bouts.seat)
        stopped = jax.lax.cond(
            truncated.any(), lambda: self._worth(weights, after, bouts.seat), lambda: jnp.zeros_like(total)
        )
        row = Fragment(
            observation=seen.astype(jnp.float32),
            legal=legal,
            action=action,
            log_prob=jnp.take_along_axis(policy, action[:, None], -1)[:, 0],
            value=said.value.astype(jnp.float32),
            reward=total - _of_seat(states.returns, bouts.seat),
            ended=ended,
            truncated=truncated,
            after=jnp.where(truncated, stopped, 0.0),
            mine=mine,
            last=jnp.zeros(()),
        )
        entropy = -jnp.where(legal, jnp.exp(policy) * policy, 0.0).sum(-1)
        stats = BoutStats(
            ended=ended.sum(),
            truncated=truncated.sum(),
            won=(over & (total > 0)).sum(),
            points=jnp.where(over, total, 0.0).sum(),
            entropy=jnp.where(mine, entropy, 0.0).sum(),
            legal_entropy=jnp.where(mine, jnp.log(legal.sum(-1).astype(jnp.float32)), 0.0).sum(),
            mine=mine.sum(),
        )
        going = Bouts(after, ply, bouts.seat)
        return where_lanes(over, self._fresh(seed, number + 1), going), (row, stats)

    @property
    def _lanes(self) -> Array:
        return jnp.arange(self.num_games, dtype=jnp.uint32)

    def _others(self, selves: Weights, seen: Array, said: Prediction) -> Array:
        """What past selves would play, `[B, A]`; each is asked of its own share of the lanes."""
        if not self.opponents:
            return said.logits
        shares = seen.reshape(self.opponents, -1, *seen.shape[1:])
        return jax.vmap(self.evaluate)(selves, shares).logits.reshape(said.logits.shape)

    def _worth(self, weights: Weights, states: Any, seat: Array) -> Array:
        """Points to come for the learner, `[B]`, where a game is not over."""
        value = self.evaluate(weights, jax.vmap(self.game.observe)(states)).value.astype(jnp.float32)
        return jnp.where(states.to_play == seat, value, -value)

    def _fresh(self, seed: Array, number: Array) -> Bouts:
        """A new game in every lane, as it would begin before move `number`."""
        states = jax.vmap(self.game.init)(lane_keys(seed, Role.INIT, number, self._lanes))
        states, drew = draw(self.game, states, lane_keys(seed, Role.OPENING, number, self._lanes))
        word = lane_words(lane_keys(seed, Role.START, number, self._lanes), 1)[0]
        seat = (word % self.game.spec.num_players).astype(jnp.int32)
        return Bouts(states, (drew >= 0).astype(jnp.int32), seat)


def _of_seat(points: Array, seat: Array) -> Array:
    return jnp.take_along_axis(points, seat[:, None], -1)[:, 0].astype(jnp.float32)
