"""Where the parts of a PPO run are joined: a host game, a network, fragments, a learner that uses them at once.

Beside `assemble`, for runs with `algorithm = "ppo"`; runtimes take it from here.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero import checkpoint as checkpoints
from aleazero import export
from aleazero.assemble import Parts, build_parts
from aleazero.config import RunConfig
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.core.game import HostGame
from aleazero.core.keys import Role, role_key
from aleazero.core.records import Evaluate, Weights
from aleazero.games.registry import make_game
from aleazero.learn import ppo
from aleazero.models.build import Model, build_model
from aleazero.observe.reports import NOBODY
from aleazero.play.alone import Alone, Choose, play_alone
from aleazero.play.fragments import FragmentPlay, Played
from aleazero.play.lookahead import LookAhead, Looking
from aleazero.players import check_game, find_checkpoint
from aleazero.replay.fifo import Fifo
from aleazero.roles.learner import placed
from aleazero.roles.ports import WeightStore
from aleazero.roles.ppo import PpoLearner
from aleazero.runs import find_run, runs_root

_COPIES = 3  # of a fragment: the buffers, the device's, and what an update gathers
_BASE_BYTES = 2**30  # of a process with everything imported and compiled, weights and optimiser included


@dataclasses.dataclass(frozen=True)
class PpoParts:
    """Everything a runtime needs to make roles of; `build_ppo_parts` makes it."""

    config: RunConfig
    game: HostGame  # as ratings play it
    model: Model
    rollout: FragmentPlay

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

    def play_match(self, weights: Weights, opponent: str, root: Path | None) -> Alone:
        """Games of these weights alone, each move the likeliest; as many as the settings say."""
        seeds = np.random.default_rng(self.config.seed).integers(0, 2**63, self.config.evaluate.games, np.uint64)
        return play_alone(self.game, chooser(self.game, self.model, weights), seeds)

    def slab_like(self) -> Any:
        """Nothing is kept of what was played."""
        raise ConfigError("algorithm 'ppo' keeps no log of its games")


def chooser(game: HostGame, model: Model, weights: Weights) -> Choose:
    """The likeliest legal action of a network's policy."""

    def choose(states: Any, move: int) -> np.ndarray:
        legal = game.legal_actions(states)
        return np.asarray(_likeliest(model.evaluate, weights, game.observe(states), legal))

    return choose


@functools.partial(jax.jit, static_argnums=0)
def _likeliest(evaluate: Evaluate, weights: Weights, observation: Array, legal: Array) -> Array:
    return jnp.argmax(jnp.where(legal, evaluate(weights, observation).logits, -jnp.inf), -1)


def player_of(text: str, root: Path | None = None) -> Callable[[int], Choose]:
    """Who `run:NAME[@STEP][,search[,candidates=N][,samples=N][,depth=N]]` is; the number is the player's own seed.

    `path:FOLDER` is an exported network, which does not look ahead: it knows no rewards.
    """
    name, *options = (part.strip() for part in text.split(","))
    if name.startswith("path:"):
        if options:
            raise ConfigError(f"player {text!r} does not look ahead: write {name!r}, or run:NAME,search")
        played, network, exported = load_exported(Path(name.removeprefix("path:")))
        return lambda seed: chooser(played, network, exported)
    config, game, model, weights = load_player(name, root)
    if not options:
        return lambda seed: chooser(game, model, weights)
    known = [field.name for field in dataclasses.fields(LookAhead)]
    given: dict[str, int] = {}
    for option in options if options[0] != "search" else options[1:]:
        key, _, value = option.partition("=")
        if key not in known:
            raise UnknownName(f"option of player {text!r}", key, ["search", *known])
        if not value.isdecimal():
            raise ConfigError(f"player {text!r}: {key} is {value!r}; it must be a number")
        given[key] = int(value)
    looks = LookAhead(**given)
    return lambda seed: Looking(game, model.evaluate, weights, config.rewards, config.ppo.gamma, looks, seed).choose


