"""Where the parts of a PPO run are joined: a game, a network, fragments, a learner that uses them at once.

Beside `assemble`, for runs with `algorithm = "ppo"`; runtimes take it from here.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aleazero.assemble import Parts, build_parts
from aleazero.config import RunConfig
from aleazero.core.errors import AleaError, ConfigError, UnknownName
from aleazero.core.game import Game, GameSpec, HostGame
from aleazero.core.keys import Role, role_key
from aleazero.core.records import Weights
from aleazero.games.registry import make_game
from aleazero.host_players import chooser
from aleazero.learn import ppo
from aleazero.models.build import Model, build_model
from aleazero.observe.reports import NOBODY
from aleazero.play.alone import Alone, play_alone
from aleazero.play.fragments import FragmentPlay, Played
from aleazero.play.match import MatchResult, play_match
from aleazero.play.selves import SelvesPlay
from aleazero.players import make_player, network_player
from aleazero.ppo_memory import fitted
from aleazero.replay.fifo import Fifo
from aleazero.roles.learner import placed
from aleazero.roles.ports import WeightStore
from aleazero.roles.ppo import PpoLearner
from aleazero.search.settings import SearchConfig


@dataclasses.dataclass(frozen=True)
class PpoParts:
    """Everything a runtime needs to make roles of; `build_ppo_parts` makes it."""

    config: RunConfig
    game: HostGame | Game  # as ratings play it
    model: Model
    rollout: FragmentPlay | SelvesPlay

    def make_learning(self, weights: WeightStore) -> tuple[Fifo, PpoLearner]:
        """An empty place for fragments, and the learner that takes them."""
        config, play = self.config, self.config.selfplay
        rows = play.num_games * play.moves_per_rollout
        source = Fifo(rows)
        key = role_key(config.seed, Role.WEIGHTS)
        state = jax.jit(lambda key: ppo.start(config.ppo, config.learn, self.model.init(key)))(key)
        total = config.total_rows * config.ppo.epochs

        def update(clone: bool) -> ppo.PpoUpdate:
            return jax.jit(ppo.make_update(config.ppo, config.learn, self.model.apply, clone), donate_argnums=0)

        learner = PpoLearner(
            update(False),
            lambda trained: config.learn.learning_rate.at(trained, total),
            lambda played: config.ppo.entropy.at(played, config.total_rows),
            placed(state),
            source,
            weights,
            batch_size=config.learn.batch_size,
            updates=ppo.updates_of(config.ppo, config.learn, rows),
            seed=config.seed,
            clone=update(True) if config.ppo.teacher else None,
            clone_rows=config.ppo.teacher_rows,
        )
        return source, learner

    def summary(self, played: Played) -> Played:
        """What is said of a fragment was counted as it was played."""
        return played

    def play_match(self, weights: Weights, opponent: str, root: Path | None) -> Alone | MatchResult:
        """Games of these weights, each move the likeliest; as many as the settings say."""
        config, settings = self.config, self.config.evaluate
        if isinstance(self.game, HostGame):
            return play_alone(
                self.game, chooser(self.game, self.model, weights), choosing_seeds(config.seed, settings.games)
            )
        player = network_player(self.game, self.model, weights, SearchConfig(kind="direct"), "self")
        return play_match(
            self.game,
            player,
            make_player(opponent, self.game, root),
            pairs=settings.games // 2,
            seed=config.seed,
            opening_plies=settings.opening_plies,
        )

    def slab_like(self) -> Any:
        """Nothing is kept of what was played."""
        raise ConfigError("algorithm 'ppo' keeps no log of its games")


def choosing_seeds(seed: int, games: int) -> np.ndarray:
    """What the games of a run's own measurements are made from, `[N]` uint64: its best checkpoint is chosen by them."""
    return np.random.default_rng(seed).integers(0, 2**63, games, np.uint64)


def build_ppo_parts(config: RunConfig, root: Path | None = None) -> PpoParts:
    """The parts of a run, checked against the game and the memory; `root` is where runs are that opponents may name.

    What the settings leave open is decided: `parts.config` says how.
    """
    game = make_game(config.game)
    if isinstance(game, HostGame):
        game = game.seen_by(config.model.kind, config.model.graph)
    problems = [*problems_with(config, game.spec), *_misfits(config, game, root)]
    if problems:
        raise ConfigError("\n".join(problems))
    model = build_model(config.model, game.spec)
    if config.runtime != "rllib":  # its memory is that of several processes
        config = fitted(config, game.spec, model)
    play = config.selfplay
    sizes = play.num_games, play.moves_per_rollout
    if isinstance(game, Game):
        return PpoParts(config, game, model, SelvesPlay(game, model.evaluate, *sizes, config.ppo.opponents))
    rollout = FragmentPlay(
        game.for_practice(), model.evaluate, *sizes, config.rewards, config.ppo.gamma, history=config.model.history
    )
    return PpoParts(config, game, model, rollout)


def parts_of(config: RunConfig, root: Path | None = None) -> Parts | PpoParts:
    """The parts of a run, whatever its algorithm."""
    return build_ppo_parts(config, root) if config.algorithm == "ppo" else build_parts(config, root=root)


def _misfits(config: RunConfig, game: HostGame | Game, root: Path | None) -> list[str]:
    """What the one kind of game or the other cannot do."""
    found = []
    if isinstance(game, HostGame):
        if game.spec.num_players != 1:
            found.append(f"algorithm 'ppo' plays host games for one, and {game.spec.name} has {game.spec.num_players}")
        measured = game.measures(game.init_batch(np.zeros(1, np.uint64)))
    else:
        measured = {}
        if config.model.history:
            found.append(f"model.history is {config.model.history}; {game.spec.name} runs on the device: leave it 0")
    found += config.rewards.problems_with(measured, game.spec.name)
    if config.ppo.teacher:
        try:
            if isinstance(game, Game):
                raise UnknownName(f"teacher of {game.spec.name}", config.ppo.teacher, [])
            game.teacher(config.ppo.teacher)
        except UnknownName as error:
            found.append(f"ppo.teacher: {error}")
    if game.spec.num_players == 1:
        wrong = [opponent for opponent in config.evaluate.opponents if opponent != NOBODY]
        if wrong:
            found.append(f"evaluate.opponents is {wrong}; {game.spec.name} is for one: write {NOBODY!r}")
    elif isinstance(game, Game):
        for opponent in config.evaluate.opponents:
            try:
                make_player(opponent, game, root)
            except AleaError as error:
                found.append(f"evaluate.opponents: {error}")
    return found


def problems_with(config: RunConfig, spec: GameSpec) -> list[str]:
    """What does not fit the game's facts."""
    found, play, selves = config.model.problems_with(spec), config.selfplay, config.ppo.opponents
    if bool(selves) != (spec.num_players > 1):
        players = "two, who need some: write 8" if spec.num_players > 1 else "one, who has none: leave it 0"
        found.append(f"ppo.opponents is {selves}; {spec.name} is for {players}")
    elif selves and play.num_games % selves:
        found.append(f"selfplay.num_games is {play.num_games}; it must be a multiple of ppo.opponents ({selves})")
    return found
