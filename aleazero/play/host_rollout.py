"""Play of games that run on the host: numpy rules stepped in batches, a network on the device that chooses.

No search: actions are drawn from the network's own policy. Every lane's randomness is named by seed, role, move and
lane, as in `aleazero.play.rollout`, so a game depends neither on the games beside it nor on how many moves are played
in one call. Knows the contract of host games and a network's signature; not what the trajectories are for.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import AleaError, ConfigError, GameContractError
from aleazero.core.game import HostGame
from aleazero.core.keys import Role, lane_keys, lane_words
from aleazero.core.records import Evaluate, Weights

_LEAST_TEMPERATURE = 1e-6  # below it the division would overflow where 0 already means the best


@dataclasses.dataclass(frozen=True)
class HostGames:
    """Games in flight, `[B]` lanes: all that is needed to go on with them."""

    states: Any  # as the game has them, none of them over
    ply: np.ndarray  # [B] int32: moves since the game began


@dataclasses.dataclass(frozen=True)
class HostTrajectory:
    """T moves of B games, raw. Every field is `[T, B, ...]`."""

    observation: np.ndarray  # [T, B, ...] as the game gives it, to_play's side
    legal: np.ndarray  # [T, B, A] bool
    to_play: np.ndarray  # [T, B] int8
    action: np.ndarray  # [T, B] int16
    log_prob: np.ndarray  # [T, B] float32: of the action, under the policy over legal actions at temperature 1
    value: np.ndarray  # [T, B] float32: the network's, for to_play
    rewards: np.ndarray  # [T, B, players] float32: points this move paid
    ended: np.ndarray  # [T, B] bool: the rules ended the game with this move
    truncated: np.ndarray  # [T, B] bool: we stopped the game after this move: it has no outcome


@dataclasses.dataclass(frozen=True)
class HostRollout:
    """Play of one host game by one network. Holds no games and no weights."""

    game: HostGame
    evaluate: Evaluate
    moves: int  # T

    def start(self, seed: int, num_games: int) -> HostGames:
        """First games in lanes 0 to `num_games` - 1."""
        states = self.game.init_batch(_seeds(seed, 0, num_games))
        return HostGames(states, np.zeros(num_games, np.int32))

    def run(
        self, weights: Weights, games: HostGames, *, seed: int, first: int, temperature: float
    ) -> tuple[HostGames, HostTrajectory]:
        """T moves of every lane; `first` is the number of the first of them in the life of the run.

        Actions are drawn in proportion to `policy ** (1 / temperature)`; at 0 the likeliest is played.
        """
        if not temperature >= 0:
            raise ConfigError(f"temperature is {temperature}; it must not be negative")
        moves = []
        for number in range(first, first + self.moves):
            games, move = self._move(weights, games, seed, number, temperature)
            moves.append(move)
        fields = [field.name for field in dataclasses.fields(HostTrajectory)]
        return games, HostTrajectory(**{name: np.stack([getattr(move, name) for move in moves]) for name in fields})

    def _move(
        self, weights: Weights, games: HostGames, seed: int, number: int, temperature: float
    ) -> tuple[HostGames, HostTrajectory]:
        """One move of every lane: the games after it, and what happened, `[B, ...]`."""
        game, states = self.game, games.states
        observation, legal, before = game.observe(states), game.legal_actions(states), game.status(states)
        action, log_prob, value = self._choose(weights, observation, legal, seed, number, temperature)
        states = game.step_batch(states, action)
        after, ply = game.status(states), games.ply + 1
        truncated = ~after.terminated & (ply >= game.spec.max_plies)
        move = HostTrajectory(
            observation=observation,
            legal=legal,
            to_play=before.to_play.astype(np.int8),
            action=action.astype(np.int16),
            log_prob=log_prob,
            value=value,
            rewards=after.rewards.astype(np.float32),
            ended=after.terminated,
            truncated=truncated,
        )
        return self._restart(HostGames(states, ply), after.terminated | truncated, seed, number + 1), move

    def _choose(
        self, weights: Weights, observation: np.ndarray, legal: np.ndarray, seed: int, number: int, temperature: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Actions, their log-probabilities and the positions' values, each `[B]`."""
        stuck = ~legal.any(-1)
        if stuck.any():
            where = f"move {number}, lane {int(stuck.argmax())}"
            raise GameContractError("legal_actions", f"{where}: no action is legal in a game that is not over")
        named = (np.uint32(seed), np.uint32(number % 2**32), np.float32(temperature))
        action, log_prob, value = jax.device_get(_decide(self.evaluate, weights, observation, legal, *named))
        if not np.isfinite(log_prob).all():
            lane = int((~np.isfinite(log_prob)).argmax())
            raise AleaError(f"move {number}, lane {lane}: the network's policy is not finite; look at its weights")
        return action, log_prob, value

    def _restart(self, games: HostGames, over: np.ndarray, seed: int, number: int) -> HostGames:
        """The games with a new one in every lane that is over, as it would begin before move `number`."""
        if not over.any():
            return games
        game = self.game
        # States are the game's own affair: as bytes they can be put together lane by lane.
        rows = list(game.snapshot(games.states))
        fresh = game.snapshot(game.init_batch(_seeds(seed, number, len(over))[over]))
        for lane, row in zip(np.flatnonzero(over), fresh, strict=True):
            rows[lane] = row
        return HostGames(game.restore(rows), np.where(over, 0, games.ply).astype(np.int32))


@functools.partial(jax.jit, static_argnums=0)
def _decide(
    evaluate: Evaluate,
    weights: Weights,
    observation: Array,
    legal: Array,
    seed: Array,
    number: Array,
    temperature: Array,
) -> tuple[Array, Array, Array]:
    """Actions drawn from the policy over legal actions, their log-probabilities, and values; each `[B]`."""
    prediction = evaluate(weights, observation)
    logits = prediction.logits.astype(jnp.float32)
    policy = jax.nn.log_softmax(jnp.where(legal, logits, -jnp.inf))
    keys = lane_keys(seed, Role.ACTION, number, jnp.arange(legal.shape[0], dtype=jnp.uint32))
    noise = jax.vmap(lambda key: jax.random.gumbel(key, legal.shape[1:]))(keys)
    heated = policy / jnp.maximum(temperature, _LEAST_TEMPERATURE) + noise
    action = jnp.argmax(jnp.where(temperature > 0, heated, policy), -1)
    return action, jnp.take_along_axis(policy, action[:, None], -1)[:, 0], prediction.value.astype(jnp.float32)


def _seeds(seed: int, number: int, num_games: int) -> np.ndarray:
    """`[B]` uint64: what games that begin before move `number` are made from."""
    words = np.asarray(_seed_words(np.uint32(seed), np.uint32(number % 2**32), num_games)).astype(np.uint64)
    return words[0] << np.uint64(32) | words[1]


@functools.partial(jax.jit, static_argnums=2)
def _seed_words(seed: Array, number: Array, num_games: int) -> Array:
    """`[2, B]` uint32."""
    return lane_words(lane_keys(seed, Role.INIT, number, jnp.arange(num_games, dtype=jnp.uint32)), 2)
