"""Players of Quoridor that go by the shortest way and learn nothing: `shortest`, and `shortest:walls` who also hinders.

Joins the ways to states; knows no network.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
from jax import Array

from aleazero.core.errors import ConfigError
from aleazero.core.game import Game
from aleazero.games.quoridor import paths

KIND = "shortest"


@dataclasses.dataclass(frozen=True)
class ShortestPlayer:
    """Goes where its goal is nearest; with walls, it places one whenever it is behind and one gains a step."""

    walls: bool
    name: str

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        """Deterministic: nothing is drawn."""
        return _chooser(self.walls)(states)


def make(detail: str, options: dict[str, str], game: Game, text: str) -> ShortestPlayer:
    """The player `shortest` or `shortest:walls`."""
    if game.spec.name != "quoridor":
        raise ConfigError(f"player {text!r}: {KIND} plays quoridor, not {game.spec.name}")
    if detail not in ("", "walls") or options:
        raise ConfigError(f"player {text!r}: write {KIND}, or {KIND}:walls")
    return ShortestPlayer(detail == "walls", text)


@functools.cache
def _chooser(walls: bool) -> Callable[[Any], Array]:
    return jax.jit(jax.vmap(paths.race if walls else paths.walk))
