"""The command tree of `alea graph`. Imports nothing heavy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from aleazero.cli.options import Json

graph_app = App(name="graph", help="The joker graph: build it, ask it, its numbers for networks, pictures of it.")

Database = Annotated[
    str,
    Parameter(
        help="memory, a file, or a Bolt URL of Neo4j or Memgraph, as in bolt://localhost:7687; its user and password "
        "in ALEA_GRAPH_AUTH, as in user:password."
    ),
]


@graph_app.command
def build(*, database: Database = "memory", as_json: Json = False) -> int:
    """Build the graph from the fact tables, and say how large it is and how long it took."""
    from aleazero.cli import graph as command

    return command.build(database, as_json)


@graph_app.command
def query(
    text: Annotated[str, Parameter(help="openCypher, or one by name: synergies, needs, for.")],
    name: Annotated[str | None, Parameter(help="What $name stands for, as in Baron or Diamonds.")] = None,
    *,
    database: Database = "memory",
    repeat: Annotated[int, Parameter(help="Ask so often, and say the median time.")] = 1,
    as_json: Json = False,
) -> int:
    """Ask the graph."""
    from aleazero.cli import graph as command

    return command.query(text, name, database, repeat, as_json)


@graph_app.command
def embed(
    *,
    out: Annotated[Path | None, Parameter(help="Write them as a NumPy file; if left out, compare them only.")] = None,
    as_json: Json = False,
) -> int:
    """Work out the 128 numbers of every joker; the exit code is 1 where they are not those that are shipped."""
    from aleazero.cli import graph as command

    return command.embed(out, as_json)


@graph_app.command
def plot(
    joker: Annotated[str | None, Parameter(help="Whose surroundings; a map of all jokers if left out.")] = None,
    *,
    out: Annotated[Path, Parameter(help="The SVG file.")] = Path("jokers.svg"),
) -> int:
    """Draw the graph."""
    from aleazero.cli import graph as command

    return command.plot(joker, out)
