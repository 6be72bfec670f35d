"""`alea serve`: a player that GNU Backgammon can play against, as one of its external players."""

from __future__ import annotations

from pathlib import Path

from aleazero.bridges.gnubg_external import Answerer, ExternalServer
from aleazero.cli.common import game_of, players_of
from aleazero.core.compilation import set_up_compiling
from aleazero.core.errors import ConfigError
from aleazero.observe.logs import configure_logging

# X to play 31 in the first position: asked before anybody else asks, so that all is compiled and proved to work.
REHEARSAL = "board:X:O:0:0:0:0:-2:0:0:0:0:5:0:3:0:0:0:-5:5:0:0:0:-3:0:-5:0:0:0:0:2:0:1:3:1:3:1:1:1:1:0:1:-1:0:25"


def serve(name: str, player: str, *, host: str, port: int, runs: Path | None) -> int:
    """Answers until it is interrupted."""
    set_up_compiling()
    game = game_of(name)
    problems = []
    if name != "backgammon":
        problems.append(f"game is {name!r}; GNU Backgammon plays backgammon")
    if not 0 <= port < 2**16:
        problems.append(f"port is {port}; it must be in 0..{2**16 - 1} (0: any that is free)")
    (engine,) = players_of(game, [player], runs, problems)
    answerer = Answerer(game, engine)
    try:
        server = ExternalServer(host, port, answerer)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}; name another --host or --port") from error
    undo = configure_logging(None, json_lines=False, level="INFO")
    try:
        with server:
            answerer.answer(REHEARSAL)
            where = "{}:{}".format(*server.server_address[:2])
            print(f"{player} plays backgammon on {where}; in gnubg: set player 0 external {where}", flush=True)
            server.serve_forever()
    except KeyboardInterrupt:
        print("stopped")
    finally:
        undo()
    return 0
