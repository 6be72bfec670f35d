"""Networks for Balatro: the classic one over flat arrays, and one that attends over cards, jokers and the shop's rows.

The second scores actions by the rows they are about: a subset of the hand by its cards and their pairs, a purchase by
the row in the shop, plays and discards by what they promise too. So what it learns of a card holds wherever the card
lies. Sizes of rows and ranges of actions are
those of the game, which a test compares; knows no rules.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aleazero.core.records import Output
from aleazero.models.networks import Heads

CARDS, JOKERS, STATE = 208, 1200, 50  # of the flat view, in order
GRAPH = 128  # numbers of a knowledge graph, where a network reads one
# Of the view by rows: the table's numbers, then rows by columns, in order.
ROWS = {
    "hand": (24, 11),
    "deck": (4, 13),
    "owned_jokers": (14, 8),
    "consumables": (14, 3),
    "shop": (9, 9),
    "pack": (5, 8),
}
PROMISES, ENOUGH = 436, 7.0  # after the rows: of plays and discards; the number where a score is enough
INPUTS = {"balatro": CARDS + JOKERS + STATE, "balatro_rows": STATE + sum(r * c for r, c in ROWS.values()) + PROMISES}

# How many values of each column get a number of their own; 0: it is a quantity.
KINDS = {
    "hand": (2, 15, 4, 9, 5, 5, 2, 2, 2, 2, 0),
    "owned_jokers": (151, 5, 8, 6, 0, 0, 0, 2),
    "consumables": (53, 2, 0),
    "shop": (6, 151, 15, 4, 9, 5, 5, 8, 0),
    "pack": (4, 151, 15, 4, 9, 5, 5, 8),
}
# Rows that are attended to, of those there may be: what few games ever have is scored with the table alone.
KEPT = {"hand": 10, "owned_jokers": 6, "consumables": 3, "shop": 9, "pack": 5}
TABLE_KINDS = {0: 6, 2: 3, 3: 32, 22: 40, 28: 8, 36: 14}  # the table's numbers that are names: phase, blind, boss, ...

WEIGHING = 24  # units that weigh what a play promises

# Actions that are about one row, in the game's order: how many, whose rows, and the first of them.
SUBSET_PLACES = 8
SUBSETS = np.array(
    [[i in s for i in range(SUBSET_PLACES)] for size in range(1, 6) for s in combinations(range(SUBSET_PLACES), size)],
    np.float32,
)  # [218, 8]
ACTIONS: tuple[tuple[str, int, str | None, int], ...] = (
    ("toggle", 24, "hand", 0),
    ("play_selected", 1, None, 0),
    ("discard_selected", 1, None, 0),
    ("use", 14, "consumables", 0),
    ("sell_consumable", 14, "consumables", 0),
    ("sell_joker", 13, "owned_jokers", 0),
    ("swap_jokers", 12, "owned_jokers", 0),
    ("swap_cards", 23, "hand", 0),
    ("buy", 5, "shop", 0),
    ("buy_and_use", 5, "shop", 0),
    ("voucher", 2, "shop", 5),
    ("booster", 2, "shop", 7),
    ("reroll", 1, None, 0),
    ("leave_shop", 1, None, 0),
    ("choose", 5, "pack", 0),
    ("skip_pack", 1, None, 0),
    ("select_blind", 1, None, 0),
    ("skip_blind", 1, None, 0),
    ("reroll_boss", 1, None, 0),
)  # after two ranges of subsets: play and discard


class ClassicNet(nn.Module):
    """Two encoders and a trunk: cards 208 -> 256 -> 128, jokers 1200 -> 512 -> 256, the table, a graph's numbers."""

    width: int  # of the trunk's two layers
    graph_width: int
    graph: int  # numbers of a graph that the observation has: `graph_width` of them are seen
    heads: dict[str, Any]
    compute: Any

    @nn.compact
    def __call__(self, observation: Array) -> Output:
        """`[B, 1458]`, or with a graph's numbers behind, and then what is remembered."""

        def dense(x: Array, size: int, name: str) -> Array:
            return nn.relu(nn.Dense(size, dtype=self.compute, name=name)(x))

        ends = np.cumsum([CARDS, JOKERS, STATE, self.graph])
        cards, jokers, table, graph, memory = jnp.split(observation, ends, axis=1)
        graph = graph[:, : self.graph_width]
        missing = self.graph_width - graph.shape[1]
        seen = [
            dense(dense(cards, 256, "cards_in"), 128, "cards_out"),
            dense(dense(jokers, 512, "jokers_in"), 256, "jokers_out"),
            _squash(table).astype(self.compute),
            jnp.pad(graph, ((0, 0), (0, missing))).astype(self.compute),
            memory.astype(self.compute),
        ]
        x = dense(dense(jnp.concatenate(seen, 1), self.width, "trunk_0"), self.width, "trunk_1")
        return Heads(**self.heads, name="heads")(x, x)


