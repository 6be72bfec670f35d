"""`alea head`, `alea worker` and `alea status` as a user meets them: words, exit codes, and no process left behind."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aleazero.cli.main import run
from aleazero.runs import RunFolder
from aleazero.runtimes.redis.access import HEAD, Token
from aleazero.runtimes.redis.home import Home
from aleazero.runtimes.redis.link import announce, connect
from aleazero.runtimes.redis.look import look
from aleazero.runtimes.redis.server import RedisServer, _free_port, find_program
from aleazero.runtimes.redis.users import admit
from scripts.faults import SETTINGS, _runs
from tests.frozen.shape import check_file, shape_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis"), Token.new("home", HEAD), fsync="everysec") as running:
        link = connect(running.url, running.head)
        announce(link, "home")
        yield running
        link.close()


@pytest.fixture(scope="module")
def token(server: RedisServer) -> Token:
    link = connect(server.url, server.head)
    made = Token.new("home", "laptop")
    admit(link, made)
    link.close()
    return made


def until(happened: Callable[[], Any], seconds: float = 150.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := happened()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)
    return found


def alea(*words: object, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "aleazero.cli.main", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, text=True, cwd=ROOT, env=os.environ | environment, **pipes)  # type: ignore[call-overload]


# Getting in.


def test_a_wrong_token_is_named_within_seconds(server: RedisServer, token: Token) -> None:
    wrong = Token("home", "laptop", bytes(32))
    began = time.monotonic()
    process = alea("worker", "game", ALEA_REDIS_URL=server.url, ALEA_TOKEN=wrong.text)
    said, _ = process.communicate(timeout=150)
    seconds = time.monotonic() - began
    assert process.returncode == 1
    assert "does not accept the token of 'laptop'" in said
    assert wrong.text not in said
    assert seconds < 30.0  # the budget is 5 s on a quiet machine; tests share theirs


def test_what_is_wrong_is_named(
    server: RedisServer,
    token: Token,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def said(*words: str, code: int = 1) -> str:
        assert run(["worker", *words]) == code
        return capsys.readouterr().err

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "no address of a Redis" in said("game", code=2)
    assert "no token" in said("eval", "--url", server.url, code=2)
    assert "the token is not one" in said("game", "--url", server.url, "--token", "nonsense")
    assert "nothing listens at 127.0.0.1:1" in said("game", "--url", "redis://127.0.0.1:1", "--token", token.text)
    assert "the head's own token" in said("game", "--url", server.url, "--token", Token.new("home", HEAD).text)
    with_password = server.url.replace("redis://", "redis://somebody:wrong@")
    monkeypatch.setattr("aleazero.runtimes.redis.member.WELCOME_SECONDS", 0.5)
    assert "does not answer: is it running" in said("game", "--url", with_password, "--token", token.text)
    link = connect(server.url, server.head)
    link.client.set("alea:home:public:protocol", 99)
    assert "speaks protocol 99" in said("game", "--url", server.url, "--token", token.text)
    link.client.set("alea:home:public:protocol", 1)
    link.close()
    assert "--gpu-memory is 3.0" in said(
        "game", "--url", server.url, "--token", token.text, "--gpu-memory", "3", code=2
    )


def test_address_and_token_come_from_a_file_too(
    server: RedisServer,
    token: Token,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("aleazero.runtimes.redis.member.WELCOME_SECONDS", 0.5)
    token.store(tmp_path / "token")
    file = tmp_path / "aleazero" / "worker.toml"
    file.parent.mkdir()
    file.write_text(f'url = "{server.url}"\ntoken_file = "{tmp_path / "token"}"\n')
    assert run(["worker", "game"]) == 1
    assert "does not answer" in capsys.readouterr().err, "it got in"
    file.write_text(f'url = "{server.url}"\ntokn = "x"\n')
    assert run(["worker", "game"]) == 2
    assert "unknown: tokn" in capsys.readouterr().err


# A head.


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def head_words(root: Path, *more: object) -> list[object]:
    sets = [word for setting in SETTINGS for word in ("--set", setting)]
    return ["head", "tictactoe", "--preset", "quick", "--run", "it", "--runs", root, "--device", "cpu", *sets, *more]


def pids(root: Path) -> dict[str, int]:
    """The processes that a head has said it started, and its Redis."""
    home = Home(RunFolder(root / "it"))
    said = (home.logs / "head_1.log").read_text().splitlines()
    found = {line.split(": ")[1].split()[0]: int(line.rpartition(" ")[2]) for line in said if " is process " in line}
    with contextlib.suppress(FileNotFoundError, ValueError):  # a good end removes it, at any moment; empty at first
        found["redis"] = int((home.path / "redis.pid").read_text())
    return found


def status(root: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["status", "--runs", str(root), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_head_from_the_first_word_to_the_last(
    root: Path, capsys: pytest.CaptureFixture[str], regenerate: bool
) -> None:
    """In the background, with a worker: paused, resumed, stopped, begun anew; a second one is refused."""
    started = alea(*head_words(root, "--worker", "--detach"))
    said, _ = started.communicate(timeout=150)
    assert started.returncode == 0, said
    assert "alea worker game --url redis://127.0.0.1:" in said
    assert "from this machine alone" in said
    assert "alea head stop --run it" in said
    folder = RunFolder(root / "it")
    home = Home(folder)
    secret = home.keyring().token("game-1").text
    until(lambda: status(root, capsys)["rows"] > 0)
    running = pids(root)
    assert set(running) == {"learner", "eval", "game", "redis"}
    for pid in running.values():
        assert secret not in Path(f"/proc/{pid}/cmdline").read_text(), "no secret is in a list of processes"
    for file in (home.path / "keys.json", home.path / "head.json", home.logs / "head_1.out", home.path / "users.acl"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    second = alea(*head_words(root))
    assert second.communicate(timeout=150)[0].count("has a head already: process") == 1
    assert second.returncode == 1
    assert run(["runs", "pause", "--runs", str(root)]) == 0
    until(lambda: status(root, capsys)["state"] == "paused")
    assert run(["status", "--runs", str(root)]) == 0
    words = capsys.readouterr().out
    assert "run it (tictactoe): paused" in words
    assert "game-1" in words
    assert run(["runs", "delete", "--yes", "--runs", str(root)]) == 1
    assert "is active" in capsys.readouterr().err
    assert run(["runs", "resume", "--runs", str(root)]) == 0
    found = until(lambda: now if (now := status(root, capsys))["state"] == "running" else None)
    shape = shape_of({**found, "entries": {}, "refused": {}, "losses": {}, "ratings": []})
    names = [line.partition(":")[0] for line in shape.splitlines()]  # what has a value yet depends on the moment
    check_file("json/status-head.txt", "\n".join(names), regenerate)
    token = json.loads(_printed(capsys, "worker", "token", "more", "--runs", str(root), "--json"))
    check_file("json/worker-token.txt", shape_of(token), regenerate)
    assert Token.parse(token["token"]).name == "more"
    connect(token["url"], Token.parse(token["token"])).close()
    assert "has left" in _printed(capsys, "worker", "stop", "game-1", "--runs", str(root))
    assert run(["runs", "stop", "--runs", str(root)]) == 0
    assert not any(map(_runs, running.values()))
    assert not any(map(_runs, pids(root).values()))
    found = status(root, capsys)
    assert (found["state"], found["head"]["reachable"], found["rows"] > 0) == ("stopped", False, True)
    assert run(["runs", "resume", "it", "--runs", str(root)]) == 2
    assert "alea head --run it" in capsys.readouterr().err
    assert run(["runs", "reset", "it", "--yes", "--runs", str(root)]) == 0
    assert (root / "archive" / "it-1" / "metrics.jsonl").exists()
    assert not folder.metrics_file.exists()
    assert home.keyring().token("game-1").text == secret, "its workers need no new tokens"
    assert run(["runs", "delete", "it", "--yes", "--runs", str(root)]) == 0
    assert not folder.path.exists()


def _printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert run(list(words)) == 0
    return capsys.readouterr().out


def test_one_ctrl_c_ends_it_and_what_it_needs_is_said_before(root: Path) -> None:
    process = alea(*head_words(root, "--no-evaluator"))
    until(lambda: (root / "it" / "logs" / "head_1.log").exists() and "learner" in pids(root))
    running = pids(root)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=150)
    assert process.returncode == 0, said
    assert "run it: stopped" in said
    assert not any(map(_runs, running.values()))


# A Redis that runs elsewhere, with TLS.


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of its owner, and what its certificate is checked by."""
    if find_program().bundled:
        pytest.skip("needs Redis 7 or newer: apt-get install redis-server")
    folder, secret = tmp_path / "outside", secrets.token_hex(16)
    folder.mkdir()
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    whose = ["-subj", "/CN=head", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", *kind, *whose, "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(make, check=True, capture_output=True)
    port = _free_port("127.0.0.1")
    settings = {"port": 0, "tls-port": port, "tls-auth-clients": "no", "bind": "127.0.0.1", "requirepass": secret}
    settings |= {"tls-cert-file": "cert.pem", "tls-key-file": "key.pem", "tls-ca-cert-file": "cert.pem"}
    settings |= {"appendonly": "yes", "appendfsync": "everysec", "save": '""', "maxmemory-policy": "noeviction"}
    (folder / "redis.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    log = (folder / "log").open("wb")
    process = subprocess.Popen([find_program().path, "redis.conf"], cwd=folder, stdout=log, stderr=log)
    url, ca = f"rediss://:{secret}@127.0.0.1:{port}", folder / "cert.pem"
    try:
        connect(url, None, wait=True, ca_file=ca).close()
        yield url, ca
    finally:
        process.kill()
        process.wait()
        log.close()


def test_a_redis_elsewhere_with_tls(
    root: Path, outside: tuple[str, Path], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, ca = outside
    secret = url.split("@")[0].rpartition(":")[2]
    wrong = head_words(root, "--url", url.replace(secret, "wrong"), "--ca", ca)
    began = time.monotonic()
    assert run([str(word) for word in wrong]) == 1
    assert time.monotonic() - began < 20
    assert "does not accept the user and password of the URL" in capfd.readouterr().err
    assert not root.exists(), "nothing was made"
    untrusted = head_words(root, "--url", url)
    assert run([str(word) for word in untrusted]) == 1
    assert "is the certificate trusted?" in capfd.readouterr().err
    process = alea(*head_words(root, "--worker", "--no-evaluator", "--ca", ca), ALEA_HEAD_URL=url)
    folder = RunFolder(root / "it")
    try:
        until(lambda: (folder.path / "redis" / "head.json").exists() and look(folder).get("rows", 0) > 0, 120)
        assert look(folder)["head"]["url"] == url.replace(f":{secret}@", ""), "workers need no owner's password"
        assert "appendfsync is everysec" in (folder.path / "logs" / "head_1.log").read_text()
        for pid in (process.pid, *pids(root).values()):
            assert secret not in Path(f"/proc/{pid}/cmdline").read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert f"--url {url.replace(f':{secret}@', '')} --token alea1:it:guest-1:" in said
    assert said.count(f"--ca {ca}") == 1
    with contextlib.closing(connect(url, None, ca_file=ca)) as owner:
        assert owner.client.keys("alea:it:*") != [], "what was sent outlives the head"
        assert run(["runs", "delete", "it", "--yes", "--runs", str(root)]) == 0
        assert owner.client.keys("alea:*") == []
        assert owner.client.acl_users() == ["default"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["head", "--run", "new"], "no game is named"),
        (["head", "tictactoe", "--set", "learn.batch_siz=3"], "learn.batch_siz"),
        (["head", "tictactoe", "--tls-cert", "x.pem"], "TLS needs all three"),
        (["head", "tictactoe", "--set", "evaluate.opponents=rndom"], "did you mean 'random'"),
        (["head", "tictactoe", "--set", "learn.start_from=bundled"], "learn.start_from: "),
        (["status", "--runs", "nowhere"], "there are no runs"),
        (["worker", "token", "x", "--runs", "nowhere"], "there are no runs"),
    ],
)
def test_misuse_is_explained(words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    where = [] if "--runs" in words else ["--runs", str(tmp_path)]
    assert run([*words, *where]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [], "nothing was made"
