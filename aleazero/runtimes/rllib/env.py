"""Games of a host game as one vector environment of Gymnasium's, with masks and the run's rewards.

A game that is over begins anew at the next step, whose action is not used. Seeds are those of practice, which ratings
never use. Knows the contract of host games; of Ray only whether it has started this process again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import ray
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from aleazero.core.game import HostGame
from aleazero.play.fragments import Tally
from aleazero.play.rewards import LAST_ANTE, RewardConfig, pay
from aleazero.runtimes.rllib.module import LEGAL, SEEN


class GamesEnv(VectorEnv):  # type: ignore[misc, type-arg, unused-ignore]
    """B games at once; `take_sums` says what was played."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self, game: HostGame, num_envs: int, rewards: RewardConfig, gamma: float, seed: list[int]) -> None:
        """`seed` decides which games are played, and with it what `reset` is given."""
        self.game, self.num_envs = game.for_practice(), num_envs
        self._rewards, self._gamma = rewards, gamma
        self.seed = seed
        self._random = np.random.default_rng(seed)
        spec = game.spec
        self.single_observation_space = spaces.Dict(
            {
                SEEN: spaces.Box(-np.inf, np.inf, spec.observation_shape, np.float32),
                LEGAL: spaces.Box(0, 1, (spec.num_actions,), np.int8),
            }
        )
        self.single_action_space = spaces.Discrete(spec.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._states = self._fresh(num_envs)
        self._over = np.zeros(num_envs, np.bool_)
        self._ply, self._paid = np.zeros(num_envs, np.int32), np.zeros(num_envs)
        self._tally, self._rows = Tally(LAST_ANTE, None), 0

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """New games. RLlib gives each runner a seed of its own with the first ones: or else all would play the same."""
        if seed is not None:
            self.seed = [*self.seed, *(word or 0 for word in (seed if isinstance(seed, list) else [seed]))]
            self._random = np.random.default_rng(self.seed)
        self._states = self._fresh(self.num_envs)
        self._over[:], self._ply[:], self._paid[:] = False, 0, 0.0
        return self._see(), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One action in every game that is not over; where one is, another begins."""
        game, moving = self.game, ~self._over
        before = game.measures(self._states)
        states = game.step_batch(self._states, np.asarray(actions, np.int64), moving)
        status, after = game.status(states), game.measures(states)
        ended = status.terminated & moving
        self._ply += moving
        truncated = moving & ~ended & (self._ply >= game.spec.max_plies)
        points = np.where(moving, status.rewards[:, 0], 0.0)
        terms = pay(self._rewards, self._gamma, points, before, after, ended)
        self._paid += points
        self._count(moving, terms, ended, truncated, after)
        rewards = np.where(moving, sum(terms.values()), 0.0)
        if self._over.any():
            lanes = np.flatnonzero(self._over)
            states = game.put(states, lanes, self._fresh(len(lanes)))
            self._ply[lanes], self._paid[lanes] = 0, 0.0
        self._states, self._over = states, ended | truncated
        return self._see(), rewards, ended, truncated, {}

    def take_sums(self) -> dict[str, float]:
        """What was played since the last call, as numbers that may be added to those of others."""
        tally, rows = self._tally, self._rows
        self._tally, self._rows = Tally(LAST_ANTE, None), 0
        return {
            "rows": rows,
            "ended": tally.ended,
            "truncated": tally.truncated,
            "points": tally.points,
            "won": tally.won,
            **{f"ante_{ante}": int(count) for ante, count in enumerate(tally.antes)},
            **{f"term_{name}": total for name, total in tally.terms.items()},
        }

    def _count(
        self,
        moving: np.ndarray,
        terms: Mapping[str, np.ndarray],
        ended: np.ndarray,
        truncated: np.ndarray,
        after: Mapping[str, np.ndarray],
    ) -> None:
        """What the policy's entropy was, the learner says."""
        unknown = np.zeros(1)
        self._rows += int(moving.sum())
        self._tally.add(
            {name: term[moving] for name, term in terms.items()}, unknown, unknown, ended, truncated, self._paid, after
        )

    def _fresh(self, count: int) -> Any:
        return self.game.init_batch(self._random.integers(0, 2**63, count, np.uint64))

    def _see(self) -> dict[str, np.ndarray]:
        legal = self.game.legal_actions(self._states)
        return {SEEN: self.game.observe(self._states).astype(np.float32, copy=False), LEGAL: legal.view(np.int8)}


def make_env(context: Mapping[str, Any]) -> gymnasium.vector.VectorEnv:
    """What RLlib makes environments by: `game`, `kind`, `graph`, `rewards`, `gamma`, `seed`, and what it adds."""
    from aleazero.host_players import host_game

    game = host_game(context["game"], context["kind"], context["graph"])
    if hasattr(game, "threads"):
        game.threads = 1  # a runner has one core
    seed = list(context["seed"])
    if _started_again():
        seed.append(time.time_ns())  # or else it would play the games of its first life once more
    return GamesEnv(game, context.get("num_envs", 1), RewardConfig(**context["rewards"]), context["gamma"], seed)


def _started_again() -> bool:
    """Whether this process is an actor of Ray's that has died before."""
    if not ray.is_initialized() or ray.get_runtime_context().get_actor_id() is None:
        return False
    return bool(ray.get_runtime_context().was_current_actor_reconstructed)
