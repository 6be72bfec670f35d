from __future__ import annotations

import json
from pathlib import Path

import pytest

from aleazero.cli.main import run


def test_build_query_embed_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = str(tmp_path / "jokers.lbug")
    assert run(["graph", "build", "--database", database, "--json"]) == 0
    built = json.loads(capsys.readouterr().out)
    assert (built["nodes"]["Joker"], built["database"]) == (150, database)
    assert run(["graph", "query", "synergies", "Baron", "--database", database, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["columns"] == ["joker", "weight", "why"]
    assert "Triboulet" in [row[0] for row in found["rows"]]
    assert run(["graph", "query", "MATCH (s:Suit) RETURN s.name AS suit ORDER BY suit", "--repeat", "2"]) == 0
    assert capsys.readouterr().out.split()[:5] == ["suit", "Clubs", "Diamonds", "Hearts", "Spades"]
    assert run(["graph", "embed", "--out", str(tmp_path / "x.npy"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["as_shipped"] is True
    for more, name, there in ((["Baron"], "baron.svg", "King"), ([], "all.svg", "Baron")):
        assert run(["graph", "plot", *more, "--out", str(tmp_path / name)]) == 0
        assert there in (tmp_path / name).read_text()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["query", "synergy", "Baron"], "neither openCypher nor one of synergies"),
        (["query", "synergies"], "needs a name"),
        (["query", "synergies", "Barron"], "did you mean 'Baron'"),
        (["query", "needs", "Baron", "--repeat", "0"], "at least 1"),
        (["build", "--database", "redis://x"], "bolt"),
        (["plot", "Nobody", "--out", "x.svg"], "unknown joker"),
        (["plot", "--out", "/nowhere/x.svg"], "cannot be written"),
    ],
)
def test_mistakes_are_explained(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", *words]) == 2
    assert why in capsys.readouterr().err


def test_a_server_that_is_down_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", "build", "--database", "bolt://127.0.0.1:1", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["database"] == "memory"
    assert told.err.count("using the embedded graph") == 1
