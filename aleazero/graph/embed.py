"""128 numbers for every joker, from the joker graph, by whole-number arithmetic: every machine gets the same bits.

A random projection that is smoothed over the graph (after FastRP, Chen et al. 2019; ours counts in whole numbers).
Every node starts with 128 signs, drawn from the SHA-256 of its label and name. A step replaces each node's numbers by
the mean of its neighbours'. A joker's numbers are a mixture of the first steps, less the mean of all jokers', scaled
to -1..1. So jokers that share what they need, give or feed have similar numbers. Knows no database and no network.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np

from aleazero.games.balatro.embedding import FILE, SCALE, WIDTH
from aleazero.graph.model import Graph
from aleazero.observe.jsonl import replace_file

_ONE = 1 << 20  # what a sign counts at the start
_MIXTURE = (0, 2, 4, 2, 1)  # weights of steps 0, 1, ...: a joker's own signs tell nothing of it
_WEIGHTS = {"NEEDS": 4, "FEEDS": 3, "GIVES": 2, "ACTS": 1, "CONTAINS": 1}


def embed(graph: Graph) -> np.ndarray:
    """`[jokers, 128]` int16, in the order of the fact tables; divided by `SCALE` they are in -1..1."""
    places = {(node.label, node.name): k for k, node in enumerate(graph.nodes)}
    weights = np.zeros((len(places), len(places)), np.int64)
    for edge in graph.edges:
        a, b = places[edge.source], places[edge.target]
        weights[a, b] += _WEIGHTS[edge.kind]
        weights[b, a] += _WEIGHTS[edge.kind]
    degree = np.maximum(weights.sum(1, keepdims=True), 1)
    now = np.array([_signs(node.label, node.name) for node in graph.nodes], np.int64) * _ONE
    mixed = _MIXTURE[0] * now
    for weight in _MIXTURE[1:]:
        now = (weights @ now) // degree
        size = np.maximum(np.abs(now).max(1, keepdims=True), 1)
        now = now * _ONE // size  # a mean is smaller than what it is of: back to size
        mixed = mixed + weight * now
    jokers = mixed[: len(graph.names("Joker"))]
    jokers = jokers - jokers.sum(0, keepdims=True) // len(jokers)
    size = np.maximum(np.abs(jokers).max(1, keepdims=True), 1)
    return (jokers * SCALE // size).astype(np.int16)


def _signs(label: str, name: str) -> np.ndarray:
    digest = hashlib.sha256(f"{label}:{name}".encode()).digest()
    bits = np.unpackbits(np.frombuffer(digest, np.uint8))[:WIDTH]
    return 2 * bits.astype(np.int64) - 1


def write(numbers: np.ndarray, path: Path = FILE) -> None:
    """Writes the array, whole or not at all."""
    held = io.BytesIO()
    np.save(held, numbers, allow_pickle=False)
    replace_file(path, held.getvalue())
