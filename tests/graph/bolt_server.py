"""A real Bolt server for tests, as a process: ArcadeDB on ports of the system's choice, in a folder of its own.

Prints one line, the port, once it listens; ends when its standard input does.
"""

from __future__ import annotations

import os
import socket
import sys

DATABASE, USER, PASSWORD = "graph", "root", "only-for-tests"


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def main(folder: str) -> None:
    out = os.dup(1)
    os.dup2(2, 1)  # its log goes to standard error
    import arcadedb_embedded

    port = _free_port()
    config = {
        "http_port": _free_port(),
        "host": "127.0.0.1",
        "server_plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "bolt_port": port,
    }
    server = arcadedb_embedded.create_server(root_path=folder, root_password=PASSWORD, config=config)
    server.start()
    server.create_database(DATABASE)
    os.write(out, f"{port}\n".encode())
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
