"""`alea`: the command tree, put together. Nothing heavy is imported before a command needs it, so `--help` is quick.

Exit codes: 0 done, 1 failed, 2 misuse. With `--json` a command prints one object on standard output and nothing else.
"""

from __future__ import annotations

import sys
from typing import Any

from cyclopts import App, CycloptsError

from aleazero import __version__
from aleazero.cli import (
    balatro_tree,
    bench_tree,
    cluster,
    desk,
    graph_tree,
    mcp_tree,
    play_tree,
    ray_tree,
    rules_tree,
    runs_tree,
    strength,
    train_tree,
    web_tree,
)
from aleazero.cli.answer import DONE, MISUSE
from aleazero.core.errors import explained

app = App(
    name="alea",
    help="Trains game-playing agents from nothing but the rules, and proves that it does it right.",
    version=__version__,
    result_action="return_value",
)
app.command(rules_tree.games)
app.command(rules_tree.doctor)
app.command(rules_tree.show)
app.command(train_tree.train)
app.command(runs_tree.runs_app)
app.command(runs_tree.status)
app.command(runs_tree.plot)
app.command(runs_tree.export)
app.command(play_tree.evaluate, name="eval")
app.command(play_tree.rate)
app.command(play_tree.play)
app.command(play_tree.hint)
app.command(play_tree.openings)
app.command(play_tree.serve)
app.command(strength.uci)
app.command(web_tree.web)
app.command(bench_tree.bench)
app.command(bench_tree.experiment)
app.command(cluster.head_app)
app.command(cluster.worker_app)
app.command(ray_tree.ray_app)
app.command(desk.monitor_app)
app.command(balatro_tree.balatro_app)
app.command(balatro_tree.verify)
app.command(balatro_tree.replay)
app.command(graph_tree.graph_app)
app.command(mcp_tree.mcp)


def main(arguments: list[str] | None = None) -> None:
    """Runs a command line and exits with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Runs a command line; returns its exit code. Mistakes are explained in a line or two, without a traceback."""

    def command() -> int:
        try:
            code: Any = app(arguments, exit_on_error=False, print_error=True)
        except CycloptsError:
            return MISUSE
        return code if isinstance(code, int) else DONE

    return explained("alea", command)


if __name__ == "__main__":
    main()
