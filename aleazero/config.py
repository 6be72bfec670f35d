"""The settings of a run, composed from those of its parts, and where they come from.

Layers, later over earlier: the game's preset, a file, the environment (`ALEA_LEARN__BATCH_SIZE`), `--set`. Reading,
nearest matches and all-problems-at-once are `aleazero.core.settings`'. Knows no run.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from aleazero.checkpoint import CheckpointConfig
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.core.game import Game
from aleazero.core.settings import Layer, build, flatten, from_environment, load_file, parse_assignments
from aleazero.learn.losses import LossConfig
from aleazero.learn.ppo import PpoConfig
from aleazero.learn.targets import TargetConfig
from aleazero.learn.update import LearnConfig
from aleazero.models.build import ModelConfig
from aleazero.observe.settings import ObserveConfig
from aleazero.play.rewards import LAST_ANTE, RewardConfig
from aleazero.play.rollout import SelfPlayConfig
from aleazero.ray_settings import RayConfig
from aleazero.replay.ring import ReplayConfig
from aleazero.rllib_settings import last_given, translated
from aleazero.roles.evaluator import EvaluateConfig
from aleazero.search.settings import SearchConfig

logger = logging.getLogger(__name__)

PRESETS = ("quick", "standard", "strong")  # of every game; a game's own file may hold more
NOT_SETTINGS = (  # variables with our prefix that mean something else
    *("ALEA_REQUIRE_ALL", "ALEA_RUNS", "ALEA_DEVICE", "ALEA_MLFLOW_URL"),
    *("ALEA_REDIS_URL", "ALEA_REDIS_CA", "ALEA_TOKEN", "ALEA_HEAD_URL"),
    *("ALEA_GRAPH_AUTH", "ALEA_ADVISOR_KEY"),
)
# When a run is resumed.
MAY_CHANGE = ("total_rows", "total_games", "producers", "ray", "evaluate", "checkpoint", "observe")


@dataclasses.dataclass(frozen=True)
class ProducersConfig:
    """Processes of this machine that play for a run, each on a core of its own."""

    workers: int = 0  # how many; 0: the run plays itself
    queue_size: int = 16  # slabs that wait for the run; where there are more, producers wait
    device: Literal["cpu", "auto"] = "cpu"  # where they compute; auto leaves it to JAX

    def problems(self) -> list[str]:
        """What is wrong with it."""
        least = {"workers": 0, "queue_size": 1}
        return [
            f"{name} is {getattr(self, name)}; it must be at least {value}"
            for name, value in least.items()
            if getattr(self, name) < value
        ]


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Everything that decides what a run does."""

    game: str
    algorithm: Literal["search", "ppo"] = "search"  # ppo: the policy alone plays; targets, loss, ... are not used
    seed: int = 0
    total_rows: int = 1_000_000  # positions of self-play
    total_games: int = 0  # the run is over, too, when so many games are; 0: rows alone decide
    model: ModelConfig = ModelConfig()
    search: SearchConfig = SearchConfig()
    selfplay: SelfPlayConfig = SelfPlayConfig()
    producers: ProducersConfig = ProducersConfig()
    # ray: actors of a Ray cluster play and learn; rllib: Ray's RLlib does, by PPO
    runtime: Literal["local", "ray", "rllib"] = "local"
    ray: RayConfig = RayConfig()
    replay: ReplayConfig = ReplayConfig()
    targets: TargetConfig = TargetConfig()
    loss: LossConfig = LossConfig()
    learn: LearnConfig = LearnConfig()
    ppo: PpoConfig = PpoConfig()
    rewards: RewardConfig = RewardConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    observe: ObserveConfig = ObserveConfig()

    def problems(self) -> list[str]:
        """What is wrong with it, whatever the game."""
        found = []
        if not 0 <= self.seed < 2**32:
            found.append(f"seed is {self.seed}; it must be in 0..{2**32 - 1}")
        if self.total_rows < 1:
            found.append(f"total_rows is {self.total_rows}; it must be at least 1")
        if self.total_games < 0:
            found.append(f"total_games is {self.total_games}; it must not be negative")
        if not self.selfplay.num_games and (self.algorithm != "ppo" or self.runtime == "rllib"):
            found.append("selfplay.num_games is 0; it must be at least 1: algorithm 'ppo' alone finds out what fits")
        if self.algorithm == "ppo":
            return found + self._ppo_problems()
        if self.runtime == "rllib":
            found.append(f"runtime is 'rllib', which learns by PPO; algorithm is {self.algorithm!r}")
        fast = self.selfplay.full_search_fraction < 1
        if fast and self.selfplay.fast_simulations > self.search.max_simulations:
            found.append(
                f"selfplay.fast_simulations is {self.selfplay.fast_simulations}; it cannot exceed "
                f"search.max_simulations ({self.search.max_simulations})"
            )
        if self.search.reuse and self.selfplay.moves_per_rollout == 1:
            found.append("selfplay.moves_per_rollout is 1; search.reuse keeps trees within a rollout: leave it false")
        if (self.search.kind == "expectimax") == self.model.policy:
            needs = "false: whole turns are chosen by value" if self.model.policy else "true: its moves come from it"
            found.append(f"search.kind is {self.search.kind!r}; model.policy must be {needs}")
        if self.evaluate.luck and self.search.kind != "expectimax":
            found.append(f"evaluate.luck needs search.kind 'expectimax', not {self.search.kind!r}")
        if self.selfplay.every_roll and self.search.kind != "expectimax":
            found.append(f"selfplay.every_roll needs search.kind 'expectimax', not {self.search.kind!r}")
        for name in ("epsilon", "resign"):
            if getattr(self.selfplay, name) and self.search.kind == "expectimax":
                value = getattr(self.selfplay, name)
                found.append(f"selfplay.{name} is {value}; whole turns (search.kind 'expectimax') have none")
        epochs = {
            "selfplay.temperature_epochs": self.selfplay.temperature_epochs,
            "selfplay.rest_while_training": self.selfplay.rest_while_training,
            "checkpoint.every_epochs": self.checkpoint.every_epochs,
        }
        for name, count in epochs.items():
            if count and not self.learn.games_per_epoch:
                found.append(f"{name} is {count}; epochs need learn.games_per_epoch")
        found += self._ray_problems()
        if not self.targets.wait and self.selfplay.moves_per_rollout == 1:
            found.append("selfplay.moves_per_rollout is 1; targets.wait must then be true: a rollout's last row waits")
        return found

    def _ray_problems(self) -> list[str]:
        if self.runtime != "ray":
            return []
        found = []
        if self.producers.workers:
            found.append(
                f"producers.workers is {self.producers.workers}; with runtime 'ray' its actors play: leave it 0"
            )
        if self.ray.inference == "server":
            refused = {"search.kind": self.search.kind == "expectimax", "search.reuse": self.search.reuse}
            refused["selfplay.teacher"] = self.selfplay.teacher is not None
            found += [
                f"{name} is set; ray.inference = 'server' does without it: use ray.inference = 'local'"
                for name, is_set in refused.items()
                if is_set
            ]
        return found

    def _ppo_problems(self) -> list[str]:
        """What PPO asks of the others."""
        found = []
        if self.model.value != "twohot" or not self.model.policy:
            found.append("algorithm is 'ppo'; it needs model.value 'twohot' and model.policy true")
        if self.replay.log:
            found.append("algorithm is 'ppo', which uses every row at once; replay.log must be false")
        if self.producers.workers:
            found.append(f"producers.workers is {self.producers.workers}; algorithm 'ppo' plays in threads: leave it 0")
        if self.runtime == "ray":
            found.append(
                "runtime is 'ray'; algorithm 'ppo' plays in threads ('local'), or by RLlib's runners ('rllib')"
            )
        elif self.runtime == "rllib":
            found += self._rllib_problems()
        if self.learn.games_per_epoch or self.learn.ema:
            found.append("algorithm is 'ppo'; learn.games_per_epoch and learn.ema must be 0")
        sources = max(self.ray.workers, 1) if self.runtime == "rllib" else 1
        rows = sources * self.selfplay.num_games * self.selfplay.moves_per_rollout
        if not rows:
            return found
        if rows < self.learn.batch_size:
            found.append(
                f"learn.batch_size is {self.learn.batch_size}; an iteration has selfplay.num_games x "
                f"selfplay.moves_per_rollout = {rows} rows"
            )
        if self.total_rows < rows:
            found.append(f"total_rows is {self.total_rows}; one rollout alone plays {rows}")
        return found

    def _rllib_problems(self) -> list[str]:
        """What RLlib does without."""
        model = self.model
        found = []
        if model.kind not in ("balatro", "balatro_rows", "mlp"):
            found.append(f"model.kind is {model.kind!r}; runtime 'rllib' has 'balatro', 'balatro_rows' and 'mlp'")
        refused = {
            "model.soft_policy": model.soft_policy,
            "model.reply_policy": model.reply_policy,
            "model.moves_left": model.moves_left,
            "model.history": model.history,
            "model.second_width": model.second_width,
            "model.unseen": model.unseen,
            "learn.weight_decay": self.learn.weight_decay,
            "ppo.teacher": self.ppo.teacher,
        }
        found += [f"{name} is {value!r}; runtime 'rllib' does without it" for name, value in refused.items() if value]
        if self.learn.accumulate > 1:
            found.append(f"learn.accumulate is {self.learn.accumulate}; runtime 'rllib' needs 1")
        if self.rewards.first_ante < LAST_ANTE:
            first = self.rewards.first_ante
            found.append(f"rewards.first_ante is {first}; runtime 'rllib' plays whole games: leave it {LAST_ANTE}")
        return found

    def problems_with(self, game: Game) -> list[str]:
        """What does not fit the game."""
        found = self.model.problems_with(game.spec) + self.search.problems_with(game.spec)
        if self.search.kind == "expectimax" and game.plays is None:
            found.append(f"search.kind is 'expectimax', but {game.spec.name} has no whole-turn plays")
        for name in self.selfplay.starts:
            if name not in game.starts:
                known = game.starts or ["none: leave it out"]
                found.append(f"selfplay.starts: {UnknownName(f'start of {game.spec.name}', name, known)}")
        points = {abs(outcome.points) for outcome in game.spec.outcomes}
        if self.selfplay.resign and (game.spec.num_players != 2 or len(points - {0.0}) != 1):
            found.append(
                f"selfplay.resign is {self.selfplay.resign}; {game.spec.name} is no game of two who win or lose all"
            )
        sources = self.ray.workers * self.ray.groups if self.runtime == "ray" else self.producers.workers
        games = self.selfplay.num_games * max(sources, 1)
        slab = games * self.selfplay.moves_per_rollout
        slabs = -(-game.spec.max_plies // self.selfplay.moves_per_rollout) + 2 if self.targets.wait else 2
        if self.replay.capacity_rows < slab * slabs:
            found.append(
                f"replay.capacity_rows is {self.replay.capacity_rows}; {games} games of "
                f"{game.spec.name} at once, each of up to {game.spec.max_plies} plies, need at least {slab * slabs}"
            )
        if self.total_rows < slab:
            found.append(f"total_rows is {self.total_rows}; one rollout alone plays {slab}")
        if self.replay.capacity_rows >= 2**31:
            found.append(f"replay.capacity_rows is {self.replay.capacity_rows}; it must be below {2**31}")
        return found

    def check(self, game: Game) -> None:
        """Raises ConfigError with everything that does not fit the game."""
        problems = self.problems_with(game)
        if problems:
            raise ConfigError("\n".join(problems))


def resolve(
    game: str | None,
    *,
    preset: str = "standard",
    file: Path | None = None,
    assignments: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    note: Callable[[str], None] = logger.warning,
) -> RunConfig:
    """The settings that a game, a preset, a file, the environment and assignments give together.

    `note` is told of names that are not ours.
    """
    layers = []
    given = load_file(file) if file else None
    name = game or (given.values.get("game") if given else None)
    if not isinstance(name, str):
        raise ConfigError('no game is named: name one on the command line, or write game = "..." in the file')
    if game and given and given.values.get("game", game) != game:
        raise ConfigError(f"the command names {game!r}, {file} names {given.values['game']!r}; which is it?")
    layers.append(preset_layer(name, preset))
    layers.append(Layer("the command line", {"game": name}))
    if given:
        layers.append(given)
    layers.append(from_environment(RunConfig, os.environ if environ is None else environ, ignore=NOT_SETTINGS))
    layers.append(parse_assignments(assignments))
    layers, notes = translated(layers)
    for told in notes:
        note(told)
    return build(RunConfig, layers)


def is_given(
    path: str, file: Path | None, assignments: Sequence[str], environ: Mapping[str, str] | None = None
) -> bool:
    """Whether anything but a preset says what a setting is, as in `selfplay.num_games`."""
    environment = from_environment(RunConfig, os.environ if environ is None else environ, ignore=NOT_SETTINGS)
    layers = [*([load_file(file)] if file else []), environment, parse_assignments(assignments)]
    return last_given(layers, path) is not None


def preset_layer(game: str, preset: str) -> Layer:
    """A game's preset; where a game has none of its own, the general one. A game may have further ones."""
    folder = resources.files("aleazero") / "presets"
    own, general = folder / f"{game.replace(':', '_').replace('/', '_')}.toml", folder / "general.toml"
    family = folder / f"{game.partition(':')[0]}.toml"  # of gym:NAME
    own = own if own.is_file() else family
    tables: dict[str, Any] = tomllib.loads(general.read_text("utf-8"))
    tables |= tomllib.loads(own.read_text("utf-8")) if own.is_file() else {}
    if preset not in tables:
        raise UnknownName("preset", preset, tables)
    return Layer(f"preset {preset} of {game}", tables[preset])


def changes_refused(old: RunConfig, new: RunConfig) -> list[str]:
    """What a resumed run may not change, in the words of the settings."""
    before, after = flatten(old), flatten(new)
    return [
        f"{path} was {before[path]!r} and is now {after[path]!r}"
        for path in before
        if path.partition(".")[0] not in MAY_CHANGE and before[path] != after[path]
    ]
