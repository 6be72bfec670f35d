"""Tokens, and what a worker's user may do: what it needs, and nothing else, on either kind of server."""

from __future__ import annotations

import contextlib
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import NoPermissionError, RedisError

from aleazero.runtimes.redis.access import DEFAULT_RULES, HEAD, AccessError, Keyring, Keys, Token, rules
from aleazero.runtimes.redis.beats import forget_beat, read_beats, send_beat
from aleazero.runtimes.redis.link import CannotConnect, connect
from aleazero.runtimes.redis.server import RedisServer
from aleazero.runtimes.redis.users import admit, check_default_user, revoke
from tests.runtimes.redis.conftest import Party
from tests.runtimes.redis.test_server import bundled


@pytest.fixture(scope="module", params=["installed", "bundled"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Party]:
    """A run whose stream, weights and other worker are there to be attacked, on both kinds of server."""
    head = Token.new("own", HEAD)
    program = bundled() if request.param == "bundled" else None
    with (
        RedisServer(tmp_path_factory.mktemp("redis"), head, fsync="everysec", program=program) as server,
        contextlib.closing(Party(server, "own", head)) as party,
    ):
        for key in (party.keys.public("weights"), party.keys.public("config"), party.keys.orders("other")):
            party.head.client.set(key, b"the head's")
        party.head.client.set(party.keys.weights(3), b"the head's")
        party.head.client.xadd(party.keys.slabs("other"), {b"slab": b"another worker's"})
        party.head.client.xadd(party.keys.quarantine, {b"slab": b"bad"})
        party.head.client.xadd(party.keys.beat("other"), {b"status": b"fine"})
        yield party


K = Keys("own")
WEIGHTS, POINTER = K.weights(3), K.public("weights")
MINE, OTHERS = K.slabs("laptop"), K.slabs("other")


def test_a_worker_may_do_what_it_needs(shared: Party) -> None:
    token = shared.worker()
    link = shared.link(token)
    client = link.client
    assert client.ping()
    assert client.get(POINTER) == client.get(WEIGHTS) == b"the head's"
    assert client.get(shared.keys.orders("laptop")) is None
    with client.pipeline(transaction=True) as pipe:
        pipe.xadd(shared.keys.slabs("laptop"), {b"slab": b"1"})
        pipe.xadd(shared.keys.slabs("laptop"), {b"slab": b"2"})
        assert len(pipe.execute()) == 2
    send_beat(link, token, {"games": 5})
    send_beat(link, token, {"games": 6})
    beats = read_beats(shared.head, shared.keys, ["laptop", "nobody"])
    assert list(beats) == ["laptop"]
    assert beats["laptop"].status == {"games": 6}
    assert 0 <= beats["laptop"].age_seconds < 5
    assert shared.head.client.xlen(shared.keys.beat("laptop")) == 1
    forget_beat(shared.head, shared.keys, "laptop")
    assert read_beats(shared.head, shared.keys, ["laptop"]) == {}


FORBIDDEN: list[tuple[Any, ...]] = [
    ("SET", POINTER, "mine"),
    ("SET", WEIGHTS, "mine"),
    ("SET", K.weights(4), "mine"),
    ("SETEX", POINTER, 1, "mine"),
    ("GETDEL", POINTER),
    ("GETSET", POINTER, "mine"),
    ("APPEND", WEIGHTS, "mine"),
    ("DEL", POINTER),
    ("UNLINK", POINTER),
    ("EXPIRE", POINTER, 1),
    ("RENAME", POINTER, MINE),
    ("COPY", POINTER, K.beat("laptop")),
    ("XREAD", "STREAMS", MINE, "0"),
    ("XRANGE", MINE, "-", "+"),
    ("XREVRANGE", MINE, "+", "-"),
    ("XLEN", MINE),
    ("XINFO", "STREAM", MINE),
    ("XTRIM", MINE, "MAXLEN", 0),
    ("XDEL", MINE, "1-1"),
    ("XADD", OTHERS, "*", "a", "b"),
    ("XADD", OTHERS, "MAXLEN", 0, "*", "a", "b"),
    ("XADD", OTHERS, "18446744073709551615-18446744073709551615", "a", "b"),
    ("XREAD", "STREAMS", OTHERS, "0"),
    ("XRANGE", OTHERS, "-", "+"),
    ("XADD", K.quarantine, "*", "a", "b"),
    ("XADD", K.beat("other"), "*", "a", "b"),
    ("XADD", "alea:another:slabs:laptop", "*", "a", "b"),
    ("XRANGE", K.beat("other"), "-", "+"),
    ("GET", K.orders("other")),
    ("GET", "alea:another:public:weights"),
    ("XGROUP", "CREATE", MINE, "g", "0"),
    ("EVAL", "return 1", 0),
    ("EVALSHA", "0" * 40, 0),
    ("SCRIPT", "LOAD", "return 1"),
    ("KEYS", "*"),
    ("SCAN", 0),
    ("RANDOMKEY",),
    ("DBSIZE",),
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("CONFIG", "GET", "*"),
    ("CONFIG", "SET", "appendonly", "no"),
    ("ACL", "LIST"),
    ("ACL", "SETUSER", "default", "on"),
    ("CLIENT", "LIST"),
    ("CLIENT", "KILL", "TYPE", "normal"),
    ("INFO",),
    ("MONITOR",),
    ("SHUTDOWN",),
    ("SAVE",),
    ("BGREWRITEAOF",),
    ("REPLICAOF", "127.0.0.1", 1),
    ("MODULE", "LIST"),
    ("PUBLISH", "c", "m"),
    ("SUBSCRIBE", "c"),
    ("DUMP", WEIGHTS),
    ("MIGRATE", "127.0.0.1", 1, POINTER, 0, 1),
    ("SELECT", 1),
    ("SWAPDB", 0, 1),
    ("WATCH", POINTER),
]


@pytest.mark.parametrize("command", FORBIDDEN, ids=lambda command: " ".join(map(str, command)))
def test_a_worker_may_not(shared: Party, attacker: Any, command: tuple[Any, ...]) -> None:
    with pytest.raises(NoPermissionError):
        attacker.execute_command(*command)


@pytest.fixture(scope="module")
def attacker(shared: Party) -> Any:
    return shared.link(shared.worker()).client


@pytest.mark.parametrize("key", [POINTER, WEIGHTS, K.public("config"), K.orders("laptop")])
def test_a_worker_cannot_put_a_stream_where_the_head_writes(shared: Party, attacker: Any, key: str) -> None:
    """Before Redis 7 keys cannot be marked for reading alone: then the key's own kind keeps the worker from it."""
    shared.head.client.set(key, b"the head's")
    with pytest.raises(RedisError, match=r"WRONGTYPE|NOPERM|permission"):
        attacker.execute_command("XADD", key, "*", "a", "b")
    assert shared.head.client.get(key) == b"the head's"


def test_a_head_is_kept_to_its_run_and_from_scripts(shared: Party) -> None:
    for command in (("GET", "alea:another:public:weights"), ("EVAL", "return 1", 0), ("FLUSHALL",), ("KEYS", "*")):
        with pytest.raises(NoPermissionError):
            shared.head.client.execute_command(*command)


def test_one_who_is_revoked_is_out_at_once(shared: Party) -> None:
    token = shared.worker("leaver")
    link = shared.link(token)
    assert revoke(shared.head, token.user)
    assert not revoke(shared.head, token.user)
    with pytest.raises(CannotConnect) as caught:
        link.call(lambda client: client.ping(), writes=False)
    assert caught.value.why == "token"
    with pytest.raises(CannotConnect) as caught:
        connect(shared.server.url, token)
    assert caught.value.why == "token"


def test_a_server_without_permissions_by_key_lets_nobody_in(shared: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aleazero.runtimes.redis.users.LEAST_VERSION", (99, 0))  # every real one is too old
    token = Token.new("own", "early")
    with pytest.raises(AccessError, match=r"has version \d+\.\d+.* version 99.0 or newer is needed"):
        admit(shared.head, token)
    with pytest.raises(CannotConnect) as caught:
        connect(shared.server.url, token)
    assert caught.value.why == "token"


def test_a_default_user_that_would_lose_transactions_is_found(shared: Party) -> None:
    check_default_user(shared.head)
    for less in ("-xadd", "resetkeys", "-@all"):
        shared.head.client.execute_command("ACL SETUSER", "default", less)
        with pytest.raises(AccessError, match="ACL SETUSER default off"):
            check_default_user(shared.head)
        shared.head.client.execute_command("ACL SETUSER", "default", *DEFAULT_RULES)
        check_default_user(shared.head)


def test_redis_holds_no_secret(shared: Party) -> None:
    token = shared.worker("secretive")
    users = (shared.server.folder / "users.acl").read_text()
    assert token.user in users
    assert "on nopass" not in users
    for word in (token.password, token.signing_key.hex(), token.text.split(":")[-1]):
        assert word not in users


# ---- tokens


def test_a_token_is_its_text() -> None:
    token = Token.new("home", "laptop-2")
    again = Token.parse(f" {token.text}\n")
    assert again == token
    assert (again.password, again.signing_key) == (token.password, token.signing_key)
    assert len({token.password, token.signing_key.hex(), token.secret.hex()}) == 3
    assert Token.new("home", "laptop-2").secret != token.secret
    assert token.text.split(":")[-1] not in repr(token)
    assert token.secret.hex() not in repr(token)


@pytest.mark.parametrize(
    "text", ["", "alea1:home:laptop", "alea2:home:laptop:AAAA", "alea1:home:laptop:AAAA", "alea1:h:l:!?"]
)
def test_what_is_no_token_is_said_without_repeating_it(text: str) -> None:
    with pytest.raises(AccessError) as caught:
        Token.parse(text)
    assert "AAAA" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "*", "a b", "a:b", "x" * 65, "[a]", "../x", "a\n+@all"])
