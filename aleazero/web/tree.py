"""A search's tree as a picture needs it: what was tried, how often, with what result; chance nodes with their odds.

Values are points, from the side of whoever is to play at the root. A network that chooses whole turns has no tree: for
its best plays every roll is shown with the best answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.core.errors import ConfigError
from aleazero.core.game import Game
from aleazero.core.keys import Role, lane_keys
from aleazero.models.build import Model
from aleazero.players import AnyPlayer, NetworkPlayer, TurnNetworkPlayer
from aleazero.search.build import build_search
from aleazero.search.settings import SearchConfig, make_knobs
from aleazero.search.tree import ROOT, Tree
from aleazero.web.table import Table

MOST_NODES, MOST_CHILDREN = 600, 24
PLAYS = 3  # whose rolls are shown


def tree_of(table: Table, player: AnyPlayer) -> dict[str, Any]:
    """The tree below a table's position."""
    if table.over or table.waits:
        raise ConfigError("there is nothing to play in this position: the turn or the game is over")
    if isinstance(player, TurnNetworkPlayer):
        return _rolls(table, player)
    if not isinstance(player, NetworkPlayer) or player.search.kind == "direct":
        raise ConfigError(f"player {player.name!r} has no search tree; name a network with simulations, as in sims=64")
    states = jax.tree.map(lambda x: jnp.asarray(x)[None], table.state)
    keys = lane_keys(jnp.uint32(0), Role.SEARCH, len(table.played), jnp.arange(1))
    return _Picture(table, _grown(player.game, player.model, player.search)(player.weights, states, keys)).root()


@functools.cache
def _grown(game: Game, model: Model, config: SearchConfig) -> Callable[..., Tree]:
    search, knobs = build_search(game, config), make_knobs(config, gumbel_scale=0.0)

    def grow(weights: Any, states: Any, keys: jax.Array) -> Tree:
        planted = search.plant(model.evaluate, weights, states, keys, knobs)
        return search.grow(model.evaluate, weights, planted, knobs)

    return jax.jit(grow)


class _Picture:
    """A tree on the host."""

    def __init__(self, table: Table, tree: Tree) -> None:
        self._table, self._scale = table, table.game.spec.scale
        self._actions, self._children, self._priors, self._states, self._turn = (
            np.asarray(field)[:, 0] for field in (tree.actions, tree.children, tree.priors, tree.states, tree.turn)
        )
        stats = np.asarray(tree.stats)[:, 0].astype(np.float64)
        self._visits, self._sums = stats[:, 0], stats[:, 1]
        self._side = float(self._turn[ROOT])
        self._unpack = jax.jit(table.game.unpack)
        self._left = MOST_NODES

    def root(self) -> dict[str, Any]:
        """All that fits, the most visited first."""
        whole = self._node(ROOT, "", None)
        line, node = [], whole
        while node["children"]:
            node = node["children"][0]
            line.append(node["name"])
        return {"root": whole, "line": line}

    def _node(self, number: int, name: str, prior: float | None) -> dict[str, Any]:
        self._left -= 1
        visits = self._visits[number]
        return {
            "name": name,
            "prior": prior,
            "visits": int(visits),
            "value": float(self._side * self._sums[number] / max(visits, 1.0) * self._scale),
            "chance": bool(self._turn[number] == 0),
            "children": self._below(number),
        }

    def _below(self, number: int) -> list[dict[str, Any]]:
        edges = np.flatnonzero(self._children[number] != 0)
        if not edges.size or self._left <= 0:
            return []
        order = edges[np.argsort(-self._visits[np.abs(self._children[number][edges])], kind="stable")][:MOST_CHILDREN]
        state = jax.tree.map(np.asarray, self._unpack(self._states[number]))
        name = self._table.notation.format_chance if self._turn[number] == 0 else self._table.face.name
        found = []
        for edge in order.tolist():
            child, action = int(self._children[number, edge]), int(self._actions[number, edge])
            found.append(self._node(abs(child), name(state, action), float(self._priors[number, edge])))
            if self._left <= 0:
                break
        return found


def _rolls(table: Table, player: TurnNetworkPlayer) -> dict[str, Any]:
    game, rules, scale = table.game, table.rules, table.game.spec.scale
    states = jax.tree.map(lambda x: jnp.asarray(x)[None], table.state)
    ranked = player.rank(states)
    plays = min(PLAYS, len(ranked.value))
    kept = jax.tree.map(lambda x: x[np.minimum(np.arange(PLAYS), plays - 1)], ranked.afterstates)
    count = game.num_later_outcomes
    chances, rolled = _rolled(game, count)(kept)
    answers = jax.tree.map(np.asarray, player.look(jax.tree.map(jnp.asarray, rolled)))
    rolled = jax.tree.map(np.asarray, rolled)
    children = []
    for play in range(plays):
        left = jax.tree.map(lambda x, play=play: np.asarray(x)[play], kept)
        below: list[dict[str, Any]] = []
        for roll in range(count if not bool(left.terminated) else 0):
            row = play * count + roll
            state, after = (jax.tree.map(lambda x, row=row: x[row], tree) for tree in (rolled, answers.afterstates))
            answer = table.notation.format_turn(state, rules.turn_to(state, after))
            value = -float(answers.value[row]) * scale
            reply: dict[str, Any] = {
                "name": answer,
                "prior": None,
                "visits": 1,
                "value": value,
                "chance": False,
                "children": [],
            }
            name, chance = table.notation.format_chance(left, roll), float(chances[play, roll])
            below.append({**reply, "name": name, "prior": chance, "children": [reply]})
        below.sort(key=lambda node: node["value"])
        name = table.notation.format_turn(table.state, rules.turn_to(table.state, left))
        value = float(ranked.value[play]) * scale
        children.append(
            {"name": name, "prior": None, "visits": count, "value": value, "chance": True, "children": below}
        )
    root = {"name": "", "prior": None, "visits": plays * count, "value": children[0]["value"], "chance": False}
    return {"root": {**root, "children": children}, "line": [children[0]["name"]]}


@functools.cache
def _rolled(game: Game, count: int) -> Callable[[Any], tuple[jax.Array, Any]]:
    """Odds `[n, count]` and states `[n * count]` after every roll of afterstates `[n]`."""

    def roll(left: Any) -> tuple[jax.Array, Any]:
        each = jax.vmap(jax.vmap(game.apply_chance, (None, 0)), (0, None))(left, jnp.arange(count))
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), each)
        return jax.vmap(game.chance_probs)(left)[:, :count], flat

    return jax.jit(roll)
