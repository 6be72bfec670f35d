"""Real servers on loopback, each with a folder of its own."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from aleazero.runtimes.redis.access import HEAD, Keys, Token
from aleazero.runtimes.redis.link import Link, announce, connect
from aleazero.runtimes.redis.server import RedisServer, find_program
from aleazero.runtimes.redis.users import admit


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One for all tests that leave it alone. Its head may use the keys of every run, so that tests do not meet."""
    folder = tmp_path_factory.mktemp("redis")
    with RedisServer(folder, Token.new("all", HEAD), fsync="everysec") as running:
        yield running


class Party:
    """A run of its own on a server: a head, and workers as they are asked for."""

    def __init__(self, server: RedisServer, run: str, head: Token | None = None) -> None:
        self.server, self.run, self.keys = server, run, Keys(run)
        self._open = contextlib.ExitStack()
        with contextlib.closing(connect(server.url, server.head, ca_file=server.ca_file)) as owner:
            self.token = head or Token.new(run, HEAD)
            if head is None:
                admit(owner, self.token)
        self.head = self.link(self.token)
        announce(self.head, run)

    def worker(self, name: str = "laptop") -> Token:
        token = Token.new(self.run, name)
        admit(self.head, token)
        return token

    def link(self, token: Token) -> Link:
        return self._open.enter_context(
            contextlib.closing(connect(self.server.url, token, ca_file=self.server.ca_file))
        )

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def party(server: RedisServer) -> Iterator[Party]:
    with contextlib.closing(Party(server, f"run-{secrets.token_hex(4)}")) as found:
        yield found


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """One to freeze, fill or kill, with every acknowledged write on the disk."""
    with RedisServer(tmp_path / "redis", Token.new("own", HEAD)) as running:
        yield running


@pytest.fixture
def own_party(own_server: RedisServer) -> Iterator[Party]:
    with contextlib.closing(Party(own_server, "own", own_server.head)) as found:
        yield found


@pytest.fixture(scope="session")
def installed() -> None:
    """Where the tests run, Redis 7 or newer is installed: what it alone can do is tested there."""
    if find_program().bundled:
        pytest.skip("needs Redis 7 or newer: apt-get install redis-server")
