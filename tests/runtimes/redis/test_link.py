"""A link says why it cannot be made, in time, and outlives the server it was made to."""

from __future__ import annotations

import contextlib
import http.server
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from aleazero.runtimes.protocol import PROTOCOL
from aleazero.runtimes.redis import link as links
from aleazero.runtimes.redis.access import Token
from aleazero.runtimes.redis.link import CannotConnect, Link, LinkClosed, NotAllowed, Unavailable, connect
from aleazero.runtimes.redis.server import RedisServer
from tests.runtimes.redis.conftest import Party

WORKER = Token.new("home", "laptop")


def why(url: str, token: Token = WORKER, seconds: float = 15) -> tuple[str, str]:
    began = time.monotonic()
    with pytest.raises(CannotConnect) as caught:
        connect(url, token)
    assert time.monotonic() - began < seconds
    assert token.text not in str(caught.value)
    assert token.password not in str(caught.value)
    return caught.value.why, str(caught.value)


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def web_server() -> Iterator[int]:
    class Quiet(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Quiet) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found.server_port
        found.shutdown()
        thread.join()


def test_nothing_there(free_port: int) -> None:
    reason, message = why(f"redis://127.0.0.1:{free_port}", seconds=3)
    assert reason == "refused"
    assert str(free_port) in message


def test_no_such_name() -> None:
    assert why("redis://no-such-machine.invalid:6379")[0] == "name"


def test_no_address() -> None:
    for url in ("localhost:6379", "http://localhost", "redis://"):
        assert why(url)[0] == "address"


def test_something_else_listens(web_server: int) -> None:
    assert why(f"redis://127.0.0.1:{web_server}")[0] == "not_redis"


def test_something_silent_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "FIRST_SECONDS", 0.5)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        assert why(f"redis://127.0.0.1:{deaf.getsockname()[1]}", seconds=3)[0] == "silent"


def test_a_wrong_token_is_named(party: Party) -> None:
    good = party.worker()
    wrong = Token(good.run, good.name, b"x" * 32)
    reason, message = why(party.server.url, wrong, seconds=5)
    assert reason == "token"
    assert "laptop" in message
    assert why(party.server.url, Token.new(party.run, "stranger"), seconds=5)[0] == "token"


def test_another_protocol_or_none_is_named(party: Party) -> None:
    token = party.worker()
    key = party.keys.public("protocol")
    party.head.client.set(key, PROTOCOL + 1)
    reason, message = why(party.server.url, token)
    assert reason == "protocol"
    assert str(PROTOCOL + 1) in message
    party.head.client.delete(key)
    assert why(party.server.url, token)[0] == "no_head"


def test_one_that_waits_gets_in_when_the_server_comes(own_server: RedisServer, own_party: Party) -> None:
    token = own_party.worker()
    own_server.stop()
    found: list[Link] = []
    waiting = threading.Thread(target=lambda: found.append(connect(own_server.url, token, wait=True)))
    waiting.start()
    time.sleep(0.3)
    assert waiting.is_alive()
    own_server.start()
    waiting.join(60)
    with contextlib.closing(found[0]) as link:
        assert link.call(lambda client: client.ping(), writes=False)


def test_one_that_waits_does_not_wait_for_a_wrong_token(party: Party) -> None:
    with pytest.raises(CannotConnect):
        connect(party.server.url, Token.new(party.run, "stranger"), wait=True)


def test_one_that_waits_can_be_stopped(free_port: int) -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    with pytest.raises(CannotConnect) as caught:
        connect(f"redis://127.0.0.1:{free_port}", WORKER, wait=True, stop=stop)
    assert caught.value.why == "refused"


def test_an_outage_is_said_once_and_ends(
    own_server: RedisServer, own_party: Party, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "aleazero")
    link = own_party.head
    assert own_server.pid is not None
    os.kill(own_server.pid, signal.SIGKILL)
    with pytest.raises(Unavailable):
        link.attempt(lambda client: client.ping(), writes=False)
    began = time.monotonic()
    with pytest.raises(Unavailable):
        link.attempt(lambda client: time.sleep(60), writes=False)  # not even tried
    assert time.monotonic() - began < 30
    assert link.trouble == "cannot be reached"
    answers: list[object] = []
    waiting = threading.Thread(target=lambda: answers.append(link.call(lambda client: client.ping(), writes=False)))
    waiting.start()
    time.sleep(1.0)
    assert answers == []
    own_server.start()
    waiting.join(60)
    assert answers == [True]
    assert link.trouble is None
    said = [record.getMessage() for record in caplog.records if "Redis at" in record.getMessage()]
    assert len(said) == 2
    assert "cannot be reached" in said[0]
    assert "is back" in said[1]


def test_a_frozen_server_is_noticed(own_server: RedisServer, own_party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "ANSWER_SECONDS", 0.3)
    client = links.make_client(own_server.url, own_server.head, answer_seconds=0.3)
    with contextlib.closing(Link(client, "here")) as link:
        assert link.attempt(lambda client: client.ping(), writes=False)
        assert own_server.pid is not None
        os.kill(own_server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable, match="does not answer"):
                link.attempt(lambda client: client.ping(), writes=False)
        finally:
            os.kill(own_server.pid, signal.SIGCONT)
        assert link.call(lambda client: client.ping(), writes=False)


def test_a_full_server_stops_only_what_writes(
    own_server: RedisServer, own_party: Party, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "aleazero")
    link = own_party.head
    with contextlib.closing(links.make_client(own_server.url, own_server.head)) as client:
        used = int(client.info("memory")["used_memory"])
    own_server.stop()
    small = RedisServer(own_server.folder, own_server.head, max_memory_bytes=used + 2 * 2**20)
    with small:
        key = own_party.keys.slabs("laptop")
        link.call(lambda client: client.ping(), writes=False)

        def fill() -> None:
            for _ in range(100):
                link.attempt(lambda client: client.xadd(key, {b"slab": bytes(100_000)}), writes=True)

        with pytest.raises(Unavailable, match="out of memory"):
            fill()
        assert link.attempt(lambda client: client.ping(), writes=False), "reading goes on"
        assert link.trouble == "is out of memory"
        link.attempt(lambda client: client.xtrim(key, maxlen=0), writes=False)
        assert link.call(lambda c: c.xadd(key, {b"slab": b"x"}), writes=True)
        assert link.trouble is None
    assert any("out of memory" in record.getMessage() for record in caplog.records)


def test_what_is_not_allowed_is_not_tried_again(party: Party) -> None:
    link = party.link(party.worker())
    with pytest.raises(NotAllowed):
        link.call(lambda client: client.set(party.keys.public("weights"), b"mine"), writes=True)
    assert link.trouble is None


def test_a_closed_link_ends_what_waits(own_server: RedisServer, own_party: Party) -> None:
    link = own_party.link(own_party.worker())
    own_server.stop()
    threading.Timer(0.3, link.close).start()
    with pytest.raises(LinkClosed):
        link.call(lambda client: client.ping(), writes=False)
