from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from aleazero.core.errors import UnknownName
from aleazero.games.balatro import embedding, facts
from aleazero.games.balatro.layout import new_batch
from aleazero.graph.embed import embed, write
from aleazero.graph.model import Graph, joker_graph


def test_worked_out_again_the_numbers_are_those_that_are_shipped_bit_for_bit(tmp_path: Path) -> None:
    numbers = embed(joker_graph())
    assert numbers.shape == (150, 128)
    write(numbers, tmp_path / "again.npy")
    assert (tmp_path / "again.npy").read_bytes() == embedding.FILE.read_bytes()


def test_neither_the_order_of_relations_nor_the_hash_seed_matters(tmp_path: Path) -> None:
    graph = joker_graph()
    backwards = embed(Graph(graph.nodes, graph.edges[::-1]))
    np.testing.assert_array_equal(backwards, embed(graph))
    code = "from aleazero.graph import embed, model; print(embed.embed(model.joker_graph()).tobytes()[:4096].hex())"
    told = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert told == {embed(graph).tobytes()[:4096].hex().encode() + b"\n"}


def _cosine(table: np.ndarray, a: str, b: str) -> float:
    x, y = (table[facts.number("jokers", name)].astype(np.float64) for name in (a, b))
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def test_jokers_that_need_the_same_are_nearer_than_others() -> None:
    pairs = [("Greedy Joker", "Rough Gem"), ("Baron", "Triboulet"), ("Jolly Joker", "The Duo"), ("Bull", "Bootstraps")]
    graph, permuted = embedding.table("graph"), embedding.table("permuted")
    for a, b in pairs:
        assert _cosine(graph, a, b) > 0.5
    assert np.mean([_cosine(permuted, a, b) for a, b in pairs]) < 0.3
    assert _cosine(graph, "Greedy Joker", "Perkeo") < 0.3


def test_tables_to_compare_with() -> None:
    tables = {kind: embedding.table(kind) for kind in embedding.KINDS}
    for found in tables.values():
        assert found.shape == (151, 128)
        assert not found[0].any()
        assert np.abs(found).max() <= 1.0
    assert not tables["none"].any()
    same = np.sort(tables["graph"], axis=0), np.sort(tables["permuted"], axis=0)
    np.testing.assert_array_equal(*same)
    sizes = [float(np.mean(tables[kind][1:] ** 2)) for kind in ("graph", "random")]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-4)
    with pytest.raises(UnknownName, match="graph"):
        embedding.table("grap")


def test_a_game_is_the_mean_of_its_jokers_as_the_environment_sees_it_too() -> None:
    states = new_batch(2)
    names = ["Baron", "Mime"]
    states["joker"][1, :2] = [facts.number("jokers", name) for name in names]
    states["joker"][1, 2] = 5  # what lies beyond the count is nobody's
    states["joker_count"][1] = 2
    seen = embedding.of_games(states, "graph")
    assert not seen[0].any()
    rows = embedding.table("graph")[states["joker"][1, :2]]
    np.testing.assert_allclose(seen[1], rows.mean(0), rtol=1e-6)
    np.testing.assert_array_equal(embedding.JokerEmbedding().embedding(names), seen[1])
    assert not embedding.JokerEmbedding().embedding([]).any()
