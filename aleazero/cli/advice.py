"""What a player thinks of a position, in lines for a person: the `eval` of `alea play`. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax import Array

from aleazero.core.game import Game
from aleazero.play.match import Player
from aleazero.players import NetworkPlayer, SolverPlayer


def advice(game: Game, player: Player, states: Any, keys: Array, names: Mapping[int, str]) -> list[str]:
    """Lines on one decision state, a batch `[1]`, from the side of whoever is to play; `names` of its legal moves."""
    if isinstance(player, NetworkPlayer):
        return _network(game, player, states, keys, names)
    if isinstance(player, SolverPlayer):
        return _solver(player, states, names)
    return [f"{player.name} has no opinion"]


def _network(game: Game, player: NetworkPlayer, states: Any, keys: Array, names: Mapping[int, str]) -> list[str]:
    opinion = np.asarray(player.opinion(states))[0]
    found = jax.tree.map(lambda x: np.asarray(x)[0], player.look(states, keys))
    if len(opinion) == 1:
        first = f"value {opinion[0]:+.3f}"
    else:
        chances = zip(game.spec.outcomes, opinion, strict=True)
        first = ", ".join(f"{outcome.name} {chance:.1%}" for outcome, chance in chances)
    lines = [f"the network alone: {first}"]
    searched = found.visits.sum() > 0
    if searched:
        lines.append(f"after {player.search.max_simulations} simulations: value {found.value:+.3f}")
    width = max(len(name) for name in names.values())
    for edge in np.argsort(-found.policy, kind="stable"):
        if found.actions[edge] < 0:
            continue
        line = f"  {names[int(found.actions[edge])]:{width}}  prior {found.priors[edge]:6.1%}"
        if searched:
            value = f"{found.values[edge]:+.3f}" if found.visits[edge] else "unknown"
            line += f"  visits {found.visits[edge]:4.0f}  value {value}"
        lines.append(line)
    return lines


def _solver(player: SolverPlayer, states: Any, names: Mapping[int, str]) -> list[str]:
    values = player.judge(jax.tree.map(np.asarray, states))[0]
    width = max(len(name) for name in names.values())
    ranked = sorted(names, key=lambda action: -values[action])
    return ["exactly, in points:", *(f"  {names[action]:{width}}  {values[action]:+.4f}" for action in ranked)]
