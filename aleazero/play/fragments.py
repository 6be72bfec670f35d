"""Fragments of host games for policy gradients: the host steps one half of the lanes while the device judges the other.

Buffers are made once and filled again and again. Every lane's randomness is named by seed, role, move and lane, so
fragments do not depend on how lanes are grouped, nor on how many moves are played in one call. A teacher draws for a
group at once: what it plays depends on the groups. Knows the contract of host games and a network's signature; not what
is learned from a fragment.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.errors import AleaError, GameContractError
from aleazero.core.game import HostGame
from aleazero.core.keys import Role, lane_keys, lane_words
from aleazero.core.records import Evaluate, Fragment, Weights
from aleazero.core.scopes import part
from aleazero.play.past import Past
from aleazero.play.rewards import LAST_ANTE, RewardConfig, pay

ANTES = 13  # that are told apart where games end


@dataclasses.dataclass
class Lanes:
    """A group of games in flight."""

    numbers: np.ndarray  # [b] uint32: the lanes' own
    states: Any  # as the game has them, none of them over
    ply: np.ndarray  # [b] int32: moves since the game began
    paid: np.ndarray  # [b] float64: the game's own points so far
    past: Past  # what was seen before this decision

    @property
    def at(self) -> slice:
        """Where they lie among all lanes."""
        return slice(int(self.numbers[0]), int(self.numbers[-1]) + 1)


@dataclasses.dataclass(frozen=True)
class Played:
    """What a fragment says in few numbers."""

    rows: int
    ended: int  # games that the rules ended, or the horizon
    truncated: int  # games that were stopped
    points: float  # mean over the games that are over, of the game's own points; NaN where none is
    entropy: float  # mean, of the policy, in nats
    legal_entropy: float  # of a uniform policy
    terms: dict[str, float]  # mean reward a decision, by term
    antes: np.ndarray  # [ANTES] int: games that are over, by the ante they ended in; zeros where there are none
    won: int  # of them: won by the rules, or the horizon was reached
    horizon: int  # the ante whose end was a win


@dataclasses.dataclass(frozen=True)
class FragmentPlay:
    """Play of one host game by one network. Holds no games and no weights, but the buffers it fills."""

    game: HostGame
    evaluate: Evaluate
    num_games: int  # B
    moves: int  # T
    rewards: RewardConfig
    gamma: float
    groups: int = 2
    history: int = 0  # H: earlier observations that the network is shown, too

    @functools.cached_property
    def buffers(self) -> Fragment:
        """The arrays that every fragment is written into."""
        spec, shape = self.game.spec, (self.moves, self.num_games)

        def empty(dtype: Any, *more: int) -> Any:
            return np.zeros((*shape, *more), dtype)

        return Fragment(
            observation=empty(np.float32, *spec.observation_shape),
            legal=empty(bool, spec.num_actions),
            action=empty(np.int32),
            log_prob=empty(np.float32),
            value=empty(np.float32),
            reward=empty(np.float32),
            ended=empty(bool),
            truncated=empty(bool),
            after=empty(np.float32),
            mine=np.ones(shape, bool),  # type: ignore[arg-type]
            last=np.zeros(self.num_games, np.float32),  # type: ignore[arg-type]
            past=np.zeros((self.num_games, self.history, *spec.observation_shape), np.float32)  # type: ignore[arg-type]
            if self.history
            else None,
        )

    def start(self, seed: int) -> list[Lanes]:
        """First games."""
        return [
            Lanes(
                lanes,
                self.game.init_batch(_seeds(_seed_words(np.uint32(seed), lanes))),
                _noughts(lanes, np.int32),
                _noughts(lanes, float),
                Past(len(lanes), self.game.spec.observation_shape, self.history),
            )
            for lanes in np.array_split(np.arange(self.num_games, dtype=np.uint32), min(self.groups, self.num_games))
        ]

    def run(
        self,
        weights: Weights,
        games: list[Lanes],
        *,
        seed: int,
        first: int,
        horizon: int = LAST_ANTE,
        teacher: Callable[[Any, int], np.ndarray] | None = None,
    ) -> tuple[Fragment, Played]:
        """T moves of every lane, written into the buffers; `games` go on where they are.

        `first` is the number of the first move in the life of the run; a game is won when ante `horizon` is beaten.
        With a teacher, its actions are played, and `log_prob` says nothing of them.
        """
        tally = Tally(horizon, teacher)
        for lanes in games if self.history else ():
            self.buffers.past[lanes.at] = lanes.past.rows  # type: ignore[index]
        asked = self._ask(weights, games[0], seed, first, 0)
        for t in range(self.moves):
            for i, lanes in enumerate(games):
                answer = asked
                # The next group's question is with the device before this group is stepped.
                ahead = t * len(games) + i + 1
                late, group = divmod(ahead, len(games))
                if group != i and late < self.moves:
                    asked = self._ask(weights, games[group], seed, first + late, late)
                self._step(weights, lanes, answer, seed, first + t, t, tally)
                if group == i and late < self.moves:  # there is but one group
                    asked = self._ask(weights, lanes, seed, first + late, late)
        buffers = self.buffers
        for lanes in games:
            buffers.last[lanes.at] = self._value(weights, lanes, lanes.states)
        return buffers, tally.played(self.moves * self.num_games)

    def _ask(self, weights: Weights, lanes: Lanes, seed: int, number: int, t: int) -> tuple[Array, ...]:
        """Sees the positions and has the device choose; nobody waits for it."""
        seen, legal = self.buffers.observation[t, lanes.at], self.buffers.legal[t, lanes.at]
        self.game.observe_into(lanes.states, seen)  # type: ignore[arg-type]
        legal[:] = self.game.legal_actions(lanes.states)
        stuck = ~np.asarray(legal).any(-1)
        if stuck.any():
            where = f"move {number}, lane {int(lanes.numbers[stuck.argmax()])}"
            raise GameContractError("legal_actions", f"{where}: no action is legal in a game that is not over")
        shown = lanes.past.beside(seen)  # type: ignore[arg-type]
        lanes.past.add(seen)  # type: ignore[arg-type]
        return _decide(
            self.evaluate, weights, shown, legal, np.uint32(seed), np.uint32(number % 2**32), lanes.numbers
        )  # fmt: skip

    def _step(
        self,
        weights: Weights,
        lanes: Lanes,
        asked: tuple[Array, ...],
        seed: int,
        number: int,
        t: int,
        tally: Tally,
    ) -> None:
        """Plays what was chosen, writes it down, and begins anew where a game is over."""
        game, buffers, places = self.game, self.buffers, lanes.numbers
        before = game.measures(lanes.states)
        action, log_prob, value, entropy, uniform, words = jax.device_get(asked)
        if not np.isfinite(log_prob).all():
            lane = int(places[(~np.isfinite(log_prob)).argmax()])
            raise AleaError(f"move {number}, lane {lane}: the network's policy is not finite; look at its weights")
        if tally.teacher is not None:
            action = tally.teacher(lanes.states, (seed * 1_000_003 + number) * 1_009 + int(places[0]))
        states = game.advance(lanes.states, action)
        status, after = game.status(states), dict(game.measures(states))
        stopped = np.zeros(len(places), bool) if status.stopped is None else status.stopped
        ended, ply = status.terminated & ~stopped, lanes.ply + 1
        if tally.horizon < LAST_ANTE and "ante" in after:
            reached = after["ante"] > tally.horizon
            ended |= reached
            after["won"] = np.maximum(after["won"], reached)
        truncated = ~ended & (stopped | (ply >= game.spec.max_plies))
        points = status.rewards[:, 0]
        terms = pay(self.rewards, self.gamma, points, before, after, ended)
        rows: dict[str, Any] = {
            "action": action, "log_prob": log_prob, "value": value, "reward": sum(terms.values()), "ended": ended,
            "truncated": truncated, "after": 0.0,
        }  # fmt: skip
        if truncated.any():
            rows["after"] = np.where(truncated, self._value(weights, lanes, states), 0.0)
        for name, row in rows.items():
            getattr(buffers, name)[t, lanes.at] = row
        lanes.states, lanes.ply, lanes.paid = states, ply, lanes.paid + points
        over = ended | truncated
        tally.add(terms, entropy, uniform, ended, truncated, lanes.paid, after)
        if over.any():
            self._restart(lanes, over, words)

    def _restart(self, lanes: Lanes, over: np.ndarray, words: np.ndarray) -> None:
        """A new game in every lane that is over, from these words `[2, b]`."""
        lanes.states = self.game.renew(lanes.states, np.flatnonzero(over), _seeds(words)[over])
        lanes.ply, lanes.paid = np.where(over, 0, lanes.ply).astype(np.int32), np.where(over, 0.0, lanes.paid)
        lanes.past.forget(over)

    def _value(self, weights: Weights, lanes: Lanes, states: Any) -> np.ndarray:
        return np.asarray(_judge(self.evaluate, weights, lanes.past.beside(self.game.observe(states))))


class Tally:
    """Sums over a fragment."""

    def __init__(self, horizon: int, teacher: Callable[[Any, int], np.ndarray] | None) -> None:
        self.horizon, self.teacher = horizon, teacher
        self.entropy = self.uniform = self.points = 0.0
        self.ended = self.truncated = self.won = 0
        self.terms: dict[str, float] = {}
        self.antes = np.zeros(ANTES, np.int64)

    def add(
        self,
        terms: Mapping[str, np.ndarray],
        entropy: np.ndarray,
        uniform: np.ndarray,
        ended: np.ndarray,
        truncated: np.ndarray,
        paid: np.ndarray,
        after: Mapping[str, np.ndarray],
    ) -> None:
        """One move of some lanes."""
        over = ended | truncated
        self.entropy, self.uniform = self.entropy + float(entropy.sum()), self.uniform + float(uniform.sum())
        self.ended, self.truncated = self.ended + int(ended.sum()), self.truncated + int(truncated.sum())
        self.points += float(paid[over].sum())
        for name, term in terms.items():
            self.terms[name] = self.terms.get(name, 0.0) + float(term.sum())
        if "won" in after:
            self.won += int(after["won"][over].sum())
        if "ante" in after and over.any():
            ante = np.clip(np.minimum(after["ante"][over], self.horizon), 0, ANTES - 1).astype(np.int64)
            self.antes += np.bincount(ante, minlength=ANTES)

    def played(self, rows: int) -> Played:
        """Over so many decisions."""
        over = self.ended + self.truncated
        return Played(
            rows=rows,
            ended=self.ended,
            truncated=self.truncated,
            points=self.points / over if over else float("nan"),
            entropy=self.entropy / rows,
            legal_entropy=self.uniform / rows,
            terms={name: total / rows for name, total in self.terms.items()},
            antes=self.antes,
            won=self.won,
            horizon=self.horizon,
        )


@functools.partial(jax.jit, static_argnums=0)
@part("network")
def _decide(
    evaluate: Evaluate, weights: Weights, observation: Array, legal: Array, seed: Array, number: Array, lanes: Array
) -> tuple[Array, ...]:
    """Actions drawn from the policy over legal actions, their log-probabilities, values, and entropies; each `[b]`.

    And the words `[2, b]` of games that begin before the next move: nobody then waits for the device to name them.
    """
    prediction = evaluate(weights, observation)
    policy = jax.nn.log_softmax(jnp.where(legal, prediction.logits.astype(jnp.float32), -1e9))
    keys = lane_keys(seed, Role.ACTION, number, lanes)
    noise = jax.vmap(lambda key: jax.random.gumbel(key, legal.shape[1:]))(keys)
    action = jnp.argmax(jnp.where(legal, policy + noise, -jnp.inf), -1)
    log_prob = jnp.take_along_axis(policy, action[:, None], -1)[:, 0]
    entropy = -jnp.where(legal, jnp.exp(policy) * policy, 0.0).sum(-1)
    uniform = jnp.log(legal.sum(-1).astype(jnp.float32))
    words = lane_words(lane_keys(seed, Role.INIT, number + 1, lanes), 2)
    return action, log_prob, prediction.value.astype(jnp.float32), entropy, uniform, words


@functools.partial(jax.jit, static_argnums=0)
@part("network")
def _judge(evaluate: Evaluate, weights: Weights, observation: Array) -> Array:
    return evaluate(weights, observation).value.astype(jnp.float32)


def _noughts(lanes: np.ndarray, dtype: Any) -> np.ndarray:
    return np.zeros(len(lanes), dtype)


def _seeds(words: np.ndarray) -> np.ndarray:
    """`[b]` uint64: what games are made from."""
    wide = np.asarray(words).astype(np.uint64)
    return wide[0] << np.uint64(32) | wide[1]


@jax.jit
def _seed_words(seed: Array, lanes: Array) -> Array:
    """`[2, b]` uint32: of the first games."""
    return lane_words(lane_keys(seed, Role.INIT, 0, lanes), 2)
