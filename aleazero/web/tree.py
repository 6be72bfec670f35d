"""A search's tree as a picture needs it: what was tried, how often, with what result; chance nodes with their odds.

Values are points, from the side of whoever is to play at the root. A network that chooses whole turns has no tree: for
its best plays every roll is shown with the best answer.
A line is what is expected to follow: the most visited way down; after a whole turn, a roll as lucky as most and its
best answer.
"""

from __future__ import annotations

import dataclasses
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
from aleazero.players import MOST_SEARCHES, AnyPlayer, NetworkPlayer, TurnNetworkPlayer
from aleazero.search.build import SearchResult, build_search
from aleazero.search.settings import SearchConfig, playing_knobs
from aleazero.search.tree import ROOT, Tree
from aleazero.web.table import Table

MOST_NODES, MOST_CHILDREN = 600, 24
MOST_LINE = 8  # moves
PLAYS = 3  # whose rolls are shown


def tree_of(table: Table, player: AnyPlayer) -> dict[str, Any]:
    """The tree below a table's position."""
    if table.over or table.waits:
        raise ConfigError("there is nothing to play in this position: the turn or the game is over")
    if isinstance(player, TurnNetworkPlayer):
        return _rolls(table, player)
    if not isinstance(player, NetworkPlayer) or player.search.kind == "direct":
        raise ConfigError(f"player {player.name!r} has no search tree; name a network with simulations, as in sims=64")
    return _Picture(table, search(table, player)[0]).root()


def search(table: Table, player: NetworkPlayer) -> tuple[Tree, SearchResult]:
    """A search of a table's position: its tree, and what it says; what the player itself would find."""
    states = jax.tree.map(lambda x: jnp.asarray(x)[None], table.state)
    keys = lane_keys(jnp.uint32(0), Role.SEARCH, len(table.played), jnp.arange(1))
    return _grown(player.game, player.model, player.search)(player.weights, states, keys)


def lines(table: Table, tree: Tree) -> list[list[str]]:
    """What is expected after each edge of the root."""
    picture = _Picture(table, tree)
    return [picture.line(edge) for edge in range(tree.children.shape[-1])]


@functools.lru_cache(maxsize=MOST_SEARCHES)
def _grown(game: Game, model: Model, config: SearchConfig) -> Callable[..., tuple[Tree, SearchResult]]:
    search, knobs = build_search(game, config), playing_knobs(config)

    def grow(weights: Any, states: Any, keys: jax.Array) -> tuple[Tree, SearchResult]:
        planted = search.plant(model.evaluate, weights, states, keys, knobs)
        grown = search.grow(model.evaluate, weights, planted, knobs)
        return grown, search.result(grown, knobs)

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
            chance, node = node["chance"], node["children"][0]
            line.append(f"{node['name']}:" if chance else node["name"])
        return {"root": whole, "line": line}

    def line(self, edge: int) -> list[str]:
        """The names of what follows an edge of the root, as long as anything was tried."""
        node, found = abs(int(self._children[ROOT, edge])), []  # type: int, list[str]
        while node and len(found) < MOST_LINE:
            tried = np.flatnonzero(self._children[node] != 0)
            if not tried.size:
                break
            best = tried[np.argmax(self._visits[np.abs(self._children[node][tried])])]
            state = jax.tree.map(np.asarray, self._unpack(self._states[node]))
            notation, action = self._table.notation, int(self._actions[node, best])
            chance = self._turn[node] == 0
            found.append(
                f"{notation.format_chance(state, action)}:" if chance else notation.format_action(state, action)
            )
            node = abs(int(self._children[node, best]))
        return found

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
    scale, count = table.game.spec.scale, table.game.num_later_outcomes
    ranked = player.rank(jax.tree.map(lambda x: jnp.asarray(x)[None], table.state))
    plays = min(PLAYS, len(ranked.value))
    kept = jax.tree.map(lambda x: np.asarray(x)[:plays], ranked.afterstates)
    children, line = [], []  # type: list[dict[str, Any]], list[str]
    for play, replies in enumerate(_replies(table, player, kept, plays)):
        below: list[dict[str, Any]] = []
        for roll in sorted(replies, key=lambda one: one.value):
            answer = {"name": roll.answer(), "prior": None, "visits": 1, "value": roll.value, "chance": False}
            below.append({**answer, "name": roll.name, "prior": roll.chance, "children": [{**answer, "children": []}]})
        left = jax.tree.map(lambda x, play=play: x[play], kept)
        name = table.notation.format_turn(table.state, table.rules.turn_to(table.state, left))
        node = {"name": name, "prior": None, "visits": count, "chance": True}
        children.append({**node, "value": float(ranked.value[play]) * scale, "children": below})
        line = line or [name, *_middle(replies)]
    root = {"name": "", "prior": None, "visits": plays * count, "chance": False}
    return {"root": {**root, "value": children[0]["value"], "children": children}, "line": line}


