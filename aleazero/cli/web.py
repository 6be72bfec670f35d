"""`alea web`: play, watch and analyse in the browser."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from aleazero.core.compilation import set_up_compiling
from aleazero.core.errors import MissingExtra
from aleazero.runs import runs_root


def web(host: str, port: int, run: list[Path] | None, token: str | None, warm: bool, runs: Path | None) -> int:
    """Serves the page until it is interrupted."""
    for package in ("fastapi", "uvicorn", "websockets"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtra("alea web", package, "play")
    from aleazero.web.app import STATIC, UNBUILT
    from aleazero.web.room import still_thinking
    from aleazero.web.serve import serve

    set_up_compiling()
    if not (STATIC / "index.html").is_file():
        print(UNBUILT, flush=True)

    def ready(address: str) -> None:
        print(f"alea web: {address}  (Ctrl+C ends it)", flush=True)

    try:
        serve(host, port, runs_root(runs), tuple(run or ()), token, ready, warm)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    if still_thinking():
        os._exit(0)  # nobody waits for the answer, all games are on disk, and compiled code cannot be interrupted
    return 0
