"""A new run begins with another network's weights, if it has its shape; a resumed one does not ask for it again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from aleazero.core.errors import ConfigError
from aleazero.games.registry import make_game
from aleazero.host_players import load_player
from aleazero.players import load_network
from aleazero.runtimes.start import resume, start
from tests.runtimes import test_ppo
from tests.runtimes.support import tiny

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a run is kept that has learned something."""
    root = tmp_path_factory.mktemp("runs")
    start(tiny("total_rows=640"), root, name="first", quiet=True)
    return root


def weights_of(name: str, root: Path) -> list[np.ndarray]:
    _, weights = load_network(f"run:{name}", make_game("tictactoe"), root)  # type: ignore[arg-type]
    return [np.asarray(leaf) for leaf in jax.tree.leaves(weights)]


def same(one: list[np.ndarray], other: list[np.ndarray], **near: Any) -> bool:
    return all(np.allclose(a, b, **near) for a, b in zip(one, other, strict=True))


def test_a_run_begins_with_another_networks_weights(root: Path) -> None:
    """One rollout is too few to learn from, so that the run ends with what it began with."""
    start(tiny("total_rows=128", "learn.start_from=run:first", "seed=5"), root, name="second", quiet=True)
    assert same(weights_of("second", root), weights_of("first", root), rtol=0, atol=0)
    start(tiny("total_rows=128", "seed=5"), root, name="fresh", quiet=True)
    assert not same(weights_of("fresh", root), weights_of("first", root), atol=1e-3)


def test_it_learns_from_there_and_goes_on_without_it(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "first", tmp_path / "first")
    start(tiny("total_rows=640", "learn.start_from=run:first"), tmp_path, name="second", quiet=True)
    assert not same(weights_of("second", tmp_path), weights_of("first", tmp_path), atol=1e-3)
    shutil.rmtree(tmp_path / "first")
    assert resume("second", tmp_path, assignments=["total_rows=1280"], quiet=True).status == "done"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (("learn.start_from=run:first", "model.width=24"), "model.width is 16 there and 24 here"),
        (("learn.start_from=run:frist",), "learn.start_from: .*did you mean 'first'"),
        (("learn.start_from=bundled",), "learn.start_from: .*tictactoe"),
        (("learn.start_from=random",), "learn.start_from: .*names no network"),
    ],
)
def test_a_network_that_does_not_fit_is_refused_before_anything_is_made(
    root: Path, settings: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        start(tiny(*settings), root, name="never", quiet=True)
    assert not (root / "never").exists()


def test_policy_gradients_begin_with_one_too(tmp_path: Path) -> None:
    start(test_ppo.tiny("total_rows=256"), tmp_path, name="first", quiet=True)
    still = ("learn.learning_rate.start=1e-12", "learn.learning_rate.end=1e-12", "learn.weight_decay=0", "seed=5")
    start(test_ppo.tiny("total_rows=128", "learn.start_from=run:first", *still), tmp_path, name="second", quiet=True)
    first, second = (
        [np.asarray(leaf) for leaf in jax.tree.leaves(load_player(f"run:{name}", "gym:CartPole-v1", tmp_path).weights)]
        for name in ("first", "second")
    )
    assert same(first, second, atol=1e-6)
