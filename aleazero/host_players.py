"""Players of host games from strings: a network's policy alone, or looking ahead with it.

    run:NAME[@STEP]    run:NAME@best    path:FOLDER    bundled
    ...,search[,candidates=4][,samples=4][,depth=8]
What looking ahead is paid by is what the network was trained for: a run's settings, or an export's facts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aleazero import checkpoint as checkpoints
from aleazero import export
from aleazero.config import RunConfig
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.core.game import HostGame
from aleazero.core.records import Weights
from aleazero.core.settings import Layer, build, to_dict
from aleazero.games.registry import make_game
from aleazero.models.build import Model, build_model
from aleazero.play.alone import Choose
from aleazero.play.asked import logits_of
from aleazero.play.lookahead import LookAhead, Looking
from aleazero.play.past import Past
from aleazero.play.rewards import RewardConfig
from aleazero.players import bundled_folder, check_game, find_checkpoint
from aleazero.runs import find_run, runs_root

NETWORKS = ("run", "path", "bundled")


@dataclasses.dataclass(frozen=True)
class HostNetwork:
    """A network that plays a host game."""

    game: HostGame  # as it sees it
    model: Model
    weights: Weights
    rewards: RewardConfig
    gamma: float


def is_network(text: str) -> bool:
    """Whether a player string names one."""
    return text.strip().partition(",")[0].partition(":")[0] in NETWORKS


def host_game(name: str, kind: str, graph: str = "none") -> HostGame:
    """A host game as a network of this kind sees it, with the numbers of a knowledge graph."""
    game = make_game(name)
    if not isinstance(game, HostGame):
        raise ConfigError(f"game {name!r} does not run on the host")
    return game.seen_by(kind, graph)


def best_known(game: str, otherwise: str) -> str:
    """The player string of the network that comes with the package for a game, or somebody else's."""
    return "bundled" if bundled_folder(make_game(game)) is not None else otherwise


def player_of(text: str, game: str, root: Path | None = None) -> Callable[[int], Choose]:
    """Who a string names, by a seed of the player's own; each follows one batch of games from their start."""
    name, *options = (part.strip() for part in text.split(","))
    network = load_player(name, game, root)
    if not options:
        return lambda seed: chooser(network.game, network.model, network.weights)
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
    return lambda seed: (
        Looking(
            network.game,
            network.model.evaluate,
            network.weights,
            network.rewards,
            network.gamma,
            looks,
            seed,
            network.model.config.history,
        ).choose
    )


def load_player(text: str, game: str, root: Path | None = None) -> HostNetwork:
    """The network that a string without options names."""
    kind, _, detail = text.partition(":")
    if kind not in NETWORKS or (kind == "bundled") == bool(detail.partition("@")[0]):
        raise ConfigError(f"player {text!r} names no network: write run:NAME, run:NAME@STEP, path:FOLDER or bundled")
    if kind == "run":
        return _of_run(detail, text, game, root)
    plain = make_game(game)
    folder = Path(detail) if kind == "path" else bundled_folder(plain)
    if folder is None:
        raise ConfigError(f"player 'bundled': no network for {game} comes with the package; train one")
    shape = export.read_manifest(folder)["model"]
    seen = host_game(game, shape.get("kind", ""), shape.get("graph", "none"))
    found = export.read(folder, seen.spec)
    paid = found.manifest.get("facts", {}).get("ppo", {})
    if not isinstance(paid, Mapping) or not isinstance(paid.get("rewards", {}), Mapping):
        raise export.ExportError(f"{folder / 'manifest.json'}: facts.ppo is no table of rewards and gamma")
    rewards = build(RewardConfig, [Layer(str(folder / "manifest.json"), dict(paid.get("rewards", {})))])
    return HostNetwork(seen, found.model, jax.device_put(found.weights), rewards, float(paid.get("gamma", 1.0)))


def export_facts(config: RunConfig) -> dict[str, Any]:
    """What an export of a run keeps of its settings, so that its network can look ahead."""
    chosen_by = [config.seed, config.evaluate.games]
    return {"ppo": {"gamma": config.ppo.gamma, "rewards": to_dict(config.rewards), "chosen_by": chosen_by}}


def chosen_by(text: str, root: Path | None = None) -> tuple[int, int] | None:
    """Seed and number of the games by which the run of a player string chose its best checkpoint, where it is known."""
    kind, _, detail = text.strip().partition(",")[0].partition(":")
    name = detail.partition("@")[0]
    if kind == "run" and name:
        config = find_run(runs_root(root), name).read_config()
        return config.seed, config.evaluate.games
    if kind != "path" or not detail:
        return None
    facts = export.read_manifest(Path(detail)).get("facts", {}).get("ppo", {})
    found = facts.get("chosen_by", []) if isinstance(facts, Mapping) else []
    if not isinstance(found, list) or not all(isinstance(number, int) and number >= 0 for number in found):
        raise export.ExportError(
            f"{Path(detail) / 'manifest.json'}: facts.ppo.chosen_by is no seed and number of games"
        )
    return (found[0], found[1]) if len(found) == 2 else None


def _of_run(detail: str, text: str, game_name: str, root: Path | None) -> HostNetwork:
    name, _, step = detail.partition("@")
    run = find_run(runs_root(root), name)
    config = run.read_config()
    if config.game != game_name:
        raise ConfigError(f"player {text!r} plays {config.game}, not {game_name}")
    if config.algorithm != "ppo":
        raise ConfigError(f"player {text!r} was trained by {config.algorithm!r}, not by 'ppo'")
    game = host_game(config.game, config.model.kind, config.model.graph)
    found = find_checkpoint(run, step)
    check_game(found, game)
    model = build_model(config.model, game.spec)
    weights = checkpoints.restore(found, "average", jax.eval_shape(model.init, jax.random.key(0)))
    return HostNetwork(game, model, jax.device_put(weights), config.rewards, config.ppo.gamma)


def chooser(game: HostGame, model: Model, weights: Weights) -> Choose:
    """The likeliest legal action of a network's policy, in games followed from their start; 0 in ended ones."""
    past = Past(0, game.spec.observation_shape, model.config.history)

    def choose(states: Any, move: int) -> np.ndarray:
        nonlocal past
        legal = game.legal_actions(states)
        going, chosen = np.flatnonzero(legal.any(-1)), np.zeros(len(legal), np.int64)
        if move == 0:
            past = Past(len(legal), game.spec.observation_shape, model.config.history)
        if len(going):
            seen, here = game.observe(game.take(states, going)), past.take(going)
            logits = logits_of(model.evaluate, weights, here.beside(seen))
            chosen[going] = np.where(legal[going], logits, -np.inf).argmax(-1)
            here.add(seen)
            past.put(going, here)
        return chosen

    return choose