def load_exported(folder: Path) -> tuple[HostGame, Model, Weights]:
    """The network that `alea export` wrote of a run by PPO, and the game as it sees it."""
    manifest = export.read_manifest(folder)
    game = host_game(manifest["game"], str(manifest["model"].get("kind")))
    exported = export.read(folder, game.spec)
    return game, exported.model, exported.weights


def load_player(text: str, root: Path | None = None) -> tuple[RunConfig, HostGame, Model, Weights]:
    """The network of a run, `run:NAME[@STEP]`, with its settings and the game as it sees it."""
    kind, _, detail = text.partition(":")
    name, _, step = detail.partition("@")
    if kind != "run" or not name:
        raise ConfigError(f"player {text!r} is no run: write run:NAME, run:NAME@STEP or path:FOLDER")
    run = find_run(runs_root(root), name)
    config = run.read_config()
    if config.algorithm != "ppo":
        raise ConfigError(f"player {text!r} was trained by {config.algorithm!r}, not by 'ppo'")
    game = host_game(config.game, config.model.kind)
    found = find_checkpoint(run.checkpoints, step)
    check_game(found, game)
    model = build_model(config.model, game.spec)
    return config, game, model, checkpoints.restore(found, "average", jax.eval_shape(model.init, jax.random.key(0)))


def host_game(name: str, kind: str) -> HostGame:
    """A host game as a network of this kind sees it."""
    game = make_game(name)
    if not isinstance(game, HostGame):
        raise ConfigError(f"algorithm 'ppo' is for games that run on the host, and {name} does not; use 'search'")
    return game.seen_by(kind)


def build_ppo_parts(config: RunConfig) -> PpoParts:
    """The parts of a run, checked against the game."""
    game = host_game(config.game, config.model.kind)
    practice = game.for_practice()
    problems = problems_with(config, game)
    if problems:
        raise ConfigError("\n".join(problems))
    model = build_model(config.model, game.spec)
    play = config.selfplay
    rollout = FragmentPlay(
        practice, model.evaluate, play.num_games, play.moves_per_rollout, config.rewards, config.ppo.gamma
    )
    return PpoParts(config, game, model, rollout)


def parts_of(config: RunConfig, root: Path | None = None) -> Parts | PpoParts:
    """The parts of a run, whatever its algorithm."""
    return build_ppo_parts(config) if config.algorithm == "ppo" else build_parts(config, root=root)


def problems_with(config: RunConfig, game: HostGame) -> list[str]:
    """What does not fit the game, or the memory."""
    spec = game.spec
    found = config.model.problems_with(spec)
    if spec.num_players != 1:
        found.append(f"algorithm 'ppo' is for one player, and {spec.name} has {spec.num_players}")
    found += config.rewards.problems_with(game.measures(game.init_batch(np.zeros(1, np.uint64))), spec.name)
    if config.ppo.teacher:
        try:
            game.teacher(config.ppo.teacher)
        except UnknownName as error:
            found.append(f"ppo.teacher: {error}")
    wrong = [opponent for opponent in config.evaluate.opponents if opponent != NOBODY]
    if wrong:
        found.append(f"evaluate.opponents is {wrong}; {spec.name} is for one: write {NOBODY!r}")
    if config.runtime == "rllib":  # its memory is that of several processes
        return found
    play = config.selfplay
    row = 4 * math.prod(spec.observation_shape) + spec.num_actions + 32
    need = _COPIES * play.num_games * play.moves_per_rollout * row + _BASE_BYTES
    cap = int(config.ppo.memory_gb * 2**30)
    if need > cap:
        fits = max((cap - _BASE_BYTES) // (_COPIES * play.moves_per_rollout * row), 0)
        advice = f"selfplay.num_games = {fits} fits" if fits else f"ppo.memory_gb = {need / 2**30:.2f} is enough"
        found.append(
            f"ppo.memory_gb is {config.ppo.memory_gb:g}; {play.num_games} games of {play.moves_per_rollout} moves need "
            f"{need / 2**30:.2f} GiB: {advice}"
        )
    return found
