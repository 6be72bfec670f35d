from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import pytest

from aleazero.core.errors import ConfigError, MissingExtra, UnknownName
from aleazero.graph.model import joker_graph
from aleazero.graph.queries import NAMED, synergies
from aleazero.graph.store import Embedded, GraphError, open_store


@pytest.fixture(scope="module")
def memory() -> Embedded:
    return Embedded()


def test_the_database_holds_the_graph(memory: Embedded) -> None:
    graph = joker_graph()
    assert memory.query("MATCH (n) RETURN count(n)").rows == [[len(graph.nodes)]]
    assert memory.query("MATCH ()-[r]->() RETURN count(r)").rows == [[len(graph.edges)]]
    found = memory.query("MATCH (j:Joker {name: $name}) RETURN j.rarity AS rarity, j.cost AS cost", {"name": "Baron"})
    assert (found.columns, found.rows) == (("rarity", "cost"), [["Rare", 8]])


def test_synergies_say_over_what(memory: Embedded) -> None:
    found = {one.joker: one for one in synergies(memory, "Stone Joker")}
    assert found["Marble Joker"].reasons == ("makes what it needs: enh:Stone",)
    back = {one.joker: one for one in synergies(memory, "Marble Joker")}
    assert back["Stone Joker"].reasons == ("needs what it makes: enh:Stone",)
    assert "both need: Diamonds" in {one.joker: one for one in synergies(memory, "Greedy Joker")}["Rough Gem"].reasons
    weights = [one.weight for one in synergies(memory, "Scary Face")]
    assert weights == sorted(weights, reverse=True)
    with pytest.raises(UnknownName, match="Baron"):
        synergies(memory, "Barron")


def test_every_named_query_is_understood(memory: Embedded) -> None:
    for name, (_, text) in NAMED.items():
        assert memory.query(text, {"name": "Diamonds" if name == "for" else "Baron"}).rows


def test_what_cannot_be_answered_says_why(memory: Embedded, tmp_path: Path) -> None:
    for text in ("MATCH (x:Jokr) RETURN x", "MATCH (x RETURN", ""):
        with pytest.raises(GraphError, match="cannot be answered"):
            memory.query(text)
    (tmp_path / "other").write_bytes(b"no database")
    for database, why in (
        (str(tmp_path / "other"), "no joker graph"),
        ("http://localhost", "bolt"),
        ("bolt://", "no host"),
    ):
        with pytest.raises(ConfigError, match=why), open_store(database, pytest.fail) as store:
            store.query("RETURN 1")


def test_a_file_is_written_whole_read_only_and_built_anew(tmp_path: Path) -> None:
    database = str(tmp_path / "jokers.lbug")
    with open_store(database, pytest.fail) as store, pytest.raises(ConfigError, match="alea graph build"):
        store.query("RETURN 1")
    for _ in range(2):
        with open_store(database, pytest.fail) as store:
            store.build(joker_graph())
            assert store.query("MATCH (j:Joker) RETURN count(j)").rows == [[150]]
    with open_store(database, pytest.fail) as store:
        with pytest.raises(GraphError, match="read-only"):
            store.query("MATCH (j:Joker) DELETE j")
        assert len(synergies(store, "Baron")) > 5
    assert [path.name for path in tmp_path.iterdir()] == ["jokers.lbug"]
    with open_store(str(tmp_path / "nowhere" / "x"), pytest.fail) as store, pytest.raises(ConfigError, match="folder"):
        store.build(joker_graph())


@pytest.mark.parametrize(("package", "database"), [("ladybug", "memory"), ("neo4j", "bolt://localhost")])
def test_what_is_missing_is_said_with_how_to_install_it(
    package: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"aleazero\[balatro\]"), open_store(database, pytest.fail):
        pass


@pytest.mark.speed
def test_building_and_asking_are_quick(memory: Embedded) -> None:
    """5 s and 5 ms are promised."""
    joker_graph.cache_clear()
    started = time.perf_counter()
    Embedded()
    assert time.perf_counter() - started < 5.0
    text = "MATCH (a:Joker {name: $name})-[:NEEDS]->(t) RETURN t.name"
    took = []
    for _ in range(40):
        started = time.perf_counter()
        memory.query(text, {"name": "Baron"})
        took.append(time.perf_counter() - started)
    assert statistics.median(took) < 0.005
