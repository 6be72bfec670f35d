"""The weights that a new run begins with, where they are another network's (`learn.start_from`).

Knows where networks are kept and whether one has the run's shape; not what is learned from there.
"""

from __future__ import annotations

from pathlib import Path

import jax

from aleazero.config import RunConfig
from aleazero.core.errors import AleaError, ConfigError
from aleazero.core.game import Game, HostGame
from aleazero.core.records import Weights
from aleazero.host_players import load_player
from aleazero.models.build import Model
from aleazero.players import load_network


def starting_weights(config: RunConfig, game: Game | HostGame, model: Model, root: Path | None) -> Weights:
    """Those of the network that the settings name; `root` is where runs are kept."""
    text = config.learn.start_from
    assert text is not None, "the caller asks where a network is named"
    try:
        if isinstance(game, Game):
            other, weights = load_network(text, game, root)
        else:
            found = load_player(text, config.game, root)
            other, weights = found.model, found.weights
    except AleaError as error:
        raise ConfigError(f"learn.start_from: {error}") from error
    if _shapes(weights) != _shapes(jax.eval_shape(model.init, jax.random.key(0))):
        theirs, ours = vars(other.config), vars(model.config)
        differ = [
            f"model.{name} is {theirs[name]} there and {ours[name]} here" for name in ours if theirs[name] != ours[name]
        ]
        raise ConfigError(
            f"learn.start_from is {text!r}, a network of another shape: " + ("; ".join(differ) or "its inputs differ")
        )
    return weights


def _shapes(weights: Weights) -> dict[str, tuple[int, ...]]:
    leaves = jax.tree_util.tree_leaves_with_path(weights)
    return {jax.tree_util.keystr(path): leaf.shape for path, leaf in leaves}
