"""What `alea graph` does."""

from __future__ import annotations

import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from aleazero.cli.answer import print_json
from aleazero.cli.common import table
from aleazero.core.errors import ConfigError
from aleazero.games.balatro import facts
from aleazero.games.balatro.embedding import FILE
from aleazero.graph import embed as numbers
from aleazero.graph import plot as pictures
from aleazero.graph.model import joker_graph
from aleazero.graph.queries import NAMED, weigh
from aleazero.graph.store import open_store
from aleazero.observe.jsonl import replace_file


def _tell(message: str) -> None:
    print(f"alea: {message}", file=sys.stderr)


def build(database: str, as_json: bool) -> int:
    """Builds."""
    started = time.perf_counter()
    joker_graph.cache_clear()
    graph = joker_graph()
    with open_store(database, _tell) as store:
        store.build(graph)
        seconds = time.perf_counter() - started
        where = store.name
    nodes, edges = Counter(node.label for node in graph.nodes), Counter(edge.kind for edge in graph.edges)
    if as_json:
        print_json({"database": where, "seconds": seconds, "nodes": dict(nodes), "relations": dict(edges)})
        return 0
    print(f"{len(graph.nodes)} nodes, {len(graph.edges)} relations in {where}, {seconds:.2f} s")
    print("nodes      " + ", ".join(f"{count} {label}" for label, count in nodes.items()))
    print("relations  " + ", ".join(f"{count} {kind}" for kind, count in edges.items()))
    return 0


def query(text: str, name: str | None, database: str, repeat: int, as_json: bool) -> int:
    """Asks."""
    if repeat < 1:
        raise ConfigError(f"repeat is {repeat}; it must be at least 1")
    named = text in NAMED
    if not named and " " not in text.strip():
        raise ConfigError(f"{text!r} is neither openCypher nor one of {', '.join(NAMED)}")
    if named and name is None:
        raise ConfigError(f"{text} needs a name, as in alea graph query {text} Baron")
    if named and text != "for":
        facts.number("jokers", name or "")
    asked = NAMED[text][1] if named else text
    took = []
    with open_store(database, _tell) as store:
        for _ in range(repeat):
            started = time.perf_counter()
            found = store.query(asked, {"name": name} if name is not None else {})
            took.append(time.perf_counter() - started)
        where = store.name
    columns, rows = list(found.columns), found.rows
    if text == "synergies":
        columns = ["joker", "weight", "why"]
        rows = [[one.joker, round(one.weight, 4), "; ".join(one.reasons)] for one in weigh(found)]
    if as_json:
        print_json(
            {"database": where, "columns": columns, "rows": rows, "milliseconds": 1000 * statistics.median(took)}
        )
        return 0
    table([columns, *([str(cell) for cell in row] for row in rows)])
    if repeat > 1:
        print(f"median of {repeat}: {1000 * statistics.median(took):.2f} ms")
    return 0


def embed(out: Path | None, as_json: bool) -> int:
    """Works the numbers out."""
    made = numbers.embed(joker_graph())
    same = FILE.is_file() and np.array_equal(made, np.load(FILE, allow_pickle=False))
    if out is not None:
        try:
            numbers.write(made, out)
        except OSError as error:
            raise ConfigError(f"out is {str(out)!r}, which cannot be written: {error}") from error
    if as_json:
        print_json({"jokers": len(made), "width": made.shape[1], "as_shipped": bool(same), "out": str(out or "")})
    else:
        print(f"{made.shape[1]} numbers for each of {len(made)} jokers, {'' if same else 'not '}as shipped")
    return 0 if same else 1


def plot(joker: str | None, out: Path) -> int:
    """Draws."""
    graph = joker_graph()
    drawn = pictures.map_svg(graph) if joker is None else pictures.joker_svg(graph, joker)
    try:
        replace_file(out, drawn.encode())
    except OSError as error:
        raise ConfigError(f"out is {str(out)!r}, which cannot be written: {error}") from error
    print(f"written to {out}")
    return 0
