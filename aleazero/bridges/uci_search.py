"""A chess search that can be stopped: simulations a slice at a time, and what the tree says after each.

A tree is kept from move to move where the game went along it. Mates are proved in the tree, backwards from positions
where somebody is mated: such a move is played whatever the visits say, and one that loses by force is not.
One position at a time. Knows chess, networks and searches; nothing of UCI and clocks.
"""

from __future__ import annotations

import dataclasses
import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.keys import Role, lane_keys
from aleazero.core.records import Weights
from aleazero.core.struct import replace
from aleazero.games.chess.compiled import after, legal_actions
from aleazero.games.chess.game import Chess, ChessState
from aleazero.games.chess.uci import centipawns
from aleazero.models.build import Model
from aleazero.search.build import build_search
from aleazero.search.reuse import Reusing, regrow
from aleazero.search.settings import SearchConfig, make_knobs
from aleazero.search.tree import NO_EDGE, ROOT, Tree, edge_of, rows

LINE_PLIES = 16  # of a principal variation that are told
EXPLORATION = 1.25


@dataclasses.dataclass(frozen=True)
class Line:
    """A move, what it is worth to the side to move, and what is expected to follow."""

    actions: tuple[int, ...]
    visits: int
    centipawns: int
    mate: int | None  # moves to mate; negative: of the other side; None where none is proved

    @property
    def action(self) -> int:
        """The move."""
        return self.actions[0]


@dataclasses.dataclass(frozen=True)
class Programs:
    """The compiled functions of a network's search with room for some simulations."""

    game: Chess
    model: Model
    simulations: int

    @functools.cached_property
    def config(self) -> SearchConfig:
        """PUCT; no move is left out at the root, and subtrees are kept."""
        return SearchConfig(kind="puct", max_simulations=self.simulations, try_all=True, prove=True, reuse=True)

    def nothing(self) -> Tree:
        """A tree before a first move."""
        return Reusing(build_search(self.game, self.config)).nothing(1).tree

    @functools.cached_property
    def begin(self) -> Any:
        """`(weights, tree, played [2], states [1], allowed [A]) -> tree`, with what is known of the new root."""
        search, knobs = build_search(self.game, self.config), make_knobs(self.config, exploration=EXPLORATION)
        keys = lane_keys(jnp.uint32(0), Role.SEARCH, 0, jnp.arange(1))  # nothing is drawn: any will do

        def begin(weights: Weights, tree: Tree, played: Array, states: Any, allowed: Array) -> Tree:
            first, second = played[:1], played[1:]
            edge = jnp.argmax(tree.actions[ROOT] == first[:, None], -1).astype(jnp.int32)
            child = jnp.maximum(edge_of(tree.children[ROOT], edge), 0)
            next_edge = jnp.argmax(rows(tree.actions, child) == second[:, None], -1).astype(jnp.int32)
            edges = (jnp.where(first < 0, -1, edge), jnp.where(second < 0, -1, next_edge))
            grown = regrow(search, tree, edges, self.model.evaluate, weights, states, keys, knobs)
            priors = grown.priors[ROOT]
            wanted = allowed[jnp.maximum(grown.actions[ROOT], 0)] & (priors >= 0)
            shares = jnp.where(wanted, priors, 0.0)
            shares = shares / jnp.maximum(shares.sum(-1, keepdims=True), 1e-30)
            grown = replace(grown, priors=grown.priors.at[ROOT].set(jnp.where(wanted, shares, NO_EDGE)))
            return search.choose_at_root(grown, knobs)

        return jax.jit(begin)

    @functools.cached_property
    def grow(self) -> Any:
        """`(weights, tree, simulations) -> tree`; the tree that is given is used up."""
        search, knobs = build_search(self.game, self.config), make_knobs(self.config, exploration=EXPLORATION)

        def grow(weights: Weights, tree: Tree, simulations: Array) -> Tree:
            return search.grow(self.model.evaluate, weights, tree, replace(knobs, simulations=simulations))

        return jax.jit(grow, donate_argnums=1)


class Thinker:
    """A network that looks at one position after the other of a game. Not for several threads at once."""

    def __init__(self, game: Chess, model: Model, weights: Weights, simulations: int) -> None:
        self.game = game
        self.simulations = 0  # of this search so far
        self.room = simulations
        self._programs = Programs(game, model, simulations)
        self._weights = jax.device_put(weights)
        self._state: ChessState | None = None
        self.forget()

    def forget(self) -> None:
        """Begins a new game: nothing is kept of the last."""
        self._tree = jax.device_put(self._programs.nothing(), jax.local_devices()[0])

    def compile(self, state: ChessState) -> None:
        """Compiles all that a move needs, the parts side by side; a position of the game is needed to do it with."""
        legal = legal_actions(self.game, state)[0]

        def grow() -> None:
            self._programs.grow(self._weights, jax.tree.map(jnp.copy, self._tree), jnp.int32(0))

        with ThreadPoolExecutor(3) as pool:
            parts = [
                pool.submit(grow),
                pool.submit(self.begin, state),
                pool.submit(after, self.game, state, legal),
            ]
            for part in parts:
                part.result()
        self.grow(1)
        look = self.look()
        look.names(look.lines(1)[0])

    def begin(self, state: ChessState, played: tuple[int, int] | None = None, only: list[int] | None = None) -> None:
        """A position to think about; `played` are the two moves that led from the last one to it, `only` what may be.

        `only` are the moves to look at; all that are legal if left out.
        """
        allowed = np.ones(self.game.spec.num_actions, bool)
        if only is not None:
            allowed[:] = False
            allowed[only] = True
        steps = (-1, -1) if played is None or only is not None else played
        states = jax.device_put(jax.tree.map(lambda x: np.asarray(x)[None], state), jax.local_devices()[0])
        self._state, self.simulations = state, 0
        self._tree = self._programs.begin(
            self._weights, self._tree, jnp.array(steps, jnp.int32), states, jnp.asarray(allowed)
        )

    def grow(self, simulations: int) -> None:
        """So many simulations more, as far as there is room."""
        count = min(simulations, self.room - self.simulations)
        self._tree = self._programs.grow(self._weights, self._tree, jnp.int32(count))
        jax.block_until_ready(self._tree.simulation)
        self.simulations += count

    def look(self) -> Look:
        """What is known now."""
        assert self._state is not None, "begin comes first"
        return Look(self.game, self._state, self._tree)


