"""A run's producer and learner where RLlib is both: one iteration of its plays, and has learned when it returns.

So the local runtime's loop, with its checkpoints, matches and reports, is this run's too. Games in flight are not
kept: a resumed run begins new ones. Knows the ports of a run and a trainer; nothing of RLlib.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero import checkpoint as checkpoints
from aleazero.assemble_ppo import PpoParts
from aleazero.core.keys import Role, role_key
from aleazero.learn.ppo import PpoStats
from aleazero.learn.update import LearnerState
from aleazero.observe.alarms import Alarm
from aleazero.observe.reports import RllibReport
from aleazero.play.fragments import Played
from aleazero.replay.fifo import Fifo
from aleazero.roles.ports import SourcedSink, WeightStore
from aleazero.runtimes.rllib.learner import Rates
from aleazero.runtimes.rllib.trainer import RunnersFailed, Trained, Trainer
from aleazero.runtimes.selfplay import Resume, SoFar

logger = logging.getLogger(__name__)

BEST_GAMES = 200  # whose mean points say whether the weights are the best so far
BEST_META = "best.meta"
NOBODY_TRIES, NOBODY_SECONDS = 60, 1.0  # until runners that are all gone are asked for again


class RllibLearner:
    """What a run asks of a learner. Until the first iteration it holds the state itself."""

    epoch = 0  # nothing goes by epochs of games

    def __init__(self, parts: PpoParts, source: Fifo, weights: WeightStore) -> None:
        config = parts.config
        self._config, self._source, self._weights = config, source, weights
        first = jax.device_get(jax.jit(parts.model.init)(role_key(config.seed, Role.WEIGHTS)))
        nothing = jax.tree.map(np.zeros_like, first)
        kl_weight = np.float32(config.ppo.kl_start if config.ppo.kl_target else 0.0)
        self._held = LearnerState(first, first, {"exp_avg": nothing, "exp_avg_sq": nothing, "kl_weight": kl_weight})
        self.trainer = Trainer(parts, first)
        self.steps = 0  # updates so far; also the weights' version
        self.base_steps = 0

    @property
    def state(self) -> LearnerState:
        """Weights, and the optimiser's numbers."""
        if not self.trainer.is_open:
            return self._held
        weights = self.trainer.weights()
        return LearnerState(weights, weights, self.trainer.optimiser())

    @state.setter
    def state(self, state: LearnerState) -> None:
        assert not self.trainer.is_open, "a run takes a checkpoint up before it begins"
        self._held = jax.device_get(state)

    @property
    def started(self) -> bool:
        """Whether anything was learned."""
        return self.steps > 0

    @started.setter
    def started(self, value: bool) -> None:
        """Follows from the updates."""

    @property
    def rows_trained(self) -> int:
        """Rows learned from so far, each as often as it was."""
        return self.steps * self._config.learn.batch_size

    @property
    def learning_rate(self) -> float:
        """The rate of the next iteration."""
        config = self._config
        return config.learn.learning_rate.at(self.rows_trained, config.total_rows * config.ppo.epochs)

    def owed(self, games: int = 0) -> int:
        """Nothing is put off."""
        return 0

    def iterate(self, rows: int, iteration: int) -> Trained:
        """An iteration, after so many rows and iterations."""
        if not self.trainer.is_open:
            self.trainer.open(rows, iteration)
            self.trainer.put(self._held.weights, self._held.optimiser, self.steps)
        config = self._config
        return self.trainer.train(Rates(self.learning_rate, config.ppo.entropy.at(rows, config.total_rows)))

    def step(self, games: int = 0) -> list[PpoStats]:
        """Takes note of what was learned."""
        stats: Any = self._source.take()
        if stats is None:
            return []
        self.steps += len(stats.loss)
        self.publish()
        return [stats]

    def publish(self) -> None:
        """Makes the weights known as they are now."""
        self._weights.publish(self.steps, jax.tree.map(jnp.asarray, self.state.average))