class RowsNet(nn.Module):
    """Attention over the rows of hand, jokers, consumables, shop and pack, and a row for the table as a whole."""

    width: int
    blocks: int
    heads: dict[str, Any]
    compute: Any

    @nn.compact
    def __call__(self, observation: Array) -> Output:
        """`[B, 1077]`, or with what is remembered behind."""
        batch = observation.shape[0]
        ends = np.cumsum([STATE, *(rows * columns for rows, columns in ROWS.values()), PROMISES])
        table, *flat, promised, memory = jnp.split(observation, ends, axis=1)
        things = {name: x.reshape(batch, *ROWS[name]) for name, x in zip(ROWS, flat, strict=True)}
        plays, discards = (_promise(x) for x in jnp.split(promised, 2, axis=1))
        deck = things.pop("deck").reshape(batch, -1) / 4
        whole = jnp.concatenate([_squash(table), *_names(table), deck, plays.max(1), memory], 1)
        rows = [nn.Dense(self.width, dtype=self.compute, name="table")(whole.astype(self.compute))[:, None]]
        there = [jnp.ones((batch, 1), bool)]
        for name, kept in KEPT.items():
            x = things[name][:, :kept]
            place = self.param(f"{name}_place", nn.initializers.normal(0.02), (x.shape[1], self.width))
            rows.append(self._embed(name, x) + place[None].astype(self.compute))
            there.append(x[:, :, 0] > 0)
        x, seen = jnp.concatenate(rows, 1), jnp.concatenate(there, 1)
        for i in range(self.blocks):
            x = x + self._attend(nn.LayerNorm(dtype=self.compute, name=f"norm_{i}")(x), seen, i)
            y = nn.LayerNorm(dtype=self.compute, name=f"norm_in_{i}")(x)
            y = nn.relu(nn.Dense(2 * self.width, dtype=self.compute, name=f"in_{i}")(y))
            x = x + nn.Dense(self.width, dtype=self.compute, kernel_init=nn.initializers.zeros_init(), name=f"out_{i}")(
                y
            )
        x = nn.LayerNorm(dtype=self.compute, name="norm")(x)
        ends = np.cumsum([1, *KEPT.values()])[:-1]
        first, *parts = jnp.split(x, ends, axis=1)
        total = nn.relu(first[:, 0])
        output: Output = Heads(**{**self.heads, "num_actions": 0}, name="heads")(total, total)
        logits = self._logits(total, dict(zip(KEPT, parts, strict=True)), {"play": plays, "discard": discards})
        return Output(logits=logits, value=output.value, moves_left=output.moves_left)

    def _embed(self, name: str, x: Array) -> Array:
        """A row as what its columns say: names as flags, so that gradients are products; `[B, rows, width]`."""
        seen = [
            _flags(x[:, :, column], kinds) if kinds else _squash(x[:, :, column])[..., None]
            for column, kinds in enumerate(KINDS[name])
        ]
        return nn.Dense(self.width, dtype=self.compute, name=name)(jnp.concatenate(seen, -1).astype(self.compute))

    def _attend(self, x: Array, seen: Array, i: int) -> Array:
        mask = seen[:, None, None, :]  # [B, heads, rows, rows]
        return nn.MultiHeadDotProductAttention(
            num_heads=4, dtype=self.compute, out_kernel_init=nn.initializers.zeros_init(), name=f"attention_{i}"
        )(x, x, mask=jnp.broadcast_to(mask, (x.shape[0], 1, x.shape[1], x.shape[1])))

    def _logits(self, total: Array, parts: dict[str, Array], promised: dict[str, Array]) -> Array:
        """`[B, A]`: each range of actions from the rows it is about, subsets of the hand from what they promise too."""
        small = nn.initializers.variance_scaling(0.01, "fan_in", "truncated_normal")

        def dense(x: Array, size: int, name: str) -> Array:
            return nn.Dense(size, dtype=jnp.float32, kernel_init=small, name=name)(x)

        hand = parts["hand"][:, :SUBSET_PLACES]
        sizes = SUBSETS.sum(1).astype(int) - 1
        pairs = (SUBSETS[:, :, None] * SUBSETS[:, None, :]).reshape(len(SUBSETS), -1)
        found = []
        for name in ("play", "discard"):
            ask, answer = dense(hand, 16, f"{name}_ask"), dense(hand, 16, f"{name}_answer")
            paired = jnp.einsum("bif,bjf->bij", ask, answer).reshape(hand.shape[0], -1)
            single = dense(hand, 1, f"{name}_card")[..., 0]
            size = dense(total, 5, f"{name}_size")[:, sizes]
            seen = nn.Dense(WEIGHING, dtype=self.compute, name=f"{name}_promise")(promised[name].astype(self.compute))
            meant = nn.Dense(WEIGHING, dtype=self.compute, name=f"{name}_meaning")(total)[:, None]
            weighed = dense(nn.relu(seen + meant), 1, f"{name}_weight")[..., 0]
            found.append(single @ SUBSETS.T + paired @ pairs.T + size + weighed)
        for name, count, rows, first in ACTIONS:
            about = dense(total, count, f"{name}_all")
            if rows is not None:
                row = dense(parts[rows][:, first : first + count], 1, f"{name}_row")[..., 0]
                about = about + jnp.pad(row, ((0, 0), (0, count - row.shape[1])))
            found.append(about)
        logits = jnp.concatenate(found, 1)
        return jnp.pad(logits, ((0, 0), (0, int(self.heads["num_actions"]) - logits.shape[1])))


def _promise(x: Array) -> Array:
    """Promises as what they are about: how much, whether it is enough, whether there is any; `[B, 218, 3]`."""
    return jnp.stack([(x - ENOUGH) / 3 * (x > 0), x >= ENOUGH, x > 0], -1).astype(x.dtype)


def _squash(x: Array) -> Array:
    """Numbers of any size, on a scale that is straight near zero."""
    return jnp.sign(x) * jnp.log1p(jnp.abs(x))


def _names(table: Array) -> list[Array]:
    """Those of the table's numbers that are names, each as flags."""
    return [_flags(table[:, place], kinds) for place, kinds in TABLE_KINDS.items()]


def _flags(x: Array, kinds: int) -> Array:
    return jax.nn.one_hot(jnp.clip(x, 0, kinds - 1).astype(jnp.int32), kinds, dtype=x.dtype)
