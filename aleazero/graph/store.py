"""Databases that hold the joker graph: an embedded one by default, a Bolt server where a URL names it.

    memory          embedded, built anew: under a second
    FILE            embedded, in a file that `build` wrote
    bolt://...      Neo4j or Memgraph (also neo4j://, and +s for TLS)

Where a Bolt server is down, or speaks another dialect, the embedded graph is used instead, which is said once.
Knows databases; nothing of what is asked.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from aleazero.core.errors import AleaError, ConfigError, MissingExtra
from aleazero.graph.model import LABELS, RELATIONS, Graph, joker_graph

MEMORY = "memory"
SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
_POOL = 64 << 20  # bytes of the embedded database's cache
_QUERY_MS = 30_000


class GraphError(AleaError):
    """A query that cannot be answered, or a database that cannot."""


class Unreachable(GraphError):  # noqa: N818 - as the other errors that name what is wrong
    """A Bolt server that is down, refuses, or speaks another dialect."""


@dataclass(frozen=True)
class Rows:
    """What a query brings."""

    columns: tuple[str, ...]
    rows: list[list[Any]]


class Store(Protocol):
    """A database."""

    @property
    def name(self) -> str:
        """What it is, without any password."""

    def build(self, graph: Graph) -> None:
        """Holds this graph, and none of an earlier one."""

    def query(self, text: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        """Answers in openCypher; GraphError where it cannot."""

    def close(self) -> None:
        """Lets go of it."""


def node_rows(graph: Graph, label: str) -> list[dict[str, Any]]:
    """A label's nodes as a database holds them; `jokers` is how many jokers have a relation to it."""
    near: dict[tuple[str, str], set[str]] = {}
    for edge in graph.edges:
        if edge.source[0] == "Joker":
            near.setdefault(edge.target, set()).add(edge.source[1])
    return [
        {"name": node.name, "kind": label, "jokers": len(near.get((label, node.name), ())), **dict(node.facts)}
        for node in graph.nodes
        if node.label == label
    ]


def edge_rows(graph: Graph) -> Iterator[tuple[str, str, str, list[dict[str, str]]]]:
    """Relations by kind and the labels at their ends: kind, from, to, rows."""
    for kind, (source, targets) in RELATIONS.items():
        for target in targets:
            rows = [
                {"a": edge.source[1], "b": edge.target[1]}
                for edge in graph.edges
                if (edge.kind, edge.source[0], edge.target[0]) == (kind, source, target)
            ]
            if rows:
                yield kind, source, target, rows


class Embedded:
    """Ladybug in this process; without a file it is in memory and built at once."""

    def __init__(self, file: Path | None = None) -> None:
        try:
            import ladybug
        except ImportError as error:
            raise MissingExtra("the joker graph's database", "ladybug", "balatro") from error
        self.name = str(file) if file else MEMORY
        self._file, self._module = file, ladybug
        self._database: Any = None
        if file is None:
            self._open(":memory:")
            self._fill(joker_graph())
        elif file.exists():
            self._open(str(file), read_only=True)

    def _open(self, where: str, read_only: bool = False) -> None:
        try:
            self._database = self._module.Database(
                where, buffer_pool_size=_POOL, max_num_threads=2, read_only=read_only
            )
            self._connection = self._module.Connection(self._database, num_threads=1)
            self._connection.set_query_timeout(_QUERY_MS)
            if read_only:
                self._connection.execute("MATCH (j:Joker) RETURN count(j)")
        except RuntimeError as error:
            raise ConfigError(f"{where!r} is no joker graph: {_first_line(error)}; build another file") from error

    def build(self, graph: Graph) -> None:
        """Into the file, whole or not at all; in memory it is there already."""
        if self._file is None:
            return
        self.close()
        if not self._file.parent.is_dir():
            raise ConfigError(f"{str(self._file)!r} has no folder: make it, or name another file")
        with tempfile.TemporaryDirectory(dir=self._file.parent, prefix=".graph.") as folder:
            made = Path(folder) / "graph"
            self._open(str(made))
            self._fill(graph)
            self.close()
            os.replace(made, self._file)
        self._open(str(self._file), read_only=True)

    def _fill(self, graph: Graph) -> None:
        run = self._connection.execute
        for label in LABELS:
            more = ", rarity STRING, cost INT64, effect STRING" if label == "Joker" else ""
            run(f"CREATE NODE TABLE {label}(name STRING, kind STRING, jokers INT64{more}, PRIMARY KEY(name))")
            rows = node_rows(graph, label)
            run(
                f"UNWIND $rows AS r CREATE (:{label} {{{', '.join(f'{key}: r.{key}' for key in rows[0])}}})",
                {"rows": rows},
            )
        for kind, (source, targets) in RELATIONS.items():
            run(f"CREATE REL TABLE {kind}({', '.join(f'FROM {source} TO {target}' for target in targets)})")
        for kind, source, target, pairs in edge_rows(graph):
            run(
                f"UNWIND $rows AS r MATCH (a:{source} {{name: r.a}}), (b:{target} {{name: r.b}}) "
                f"CREATE (a)-[:{kind}]->(b)",
                {"rows": pairs},
            )

    def query(self, text: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        """Answers."""
        if self._database is None:
            raise ConfigError(f"there is no joker graph at {self.name!r}: alea graph build --database {self.name}")
        try:
            found = self._connection.execute(text, dict(parameters or {}))
        except RuntimeError as error:
            raise GraphError(f"the query cannot be answered: {_first_line(error)}") from error
        if isinstance(found, list):
            raise GraphError("one query at a time")
        return Rows(tuple(found.get_column_names()), [list(row) for row in found.get_all()])

    def close(self) -> None:
        """Lets go of the file."""
        if self._database is not None:
            self._connection.close()
            self._database.close()
            self._database = None


class Either:
    """A Bolt server while it answers; from its first failure on the embedded graph, which `tell` hears once."""

    def __init__(self, connect: Callable[[], Store], asked: str, tell: Callable[[str], None]) -> None:
        self._asked, self._tell = asked, tell
        try:
            self._store = connect()
        except Unreachable as error:
            self._store = self._fall_back(error)

    @property
    def name(self) -> str:
        """Where the graph now is."""
        return self._store.name

    def _fall_back(self, error: Unreachable) -> Store:
        self._tell(f"{error}; using the embedded graph")
        return Embedded()

    def build(self, graph: Graph) -> None:
        """Holds this graph."""
        try:
            self._store.build(graph)
        except Unreachable as error:
            self._store.close()
            self._store = self._fall_back(error)

    def query(self, text: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        """Answers."""
        try:
            return self._store.query(text, parameters)
        except Unreachable as error:
            self._store.close()
            self._store = self._fall_back(error)
            return self._store.query(text, parameters)

    def close(self) -> None:
        """Lets go of both."""
        self._store.close()


@contextlib.contextmanager
def open_store(database: str, tell: Callable[[str], None]) -> Iterator[Store]:
    """The database of a name; `tell` hears where another is used than was asked for."""
    store: Store
    scheme, has_scheme, _ = database.partition("://")
    if has_scheme and scheme not in SCHEMES:
        raise ConfigError(f"database is {scheme}://...; it must be memory, a file, or a URL with {', '.join(SCHEMES)}")
    if has_scheme:
        from aleazero.graph.bolt import Bolt

        store = Either(lambda: Bolt(database), database, tell)
    else:
        store = Embedded(None if database == MEMORY else Path(database))
    try:
        yield store
    finally:
        store.close()


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
