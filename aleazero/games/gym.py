"""Any Gymnasium environment with discrete actions as a host game: `gym:CartPole-v1`.

An environment can neither be copied nor saved. So a state is its seed and what has happened since, and an environment
that has gone on from there is made anew and played again up to it; the newest state of a game has its environment at
hand. That is exact for every environment whose steps follow from its seed. What an environment's `info` calls
`action_mask` says which actions are legal; else all are. A time limit is the game's `max_plies`; a game that the
environment itself truncates is stopped, and has not ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from aleazero.core.errors import ConfigError, MissingExtra
from aleazero.core.game import GameSpec, HostGame, HostStatus

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise MissingExtra("gym:NAME", "gymnasium", "games") from error

MAX_PLIES = 10_000  # of environments that name no limit
_RESEED = -1  # in a log: a seed follows


class _Life:
    """An environment, and all that has happened in it: a seed, then actions and reseedings."""

    def __init__(self, game: GymGame, seed: int) -> None:
        self.env = game.make()
        self.log: list[int] = [seed]
        self.observation, self.info = self.env.reset(seed=seed % 2**31)

    def act(self, action: Any, number: int) -> tuple[float, bool, bool]:
        """What a step pays, whether it is the last, and whether the game might have gone on all the same."""
        self.observation, reward, terminated, truncated, self.info = self.env.step(action)
        self.log.append(number)
        return float(reward), bool(terminated or truncated), bool(truncated and not terminated)

    def reseed(self, seed: int) -> None:
        """Other randomness from here on."""
        self.env.unwrapped.np_random = np.random.default_rng(seed)
        self.log += [_RESEED, seed]


@dataclasses.dataclass(frozen=True)
class _Lane:
    """A state: so many entries of a life's log."""

    life: _Life
    length: int
    observation: np.ndarray  # [n] float32
    legal: np.ndarray  # [A] bool
    reward: float
    returns: float
    plies: int
    over: bool
    stopped: bool = False


