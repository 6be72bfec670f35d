"""What networks read of the joker graph: 128 numbers a joker, shipped as an array; of a game, the mean of its jokers'.

Training needs no database: `aleazero.graph.embed` made the array from the graph, and a test makes it again. Three
further tables say what the graph is worth beside it (`KINDS`). Knows no graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from aleazero.core.errors import UnknownName
from aleazero.games.balatro import facts
from aleazero.games.balatro.layout import MAX_JOKERS

WIDTH = 128
SCALE = 32767
FILE = Path(__file__).resolve().parents[2] / "data" / "balatro_jokers.npy"
KINDS = {
    "none": "zeros",
    "graph": "the joker graph's numbers",
    "permuted": "the same numbers, each joker with those of another",
    "random": "random signs for each joker",
}
_SEED = 20_077  # of the permutation and the random signs


@cache
def table(kind: str = "graph") -> np.ndarray:
    """`[151, 128]` float32 in -1..1 by the joker's number; row 0, no joker, is zero."""
    if kind not in KINDS:
        raise UnknownName("joker embedding", kind, KINDS)
    numbers = np.load(FILE, allow_pickle=False).astype(np.float32) / np.float32(SCALE)
    rng = np.random.default_rng(_SEED)
    if kind == "permuted":
        numbers = numbers[rng.permutation(len(numbers))]
    elif kind == "random":
        # As long as the graph's, on the whole.
        numbers = rng.choice([-1, 1], numbers.shape).astype(np.float32) * np.sqrt(np.mean(numbers**2))
    elif kind == "none":
        numbers = np.zeros_like(numbers)
    found = np.concatenate([np.zeros((1, WIDTH), np.float32), numbers.astype(np.float32)])
    found.setflags(write=False)
    return found


def of_games(states: np.ndarray, kind: str) -> np.ndarray:
    """`[B, 128]`: the mean over each game's owned jokers; zeros where there are none."""
    counts = states["joker_count"]
    there = np.arange(MAX_JOKERS) < counts[:, None]
    rows = table(kind)[np.where(there, states["joker"], 0)]  # [B, J, 128]
    means = rows.sum(1) / np.maximum(counts, 1)[:, None]
    return means.astype(np.float32)


class JokerEmbedding:
    """The array as the environment's `memgraph_client`."""

    def __init__(self, kind: str = "graph") -> None:
        self._table = table(kind)

    def embedding(self, jokers: Sequence[str]) -> np.ndarray:
        """The mean of these jokers' numbers `[128]`."""
        if not jokers:
            return np.zeros(WIDTH, np.float32)
        rows = self._table[[facts.number("jokers", name) for name in jokers]]
        return np.asarray(rows.sum(0) / len(jokers), np.float32)
