"""RLlib's PPO for a run: its settings in RLlib's words, its iterations, its weights in and out.

Checkpoints are the run's own: RLlib's hold pickles. Knows RLlib; not when to save or measure.
"""

from __future__ import annotations

import dataclasses
import logging
import tempfile
from typing import Any

import numpy as np
import ray
import torch
from ray.exceptions import RayError
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core import COMPONENT_RL_MODULE
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.tune.registry import register_env

from aleazero.assemble_ppo import PpoParts
from aleazero.core.errors import AleaError
from aleazero.core.records import Weights
from aleazero.play.fragments import ANTES, Played
from aleazero.play.rewards import LAST_ANTE
from aleazero.rllib_settings import runners_of
from aleazero.runtimes.ray.cluster import ClusterError, has_gpu
from aleazero.runtimes.rllib.env import make_env
from aleazero.runtimes.rllib.learner import MODULE, BalatroLearner, Learned, Rates
from aleazero.runtimes.rllib.module import NETWORK, BalatroModule
from aleazero.runtimes.rllib.networks import from_weights, to_weights

logger = logging.getLogger(__name__)

SUMS = "alea"  # the key of what environments say, among RLlib's results
_SAMPLING, _LEARNING = "env_runner_sampling_timer", "learner_update_timer"
_GAMES = "alea-games"  # the environments, by the name that RLlib knows them
_PREFIX = "network."  # of a weight's name in the module
_STUCK_SECONDS = 600.0  # of a rollout: whoever takes longer is started again
_PROBE_SECONDS = 30.0  # for a runner to say that it is well


class Tell(RLlibCallback):
    """In every runner: what its games came to goes with the rows."""

    def on_sample_end(self, *, env_runner: Any = None, metrics_logger: Any = None, **kwargs: Any) -> None:
        """Adds the environment's sums."""
        for name, number in env_runner.env.unwrapped.take_sums().items():
            metrics_logger.log_value((SUMS, name), number, reduce="sum")


class RunnersFailed(AleaError):  # noqa: N818 - the name says what happened
    """No runner plays any more."""


class BalatroPPO(PPO):
    """RLlib's PPO, without the folder that it makes for every one in the user's home."""

    def _setup_logdir(self) -> None:
        self._logdir: Any = tempfile.gettempdir()


@dataclasses.dataclass(frozen=True)
class Trained:
    """What an iteration brought."""

    played: Played
    learned: Learned | None  # None where nobody played
    sampling_seconds: float
    learning_seconds: float


def settings_of(parts: PpoParts, runners: int, first_row: int, gpu: bool) -> PPOConfig:
    """The run's settings in RLlib's words; `gpu`: the learner has one."""
    config = parts.config
    model = dataclasses.asdict(config.model)
    env = {
        "game": config.game,
        "kind": config.model.kind,
        "graph": config.model.graph,
        "rewards": dataclasses.asdict(config.rewards),
        "gamma": config.ppo.gamma,
        "seed": [config.seed, first_row],
    }
    play, learn = config.selfplay, config.learn
    asked = PPOConfig(algo_class=BalatroPPO)
    register_env(_GAMES, make_env)
    asked.api_stack(enable_rl_module_and_learner=True, enable_env_runner_and_connector_v2=True)
    asked.environment(_GAMES, env_config=env)
    asked.env_runners(
        num_env_runners=runners,
        num_envs_per_env_runner=play.num_games,
        num_gpus_per_env_runner=config.ray.player_gpu,
        rollout_fragment_length=play.moves_per_rollout,
        gym_env_vectorize_mode="vector_entry_point",
        sample_timeout_s=_STUCK_SECONDS,
        update_worker_filter_stats=False,
    )
    asked.learners(
        num_learners=0,
        num_gpus_per_learner=1 if gpu else 0,
        learner_class=BalatroLearner,
        learner_config_dict={"ppo": _plain(config.ppo), "betas": [learn.beta1, learn.beta2]},
    )
    asked.training(
        train_batch_size_per_learner=runners * play.num_games * play.moves_per_rollout,
        minibatch_size=learn.batch_size,
        num_epochs=config.ppo.epochs,
        shuffle_batch_per_epoch=True,
        gamma=config.ppo.gamma,
        lambda_=config.ppo.gae_lambda,
        lr=learn.learning_rate.start,
        grad_clip=learn.clip,
        grad_clip_by="global_norm",
        use_kl_loss=False,
    )
    asked.rl_module(rl_module_spec=RLModuleSpec(module_class=BalatroModule, model_config={NETWORK: model}))
    asked.callbacks(Tell)
    asked.fault_tolerance(
        restart_failed_env_runners=True,
        max_num_env_runner_restarts=max(config.ray.restarts, 0),
        delay_between_env_runner_restarts_s=0.0,
        env_runner_health_probe_timeout_s=_PROBE_SECONDS,
    )
    asked.reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=0)
    asked.debugging(seed=config.seed, log_level="ERROR")
    return asked


def _plain(settings: Any) -> dict[str, Any]:
    """Its fields as they are: RLlib copies the dictionary."""
    return {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)}


