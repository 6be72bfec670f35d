"""Neo4j or Memgraph by Bolt. Knows the two dialects' words for a unique name; nothing of what is asked.

Nodes that are ours carry `source: 'aleazero'` and the label AleaZero, whose keys are unique: a new build takes away
those and nothing else, in one transaction, and says nothing of anybody else's nodes. User and password stand
in the URL (`bolt://user:password@host:7687/database`) or in ALEA_GRAPH_AUTH (`user:password`), and are never shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from aleazero.core.errors import ConfigError, MissingExtra
from aleazero.graph.model import LABELS, Graph
from aleazero.graph.store import GraphError, Rows, Unreachable, edge_rows, node_rows

AUTH = "ALEA_GRAPH_AUTH"
OURS = "AleaZero"  # a label that no other's node has
# How each dialect says that our nodes' keys are unique.
DIALECTS = {
    "neo4j": f"CREATE CONSTRAINT IF NOT EXISTS FOR (n:{OURS}) REQUIRE n.key IS UNIQUE",
    "memgraph": f"CREATE CONSTRAINT ON (n:{OURS}) ASSERT n.key IS UNIQUE",
}
_SECONDS = 5.0  # to connect


class Bolt:
    """A server."""

    def __init__(self, url: str) -> None:
        try:
            import neo4j
            from neo4j import exceptions
        except ImportError as error:
            raise MissingExtra(f"the joker graph on {url.partition('://')[0]}://", "neo4j", "balatro") from error
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:  # its words would show a part of what may be a password
            raise ConfigError(
                "database has no port that can be: write bolt://HOST:PORT, and a password's : / @ # as %3A %2F %40 %23"
            ) from None
        if not parts.hostname:
            raise ConfigError("database names no host: write bolt://HOST:PORT")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        shown = host + (f":{port}" if port else "")
        self.name = f"{parts.scheme}://{shown}"
        given = os.environ.get(AUTH, "").partition(":")
        user, password = (unquote(parts.username), unquote(parts.password or "")) if parts.username else given[::2]
        self._database = parts.path.strip("/") or None
        self._built = False  # as far as is known
        self._refused = (exceptions.ClientError, exceptions.DatabaseError)
        self._lost = (exceptions.Neo4jError, exceptions.DriverError, OSError)
        try:
            self._driver = neo4j.GraphDatabase.driver(
                self.name,
                auth=(user, password) if user else None,
                connection_timeout=_SECONDS,
                connection_acquisition_timeout=_SECONDS,
                max_transaction_retry_time=0.0,
            )
        except (ValueError, exceptions.DriverError) as error:
            raise ConfigError(f"{self.name} is no address of a Bolt server: {error}") from error
        try:
            self._run("RETURN 1")
        except self._lost as error:
            self._driver.close()
            raise Unreachable(f"{self.name} cannot be used: {_words(error)}") from error

    def _run(self, text: str, **parameters: Any) -> Rows:
        with self._driver.session(database=self._database) as session:
            found = session.run(text, parameters)  # type: ignore[arg-type, unused-ignore]
            return Rows(tuple(found.keys()), [list(record.values()) for record in found])

    def build(self, graph: Graph) -> None:
        """In place of what an earlier build left: whole or not at all."""
        try:
            self._make_unique()
            with self._driver.session(database=self._database) as session:
                session.execute_write(_fill, graph)
        except self._lost as error:
            raise Unreachable(f"{self.name} cannot hold the graph: {_words(error)}") from error
        self._built = True

    def _make_unique(self) -> None:
        """By the first dialect that the server understands."""
        refused: Exception | None = None
        for words in DIALECTS.values():
            try:
                self._run(words)
                return
            except self._refused as error:
                if "already exists" in str(error):  # Memgraph says so of a second build
                    return
                refused = error
        raise Unreachable(
            f"{self.name} speaks neither dialect of {' and '.join(DIALECTS)}: {_words(refused)}"
        ) from refused

    def query(self, text: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        """Answers."""
        try:
            self._built = self._built or bool(self._run("MATCH (n {source: 'aleazero'}) RETURN 1 AS one LIMIT 1").rows)
            if not self._built:
                where = f"{self.name}/{self._database}" if self._database else self.name
                raise ConfigError(f"there is no joker graph at {where}: alea graph build --database {where}")
            return self._run(text, **dict(parameters or {}))
        except self._refused as error:
            raise GraphError(f"the query cannot be answered: {_words(error)}") from error
        except self._lost as error:
            raise Unreachable(f"{self.name} has gone: {_words(error)}") from error

    def close(self) -> None:
        """Hangs up."""
        self._driver.close()


def _fill(transaction: Any, graph: Graph) -> None:
    transaction.run("MATCH (n {source: 'aleazero'}) DETACH DELETE n").consume()
    for label in LABELS:
        rows = [{**row, "source": "aleazero", "key": f"{label} {row['name']}"} for row in node_rows(graph, label)]
        transaction.run(f"UNWIND $rows AS r CREATE (n:{label}:{OURS}) SET n += r", rows=rows).consume()
    for kind, source, target, rows in edge_rows(graph):
        transaction.run(
            f"UNWIND $rows AS r MATCH (a:{source} {{name: r.a, source: 'aleazero'}}), "
            f"(b:{target} {{name: r.b, source: 'aleazero'}}) CREATE (a)-[:{kind}]->(b)",
            rows=rows,
        ).consume()


def _words(error: Exception | None) -> str:
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    return str(message).strip().splitlines()[0][:200]