def test_names_that_would_be_patterns_or_rules_are_refused(name: str) -> None:
    with pytest.raises(AccessError):
        Token.new("home", name)
    with pytest.raises(AccessError):
        Keys(name)


def test_tokens_are_stored_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "token"
    token = Token.new("home", "laptop")
    path.parent.mkdir()
    path.write_text("older")
    path.chmod(0o644)
    token.store(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Token.read(path) == token
    assert [entry.name for entry in path.parent.iterdir()] == ["token"]
    with pytest.raises(AccessError, match="could not read"):
        Token.read(tmp_path / "nowhere")


def test_a_keyring_remembers_and_forgets(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    ring = Keyring(path, "home")
    token = ring.token("laptop")
    assert ring.token("laptop") == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = Keyring(path, "home")
    assert again.signing_key("laptop") == token.signing_key
    assert again.signing_key("stranger") is None
    assert again.names == ["laptop"]
    again.drop("laptop")
    assert Keyring(path, "home").signing_key("laptop") is None
    for damaged in ("{", json.dumps({"a": "b"}), "[]"):
        path.write_text(damaged)
        with pytest.raises(AccessError):
            Keyring(path, "home")


def test_rules_name_what_is_allowed_and_nothing_more() -> None:
    worker = rules(Token.new("home", "laptop"))
    assert [rule for rule in worker if rule.startswith("+")] == ["+ping", "+get", "+xadd", "+multi", "+exec"]
    assert not any(rule in ("~*", "allkeys", "nopass", "+@all", "allchannels") for rule in worker)


def test_tokens_made_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    """By a head and by commands, each with what it has read before."""
    rings = [Keyring(tmp_path / "keys.json", "home") for _ in range(3)]
    made = [ring.token(f"worker-{number}") for number, ring in enumerate(rings)]
    assert Keyring(tmp_path / "keys.json", "home").names == ["worker-0", "worker-1", "worker-2"]
    assert rings[2].token("worker-0") == made[0], "one that somebody else has made meanwhile is not made anew"
    again = Keyring(tmp_path / "keys.json", "home")
    assert rings[0].token("late") == again.token("late")
    rings[0].drop("worker-1")
    assert "worker-1" not in Keyring(tmp_path / "keys.json", "home").names