class Trainer:
    """An algorithm of RLlib's and what a run asks of it. `open` starts its runners."""

    def __init__(self, parts: PpoParts, like: Weights) -> None:
        """`like` is the tree of the network's weights."""
        self._parts, self._like = parts, like
        self.runners = runners_of(parts.config.ray.workers)
        self._algorithm: Any = None

    def open(self, first_row: int = 0, iteration: int = 0) -> None:
        """Starts the runners; games are those that follow so many rows."""
        for name in ("ray", "ray.rllib"):  # advice that is not the user's to take
            logging.getLogger(name).setLevel(logging.ERROR)
        gpu = self._check_resources()
        settings = settings_of(self._parts, self.runners, first_row, gpu)
        try:
            self._algorithm = settings.build_algo()
        except (RayError, IndexError) as error:  # the latter where no runner answers
            raise RunnersFailed(f"RLlib's environment runners could not be started: {error}") from error
        self._algorithm.set_state({"training_iteration": iteration})

    def _check_resources(self) -> bool:
        """Whether the learner has a GPU; raises where runners need what is not there: RLlib would wait for it."""
        asked, there = self._parts.config.ray, ray.cluster_resources()
        gpu = has_gpu(asked)
        if gpu and not torch.cuda.is_available():
            if asked.gpu == "yes":
                raise ClusterError("ray.gpu is 'yes', and this PyTorch is for the CPU alone: install one with CUDA")
            gpu = False
        learner = min(asked.learner_gpu, 1.0) if gpu else 0.0
        wanted = {"CPU": float(self.runners), "GPU": self.runners * asked.player_gpu + learner}
        for kind, count in wanted.items():
            if count > there.get(kind, 0.0):
                raise ClusterError(
                    f"{self.runners} runners need {count:g} {kind}s, and the cluster has {there.get(kind, 0.0):g}: "
                    "lower ray.workers or ray.player_gpu"
                )
        return gpu

    @property
    def is_open(self) -> bool:
        """Whether it has runners."""
        return self._algorithm is not None

    @property
    def iteration(self) -> int:
        """Iterations so far, in earlier stretches of the run too."""
        return int(self._algorithm.training_iteration)

    @property
    def alive(self) -> int:
        """Runners that are well."""
        return int(self._algorithm.env_runner_group.num_healthy_remote_workers())

    @property
    def restarts(self) -> int:
        """Runners that were started again, in this stretch."""
        return int(self._algorithm.env_runner_group.num_remote_worker_restarts())

    def train(self, rates: Rates) -> Trained:
        """An iteration: all runners play, then the learner learns from it."""
        learner = self._learner()
        learner.rates = rates
        try:
            result = self._algorithm.train()
        except RayError as error:
            raise RunnersFailed(f"RLlib's environment runners have failed too often: {error}") from error
        timers = result.get("timers", {})
        learned = learner.take()
        sums = result.get("env_runners", {}).get(SUMS, {}) if learned else {}
        return Trained(
            _played(sums, learned), learned, float(timers.get(_SAMPLING, 0.0)), float(timers.get(_LEARNING, 0.0))
        )

    def weights(self) -> Weights:
        """The network's, as they are now."""
        state = self._learner().module[MODULE].get_state()
        return to_weights({name.removeprefix(_PREFIX): np.array(array) for name, array in state.items()}, self._like)

    def optimiser(self) -> dict[str, Any]:
        """Adam's numbers and the penalty's weight, as trees of arrays."""
        learner = self._learner()
        found = {kind: to_weights(means, self._like) for kind, means in learner.moments().items()}
        return {**found, "kl_weight": np.float32(learner.kl_weight)}

    def put(self, weights: Weights, optimiser: dict[str, Any], updates: int) -> None:
        """Goes on from weights and an optimiser's numbers, after so many updates; the runners hear of it."""
        learner = self._learner()
        named = {f"{_PREFIX}{name}": array for name, array in from_weights(weights).items()}
        learner.module[MODULE].set_state(named)
        moments = {kind: from_weights(optimiser[kind]) for kind in ("exp_avg", "exp_avg_sq")}
        learner.set_moments(moments, updates)
        learner.kl_weight = float(optimiser["kl_weight"])
        # Not by `sync_weights`, which drops what is sent while something else is under way.
        state = {COMPONENT_RL_MODULE: learner.module[MODULE].get_state(inference_only=True)}
        self._algorithm.env_runner_group.foreach_env_runner(lambda runner: runner.set_state(state))

    def close(self) -> None:
        """Ends the runners."""
        if self._algorithm is not None:
            self._algorithm.stop()
            self._algorithm = None

    def _learner(self) -> BalatroLearner:
        """It is in this process."""
        found: BalatroLearner = self._algorithm.learner_group.foreach_learner(lambda one: one).result_or_errors[0].get()
        return found


def _played(sums: dict[str, Any], learned: Learned | None) -> Played:
    """What all runners say together."""
    numbers = {name: float(number) for name, number in sums.items()}
    rows, over = int(numbers.get("rows", 0)), numbers.get("ended", 0.0) + numbers.get("truncated", 0.0)
    terms = {n.removeprefix("term_"): total / max(rows, 1) for n, total in numbers.items() if n.startswith("term_")}
    return Played(
        rows=rows,
        ended=int(numbers.get("ended", 0)),
        truncated=int(numbers.get("truncated", 0)),
        points=numbers["points"] / over if over else float("nan"),
        entropy=float(learned.stats.measures.entropy[0]) if learned else 0.0,
        legal_entropy=learned.legal_entropy if learned else 0.0,
        terms=terms,
        antes=np.array([numbers.get(f"ante_{ante}", 0) for ante in range(ANTES)], np.int64),
        won=int(numbers.get("won", 0)),
        horizon=LAST_ANTE,
    )
