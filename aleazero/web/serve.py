"""Starts the server: where it listens, what it keeps, who may come in."""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from aleazero.core.errors import ConfigError
from aleazero.web.app import WebSettings, make_app
from aleazero.web.guard import OWN_NAMES

LARGEST_MESSAGE = 1 << 16
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")
WARM = ("backgammon", "tictactoe", "connect_four", "chess", "quoridor")


def tables_folder() -> Path:
    """Where tables are kept: ALEA_WEB_TABLES, else under the user's state."""
    given = os.environ.get("ALEA_WEB_TABLES")
    if given:
        return Path(given)
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return home / "aleazero" / "tables"


def serve(
    host: str,
    port: int,
    runs: Path,
    watched: tuple[Path, ...],
    token: str | None,
    ready: Callable[[str], None],
    warm: bool = True,
) -> None:
    """Answers until it is interrupted. `ready` is told the address once somebody can come."""
    problems = [] if 0 <= port < 2**16 else [f"port is {port}; it must be in 0..{2**16 - 1} (0: any that is free)"]
    problems += [f"run {str(path)!r} is no folder" for path in watched if not path.is_dir()]
    if token is not None and not _TOKEN.fullmatch(token):
        problems.append("token is too simple: at least 16 letters, digits, - and _; leave it out to have one made")
    if problems:
        raise ConfigError("\n".join(problems))
    own = host in OWN_NAMES
    token = token or (None if own else secrets.token_urlsafe(24))
    try:
        listening = _listen(host, port)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}; name another --host or --port") from error
    shown = host if host not in ("0.0.0.0", "::") else socket.gethostname()
    shown = f"[{shown}]" if ":" in shown else shown
    address = f"http://{shown}:{listening.getsockname()[1]}/" + (f"?token={token}" if token else "")
    app = make_app(WebSettings(tables_folder(), runs, watched, token, WARM if warm else ()))

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready(address)

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        ws="websockets-sansio",
        ws_max_size=LARGEST_MESSAGE,
        server_header=False,
        timeout_keep_alive=75,  # longer than a visitor waits for news, so that no request meets a closing connection
        timeout_graceful_shutdown=2,
        lifespan="on",
    )
    Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(256)
    except OSError:
        listening.close()
        raise
    return listening
