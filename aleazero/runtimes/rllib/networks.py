"""Balatro's two networks and the residual MLP in PyTorch, and their weights as those of `models` and back.

Layers have the names that they have there, so a weight's place in one tree is its place in the other. Kernels are
turned: PyTorch keeps `[out, in]`. Knows arrays; neither RLlib nor a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from aleazero.core import twohot
from aleazero.core.records import Weights
from aleazero.models.balatro import (
    ACTIONS,
    CARDS,
    ENOUGH,
    JOKERS,
    KEPT,
    KINDS,
    PROMISES,
    ROWS,
    STATE,
    SUBSET_PLACES,
    SUBSETS,
    TABLE_KINDS,
    WEIGHING,
)
from aleazero.models.build import ModelConfig

ATTENTION_HEADS = 4
_EPSILON = 1e-6  # as flax has it
_PROMISED = 3  # numbers of a promise


class Heads(nn.Module):
    """The value's logits, and the policy's where it comes from the same features."""

    def __init__(self, width: int, num_actions: int) -> None:
        super().__init__()
        self.value = nn.Linear(width, twohot.NUM_BINS)
        self.policy = nn.Linear(width, num_actions) if num_actions else None


class Classic(nn.Module):
    """`models.balatro.ClassicNet`."""

    def __init__(self, config: ModelConfig, num_actions: int, inputs: int) -> None:
        super().__init__()
        self._graph = config.graph_width
        self.cards_in, self.cards_out = nn.Linear(CARDS, 256), nn.Linear(256, 128)
        self.jokers_in, self.jokers_out = nn.Linear(JOKERS, 512), nn.Linear(512, 256)
        self.trunk_0 = nn.Linear(128 + 256 + STATE + self._graph, config.width)
        self.trunk_1 = nn.Linear(config.width, config.width)
        self.heads = Heads(config.width, num_actions)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of actions `[B, A]` and of the value `[B, NUM_BINS]`, of `[B, 1458]` or with a graph's numbers."""
        cards, jokers, table, graph = torch.tensor_split(observation, np.cumsum([CARDS, JOKERS, STATE]).tolist(), 1)
        graph = graph[:, : self._graph]
        seen = [
            self.cards_out(self.cards_in(cards).relu()).relu(),
            self.jokers_out(self.jokers_in(jokers).relu()).relu(),
            _squash(table),
            functional.pad(graph, (0, self._graph - graph.shape[1])),
        ]
        x = self.trunk_1(self.trunk_0(torch.cat(seen, 1)).relu()).relu()
        assert self.heads.policy is not None
        return self.heads.policy(x), self.heads.value(x)


