"""An independent recount of a finished search tree: every state, sign, prior, visit and sum worked out again.

Works on any game and shares nothing with the search but the tree's fields, so that a wrong sign, a wrong player, a
dropped probability, a stale child or a lost visit shows up as a number that does not match. Plain numpy.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from aleazero.core.records import Evaluate, Weights
from aleazero.search.plan import Plan
from aleazero.search.tree import Tree


def recount(
    plan: Plan, tree: Tree, evaluate: Evaluate, weights: Weights, *,
    lanes: np.ndarray | None = None, root_visits: bool = True,
) -> list[str]:  # fmt: skip
    """What is wrong with a tree grown without root noise; an empty list if nothing is.

    Args:
        plan: the game and settings the tree was grown with.
        tree: the tree.
        evaluate: the evaluator it was grown with.
        weights: and its weights.
        lanes: which lanes to look at; all by default.
        root_visits: whether the root has been visited once a simulation; not so where a subtree was kept.
    """
    arrays = {name: np.asarray(value) for name, value in vars(tree).items() if name in _NODE_FIELDS}
    arrays["past"] = np.asarray(tree.past).swapaxes(0, 1)  # [H, B, 2]
    if not plan.exact:
        del arrays["outcome_values"]
    if lanes is not None:
        arrays = {name: value[:, lanes] for name, value in arrays.items()}
    return _Recount(plan, arrays, evaluate, weights).problems(int(tree.simulation) if root_visits else None)


_NODE_FIELDS = (
    "states",
    "turn",
    "actions",
    "priors",
    "children",
    "outcome_values",
    "stats",
    "parents",
)
_KEY = 8  # bytes of a packed row's position key, at its beginning


class _Recount:
    def __init__(self, plan: Plan, tree: dict[str, np.ndarray], evaluate: Evaluate, weights: Weights) -> None:
        self.plan, self.tree = plan, tree
        self.live = self.tree["stats"][..., 0] > 0  # [N, B]: a node is visited when it is added
        self.states = self._unpack(self.tree["states"])
        self.opinion = self._opinions(evaluate, weights)

    def problems(self, simulations: int | None) -> list[str]:
        """All of them."""
        found = [
            *self._links(),
            *self._turns(),
            *self._priors(),
            *self._visits(),
            *self._sums(),
            *self._draws(),
        ]
        got = self.tree["stats"][0, :, 0] - 1  # without the root's own evaluation
        if simulations is not None and ((got > simulations) | (got < simulations / self.plan.in_flight)).any():
            found.append(f"root visits are {got.tolist()} after {simulations} simulations, its own evaluation left out")
        return found

    # ---- the facts, worked out from packed states alone

    def _unpack(self, packed: np.ndarray) -> Any:
        n, b, _ = packed.shape
        flat = jax.jit(jax.vmap(self.plan.game.unpack))(packed.reshape(n * b, -1))
        return jax.tree.map(lambda x: np.asarray(x).reshape(n, b, *x.shape[1:]), flat)

    def _flat(self, states: Any) -> Any:
        n, b = self.live.shape
        return jax.tree.map(lambda x: x.reshape(n * b, *x.shape[2:]), states)

    def _opinions(self, evaluate: Evaluate, weights: Weights) -> dict[str, np.ndarray]:
        """Value from seat 0's side, result if over, and priors by action, `[N, B, ...]`."""
        game, (n, b) = self.plan.game, self.live.shape
        flat = self._flat(self.states)
        prediction = jax.jit(lambda s: evaluate(weights, jax.vmap(game.observe)(s)))(flat)
        legal = np.asarray(jax.jit(jax.vmap(game.legal_list))(flat))
        signs = np.where(np.asarray(flat.to_play) == 0, 1.0, -1.0)
        final = np.asarray(flat.returns)[:, 0] / game.spec.scale
        value = np.where(np.asarray(flat.terminated), final, signs * np.asarray(prediction.value))
        logits = np.asarray(prediction.logits, np.float64)
        mask = np.zeros(logits.shape, bool)
        rows, places = np.nonzero(legal >= 0)
        mask[rows, legal[rows, places]] = True
        weight = np.where(mask, np.exp(logits - logits.max(-1, keepdims=True)), 0.0)
        priors = weight / np.maximum(weight.sum(-1, keepdims=True), 1e-30)
        return {
            "value": value.reshape(n, b),
            "priors": priors.reshape(n, b, -1),
            "legal": legal.reshape(n, b, -1),
        }

    # ---- what must agree with them

    def _links(self) -> list[str]:
        """Every live node hangs on one edge of its parent, and is what that edge leads to."""
        problems: list[str] = []
        children, parents = self.tree["children"], self.tree["parents"]
        nodes, lanes = np.nonzero(self.live)
        keep = nodes > 0
        nodes, lanes = nodes[keep], lanes[keep]
        above = parents[nodes, lanes]
        hangs = np.abs(children[above, lanes]) == nodes[:, None]
        if (hangs.sum(-1) != 1).any() or not self.live[above, lanes].all():
            wrong = int(nodes[(hangs.sum(-1) != 1) | ~self.live[above, lanes]][0])
            return [f"node {wrong} is not linked by exactly one edge of a live parent"]
        edge = hangs.argmax(-1)
        expected = self._follow(above, lanes, edge)
        stale = (expected != self.tree["states"][nodes, lanes]).any(-1)
        if stale.any():
            problems.append(f"node {int(nodes[stale][0])} does not hold the state its edge leads to")
        over = self.states.terminated[nodes, lanes]
        marked = children[above, lanes, edge] < 0
        if (over != marked).any():
            problems.append(
                f"node {int(nodes[over != marked][0])}: only finished games are linked by a negative number"
            )
        dangling = self._linked() & ~self.live[np.abs(children), np.arange(children.shape[1])[None, :, None]]
        if dangling.any():
            problems.append(f"node {int(np.argwhere(dangling)[0][0])} links to a node that is not there")
        return problems

    def _linked(self) -> np.ndarray:
        return (self.tree["children"] != 0) & self.live[..., None]

    def _follow(self, nodes: np.ndarray, lanes: np.ndarray, edges: np.ndarray) -> np.ndarray:
        """Packed states that edges lead to; a draw behind an action is not made: chance nodes are nodes here."""
        game = self.plan.game
        states = jax.tree.map(lambda x: x[nodes, lanes], self.states)
        actions = self.tree["actions"][nodes, lanes, edges].astype(np.int32)
        after = jax.jit(jax.vmap(game.apply_action))(states, actions)
        if game.seen_before is not None and game.position_key is not None:
            times = self._times(nodes, lanes, np.asarray(jax.jit(jax.vmap(game.position_key))(after)))
            after = jax.jit(jax.vmap(game.seen_before))(after, times)
        acted = jax.jit(jax.vmap(game.pack))(after)
        if not self.plan.explicit:
            return np.asarray(acted)
        rolled = jax.jit(jax.vmap(lambda s, o: game.pack(game.apply_chance(s, o))))(states, actions)
        return np.where(np.asarray(states.is_chance)[:, None], np.asarray(rolled), np.asarray(acted))

    def _times(self, nodes: np.ndarray, lanes: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """How often positions of these keys, below these nodes, were there: on the way from the root, or before it."""
        times = (self.tree["past"][:, lanes] == keys[None]).all(-1).sum(0)
        own = np.ascontiguousarray(self.tree["states"][..., :_KEY]).view(np.uint32)
        at, above = nodes, np.ones(nodes.shape, bool)
        while above.any():
            times += above & (own[at, lanes] == keys).all(-1)
            above &= at != 0
            at = self.tree["parents"][at, lanes]
        return times

    def _turns(self) -> list[str]:
        expected = np.where(self.states.is_chance, 0, np.where(self.states.to_play == 0, 1, -1))
        wrong = self.live & (expected != self.tree["turn"])
        return [f"node {int(np.argwhere(wrong)[0][0])} is given to the wrong player"] if wrong.any() else []

    def _priors(self) -> list[str]:
        decides = self.live & ~self.states.is_chance & ~self.states.terminated
        actions, priors = self.tree["actions"].astype(int), self.tree["priors"]
        by_action = np.take_along_axis(
            self.opinion["priors"], np.clip(actions, 0, self.plan.game.spec.num_actions - 1), -1
        )
        if self.plan.config.max_edges is not None:
            kept = np.where(priors >= 0, by_action, 0.0)
            by_action = kept / np.maximum(kept.sum(-1, keepdims=True), 1e-30)
        wrong = decides[..., None] & (priors >= 0) & (np.abs(priors - by_action) > 1e-4)
        problems = [f"node {int(np.argwhere(wrong)[0][0])} has wrong priors"] if wrong.any() else []
        if self.plan.explicit:
            probs = jax.jit(jax.vmap(self.plan.game.chance_probs))(self._flat(self.states))
            probs = np.asarray(probs).reshape(*self.live.shape, -1)
            stored = np.zeros_like(probs)  # outcomes without an edge must have no chance
            stored[..., : self.plan.num_outcomes] = priors[..., : self.plan.num_outcomes]
            wrong = (self.live & self.states.is_chance)[..., None] & (np.abs(stored - probs) > 1e-6)
            problems += [f"chance node {int(np.argwhere(wrong)[0][0])} has wrong probabilities"] if wrong.any() else []
        missing = decides & (
            (priors >= 0).sum(-1) != np.minimum((self.opinion["legal"] >= 0).sum(-1), self.plan.num_edges)
        )
        if missing.any() and self.plan.config.max_edges is None:
            problems.append(f"node {int(np.argwhere(missing)[0][0])} has not one edge for every legal action")
        return problems

    def _below(self, field: int) -> np.ndarray:
        """The children's visits (0) or sums (1), added up, `[N, B]`."""
        children = np.abs(self.tree["children"])
        stats = self.tree["stats"][children, np.arange(children.shape[1])[None, :, None], field]
        return np.where(self._linked(), stats, 0.0).sum(-1)

    def _own(self) -> np.ndarray:
        """Visits that ended at a node itself: its evaluation, or every one if the game is over there."""
        visits = self.tree["stats"][..., 0]
        passed = self.states.is_chance if not self.plan.stops_at_chance else np.zeros_like(self.live)
        return np.where(self.states.terminated, visits, np.where(passed, 0.0, 1.0))

    def _visits(self) -> list[str]:
        visits, expected = self.tree["stats"][..., 0], self._own() + self._below(0)
        wrong = self.live & (visits != expected)
        if not wrong.any():
            return []
        node, lane = (int(i) for i in np.argwhere(wrong)[0])
        return [
            f"node {node} has {visits[node, lane]:g} visits; its own and its children's are {expected[node, lane]:g}"
        ]

    def _sums(self) -> list[str]:
        stats = self.tree["stats"]
        if self.plan.exact:
            return self._expectations()
        expected = self._own() * self.opinion["value"] + self._below(1)
        wrong = self.live & (np.abs(stats[..., 1] - expected) > 1e-3 * np.maximum(stats[..., 0], 1))
        if not wrong.any():
            return []
        node, lane = (int(i) for i in np.argwhere(wrong)[-1])  # the deepest, where the mistake entered
        return [f"node {node}: values add up to {stats[node, lane, 1]:.5f}, not {expected[node, lane]:.5f}"]

    def _expectations(self) -> list[str]:
        """With exact chance: a chance node's mean is the expectation over its outcomes."""
        stats, children = self.tree["stats"], self.tree["children"]
        means = stats[..., 1] / np.maximum(stats[..., 0], 1)
        below = means[np.abs(children), np.arange(children.shape[1])[None, :, None]]
        values = np.where(children != 0, below, self.tree["outcome_values"])
        expected = (np.maximum(self.tree["priors"], 0) * values).sum(-1)
        wrong = self.live & self.states.is_chance & (np.abs(means - expected) > 1e-4)
        return (
            [f"chance node {int(np.argwhere(wrong)[-1][0])} is not the expectation of its outcomes"]
            if wrong.any()
            else []
        )

    def _draws(self) -> list[str]:
        """Visits to outcomes keep to nature's probabilities, as closely as an even draw must."""
        if not self.plan.explicit or self.plan.config.chance_draw != "quota":
            return []
        c = self.plan.num_outcomes
        children = np.abs(self.tree["children"][..., :c])
        visits = self.tree["stats"][children, np.arange(children.shape[1])[None, :, None], 0]
        visits = np.where(self.tree["children"][..., :c] != 0, visits, 0.0)
        total = visits.sum(-1, keepdims=True)
        wrong = (
            (np.abs(visits - total * self.tree["priors"][..., :c]) > 3.0).any(-1) & self.live & self.states.is_chance
        )
        return (
            [f"chance node {int(np.argwhere(wrong)[0][0])} is not visited by nature's probabilities"]
            if wrong.any()
            else []
        )
