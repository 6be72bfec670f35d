"""The command tree of `alea mcp`. Imports nothing heavy."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from aleazero.cli.options import GameName, Runs

Live = Annotated[
    str | None, Parameter(help="A live game's address (BalatroBot), as in http://127.0.0.1:12346; else a simulator's.")
]


def mcp(
    game: GameName,
    *,
    transport: Annotated[Literal["stdio", "http"], Parameter(help="Standard streams, or streamable HTTP.")] = "stdio",
    player: Annotated[str, Parameter(help="Whose advice: greedy, expectimax, or run:NAME.")] = "greedy",
    host: Annotated[str, Parameter(help="http: where to listen; another than this machine's own lets others in.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, Parameter(help="http: 0 for any that is free.")] = 8765,
    token: Annotated[
        str | None, Parameter(env_var="ALEA_TOKEN", help="http: what requests must bring; made if left out.")
    ] = None,
    live: Live = None,
    bench: Annotated[int, Parameter(help="Measure so many round trips over HTTP on this machine, and end.")] = 0,
    runs: Runs = None,
) -> int:
    """Serve a game to agents over the Model Context Protocol; balatro."""
    from aleazero.cli import mcp as command

    return command.mcp(
        game, transport=transport, player=player, host=host, port=port, token=token, live=live, bench=bench, runs=runs
    )
