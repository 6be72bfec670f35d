"""The registry in files: versions, a champion, and two who add at once."""

from __future__ import annotations

import threading
from pathlib import Path

import jax
import numpy as np
import pytest

from aleazero import export
from aleazero.core.errors import ConfigError, UnknownName
from aleazero.games.tictactoe import TicTacToe
from aleazero.models.build import ModelConfig, build_model
from aleazero.players import load_network
from aleazero.registry import registered_folder
from aleazero.shelf import Shelf, shelves

MODEL = build_model(ModelConfig(kind="mlp", width=8, blocks=1), TicTacToe().spec)


def put(shelf: Shelf, seed: int, score: float, opponent: str = "random") -> int:
    weights = MODEL.init(jax.random.key(seed))
    return shelf.add(lambda into: export.write(into, MODEL, weights, {}), {"opponent": opponent, "score": score})


def test_the_best_is_the_champion_and_players_find_it(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, "tictactoe")
    assert [put(shelf, 1, 0.9), put(shelf, 2, 0.8), put(shelf, 3, 0.9)] == [1, 2, 3]
    assert shelf.champion == 3, "the newer of two that are as good"
    assert put(shelf, 4, 0.1, "solver") == 4
    assert shelf.champion == 4, "another judge"
    assert shelves(tmp_path) == ["tictactoe"]
    for text, seed in (("tictactoe", 4), ("tictactoe@champion", 4), ("tictactoe@2", 2)):
        _, weights = load_network(f"registry:{text}", TicTacToe(), tmp_path)
        jax.tree.map(np.testing.assert_array_equal, weights, MODEL.init(jax.random.key(seed)))


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing is registered beside the runs"):
        registered_folder("tictactoe", tmp_path)
    put(Shelf(tmp_path, "tictactoe"), 1, 0.5)
    with pytest.raises(UnknownName, match="tictactoe"):
        registered_folder("tictacto", tmp_path)
    for alias in ("7", "best", "-1", "../1"):
        with pytest.raises(UnknownName, match="champion"):
            registered_folder(f"tictactoe@{alias}", tmp_path)


def test_a_version_that_could_not_be_written_is_none(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, "tictactoe")

    def fail(into: Path) -> None:
        (into / "weights.safetensors").write_bytes(b"half")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        shelf.add(fail, {"opponent": "random", "score": 1.0})
    assert (shelf.versions, shelf.champion) == ([], None)
    assert list((tmp_path / ".desk" / "models" / "tictactoe").iterdir()) == []


def test_two_at_once_get_a_version_each(tmp_path: Path) -> None:
    ready, found = threading.Barrier(4), []

    def add(seed: int) -> None:
        def write(into: Path) -> None:
            (into / "it").write_text(str(seed))
            ready.wait()

        found.append(Shelf(tmp_path, "x").add(write, {"opponent": "random", "score": 0.5}))

    threads = [threading.Thread(target=add, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [1, 2, 3, 4]
    texts = {(Shelf(tmp_path, "x").folder(str(version)) / "it").read_text() for version in found}
    assert texts == {"0", "1", "2", "3"}