class Attention(nn.Module):
    """Attention of every row to those that are there."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        """`[B, rows, width]`; `seen` `[B, rows]`."""
        batch, rows, width = x.shape

        def split(layer: nn.Linear) -> Tensor:
            found: Tensor = layer(x)
            return found.view(batch, rows, ATTENTION_HEADS, -1).transpose(1, 2)

        found = functional.scaled_dot_product_attention(
            split(self.query), split(self.key), split(self.value), attn_mask=seen[:, None, None, :]
        )
        mixed: Tensor = self.out(found.transpose(1, 2).reshape(batch, rows, width))
        return mixed


class Rows(nn.Module):
    """`models.balatro.RowsNet`."""

    subsets: Tensor  # [8, 218]
    pairs: Tensor  # [64, 218]
    sizes: Tensor  # [218]

    def __init__(self, config: ModelConfig, num_actions: int, inputs: int) -> None:
        super().__init__()
        width = config.width
        self._blocks, self._num_actions = config.blocks, num_actions
        deck = int(np.prod(ROWS["deck"]))
        self.table = nn.Linear(STATE + sum(TABLE_KINDS.values()) + deck + _PROMISED, width)
        for name, kept in KEPT.items():
            self.add_module(name, nn.Linear(sum(kinds or 1 for kinds in KINDS[name]), width))
            self.register_parameter(f"{name}_place", nn.Parameter(torch.zeros(kept, width)))
        for i in range(config.blocks):
            self.add_module(f"norm_{i}", nn.LayerNorm(width, eps=_EPSILON))
            self.add_module(f"attention_{i}", Attention(width))
            self.add_module(f"norm_in_{i}", nn.LayerNorm(width, eps=_EPSILON))
            self.add_module(f"in_{i}", nn.Linear(width, 2 * width))
            self.add_module(f"out_{i}", nn.Linear(2 * width, width))
        self.norm = nn.LayerNorm(width, eps=_EPSILON)
        self.heads = Heads(width, 0)
        for name in ("play", "discard"):
            for part, size in (("ask", 16), ("answer", 16), ("card", 1), ("size", 5)):
                self.add_module(f"{name}_{part}", nn.Linear(width, size))
            self.add_module(f"{name}_promise", nn.Linear(_PROMISED, WEIGHING))
            self.add_module(f"{name}_meaning", nn.Linear(width, WEIGHING))
            self.add_module(f"{name}_weight", nn.Linear(WEIGHING, 1))
        for name, count, rows, _ in ACTIONS:
            self.add_module(f"{name}_all", nn.Linear(width, count))
            if rows is not None:
                self.add_module(f"{name}_row", nn.Linear(width, 1))
        pairs = (SUBSETS[:, :, None] * SUBSETS[:, None, :]).reshape(len(SUBSETS), -1)
        for name, numbers in (("subsets", SUBSETS.T), ("pairs", pairs.T)):
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(numbers)), persistent=False)
        self.register_buffer("sizes", torch.from_numpy(SUBSETS.sum(1).astype(np.int64) - 1), persistent=False)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of actions `[B, A]` and of the value `[B, NUM_BINS]`, of `[B, 1077]`."""
        ends = np.cumsum([STATE, *(rows * columns for rows, columns in ROWS.values())]).tolist()
        table, *flat, promised = torch.tensor_split(observation, ends, 1)
        plays, discards = (_promise(x) for x in promised.split(PROMISES // 2, 1))
        things = {name: x.reshape(-1, *ROWS[name]) for name, x in zip(ROWS, flat, strict=True)}
        names = [_flags(table[:, place], kinds) for place, kinds in TABLE_KINDS.items()]
        whole = torch.cat([_squash(table), *names, things["deck"].flatten(1) / 4, plays.amax(1)], 1)
        rows, there = [self.table(whole)[:, None]], [torch.ones_like(table[:, :1], dtype=torch.bool)]
        for name, kept in KEPT.items():
            x = things[name][:, :kept]
            rows.append(self._embed(name, x) + getattr(self, f"{name}_place"))
            there.append(x[:, :, 0] > 0)
        x, seen = torch.cat(rows, 1), torch.cat(there, 1)
        for i in range(self._blocks):
            x = x + self.get_submodule(f"attention_{i}")(self.get_submodule(f"norm_{i}")(x), seen)
            y = self.get_submodule(f"in_{i}")(self.get_submodule(f"norm_in_{i}")(x)).relu()
            x = x + self.get_submodule(f"out_{i}")(y)
        first, *parts = torch.tensor_split(self.norm(x), np.cumsum([1, *KEPT.values()])[:-1].tolist(), 1)
        total = first[:, 0].relu()
        logits = self._logits(total, dict(zip(KEPT, parts, strict=True)), {"play": plays, "discard": discards})
        return logits, self.heads.value(total)

    def _embed(self, name: str, x: Tensor) -> Tensor:
        seen = [
            _flags(x[:, :, column], kinds) if kinds else _squash(x[:, :, column])[..., None]
            for column, kinds in enumerate(KINDS[name])
        ]
        embedded: Tensor = self.get_submodule(name)(torch.cat(seen, -1))
        return embedded

    def _logits(self, total: Tensor, parts: Mapping[str, Tensor], promised: Mapping[str, Tensor]) -> Tensor:
        """`[B, A]`: each range of actions from the rows it is about, subsets of the hand from what they promise too."""

        def ask(x: Tensor, name: str) -> Tensor:
            answer: Tensor = self.get_submodule(name)(x)
            return answer

        hand = parts["hand"][:, :SUBSET_PLACES]
        found = []
        for name in ("play", "discard"):
            paired = torch.einsum("bif,bjf->bij", ask(hand, f"{name}_ask"), ask(hand, f"{name}_answer")).flatten(1)
            single, size = ask(hand, f"{name}_card")[..., 0], ask(total, f"{name}_size")[:, self.sizes]
            weighed = (ask(promised[name], f"{name}_promise") + ask(total, f"{name}_meaning")[:, None]).relu()
            weight = ask(weighed, f"{name}_weight")[..., 0]
            found.append(single @ self.subsets + paired @ self.pairs + size + weight)
        for name, count, rows, first in ACTIONS:
            about = ask(total, f"{name}_all")
            if rows is not None:
                row = ask(parts[rows][:, first : first + count], f"{name}_row")[..., 0]
                about = about + functional.pad(row, (0, count - row.shape[1]))
            found.append(about)
        logits = torch.cat(found, 1)
        return functional.pad(logits, (0, self._num_actions - logits.shape[1]))


class ResidualMlp(nn.Module):
    """`models.networks.ResidualMLP`."""

    def __init__(self, config: ModelConfig, num_actions: int, inputs: int) -> None:
        super().__init__()
        width = config.width
        self._blocks = config.blocks
        self.stem = nn.Linear(inputs, width)
        for i in range(config.blocks):
            self.add_module(f"norm_{i}", nn.LayerNorm(width, eps=_EPSILON))
            self.add_module(f"in_{i}", nn.Linear(width, width))
            self.add_module(f"out_{i}", nn.Linear(width, width))
        self.norm = nn.LayerNorm(width, eps=_EPSILON)
        self.heads = Heads(width, num_actions)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of actions `[B, A]` and of the value `[B, NUM_BINS]`, of `[B, ...]`."""
        x = self.stem(observation.flatten(1))
        for i in range(self._blocks):
            y = self.get_submodule(f"in_{i}")(self.get_submodule(f"norm_{i}")(x)).relu()
            x = x + self.get_submodule(f"out_{i}")(y)
        x = self.norm(x).relu()
        assert self.heads.policy is not None
        return self.heads.policy(x), self.heads.value(x)


NETWORKS: dict[str, Any] = {"balatro": Classic, "balatro_rows": Rows, "mlp": ResidualMlp}
"""By a model's kind: called with its settings, how many actions there are, and how many numbers are seen."""


def decode(logits: Tensor) -> Tensor:
    """The value `[B]` that logits `[B, NUM_BINS]` mean (`core.twohot`)."""
    return (logits.softmax(-1) * torch.as_tensor(twohot.BINS, device=logits.device)).sum(-1)


def encode(value: Tensor) -> Tensor:
    """Values `[B]` as distributions `[B, NUM_BINS]` (`core.twohot`)."""
    bins = torch.as_tensor(twohot.BINS, device=value.device)
    value = value.clamp(bins[0], bins[-1])
    high = torch.searchsorted(bins, value, right=True).clamp(1, twohot.NUM_BINS - 1)
    share = (value - bins[high - 1]) / (bins[high] - bins[high - 1])
    found = torch.zeros(*value.shape, twohot.NUM_BINS, device=value.device)
    found.scatter_(-1, (high - 1)[..., None], (1 - share)[..., None])
    return found.scatter_(-1, high[..., None], share[..., None])


def from_weights(weights: Weights) -> dict[str, np.ndarray]:
    """A tree of flax's as PyTorch's parameters by name."""
    found = {}
    for path, leaf in _leaves(weights):
        array = np.asarray(leaf)
        if path[-1] == "kernel":
            inner = int(np.prod(array.shape[:-1])) if path[-2] == "out" else array.shape[0]
            array = array.reshape(inner, -1).T
        name = {"kernel": "weight", "scale": "weight"}.get(path[-1], path[-1])
        found[".".join((*path[:-1], name))] = array if name != "bias" else array.reshape(-1)
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def to_weights(parameters: Mapping[str, np.ndarray], like: Weights) -> Weights:
    """PyTorch's parameters by name as a tree of the shape of `like`, flax's."""
    found: dict[str, Any] = {}
    for path, leaf in _leaves(like):
        name = {"kernel": "weight", "scale": "weight"}.get(path[-1], path[-1])
        array = np.asarray(parameters[".".join((*path[:-1], name))])
        tree = found
        for part in path[:-1]:
            tree = tree.setdefault(part, {})
        tree[path[-1]] = np.array((array.T if path[-1] == "kernel" else array).reshape(leaf.shape))
    return found


def _leaves(tree: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    if not isinstance(tree, Mapping):
        return [(path, tree)]
    return [leaf for name in tree for leaf in _leaves(tree[name], (*path, name))]


def _promise(x: Tensor) -> Tensor:
    return torch.stack([(x - ENOUGH) / 3 * (x > 0), (x >= ENOUGH).to(x.dtype), (x > 0).to(x.dtype)], -1)


def _squash(x: Tensor) -> Tensor:
    return x.sign() * x.abs().log1p()


def _flags(x: Tensor, kinds: int) -> Tensor:
    return functional.one_hot(x.clamp(0, kinds - 1).long(), kinds).to(x.dtype)
