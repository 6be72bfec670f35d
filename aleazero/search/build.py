"""The search itself: `plant` a tree, then `descend` to leaves and `absorb` what the network says of them; `result`.

`run` is these in one compiled loop. Whoever evaluates leaves elsewhere (an inference server, a host worker, an engine
that may be told to stop) calls them one at a time. One simulation is one descent and, unless it ends in a finished
game, one evaluation; with exact chance a new chance node is evaluated once per outcome.
Knows the game contract and the evaluator's signature, not who plays or learns.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.game import Game, seat_sign
from aleazero.core.keys import lane_words
from aleazero.core.records import Evaluate, Prediction, Weights
from aleazero.core.struct import replace, struct
from aleazero.search import chance, gumbel, puct
from aleazero.search.direct import edge_priors, keep_best
from aleazero.search.settings import Knobs, SearchConfig
from aleazero.search.tree import NO_EDGE, WORD, NodeView, Tree, back_up, edge_of, extend_lineage, link, remember, rows, view, write


_STRIDE = 16  # levels walked, or chosen for, at a time: few enough to waste little, enough to make few kernels
_NEW = 2  # places at the start of a path for the nodes a simulation may add


@struct
class Leaves:
    """Where a descent ended, per lane, and what must be evaluated there."""

    parent: Array  # [B] int32: the node whose edge was followed last
    edge: Array  # [B] int32: that edge
    revisit: Array  # [B] int32: the finished game it ends in, if it was known already; else 0
    state: Any  # the new node's state
    middle: Any  # the new chance node before it, where one is passed through; else None
    passes: Array  # [B] bool: whether one is
    outcome: Array  # [B] int32: the outcome drawn there
    observation: Array  # [B * R, ...]: the rows to evaluate, R a lane (1, or one per outcome with exact chance)
    row_values: Array  # [B * R] float32: the result of rows where the game is over, seat 0's side
    row_signs: Array  # [B * R] float32: turns the evaluation into seat 0's side; 0 where the game is over
    path: Array  # [., B] int32: the new nodes, then the path from the root; lanes that end early repeat their last node
    length: Array  # [] int32: how much of it is filled


@struct
class SearchResult:
    """What a search found, per lane; values from the side of the player to play at the root."""

    action: Array  # [B] int32: the action to play
    edge: Array  # [B] int32: its place among the edges
    actions: Array  # [B, E] int16: the root's edges; -1 where there is none
    policy: Array  # [B, E] float32: the policy target; sums to one
    visits: Array  # [B, E] float32
    values: Array  # [B, E] float32: mean value of each edge, 0 where it was not visited
    priors: Array  # [B, E] float32: the network's (noise included); NO_EDGE where there is no edge
    value: Array  # [B] float32: the root's
    raw_value: Array  # [B] float32: the network's first opinion of the root
    evaluations: Array  # [B] int32: rows the network was asked for, the root's included


@dataclasses.dataclass(frozen=True)
class Search:
    """A search over one game. Holds no arrays: the tree goes in and comes out of every function."""

    game: Game
    config: SearchConfig

    def run(
        self, evaluate: Evaluate, weights: Weights, states: Any, keys: Array, knobs: Knobs, *, seeded: bool = False
    ) -> SearchResult:
        """Searches from decision states `[B]`; one key per lane. Compile it once, for any knobs."""
        tree = self.grow(evaluate, weights, self.plant(evaluate, weights, states, keys, knobs, seeded=seeded), knobs)
        return self.result(tree, knobs)

    def grow(self, evaluate: Evaluate, weights: Weights, tree: Tree, knobs: Knobs) -> Tree:
        """The tree after `knobs.simulations` more simulations."""

        def simulate(_: Any, tree: Tree) -> Tree:
            leaves = self.descend(tree, knobs)
            return self.absorb(tree, leaves, evaluate(weights, leaves.observation), knobs)

        budget = jnp.minimum(knobs.simulations, self.config.max_simulations)  # make_knobs refuses more
        if self.config.kind == "direct":
            return tree
        return jax.lax.fori_loop(0, budget, simulate, tree)

    # ---- plant

    def plant(
        self, evaluate: Evaluate, weights: Weights, states: Any, keys: Array, knobs: Knobs, *, seeded: bool = False
    ) -> Tree:
        """A tree that holds only its evaluated roots. Chance that is sampled is reseeded unless `seeded`."""
        game, spec = self.game, self.game.spec
        if spec.chance == "sampled" and not seeded:
            states = jax.vmap(lambda s, k: game.reseed(s, jax.random.fold_in(k, 3)))(states, keys)
        prediction = evaluate(weights, jax.vmap(game.observe)(states))
        priors, actions = self._edges(prediction.logits, jax.vmap(game.legal_list)(states))
        bonus = jnp.zeros_like(priors)
        noise_keys = jax.vmap(lambda key: jax.random.fold_in(key, 1))(keys)
        if self.config.kind == "gumbel":
            noise = jax.vmap(lambda key: jax.random.gumbel(key, priors.shape[1:]))(noise_keys)
            bonus = knobs.gumbel_scale * noise
        elif self.config.kind == "puct":
            priors = puct.noisy_priors(noise_keys, priors, knobs)
        sign = seat_sign(states.to_play)
        value = sign * prediction.value.astype(jnp.float32)
        tree = self._empty(keys, bonus, value)
        tree = replace(
            tree,
            states=write(tree.states, jax.vmap(game.pack)(states), jnp.int32(0)),
            turn=write(tree.turn, sign, jnp.int32(0)),
            actions=write(tree.actions, actions, jnp.int32(0)),
            priors=write(tree.priors, priors, jnp.int32(0)),
            raw=write(tree.raw, value, jnp.int32(0)),
            stats=write(tree.stats, jnp.stack([jnp.ones_like(value), value], -1), jnp.int32(0)),
            lineage=tree.lineage.at[0, :, 0].set(1),
        )
        return self.choose_at_root(tree, knobs)

    def choose_at_root(self, tree: Tree, knobs: Knobs) -> Tree:
        """Lets the root choose its next edge; needed whenever its priors change."""
        root = jnp.zeros((1, tree.words.shape[0]), jnp.int32)
        next_edge, next_child = remember(tree.next_edge, tree.next_child, root, *self._choose_edges(tree, root, knobs))
        return replace(tree, next_edge=next_edge, next_child=next_child)

    @property
    def num_nodes(self) -> int:
        """N: room for the root and every simulation's slabs (twice, where subtrees are kept), in whole words."""
        room = self.config.max_simulations if self.config.kind != "direct" else 0
        slabs = 1 + self.slabs * room * (2 if self.config.reuse else 1)
        return -(-slabs // WORD) * WORD

    @property
    def num_edges(self) -> int:
        """E: room for every legal action (or the best `max_edges`) and every chance outcome."""
        spec = self.game.spec
        kept = min(spec.max_legal, self.config.max_edges or spec.max_legal)
        return max(kept, spec.num_chance_outcomes)

    @property
    def _explicit(self) -> bool:
        return self.game.spec.chance == "explicit"

    @property
    def _exact(self) -> bool:
        return self.config.chance == "exact"

    @property
    def _stops_at_chance(self) -> bool:
        """Whether a new chance node is itself a leaf, or is passed through by drawing an outcome."""
        return self._explicit and (self._exact or self.game.spec.afterstate_values)

    @property
    def slabs(self) -> int:
        """Nodes a simulation may add: a decision, and the chance node passed through on the way."""
        return 2 if self._explicit and not self._stops_at_chance else 1

    def _empty(self, keys: Array, bonus: Array, value: Array) -> Tree:
        n, b, e = self.num_nodes, keys.shape[0], self.num_edges
        return Tree(
            states=jnp.zeros((n, b, self.game.packed_size), jnp.uint8),
            turn=jnp.zeros((n, b), jnp.int8),
            actions=jnp.zeros((n, b, e), jnp.int16),
            priors=jnp.zeros((n, b, e), jnp.float32),
            children=jnp.zeros((n, b, e), jnp.int32),
            outcome_values=jnp.zeros((n, b, e) if self._exact else (0,), jnp.float32),
            raw=jnp.zeros((n, b), jnp.float32),
            stats=jnp.zeros((n, b, 2), jnp.float32),
            lineage=jnp.zeros((n, b, n // WORD), jnp.uint32),
            parents=jnp.zeros((n, b), jnp.int32),
            next_edge=jnp.zeros((n, b), jnp.int32),
            next_child=jnp.zeros((n, b), jnp.int32),
            low=value,
            high=value,
            next_node=jnp.int32(1),
            simulation=jnp.int32(0),
            evaluations=jnp.ones(b, jnp.int32),
            root_bonus=bonus,
            words=lane_words(jax.vmap(lambda key: jax.random.fold_in(key, 0))(keys)),
            keys=keys,
        )

    def _edges(self, logits: Array, legal: Array) -> tuple[Array, Array]:
        """Priors and actions of a decision node's edges, `[B, E]`."""
        priors, actions = edge_priors(logits, legal), legal
        if self.config.max_edges is not None:
            priors, actions = keep_best(priors, actions, self.config.max_edges)
        pad = self.num_edges - priors.shape[-1]
        if pad:
            priors = jnp.pad(priors, ((0, 0), (0, pad)), constant_values=NO_EDGE)
            actions = jnp.pad(actions, ((0, 0), (0, pad)), constant_values=-1)
        return priors, actions

    # ---- descend

    def descend(self, tree: Tree, knobs: Knobs) -> Leaves:
        """Walks from the root along the edges the nodes remember, to where the tree ends."""
        lanes = tree.words.shape[0]
        root = jnp.zeros(lanes, jnp.int32)
        if self.config.kind == "gumbel":  # the root's choice depends on the budget, so it is not remembered
            here = view(tree, root)
            edge = _argmax(gumbel.root_score(here, tree.root_bonus, tree.simulation, knobs))
            child = edge_of(here.children, edge)
        else:
            edge, child = tree.next_edge[0], tree.next_child[0]
        # The path starts with the nodes this simulation may add, so that they too will choose their first edge.
        path = jnp.zeros((_STRIDE + self.num_nodes, lanes), jnp.int32)
        path = path.at[0].set(tree.next_node).at[1].set(tree.next_node + self.slabs - 1)

        def goes_on(carry: tuple[Array, Array, Array, Array]) -> Array:
            return (carry[2] > 0).any()

        def stride(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            path, node, child, length = carry
            steps = []
            for _ in range(_STRIDE):
                node = jnp.where(child > 0, child, node)
                child = jnp.where(child > 0, rows(tree.next_child, node), child)
                steps.append(node)
            return jax.lax.dynamic_update_slice(path, jnp.stack(steps), (length, 0)), node, child, length + _STRIDE

        path, parent, child, length = jax.lax.while_loop(goes_on, stride, (path, root, child, jnp.int32(_NEW + 1)))
        edge = jnp.where(parent > 0, rows(tree.next_edge, parent), edge)
        return self._leaves(tree, parent, edge, -child, path, length)

    def _choose_edges(self, tree: Tree, node: Array, knobs: Knobs) -> tuple[Array, Array]:
        """The edges that nodes `[L, B]` follow next, and where they lead."""
        here = view(tree, node)
        edge = _argmax((gumbel.score if self.config.kind == "gumbel" else puct.score)(here, knobs))
        if self._explicit:
            probs = here.priors[..., : self.game.spec.num_chance_outcomes]
            edge = jnp.where(here.is_chance, self._draw(tree.words, node, here.node_visits, probs), edge)
        return edge, edge_of(here.children, edge)

    def _draw(self, words: Array, node: Array, visit: Array, probs: Array) -> Array:
        return chance.draw(words, node, visit, probs, evenly=self.config.chance_draw == "quota")

    def _leaves(
        self, tree: Tree, parent: Array, edge: Array, revisit: Array, path: Array, length: Array
    ) -> Leaves:
        game = self.game
        states = jax.vmap(game.unpack)(rows(tree.states, parent))
        action = edge_of(rows(tree.actions, parent), edge)
        acted = jax.vmap(game.apply_action)(states, action.astype(jnp.int32))
        never = jnp.zeros(edge.shape, bool)
        middle, passes, outcome = None, never, edge
        if not self._explicit:
            leaf = acted
        else:
            from_chance = rows(tree.turn, parent) == 0
            middle = _select(from_chance, states, acted)
            if self._stops_at_chance:
                rolls = from_chance
            else:
                passes = ~from_chance & acted.is_chance
                rolls = from_chance | passes
                first = self._draw(
                    tree.words, jnp.broadcast_to(tree.next_node, edge.shape), jnp.zeros_like(edge), self._probs(middle)
                )
                outcome = jnp.where(from_chance, edge, first)
            leaf = _select(rolls, jax.vmap(game.apply_chance)(middle, outcome), middle)
        evaluated = self._all_outcomes(leaf) if self._exact else leaf
        final = evaluated.returns[:, 0] / game.spec.scale
        signs = jnp.where(evaluated.terminated, 0.0, seat_sign(evaluated.to_play))
        return Leaves(
            parent=parent,
            edge=edge,
            revisit=jnp.maximum(revisit, 0),
            state=leaf,
            middle=middle if self.slabs == 2 else None,
            passes=passes,
            outcome=outcome,
            observation=jax.vmap(game.observe)(evaluated),
            row_values=jnp.where(evaluated.terminated, final, 0.0),
            row_signs=signs,
            path=path,
            length=length,
        )

    def _probs(self, states: Any) -> Array:
        return jax.vmap(self.game.chance_probs)(states)

    def _all_outcomes(self, leaf: Any) -> Any:
        """`[B * C]` states: every outcome of lanes at a chance state, the leaf itself C times in the others."""
        outcomes = jnp.arange(self.game.spec.num_chance_outcomes)
        rolled = jax.vmap(lambda s: jax.vmap(lambda o: self.game.apply_chance(s, o))(outcomes))(leaf)
        spread = jax.tree.map(lambda x: jnp.broadcast_to(x[:, None], (x.shape[0], outcomes.size, *x.shape[1:])), leaf)
        mixed = jax.vmap(lambda c, r, s: jax.tree.map(lambda x, y: jnp.where(c, x, y), r, s))(
            leaf.is_chance, rolled, spread
        )
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), mixed)

    # ---- absorb

    def absorb(self, tree: Tree, leaves: Leaves, prediction: Prediction, knobs: Knobs) -> Tree:
        """The tree with the leaves added and one visit more along each lane's path."""
        game = self.game
        leaf, fresh = leaves.state, leaves.revisit == 0
        values = leaves.row_values + leaves.row_signs * prediction.value.astype(jnp.float32)
        logits = prediction.logits
        asked = leaves.row_signs != 0
        if self._exact:
            c = game.spec.num_chance_outcomes
            values, logits, asked = values.reshape(-1, c), logits.reshape(-1, c, logits.shape[-1])[:, 0], asked.reshape(-1, c)
            asked = asked.at[:, 1:].set(asked[:, 1:] & leaf.is_chance[:, None])
            outcome_values = values
            value = jnp.where(leaf.is_chance, (self._probs(leaf) * values).sum(-1), values[:, 0])
        else:
            outcome_values, value, asked = None, values, asked[:, None]
        priors, actions = self._edges(logits, jax.vmap(game.legal_list)(leaf))
        turn = seat_sign(leaf.to_play)
        if self._stops_at_chance:
            priors, actions, turn = self._chance_edges(leaf, leaf.is_chance, priors, actions, turn)

        at = tree.next_node + (self.slabs - 1)
        parent, child = leaves.parent, jnp.where(leaf.terminated, -at, at)
        tree = replace(tree, next_node=tree.next_node + self.slabs)
        if self.slabs == 2:
            passes = leaves.passes & fresh
            tree = self._pass_through(tree, leaves, passes, at - 1)
            children = link(tree.children, parent, leaves.edge, jnp.where(fresh, jnp.where(passes, at - 1, child), -leaves.revisit))
            tree = replace(tree, children=children)
            parent = jnp.where(passes, at - 1, parent)
            tree = self._add(tree, at, parent, fresh, leaf, turn, priors, actions, value, outcome_values)
            own = jnp.where((jnp.arange(self.num_edges) == leaves.outcome[:, None]) & passes[:, None], child[:, None], 0)
            tree = replace(tree, children=write(tree.children, own, at - 1))
        else:
            children = link(tree.children, parent, leaves.edge, jnp.where(fresh, child, -leaves.revisit))
            tree = replace(tree, children=children)
            tree = self._add(tree, at, parent, fresh, leaf, turn, priors, actions, value, outcome_values)
        tree = self._visit(tree, jnp.where(fresh, at, leaves.revisit), value, fresh, asked)
        return self._look_ahead(tree, leaves.path, leaves.length, knobs)

    def _look_ahead(self, tree: Tree, path: Array, length: Array, knobs: Knobs) -> Tree:
        """Lets every node on the path choose its next edge, a stretch of the path at a time."""

        def goes_on(carry: tuple[Array, Array, Array]) -> Array:
            return carry[2] < length

        def choose(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            next_edge, next_child, at = carry
            nodes = jax.lax.dynamic_slice_in_dim(path, at, _STRIDE)
            return *remember(next_edge, next_child, nodes, *self._choose_edges(tree, nodes, knobs)), at + _STRIDE

        next_edge, next_child, _ = jax.lax.while_loop(goes_on, choose, (tree.next_edge, tree.next_child, jnp.int32(0)))
        return replace(tree, next_edge=next_edge, next_child=next_child)

    def _chance_edges(
        self, state: Any, is_chance: Array, priors: Array, actions: Array, turn: Array
    ) -> tuple[Array, Array, Array]:
        """The edges of a chance node, where the state is one: an edge per outcome, nature's probabilities."""
        c, e = self.game.spec.num_chance_outcomes, self.num_edges
        probs = jnp.pad(self._probs(state), ((0, 0), (0, e - c)), constant_values=NO_EDGE)
        outcomes = jnp.where(jnp.arange(e) < c, jnp.arange(e), -1).astype(jnp.int16)
        lane = is_chance[:, None]
        return jnp.where(lane, probs, priors), jnp.where(lane, outcomes, actions), jnp.where(is_chance, 0.0, turn)

    def _pass_through(self, tree: Tree, leaves: Leaves, passes: Array, at: Array) -> Tree:
        """Adds the chance node between the action and the leaf, in lanes that have one."""
        middle = leaves.middle
        blank = jnp.zeros((passes.shape[0], self.num_edges), jnp.int16)
        priors, actions, turn = self._chance_edges(
            middle, jnp.ones_like(passes), blank.astype(jnp.float32), blank, jnp.zeros(passes.shape, jnp.float32)
        )
        zero = jnp.zeros(passes.shape, jnp.float32)
        return self._add(tree, at, leaves.parent, passes, middle, turn, priors, actions, zero, None)

    def _add(
        self, tree: Tree, at: Array, parent: Array, used: Array, state: Any,
        turn: Array, priors: Array, actions: Array, raw: Array, outcome_values: Array | None,
    ) -> Tree:  # fmt: skip
        """Writes one slab: a new node without visits or children."""
        outcomes = tree.outcome_values
        if outcome_values is not None:
            pad = self.num_edges - outcome_values.shape[-1]
            outcomes = write(outcomes, jnp.pad(outcome_values, ((0, 0), (0, pad))), at)
        return replace(
            tree,
            states=write(tree.states, jax.vmap(self.game.pack)(state), at),
            turn=write(tree.turn, turn, at),
            actions=write(tree.actions, actions, at),
            priors=write(tree.priors, priors, at),
            outcome_values=outcomes,
            raw=write(tree.raw, raw, at),
            lineage=write(tree.lineage, extend_lineage(tree.lineage, parent, at, used), at),
            parents=write(tree.parents, parent, at),
        )

    def _visit(self, tree: Tree, leaf: Array, value: Array, fresh: Array, asked: Array) -> Tree:
        """Counts the visit along the path to `leaf` and takes its value into account."""
        known = rows(tree.raw, leaf)  # a finished game's result, where it is visited again
        value = jnp.where(fresh, value, known)
        if self._exact:
            stats = chance.back_up_exactly(tree, tree.stats, leaf, value)
        else:
            stats = back_up(tree.stats, rows(tree.lineage, leaf), value)
        return replace(
            tree,
            stats=stats,
            low=jnp.minimum(tree.low, value),
            high=jnp.maximum(tree.high, value),
            simulation=tree.simulation + 1,
            evaluations=tree.evaluations + jnp.where(fresh, asked.sum(-1, dtype=jnp.int32), 0),
        )

    # ---- result

    def result(self, tree: Tree, knobs: Knobs) -> SearchResult:
        """What the tree says of its roots."""
        root = view(tree, jnp.zeros(tree.words.shape, jnp.int32))
        keys = jax.vmap(lambda key: jax.random.fold_in(key, 2))(tree.keys)
        if self.config.kind == "gumbel":
            policy = gumbel.improved_policy(root)
            edge = _argmax(gumbel.best_score(root, tree.root_bonus))
        else:
            policy = puct.policy(root)
            edge = puct.choose(keys, policy, root.priors, knobs.temperature)
        actions = tree.actions[0]
        return SearchResult(
            action=edge_of(actions, edge).astype(jnp.int32),
            edge=edge,
            actions=actions,
            policy=policy,
            visits=root.visits,
            values=jnp.where(root.visits > 0, root.values, 0.0),
            priors=root.priors,
            value=root.node_value,
            raw_value=root.raw,
            evaluations=tree.evaluations,
        )


def build_search(game: Game, config: SearchConfig) -> Search:
    """A search over a game, its settings checked against the game's facts."""
    config.check(game.spec)
    return Search(game, config)


def _argmax(scores: Array) -> Array:
    return jnp.argmax(scores, -1).astype(jnp.int32)


def _select(condition: Array, yes: Any, no: Any) -> Any:
    """Per lane, one of two batched states."""
    return jax.tree.map(lambda x, y: jnp.where(condition.reshape(-1, *[1] * (x.ndim - 1)), x, y), yes, no)
