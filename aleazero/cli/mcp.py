"""`alea mcp`: Balatro for agents that speak the Model Context Protocol."""

from __future__ import annotations

import importlib.util
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from aleazero.bridges.advisor import Advisor, split_player
from aleazero.bridges.balatro_advice import Choose, advise, baseline
from aleazero.cli.answer import print_json
from aleazero.core.compilation import set_up_compiling
from aleazero.core.errors import ConfigError, MissingExtra
from aleazero.host_players import is_network, load_player
from aleazero.host_players import player_of as network_player

if TYPE_CHECKING:
    from aleazero.bridges.balatro_table import Table


def player_of(text: str, runs: Path | None) -> Choose:
    """Who gives advice, or plays: a baseline or a run's network, perhaps with an advisor."""
    name, asked = split_player(text)
    if is_network(name):
        set_up_compiling()
        if load_player(name.partition(",")[0].strip(), "balatro", runs).model.config.history:
            raise ConfigError(
                f"player {name!r} remembers what was before, and a table is seen as it stands: name another"
            )
        choose: Choose = network_player(name, "balatro", runs)(0)
    else:
        choose = baseline(name)
    return choose if asked is None else Advisor(choose, asked)


def mcp(
    game: str,
    *,
    transport: str,
    player: str,
    host: str,
    port: int,
    token: str | None,
    live: str | None,
    bench: int,
    runs: Path | None,
) -> int:
    """Serves until it is interrupted, or its input ends."""
    if game != "balatro":
        raise ConfigError(f"game is {game!r}; what is served is balatro")
    if bench < 0:
        raise ConfigError(f"bench is {bench}; it must not be negative")
    for package in ("mcp", "uvicorn"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtra("alea mcp", package, "balatro")
    from aleazero.bridges import mcp_server

    table: Table | None = None
    if live is not None:
        from aleazero.bridges.balatrobot import LiveTable, Patience

        # Who asks over MCP waits half a minute or so, and must hear what came of it.
        patience = Patience(answer=10.0, give_up=15.0)
        table = LiveTable(live, lambda line: print(f"alea mcp: {line}", file=sys.stderr, flush=True), patience)
    server = mcp_server.make_server(player_of(player, runs), table)
    if bench:
        return _bench(bench)
    _compile_rules()

    def ready(address: str, used: str) -> None:
        print(f"alea mcp: {address}\n  Authorization: Bearer {used}\n(Ctrl+C ends it)", flush=True)

    try:
        if transport == "stdio":
            mcp_server.serve_stdio(server)
        else:
            mcp_server.serve_http(server, host, port, token, ready)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    return 0


def _compile_rules() -> None:
    """Compile what the tools call: a client waits half a minute for an answer, and compiling takes longer."""
    from aleazero.bridges import balatro_table
    from aleazero.games.balatro import actions, jit

    if jit.PLAIN:
        return
    if not any(jit.cache_folder().rglob("*.nbi")):
        print("alea mcp: compiling the rules of Balatro, this once; about a minute", file=sys.stderr, flush=True)
    table = balatro_table.Simulated("ALEEB")
    table.act(actions.A_SELECT_BLIND)
    balatro_table.explain(table.see(), balatro_table.actions_for(table.see(), "play", [0]))
    advise(table.see(), baseline("greedy"), futures=1)


def _bench(calls: int) -> int:
    """Round trips on loopback, in milliseconds, with a server of its own."""
    import subprocess

    from aleazero.bridges.mcp_client import McpGame

    words = [sys.executable, "-m", "aleazero.cli.main", "mcp", "balatro", "--transport", "http", "--port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[-1]
        token = process.stdout.readline().split()[-1]
        threading.Thread(target=process.stdout.read, daemon=True).start()
        report = {}
        with McpGame(address, token) as game:
            game.start(seed="ALEEB")
            for tool in ("balatro_state", "balatro_legal_actions"):
                game.call_tool(tool, {})
                took = []
                for _ in range(calls):
                    started = time.perf_counter()
                    game.call_tool(tool, {})
                    took.append(1000 * (time.perf_counter() - started))
                report[tool] = {"median_ms": statistics.median(took), "most_ms": max(took)}
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()
    print_json({"calls": calls, "tools": report})
    return 0
