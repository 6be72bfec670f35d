"""What follows from a game and a search's settings before anything runs: sizes, and how nodes get their edges."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aleazero.core.game import Game
from aleazero.core.keys import mix
from aleazero.search import chance
from aleazero.search.direct import edge_priors, keep_best
from aleazero.search.settings import SearchConfig
from aleazero.search.tree import NO_EDGE, WORD

logger = logging.getLogger(__name__)
LARGEST = 2**31 - 1  # places of an array that a kernel can count


@functools.cache
def warn_of_plain_walks(why: str) -> None:
    """Says once why walks on a GPU are no kernels, and what that costs."""
    logger.warning(
        "search.kernels: %s; the search walks without them, and a simulation takes two to four times as long", why
    )


@dataclasses.dataclass(frozen=True)
class Plan:
    """A game and the settings of a search over it."""

    game: Game
    config: SearchConfig
    kernels: bool = False  # whether walks are kernels, where the tree is not too large for them

    @property
    def explicit(self) -> bool:
        """Whether the game has chance states."""
        return self.game.spec.chance == "explicit"

    @property
    def exact(self) -> bool:
        """Whether chance nodes take expectations."""
        return self.config.chance == "exact"

    def fused(self, num_lanes: int) -> bool:
        """Whether walks of so many lanes are kernels, which count places in an array in 32 bits."""
        fits = self.num_nodes * num_lanes * self.num_edges <= LARGEST
        if self.kernels and not fits:
            sizes = f"{num_lanes} games, {self.num_nodes} nodes and {self.num_edges} edges a node"
            warn_of_plain_walks(f"kernels are for smaller trees: {sizes} are over 2^31 places")
        return self.kernels and fits

    @property
    def recalls(self) -> bool:
        """Whether the game asks which positions were there before."""
        return self.game.seen_before is not None

    def lineages(self, num_lanes: int) -> bool:
        """Whether nodes know their ancestors. Kernels walk up by themselves, but do not count positions."""
        return self.recalls or not self.fused(num_lanes)

    @property
    def past(self) -> int:
        """H: how many positions before a root may come again."""
        if self.game.past_keys is None:
            return 0
        return int(jax.eval_shape(self.game.past_keys, self.game.state_like).shape[0])

    @property
    def interpreted(self) -> bool:
        """Whether kernels are run without a GPU, slowly, to see what they do."""
        return self.config.kernels == "interpreted"

    @property
    def stride(self) -> int:
        """Levels walked, or chosen for, at a time: a CPU pays for the work, an accelerator for every operation."""
        return 4 if jax.default_backend() == "cpu" else 16

    @property
    def stops_at_chance(self) -> bool:
        """Whether a new chance node is itself a leaf; otherwise it is passed through by drawing an outcome."""
        return self.explicit and self.config.chance != "sampled"

    @property
    def in_flight(self) -> int:
        """K: descents at a time."""
        return self.config.in_flight

    @property
    def slabs(self) -> int:
        """Nodes a simulation may add: a decision, and the chance node passed through on the way."""
        return self.config.slabs(self.game.spec)

    @property
    def num_nodes(self) -> int:
        """N, in whole words: room for the root and every simulation's slabs; for more where subtrees are kept."""
        if self.config.max_nodes is not None:
            return self.config.max_nodes // WORD * WORD  # never more than was asked for
        room = self.config.max_simulations if self.config.kind != "direct" else 0
        room = -(-room // self.in_flight) * self.in_flight
        count = 1 + self.slabs * room * (2 if self.config.reuse else 1)
        return -(-count // WORD) * WORD

    @property
    def num_outcomes(self) -> int:
        """C: the chance outcomes that can follow an action. A root is a decision, so no tree holds a first roll."""
        return self.game.num_later_outcomes

    @property
    def num_edges(self) -> int:
        """E: room for every legal action (or the best `max_edges`) and every chance outcome."""
        spec = self.game.spec
        return max(min(spec.max_legal, self.config.max_edges or spec.max_legal), self.num_outcomes)

    def chance_words(self, words: Array, simulation: Array) -> Array:
        """`[K * S, B]`: what outcomes are drawn by at the nodes that simulations from this one on add.

        Made of the lanes' words, and named by the simulation and not by the node's place, which depends on what the
        lanes beside it have kept.
        """
        first = 1 + self.slabs * simulation
        return jnp.stack([mix(words, first + slab) for slab in range(self.in_flight * self.slabs)])

    def draw(
        self, words: Array, visit: Array, probs: Array, sums: Callable[[Array], Array] = chance.running_sums
    ) -> Array:
        """The outcome a visit to a chance node takes (see `chance.draw`)."""
        return chance.draw(words, visit, probs, evenly=self.config.chance_draw == "quota", sums=sums)

    def probs(self, states: Any) -> Array:
        """Nature's probabilities at chance states that follow an action, `[B, C]`."""
        return jax.vmap(self.game.chance_probs)(states)[:, : self.num_outcomes]

    def decision_edges(self, logits: Array, actions: Array) -> tuple[Array, Array]:
        """Priors and actions `[B, E]` of decision nodes, from all that is legal there."""
        priors = edge_priors(logits / self.config.prior_temperature, actions)
        if self.config.max_edges is not None:
            priors, actions = keep_best(priors, actions, self.config.max_edges)
        pad = ((0, 0), (0, self.num_edges - priors.shape[-1]))
        return jnp.pad(priors, pad, constant_values=NO_EDGE), jnp.pad(actions, pad, constant_values=-1)

    def chance_edges(self, states: Any) -> tuple[Array, Array]:
        """Probabilities and outcomes `[B, E]` of chance nodes: an edge per outcome."""
        probs = self.probs(states)
        pad = ((0, 0), (0, self.num_edges - probs.shape[-1]))
        outcomes = jnp.broadcast_to(jnp.arange(probs.shape[-1], dtype=jnp.int16), probs.shape)
        return jnp.pad(probs, pad, constant_values=NO_EDGE), jnp.pad(outcomes, pad, constant_values=-1)