class GymGame(HostGame):
    """One environment's rules; a point is a point of reward."""

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            env = gymnasium.make(name)
        except (gymnasium.error.Error, ImportError, ValueError) as error:  # a name may say which module to import
            raise ConfigError(f"game 'gym:{name}': {error}") from error
        action = env.action_space
        if isinstance(action, spaces.Discrete):
            self._sizes: tuple[int, ...] = (int(action.n),)
            self._first = int(action.start)
        elif isinstance(action, spaces.MultiDiscrete) and action.nvec.ndim == 1:
            self._sizes, self._first = tuple(map(int, action.nvec)), 0
        else:
            raise ConfigError(f"game 'gym:{name}' has actions {action}; Discrete and MultiDiscrete are supported")
        self._multiple, self._space = isinstance(action, spaces.MultiDiscrete), env.observation_space
        flat = spaces.flatten_space(self._space)
        if not isinstance(flat, spaces.Box):
            raise ConfigError(f"game 'gym:{name}' has observations {self._space}, which have no fixed size")
        known = env.spec
        self.threshold = known.reward_threshold if known else None
        self._limit = known.max_episode_steps if known else None
        env.close()
        count = int(np.prod(self._sizes))
        self.spec = GameSpec(
            name=f"gym:{name}",
            version=1,
            num_players=1,
            num_actions=count,
            max_legal=count,
            observation_shape=(int(np.prod(flat.shape)),),
            outcomes=(),
            max_plies=self._limit or MAX_PLIES,
            chance="sampled",
        )

    def make(self) -> Any:
        """An environment without a limit of time, which is whoever plays' to keep."""
        return gymnasium.make(self.name, max_episode_steps=-1, disable_env_checker=True)

    def init_batch(self, seeds: np.ndarray) -> list[_Lane]:
        """Games of these seeds `[B]`."""
        return [self._lane(_Life(self, int(seed) % 2**63), 0.0, 0.0, 0, False) for seed in seeds]

    def step_batch(self, states: list[_Lane], actions: np.ndarray, lanes: np.ndarray | None = None) -> list[_Lane]:
        """The games after legal actions."""
        moving = np.ones(len(states), bool) if lanes is None else lanes
        return [
            self._step(lane, int(action)) if moves else lane
            for lane, action, moves in zip(states, actions, moving, strict=True)
        ]

    def legal_actions(self, states: list[_Lane]) -> np.ndarray:
        """`[B, A]` bool."""
        return np.stack([lane.legal & (not lane.over) for lane in states])

    def observe(self, states: list[_Lane]) -> np.ndarray:
        """`[B, n]` float32, flattened as Gymnasium does."""
        return np.stack([lane.observation for lane in states])

    def status(self, states: list[_Lane]) -> HostStatus:
        """One player."""
        return HostStatus(
            to_play=np.zeros(len(states), np.int64),
            terminated=np.array([lane.over for lane in states]),
            rewards=np.array([[lane.reward] for lane in states], np.float32),
            returns=np.array([[lane.returns] for lane in states], np.float32),
            stopped=np.array([lane.stopped for lane in states]),
        )

    def measures(self, states: list[_Lane]) -> dict[str, np.ndarray]:
        """Whether a game has reached what its makers call solved, where they say."""
        if self.threshold is None:
            return {}
        return {"won": np.array([float(lane.returns >= self.threshold) for lane in states])}

    def take(self, states: list[_Lane], lanes: np.ndarray) -> list[_Lane]:
        """Some of the games. Lanes share their lives, and who goes on from an earlier place gets one of its own."""
        return [states[lane] for lane in lanes]

    def put(self, states: list[_Lane], lanes: np.ndarray, fresh: list[_Lane]) -> list[_Lane]:
        """The games, with others in some lanes."""
        found = list(states)
        for lane, other in zip(lanes, fresh, strict=True):
            found[lane] = other
        return found

    def reseed(self, states: list[_Lane], seeds: np.ndarray) -> list[_Lane]:
        """The same positions with other randomness, where the environment takes it from its `np_random`."""
        found = []
        for lane, seed in zip(states, seeds, strict=True):
            life = self._again(lane.life.log[: lane.length])
            life.reseed(int(seed) % 2**63)
            found.append(dataclasses.replace(lane, life=life, length=len(life.log)))
        return found

    def snapshot(self, states: list[_Lane]) -> list[bytes]:
        """All that has happened, eight bytes each."""
        return [np.array(lane.life.log[: lane.length], np.int64).tobytes() for lane in states]

    def restore(self, rows: Sequence[bytes]) -> list[_Lane]:
        """Played again up to where they were."""
        return [self._replay(np.frombuffer(row, np.int64).tolist()) for row in rows]

    def _step(self, lane: _Lane, action: int) -> _Lane:
        life = lane.life
        if len(life.log) != lane.length:  # somebody else went on from here
            life = self._again(life.log[: lane.length])
        reward, over, stopped = life.act(self._action(action), action)
        after = self._lane(life, reward, lane.returns + reward, lane.plies + 1, over)
        return dataclasses.replace(after, stopped=stopped)

    def _action(self, number: int) -> Any:
        if self._multiple:
            return np.array(np.unravel_index(number, self._sizes))
        return number + self._first

    def _again(self, log: list[int]) -> _Life:
        return self._replay(log).life

    def _replay(self, log: list[int]) -> _Lane:
        lane = self.init_batch(np.array([log[0]], np.uint64))[0]
        i = 1
        while i < len(log):
            if log[i] == _RESEED:
                lane.life.reseed(log[i + 1])
                lane = dataclasses.replace(lane, length=len(lane.life.log))
                i += 2
            else:
                lane = self._step(lane, log[i])
                i += 1
        return lane

    def _lane(self, life: _Life, reward: float, returns: float, plies: int, over: bool) -> _Lane:
        seen = np.asarray(spaces.flatten(self._space, life.observation), np.float32)
        mask = life.info.get("action_mask") if self._sizes and not self._multiple else None
        legal = np.ones(self.spec.num_actions, bool) if mask is None else np.asarray(mask, bool)
        return _Lane(life, len(life.log), seen, legal, reward, returns, plies, over)