def turn_lines(table: Table, player: TurnNetworkPlayer, afterstates: Any) -> list[list[str]]:
    """What is expected after each of a few whole turns, by the network at 0-ply."""
    count = len(afterstates.to_play)
    quick = dataclasses.replace(player, ply=0)
    kept = jax.tree.map(lambda x: np.asarray(x)[: min(count, PLAYS)], afterstates)
    return [_middle(replies) for replies in _replies(table, quick, kept, min(count, PLAYS))]


@dataclasses.dataclass(frozen=True)
class _Roll:
    """A roll after a turn, and the best answer to it."""

    name: str
    chance: float
    value: float  # for whoever made the turn
    answer: Callable[[], str]  # its name, which takes a while to find


def _middle(replies: list[_Roll]) -> list[str]:
    """The roll that is worth what rolls are worth in the mean, as nearly as one is, and its answer."""
    mean = sum(roll.chance * roll.value for roll in replies)
    return [
        part
        for roll in sorted(replies, key=lambda one: abs(one.value - mean))[:1]
        for part in (f"{roll.name}:", roll.answer())
    ]


def _replies(table: Table, player: TurnNetworkPlayer, kept: Any, plays: int) -> list[list[_Roll]]:
    """Every roll after each of `plays` turns; none where a turn has ended the game."""
    game, count, scale = table.game, table.game.num_later_outcomes, table.game.spec.scale
    filled = jax.tree.map(lambda x: x[np.minimum(np.arange(PLAYS), plays - 1)], kept)  # one shape
    chances, rolled = _rolled(game, count)(filled)
    answers = jax.tree.map(np.asarray, player.look(jax.tree.map(jnp.asarray, rolled)))
    rolled = jax.tree.map(np.asarray, rolled)

    def answer(row: int) -> str:
        state, after = (jax.tree.map(lambda x: x[row], tree) for tree in (rolled, answers.afterstates))
        return table.notation.format_turn(state, table.rules.turn_to(state, after))

    found = []
    for play in range(plays):
        left = jax.tree.map(lambda x, play=play: x[play], kept)
        rolls = range(0 if bool(left.terminated) else count)
        found.append(
            [
                _Roll(
                    table.notation.format_chance(left, roll),
                    float(chances[play, roll]),
                    -float(answers.value[play * count + roll]) * scale,
                    functools.partial(answer, play * count + roll),
                )
                for roll in rolls
            ]
        )
    return found


@functools.cache
def _rolled(game: Game, count: int) -> Callable[[Any], tuple[jax.Array, Any]]:
    """Odds `[n, count]` and states `[n * count]` after every roll of afterstates `[n]`."""

    def roll(left: Any) -> tuple[jax.Array, Any]:
        each = jax.vmap(jax.vmap(game.apply_chance, (None, 0)), (0, None))(left, jnp.arange(count))
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), each)
        return jax.vmap(game.chance_probs)(left)[:, :count], flat

    return jax.jit(roll)
