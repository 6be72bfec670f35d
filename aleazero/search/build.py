"""The search itself: `plant` a tree, then `descend` to leaves and `absorb` what the network says of them; `result`.

`run` is these in one compiled loop. Whoever evaluates leaves elsewhere (an inference server, a host worker, an engine
that may be told to stop) calls them one at a time. One simulation is one descent and, unless it ends in a finished
game, one evaluation; with exact chance a new chance node is evaluated once per outcome.
Knows the game contract and the evaluator's signature, not who plays or learns.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.game import Game, seat_sign
from aleazero.core.keys import gumbel_noise, lane_words
from aleazero.core.records import Evaluate, Prediction, Weights
from aleazero.core.struct import replace, struct
from aleazero.search import chance, gumbel, proof, puct
from aleazero.search.leaves import Leaves, NewNodes, in_a_row, make_leaves, read
from aleazero.search.plan import Plan, warn_of_plain_walks
from aleazero.search.settings import Knobs, SearchConfig, make_knobs
from aleazero.search.tree import (
    NOWHERE,
    ROOT,
    WORD,
    NodeView,
    Tree,
    back_up,
    edge_of,
    extend_lineage,
    link,
    remember,
    rows,
    view,
    write,
)

NEW = 2  # places at the start of a path for the nodes a simulation may add


@struct
class SearchResult:
    """What a search found, per lane; values from the side of the player to play at the root."""

    action: Array  # [B] int32: the action to play
    edge: Array  # [B] int32: its place among the edges
    actions: Array  # [B, E] int16: the root's edges; -1 where there is none
    policy: Array  # [B, E] float32: the policy target; sums to one
    visits: Array  # [B, E] float32
    values: Array  # [B, E] float32: mean value of each edge, 0 where it was not visited
    priors: Array  # [B, E] float32: the network's (noise included); negative where there is no edge
    value: Array  # [B] float32: the root's
    raw_value: Array  # [B] float32: the network's first opinion of the root
    evaluations: Array  # [B] int32: evaluations that were needed, the root's included


@dataclasses.dataclass(frozen=True)
class Search:
    """A search over one game. Holds no arrays: the tree goes in and comes out of every function."""

    plan: Plan

    def run(self, evaluate: Evaluate, weights: Weights, states: Any, keys: Array, knobs: Knobs) -> SearchResult:
        """Searches from decision states `[B]`; one key per lane. Compiled once, it serves any knobs."""
        tree = self.plant(evaluate, weights, states, keys, knobs)
        return self.result(self.grow(evaluate, weights, tree, knobs), knobs)

    def grow(self, evaluate: Evaluate, weights: Weights, tree: Tree, knobs: Knobs) -> Tree:
        """The tree after `knobs.simulations` more simulations."""
        if self.plan.config.kind == "direct":
            return tree

        def simulate(_: Any, tree: Tree) -> Tree:
            leaves = self.descend(tree, knobs)
            return self.absorb(tree, leaves, evaluate(weights, leaves.observation), knobs)

        budget = jnp.minimum(knobs.simulations, self.plan.config.max_simulations)  # make_knobs refuses more
        grown: Tree = jax.lax.fori_loop(0, -(-budget // self.plan.in_flight), simulate, tree)
        return grown

    def plant(self, evaluate: Evaluate, weights: Weights, states: Any, keys: Array, knobs: Knobs) -> Tree:
        """A tree that holds only its evaluated roots. Where chance is sampled, it is reseeded first."""
        game, kind = self.plan.game, self.plan.config.kind
        words, noise_words, action_words, *fresh = lane_words(keys, 3 + jax.random.key_data(keys).shape[-1])
        if game.spec.chance == "sampled":
            fresh_keys = jax.random.wrap_key_data(jnp.stack(fresh, -1), impl=jax.random.key_impl(keys))
            states = jax.vmap(game.reseed)(states, fresh_keys)
        prediction = evaluate(weights, jax.vmap(game.observe)(states))
        priors, actions = self.plan.decision_edges(prediction.logits, jax.vmap(game.legal_list)(states))
        bonus = jnp.zeros_like(priors)
        if kind == "gumbel":
            scale = jnp.broadcast_to(knobs.gumbel_scale, noise_words.shape)
            bonus = scale[:, None] * gumbel_noise(noise_words, priors.shape[-1])
        elif kind == "puct":
            priors = puct.noisy_priors(noise_words, priors, knobs)
        sign = seat_sign(states.to_play)
        value = sign * prediction.value.astype(jnp.float32)
        tree = empty_tree(self.plan, words, action_words, bonus, value)
        tree = replace(
            tree,
            states=tree.states.at[ROOT].set(jax.vmap(game.pack)(states)),
            turn=tree.turn.at[ROOT].set(sign.astype(jnp.int8)),
            actions=tree.actions.at[ROOT].set(actions),
            priors=tree.priors.at[ROOT].set(priors),
            raw=tree.raw.at[ROOT].set(value),
            stats=tree.stats.at[ROOT].set(jnp.stack([jnp.ones_like(value), value], -1)),
            past=jax.vmap(game.past_keys)(states) if game.past_keys else tree.past,
        )
        return self.choose_at_root(tree, knobs)

    # ---- descend

    def descend(self, tree: Tree, knobs: Knobs) -> Leaves:
        """Walks from the root along the edges the nodes remember, to where the tree ends."""
        if self.plan.fused(tree.words.shape[0]):
            from aleazero.search import kernels  # not every JAX has the compiler that they need

            there, parent, edge, child = kernels.descend(
                tree, self._dues(tree, knobs), self.plan.config.least_range, interpret=self.plan.interpreted
            )
            none = jnp.zeros((0, *parent.shape), jnp.int32)
            return make_leaves(self.plan, tree, there, parent, edge, jnp.maximum(-child, 0), none, jnp.int32(0))
        there, edge, child = self._set_out(tree, knobs)
        root = jnp.full(edge.shape, ROOT, jnp.int32)
        # A path starts with the nodes this simulation may add, so that they too choose their first edge; then the
        # root; then what the walk meets.
        new = tree.next_node + self.plan.slabs * jnp.arange(self.plan.in_flight)[:, None]
        path = jnp.full((self.plan.num_nodes + self.plan.stride + NEW, *root.shape), ROOT, jnp.int32)
        path = path.at[0].set(new).at[NEW - 1].set(new + self.plan.slabs - 1)

        def goes_on(carry: tuple[Array, Array, Array, Array]) -> Array:
            return (carry[2] > 0).any()

        def stride(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            path, node, child, length = carry
            steps = []
            for _ in range(self.plan.stride):
                node = jnp.where(child > 0, child, node)
                child = jnp.where(child > 0, rows(tree.next_child, node), child)
                steps.append(node)
            return (
                jax.lax.dynamic_update_slice(path, jnp.stack(steps), (length, 0, 0)),
                node,
                child,
                length + self.plan.stride,
            )

        path, parent, child, length = jax.lax.while_loop(goes_on, stride, (path, root, child, jnp.int32(NEW + 1)))
        edge = jnp.where(parent == ROOT, edge, rows(tree.next_edge, parent))
        return make_leaves(self.plan, tree, there, parent, edge, jnp.maximum(-child, 0), path, length)

    def _dues(self, tree: Tree, knobs: Knobs) -> Array | None:
        """What `[K, B]` a Gumbel root chooses by: it depends on the budget, so its choice is not remembered."""
        if self.plan.config.kind != "gumbel":
            return None
        return gumbel.due_visits(tree.priors[ROOT], tree.simulation, knobs, self.plan.in_flight)

    def _set_out(self, tree: Tree, knobs: Knobs) -> tuple[Array, Array, Array]:
        """Whether descents set out, the root's edges they take, and where those lead, `[K, B]` each."""
        dues = self._dues(tree, knobs)
        if dues is None:
            edge = tree.next_edge[ROOT][None]
            return jnp.ones(edge.shape, bool), edge, tree.next_child[ROOT][None]
        root = view(tree, jnp.full(tree.words.shape, ROOT, jnp.int32))
        edges, there = gumbel.take_edges(root, tree.root_bonus, list(dues), self.plan.config.least_range)
        children = [jnp.where(goes, edge_of(root.children, edge), 0) for edge, goes in zip(edges, there, strict=True)]
        return jnp.stack(there), jnp.stack(edges), jnp.stack(children)

    # ---- absorb

    def absorb(self, tree: Tree, leaves: Leaves, prediction: Prediction, knobs: Knobs) -> Tree:
        """The tree with the leaves added, one visit more along each lane's path, and the path's next edges chosen.

        From here on the tree's arrays are only written, then read: all that is needed of the old tree is in `leaves`.
        The barrier keeps the compiler to that order; otherwise it would copy whole arrays to read the old ones late.
        """
        leaves, prediction = jax.lax.optimization_barrier((leaves, prediction))  # type: ignore[no-untyped-call]
        fresh = leaves.there & (leaves.revisit == 0)
        nodes, value, asked = self._new_nodes(tree, leaves, prediction)
        first = nodes.at - (self.plan.slabs - 1)
        top = jnp.where(leaves.passes, first, nodes.links)  # what hangs below the parent's edge
        tree = replace(
            tree,
            children=link(
                tree.children, leaves.parent, leaves.edge, jnp.where(fresh, top, -leaves.revisit), leaves.there
            ),
        )
        tree = self._write(tree, tree.next_node, nodes)
        brought = jnp.where(fresh, value, leaves.known)
        tree = replace(
            tree,
            next_node=tree.next_node + self.plan.in_flight * self.plan.slabs,
            evaluations=tree.evaluations + jnp.where(fresh, asked, 0).sum(0),
            low=jnp.minimum(tree.low, jnp.where(leaves.there, brought, jnp.inf).min(0)),
            high=jnp.maximum(tree.high, jnp.where(leaves.there, brought, -jnp.inf).max(0)),
            simulation=tree.simulation + self.plan.in_flight,
        )
        leaf = jnp.where(fresh, nodes.at, leaves.revisit)
        if self.plan.fused(tree.words.shape[0]):
            return self._visit_and_choose(tree, jnp.where(leaves.there, leaf, NOWHERE), brought, knobs)
        own = nodes.lineage[self.plan.slabs - 1 :: self.plan.slabs]
        lines = jnp.where(fresh[..., None], own, jnp.where(leaves.there[..., None], leaves.line, jnp.uint32(0)))
        for k in range(self.plan.in_flight):
            tree = self._visit(tree, leaf[k], lines[k], brought[k])
        return self._choose_on_path(tree, leaves.path, leaves.length, knobs)

    def _new_nodes(self, tree: Tree, leaves: Leaves, prediction: Prediction) -> tuple[NewNodes, Array, Array]:
        """The slabs that simulations add, the leaves' values `[K, B]`, and their evaluations `[K, B]`."""
        plan, leaf, lanes = self.plan, leaves.state, leaves.parent.shape
        value, logits, outcome_values, asked = read(plan, leaves, prediction)
        priors, actions = plan.decision_edges(logits, leaves.legal)
        turn = seat_sign(leaf.to_play)
        if plan.stops_at_chance:
            lane = leaf.is_chance[:, None]
            probs, outcomes = plan.chance_edges(leaf)
            priors, actions = jnp.where(lane, probs, priors), jnp.where(lane, outcomes, actions)
            turn = jnp.where(leaf.is_chance, 0.0, turn)
        first = tree.next_node + jnp.broadcast_to(plan.slabs * jnp.arange(plan.in_flight)[:, None], lanes)
        at = first + plan.slabs - 1
        links = jnp.where(leaves.settled.reshape(lanes), -at, at)
        line = extend_lineage(leaves.line, at, leaves.there & (leaves.revisit == 0))
        slabs = {
            "states": jax.vmap(plan.game.pack)(leaf),
            "turn": turn,
            "actions": actions,
            "priors": priors,
            "children": jnp.zeros(priors.shape, jnp.int32),
            "raw": value,
            "lineage": in_a_row(line),
            "parents": in_a_row(leaves.parent),
        }
        slabs = {name: field.reshape(1, *lanes, *field.shape[1:]) for name, field in slabs.items()}
        if plan.slabs == 2:
            slabs = self._below_middle(first, links, slabs, leaves)
        # Simulation by simulation, as they would come one after the other.
        in_turn = {name: in_a_row(x.swapaxes(0, 1)) for name, x in slabs.items()}
        words = plan.chance_words(tree.words, tree.simulation)
        nodes = NewNodes(at=at, links=links, outcome_values=outcome_values, chance_words=words, **in_turn)
        return nodes, value.reshape(lanes), asked.reshape(lanes)

    def _below_middle(self, first: Array, links: Array, leaf: dict[str, Array], leaves: Leaves) -> dict[str, Array]:
        """The leaf's slab behind that of the chance node it is reached through, in lanes that pass through one."""
        plan, passes, lanes = self.plan, leaves.passes, leaves.parent.shape
        probs, outcomes = plan.chance_edges(leaves.middle)
        line = extend_lineage(leaves.line, first, passes & leaves.there)
        edges = jnp.arange(plan.num_edges)[None, None]
        below = jnp.where(edges == leaves.outcome[..., None], links[..., None], 0)
        middle = {
            "states": jax.vmap(plan.game.pack)(leaves.middle),
            "turn": jnp.zeros(lanes, leaf["turn"].dtype),
            "actions": outcomes,
            "priors": probs,
            "children": below,
            "raw": jnp.zeros(lanes, leaf["raw"].dtype),
            "lineage": line,
            "parents": leaves.parent,
        }
        leaf = leaf | {
            "lineage": leaf["lineage"] | jnp.where(passes[..., None], line, jnp.uint32(0))[None],
            "parents": jnp.where(passes, first, leaves.parent)[None],
        }
        return {name: jnp.concatenate([middle[name].reshape(x.shape).astype(x.dtype), x]) for name, x in leaf.items()}

    def _write(self, tree: Tree, first: Array, nodes: NewNodes) -> Tree:
        """Writes the slabs `[S, B, ...]` from node `first` on."""
        fields = ["states", "turn", "actions", "priors", "children", "raw", "lineage", "parents"]
        fields += ["outcome_values"] if self.plan.exact else []
        fields += ["chance_words"] if self.plan.explicit else []
        return replace(tree, **{name: write(getattr(tree, name), getattr(nodes, name), first) for name in fields})

    def _visit(self, tree: Tree, leaf: Array, line: Array, value: Array) -> Tree:
        """Counts a visit to `leaf` `[B]` and its ancestors that brought `value` `[B]`, seat 0's side."""
        if self.plan.exact:
            stats = chance.back_up_exactly(tree, tree.stats, leaf, value)
        else:
            stats = back_up(tree.stats, line, value)
        return replace(tree, stats=stats)

    def _visit_and_choose(self, tree: Tree, leaf: Array, value: Array, knobs: Knobs) -> Tree:
        """`_visit`, and then the choice of edges from leaves `[K, B]` to the root, in one kernel."""
        from aleazero.search import kernels

        def draw(words: Array, visits: Array, probs: Array) -> Array:
            return self.plan.draw(words, visits, probs, lambda p: jnp.cumsum(p, -1))

        stats, next_edge, next_child = kernels.ascend(
            tree, leaf, value, self._score, knobs.exploration, draw if self.plan.explicit else None,
            interpret=self.plan.interpreted,
        )  # fmt: skip
        return replace(tree, stats=stats, next_edge=next_edge, next_child=next_child)

    # ---- choosing edges

    def _score(self, node: NodeView, exploration: Array) -> Array:
        """`[*, E]`: the edge with the greatest is followed, away from a Gumbel root."""
        config = self.plan.config
        if config.kind == "gumbel":
            return gumbel.score(node, config.least_range)
        return puct.score(node, exploration, config.max_simulations // 4 if config.try_all else 0)

    def choose_at_root(self, tree: Tree, knobs: Knobs) -> Tree:
        """Lets the root choose its next edge; needed whenever its priors change. A Gumbel root chooses each time."""
        if self.plan.config.kind == "gumbel":
            return tree
        root = jnp.full((1, *tree.words.shape), ROOT, jnp.int32)
        next_edge, next_child = remember(tree.next_edge, tree.next_child, root, *self._choose(tree, root, knobs))
        return replace(tree, next_edge=next_edge, next_child=next_child)

    def _choose_on_path(self, tree: Tree, path: Array, length: Array, knobs: Knobs) -> Tree:
        """Lets every node on the path choose its next edge, a stretch of the path at a time."""

        def goes_on(carry: tuple[Array, Array, Array]) -> Array:
            return carry[2] < length

        def stride(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            next_edge, next_child, at = carry
            nodes = in_a_row(jax.lax.dynamic_slice_in_dim(path, at, self.plan.stride))
            return *remember(next_edge, next_child, nodes, *self._choose(tree, nodes, knobs)), at + self.plan.stride

        next_edge, next_child, _ = jax.lax.while_loop(goes_on, stride, (tree.next_edge, tree.next_child, jnp.int32(0)))
        return replace(tree, next_edge=next_edge, next_child=next_child)

    def _choose(self, tree: Tree, node: Array, knobs: Knobs) -> tuple[Array, Array]:
        """The edges that nodes `[L, B]` follow next, and where they lead."""
        here = view(tree, node)
        edge = _argmax(self._score(here, knobs.exploration))
        if self.plan.explicit:
            words, probs = rows(tree.chance_words, node), here.priors[..., : self.plan.num_outcomes]
            edge = jnp.where(here.is_chance, self.plan.draw(words, here.node_visits, probs), edge)
        return edge, edge_of(here.children, edge)

    # ---- result

    def result(self, tree: Tree, knobs: Knobs) -> SearchResult:
        """What the tree says of its roots."""
        root = view(tree, jnp.full(tree.words.shape, ROOT, jnp.int32))
        if self.plan.config.kind == "gumbel":
            least = self.plan.config.least_range
            policy = gumbel.improved_policy(root, least)
            edge = gumbel.greatest(gumbel.best_score(root, tree.root_bonus, least))
        else:
            policy = puct.policy(root)
            edge = puct.choose(tree.action_words, policy, root.priors, knobs.temperature)
        if self.plan.config.prove:
            edge = proof.choose(tree, edge, root.visits)
        actions = tree.actions[ROOT]
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
    """A search over a game, its settings checked against the game's facts; on a GPU, after a try of the kernels."""
    config.check(game.spec)
    plan = Plan(game, config)
    return Search(dataclasses.replace(plan, kernels=_has_kernels(plan)))


def _has_kernels(plan: Plan) -> bool:
    """Whether walks are kernels: on a GPU that runs them, but for expectations, whose values differ by level."""
    if plan.exact or plan.config.kind not in ("puct", "gumbel"):
        return False
    if plan.config.kernels != "auto" or jax.default_backend() != "gpu":
        return plan.interpreted
    problem = _problem_here(plan)
    if problem:
        warn_of_plain_walks(problem)
    return not problem


@functools.cache
def _problem_here(plan: Plan) -> str:
    """Try the kernels once in a process: some callers build the same search again and again."""
    return kernels_problem(plan)


def kernels_problem(plan: Plan) -> str:
    """What goes wrong where kernels visit trees that have only a root; empty where nothing does."""
    config = dataclasses.replace(plan.config, max_simulations=8, reuse=False, max_nodes=None)  # a small tree is enough
    search, knobs, lanes = Search(Plan(plan.game, config, kernels=True)), make_knobs(config), 3

    def visit() -> tuple[Array, Array, Array]:
        from aleazero.search import kernels

        words, value = jnp.zeros(lanes, jnp.uint32), jnp.full(lanes, 0.5)
        tree = empty_tree(search.plan, words, words, jnp.zeros((lanes, search.plan.num_edges)), value)
        tree = replace(
            tree,
            turn=tree.turn.at[ROOT].set(1),
            priors=tree.priors.at[ROOT].set(1 / search.plan.num_edges),
            stats=tree.stats.at[ROOT].set(jnp.stack([jnp.ones(lanes), value], -1)),
        )
        dues = search._dues(tree, knobs)
        there, node, _, _ = kernels.descend(tree, dues, config.least_range, interpret=search.plan.interpreted)
        leaf = jnp.where(there, node, NOWHERE)
        tree = search._visit_and_choose(tree, leaf, jnp.broadcast_to(value, leaf.shape), knobs)
        return there, leaf, tree.stats[ROOT]

    try:
        there, leaf, stats = (np.asarray(array) for array in jax.jit(visit)())
    except Exception as error:  # whatever it is, plain walks do without it
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
        return f"JAX {jax.__version__} does not run kernels here ({why})"
    visits = 1 + there.sum(0)
    right = there[0].all() and (leaf[there] == ROOT).all() and (stats == np.stack([visits, visits / 2], -1)).all()
    return "" if right else f"with JAX {jax.__version__} kernels give wrong numbers here"


def empty_tree(plan: Plan, words: Array, action_words: Array, bonus: Array, value: Array) -> Tree:
    """Room for a tree. `value` is what is known of the root: the range of values starts there."""
    n, b, e = plan.num_nodes, words.shape[0], plan.num_edges
    return Tree(
        states=jnp.zeros((n, b, plan.game.packed_size), jnp.uint8),
        turn=jnp.zeros((n, b), jnp.int8),
        actions=jnp.zeros((n, b, e), jnp.int16),
        priors=jnp.zeros((n, b, e), jnp.float32),
        children=jnp.zeros((n, b, e), jnp.int32),
        outcome_values=jnp.zeros((n, b, e) if plan.exact else (0,), jnp.float32),
        raw=jnp.zeros((n, b), jnp.float32),
        stats=jnp.zeros((n, b, 2), jnp.float32),
        lineage=_root_lineage((n, b, n // WORD if plan.lineages(b) else 0)),
        parents=jnp.zeros((n, b), jnp.int32),
        chance_words=jnp.zeros((n, b) if plan.explicit else (0,), jnp.uint32),
        next_edge=jnp.zeros((n, b), jnp.int32),
        next_child=jnp.zeros((n, b), jnp.int32),
        low=value,
        high=value,
        next_node=jnp.int32(ROOT + 1),
        simulation=jnp.int32(0),
        evaluations=jnp.ones(b, jnp.int32),
        past=jnp.zeros((b, plan.past, 2), jnp.uint32),
        root_bonus=bonus,
        words=words,
        action_words=action_words,
    )


def _root_lineage(shape: tuple[int, ...]) -> Array:
    """Lineages of a tree with a root alone. Made by comparison: XLA would work out a scatter while compiling."""
    node, _, word = (jax.lax.broadcasted_iota(jnp.int32, shape, axis) for axis in range(3))
    return ((node == ROOT) & (word == 0)).astype(jnp.uint32)


def _argmax(scores: Array) -> Array:
    return jnp.argmax(scores, -1).astype(jnp.int32)
