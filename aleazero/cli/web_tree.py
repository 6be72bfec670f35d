"""The command tree of `alea web`. Imports nothing heavy: `--help` shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from aleazero.cli.options import Device, Runs, compute_on


def web(
    *,
    run: Annotated[
        list[Path] | None, Parameter(negative="", help="A run, or a folder of runs, to watch; repeatable.")
    ] = None,
    port: Annotated[int, Parameter(help="The port to listen on; 0 for any that is free.")] = 8440,
    host: Annotated[
        str, Parameter(help="The address to listen on; any but this machine's own needs a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, Parameter(env_var="ALEA_WEB_TOKEN", help="Asked of every visitor; made, where one is needed.")
    ] = None,
    warm: Annotated[bool, Parameter(help="Compile at the start what a first visitor needs.")] = True,
    runs: Runs = None,
    device: Device = "auto",
) -> int:
    """Play, watch and analyse in the browser."""
    compute_on(device)
    from aleazero.cli import web as command

    return command.web(host, port, run, token, warm, runs)