class RllibPlay:
    """What a run asks of who plays; and the best weights so far, by the games that they played in training."""

    epoch = 0

    def __init__(self, name: str, folder: Path, sink: SourcedSink, learner: RllibLearner) -> None:
        """`name` is the run's, `folder` that of its checkpoints."""
        self._name, self._folder, self._sink, self._learner = name, folder, sink, learner
        self.rows = self.games = self.iteration = 0
        self.best: tuple[float, int] | None = None  # mean points, step
        self.keep: Callable[[int], None] = lambda step: None  # told of a step whose checkpoint must stay
        self._window = [0.0, 0]  # points, games
        self._nobody = 0  # iterations in a row in which nobody played
        self._better = False  # the next checkpoint is the best one
        self._seconds = [0.0, 0.0, 0]  # of playing, of learning, iterations; since the last report

    def step(self) -> Played | None:
        """An iteration."""
        trained = self._learner.iterate(self.rows, self.iteration)
        self.iteration = self._learner.trainer.iteration
        if trained.learned is None:
            self._nobody += 1
            if self._nobody > NOBODY_TRIES:
                raise RunnersFailed(
                    f"no environment runner has answered {self._nobody} times in a row: they died more often than "
                    "ray.restarts allows, or no machine has a core for them; go on with: alea runs resume"
                )
            logger.warning("no environment runner has answered; they are started again")
            time.sleep(NOBODY_SECONDS)
            return None
        self._nobody = 0
        played = trained.played
        self._sink.add(trained.learned.stats)  # type: ignore[arg-type]
        over = played.ended + played.truncated
        self.rows, self.games = self.rows + played.rows, self.games + over
        if over:
            self._window = [self._window[0] + played.points * over, self._window[1] + over]
        spent = (trained.sampling_seconds, trained.learning_seconds, 1)
        self._seconds = [a + b for a, b in zip(self._seconds, spent, strict=True)]
        return played

    def tend(self, so_far: SoFar) -> bool:
        """Whether the weights have just proved the best so far."""
        points, games = self._window
        if so_far.over or games < BEST_GAMES:
            return False
        self._window = [0.0, 0]
        if self.best is not None and points / games <= self.best[0]:
            return False
        self.best, self._better = (points / games, so_far.step), True
        return True

    def saved(self) -> None:
        """Says which checkpoint is the best, beside it; it stays."""
        if not self._better or self.best is None:
            return
        self._better = False
        reward, step = self.best
        if not (self._folder / f"{step:012d}").is_dir():  # it could not be saved
            self.best = None
            return
        self.keep(step)
        known = {
            "checkpoint": f"{step:012d}",
            "player": f"run:{self._name}@{step}",
            "reward": reward,
            "timesteps": self.rows,
            "games": self.games,
            "iteration": self.iteration,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        fresh = self._folder / f".{BEST_META}.{os.getpid()}"
        try:
            fresh.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
            os.replace(fresh, self._folder / BEST_META)
        except OSError as error:
            logger.warning("%s could not be written: %s", self._folder / BEST_META, error)

    def alarm(self, learner_version: int) -> Alarm | None:
        """Weights reach the runners before they play again."""
        return None

    def arrays(self) -> dict[str, Any]:
        """Nothing: games begin anew."""
        return {}

    def facts(self) -> dict[str, Any]:
        """How far it is."""
        return {"iteration": self.iteration, "games": self.games, "best_reward": list(self.best) if self.best else None}

    def take_up(self, found: checkpoints.Checkpoint, how: Resume) -> None:
        """Counts go on."""
        facts = found.facts
        self.rows, self.games, self.iteration = facts["rows"], facts["games"], facts["iteration"]
        if facts["best_reward"]:
            self.best = (facts["best_reward"][0], facts["best_reward"][1])
            self.keep(self.best[1])

    def report(self, where: dict[str, Any]) -> RllibReport | None:
        """What RLlib did."""
        played, learned, count = self._seconds
        if not count:
            return None
        self._seconds = [0.0, 0.0, 0]
        trainer = self._learner.trainer
        return RllibReport(
            **where,
            iteration=self.iteration,
            env_runners=trainer.alive,
            restarts=trainer.restarts,
            games=self.games,
            sampling_seconds=played / count,
            learning_seconds=learned / count,
            best_reward=self.best[0] if self.best else 0.0,
        )

    def close(self) -> None:
        """Ends the runners."""
        self._learner.trainer.close()