class Look:
    """A tree on the host: moves in order, lines, mates. A node's number is that in the tree."""

    def __init__(self, game: Chess, state: ChessState, tree: Tree) -> None:
        used = int(tree.next_node)

        def column(array: Array) -> np.ndarray:
            return np.array(np.asarray(array)[:used, 0])  # a copy: the tree's own memory is written again

        self._game, self._state = game, state
        self._actions, self._children = column(tree.actions), column(tree.children)
        self._turn, self._parents = column(tree.turn).astype(np.float64), column(tree.parents)
        stats = column(tree.stats).astype(np.float64)
        self._visits, self._values = stats[:, 0], stats[:, 1] / np.maximum(stats[:, 0], 1)
        self._root_priors = np.array(np.asarray(tree.priors)[ROOT, 0])
        self._ends: dict[int, int] = {}  # proved nodes: plies to mate, of whoever is to play there; odd: it mates
        self._prove()

    def lines(self, count: int) -> list[Line]:
        """The best `count` moves, best first."""
        edges = np.flatnonzero(self._root_priors >= 0)
        order = sorted(edges.tolist(), key=lambda edge: (*self._worth(ROOT, edge), self._root_priors[edge]))
        return [self._line(edge) for edge in reversed(order[-count:])]

    @property
    def depth(self) -> int:
        """Plies to the deepest position looked at."""
        depths = [0] * len(self._parents)
        for node in np.flatnonzero(self._visits[1:] > 0) + 1:
            depths[node] = depths[self._parents[node]] + 1
        return max(depths)

    # ---- mates

    def _prove(self) -> None:
        """Works from mated positions up, children before their parents: these have lower numbers."""
        over = np.unique(-self._children[self._children < 0])
        worth = self._turn[over] * self._values[over]
        mated, mates = over[worth < -0.5], over[worth > 0.5]  # the latter at once: nobody looks further
        self._ends = {int(node): 0 for node in mated} | {int(node): 1 for node in mates}
        waiting = {int(self._parents[node]) for node in self._ends}
        while waiting:
            node = max(waiting)
            waiting.remove(node)
            plies = self._plies(node)
            if plies is not None:
                self._ends[node] = plies
                if node != ROOT:
                    waiting.add(int(self._parents[node]))

    def _plies(self, node: int) -> int | None:
        """How far mate is, if that is sure."""
        legal = self._actions[node] >= 0
        ends = [self._ends.get(abs(int(child))) if child else None for child in self._children[node][legal]]
        won = [plies for plies in ends if plies is not None and plies % 2 == 0]
        if won:
            return 1 + min(won)
        if ends and all(plies is not None for plies in ends):
            return 1 + max(plies for plies in ends if plies is not None)
        return None

    # ---- moves

    def _worth(self, node: int, edge: int) -> tuple[float, float, float]:
        """What edges are ordered by: mates, the near ones first; then visits; then being mated, late rather than soon.

        Between as many visits, the value.
        """
        child = abs(int(self._children[node, edge]))
        plies = self._ends.get(child) if child else None
        if plies is not None:
            return (1.0, -plies, 0.0) if plies % 2 == 0 else (-1.0, plies, 0.0)
        if not child:
            return (0.0, 0.0, 0.0)
        return (0.0, self._visits[child], self._turn[node] * self._values[child])

    def _line(self, edge: int) -> Line:
        actions, node, here = [int(self._actions[ROOT, edge])], ROOT, edge
        child = int(self._children[ROOT, edge])
        while child > 0 and len(actions) < LINE_PLIES:
            node = child
            tried = np.flatnonzero(self._children[node] != 0).tolist()
            if not tried:
                break
            here = max(tried, key=lambda one: self._worth(node, one))
            actions.append(int(self._actions[node, here]))
            child = int(self._children[node, here])
        first = abs(int(self._children[ROOT, edge]))
        plies = self._ends.get(first) if first else None
        value = self._values[first] if first else self._values[ROOT]
        mate = None if plies is None else (plies // 2 + 1 if plies % 2 == 0 else -(plies + 1) // 2)
        return Line(
            tuple(actions), int(self._visits[first]) if first else 0, centipawns(self._turn[ROOT] * value), mate
        )

    def names(self, line: Line) -> list[str]:
        """A line's moves in UCI."""
        state, names = self._state, []
        for action in line.actions:
            names.append(self._game.notation.format_uci(state, action))  # type: ignore[attr-defined]
            state = after(self._game, state, action)
        return names
