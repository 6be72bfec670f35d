"""Against a real Bolt server."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from aleazero.core.errors import ConfigError
from aleazero.graph import bolt
from aleazero.graph.bolt import AUTH, Bolt
from aleazero.graph.model import joker_graph
from aleazero.graph.queries import NAMED, synergies
from aleazero.graph.store import Embedded, GraphError, Unreachable, open_store
from tests.graph import bolt_server

pytestmark = pytest.mark.slow

Server = tuple[str, "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("bolt")
    with open(folder / "told.txt", "w") as log:
        process = subprocess.Popen(
            [sys.executable, bolt_server.__file__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        hung = threading.Timer(120, process.kill)  # then its output ends, and the test with it
        hung.start()
        try:
            port = process.stdout.readline().strip()
            assert port.isdecimal(), (folder / "told.txt").read_text()[-2000:]
            hung.cancel()
            yield f"127.0.0.1:{port}/{bolt_server.DATABASE}", process
        finally:
            hung.cancel()
            process.stdin.close()
            process.stdout.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(60)


def _url(server: Server) -> str:
    return f"bolt://{bolt_server.USER}:{bolt_server.PASSWORD}@{server[0]}"


def test_the_server_answers_as_the_embedded_graph_does(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(AUTH, f"{bolt_server.USER}:{bolt_server.PASSWORD}")
    said: list[str] = []
    embedded = Embedded()
    with open_store(f"bolt://{server[0]}", said.append) as store:
        with pytest.raises(ConfigError, match="alea graph build"):
            store.query("MATCH (j:Joker) RETURN count(j) AS n")
        store.build(joker_graph())
        store.query("CREATE (:Joker {name: 'of somebody else'})")
        store.query("CREATE (:Joker {name: 'of somebody else'})")  # their names are their own affair
        store.build(joker_graph())  # stands in place of the first
        ours = store.query("MATCH (n {source: 'aleazero'}) RETURN count(n) AS n").rows
        assert ours == [[len(joker_graph().nodes)]]
        assert store.name.startswith("bolt://127.0.0.1")
        assert bolt_server.PASSWORD not in store.name
        for name in ("Baron", "Marble Joker"):
            assert synergies(store, name) == synergies(embedded, name)
        for text in (NAMED["needs"][1], NAMED["for"][1]):
            for name in ("Baron", "Diamonds"):
                mine, theirs = store.query(text, {"name": name}), embedded.query(text, {"name": name})
                assert not mine.rows or mine.columns == theirs.columns  # this server names none of an empty answer's
                assert sorted(map(str, mine.rows)) == sorted(map(str, theirs.rows))
        # What is not ours stays.
        assert store.query("MATCH (j:Joker) WHERE j.source IS NULL RETURN j.name AS n").rows == [
            ["of somebody else"],
            ["of somebody else"],
        ]
        # A build that fails leaves the one before.
        monkeypatch.setattr(bolt, "edge_rows", lambda graph: iter([("NO KIND", "Joker", "Suit", [])]))
        with contextlib.closing(Bolt(_url(server))) as bare:
            with pytest.raises(Unreachable, match="cannot hold"):
                bare.build(dataclasses.replace(joker_graph(), nodes=joker_graph().nodes[:150]))
            assert bare.query("MATCH (n {source: 'aleazero'}) RETURN count(n) AS n").rows == ours
        with pytest.raises(GraphError, match="cannot be answered"):
            store.query("MATCH (n RETURN")
    assert not said


def test_another_dialect_and_a_wrong_password_lead_to_the_embedded_graph(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    with open_store(f"bolt://root:wrong@{server[0]}", said.append) as store:
        assert store.name == "memory"
        assert synergies(store, "Baron")
    assert len(said) == 1
    assert "wrong@" not in said[0]
    # Memgraph's words are none of this server's: as if we knew no others.
    monkeypatch.setattr(bolt, "DIALECTS", {"memgraph": bolt.DIALECTS["memgraph"]})
    with contextlib.closing(Bolt(_url(server))) as bare, pytest.raises(Unreachable, match="dialect"):
        bare.build(joker_graph())
    said.clear()
    with open_store(_url(server), said.append) as store:
        store.build(joker_graph())
        assert store.name == "memory"
        assert synergies(store, "Baron")
        assert synergies(store, "Mime") is not None
    assert len(said) == 1
    assert "using the embedded graph" in said[0]


def test_a_server_that_is_down_or_no_bolt_server_leads_to_the_embedded_graph() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        nobody = held.getsockname()[1]
    said: list[str] = []
    with open_store(f"bolt://127.0.0.1:{nobody}", said.append) as store:
        assert synergies(store, "Baron")
        assert store.name == "memory"
    assert len(said) == 1
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            caller, _ = other.accept()
            caller.recv(64)
            caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            caller.close()

        thread = threading.Thread(target=answer)
        thread.start()
        said.clear()
        with open_store(f"bolt://127.0.0.1:{other.getsockname()[1]}", said.append) as store:
            assert store.name == "memory"
        thread.join()
    assert len(said) == 1


class Wire:
    """A way to the server that can be cut."""

    def __init__(self, host: str, port: int) -> None:
        self._door = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._door.getsockname()[1]}"
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._welcome, args=(host, port))]
        self._threads[0].start()

    def _welcome(self, host: str, port: int) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._door.accept()
                far = socket.create_connection((host, port))
                self._ends += [near, far]
                for source, target in ((near, far), (far, near)):
                    self._threads.append(threading.Thread(target=_pump, args=(source, target)))
                    self._threads[-1].start()

    def cut(self) -> None:
        for end in (self._door, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in (self._door, *self._ends):
            end.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while held := source.recv(65536):
            target.sendall(held)


def test_a_server_that_goes_away_is_said_once(server: Server) -> None:
    address, _, database = server[0].partition("/")
    host, _, port = address.partition(":")
    wire = Wire(host, int(port))
    said: list[str] = []
    url = f"bolt://{bolt_server.USER}:{bolt_server.PASSWORD}@{wire.address}/{database}"
    with open_store(url, said.append) as store:
        store.build(joker_graph())
        before = synergies(store, "Baron")
        assert not said
        wire.cut()
        assert synergies(store, "Baron") == before
        assert synergies(store, "Baron") == before
    assert len(said) == 1


def test_mistakes_are_told_without_a_password() -> None:
    with pytest.raises(ConfigError, match="no host"):
        Bolt("bolt:///x")
    for url in ("bolt://h:99999", "bolt://user:se/cret@h:7687", "bolt://user:[secret@h"):
        with pytest.raises(ConfigError, match="no port") as told:
            Bolt(url)
        assert "se" not in str(told.value).replace("database", "")
