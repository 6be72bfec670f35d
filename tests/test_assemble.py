"""What is joined: a teacher plays and opines in place of the run's own network, and is what the run learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero import export
from aleazero.assemble import Parts, build_parts
from aleazero.config import resolve
from aleazero.core.errors import AleaError
from aleazero.games.registry import make_game
from aleazero.models.build import ModelConfig, build_model

pytestmark = pytest.mark.slow

SMALL = (
    *("model.width=8", "model.blocks=0", "search.max_simulations=2", "selfplay.fast_simulations=1"),
    *("selfplay.num_games=8", "selfplay.moves_per_rollout=6", "selfplay.random_plies=0", "replay.capacity_rows=480"),
    *("replay.min_rows=32", "learn.batch_size=16", "targets.opinion=network", "targets.search_mix=1.0"),
    *("targets.td_lambda=0.5", "targets.wait=false", "total_rows=480"),
)


def parts_of(*changes: str, game: str = "tictactoe") -> Parts:
    return build_parts(resolve(game, preset="quick", environ={}, assignments=[*SMALL, *changes]))


def teacher_in(folder: Path, game: str = "tictactoe", **options: Any) -> tuple[Any, Any]:
    """An exported network whose opinions differ from position to position."""
    made = make_game(game)
    model = build_model(ModelConfig(kind="mlp", width=16, blocks=1, **options), made.spec)  # type: ignore[arg-type]
    weights = jax.tree.map(lambda w: 3.0 * w + 0.01, jax.jit(model.init)(jax.random.key(7)))
    export.write(folder, model, weights, {})
    return model, weights


def test_a_teacher_plays_and_opines_and_its_opinions_are_the_targets(tmp_path: Path) -> None:
    model, weights = teacher_in(tmp_path / "large")
    parts = parts_of(f"selfplay.teacher=path:{tmp_path / 'large'}")
    assert parts.model.config.width == 8  # the run's own network stays as it was asked for
    play, own = parts.make_play(), parts.start_learning().weights
    _, slab = play(own, parts.start_games(), parts.pace(0), jnp.uint32(0))
    observe = jax.jit(jax.vmap(jax.vmap(lambda row: parts.game.observe(parts.game.unpack(row)))))
    seen = observe(slab.state)
    said = np.asarray(model.opinion(weights, seen.reshape(-1, *seen.shape[2:]))).reshape(slab.opinion.shape)
    np.testing.assert_allclose(slab.opinion, said, atol=2e-3)
    assert np.ptp(said[..., 0]) > 0.05
    _, other = play(jax.tree.map(lambda w: w - 1.0, own), parts.start_games(), parts.pace(0), jnp.uint32(0))
    jax.tree.map(np.testing.assert_array_equal, slab, other)  # whatever the run itself has learned
    replay = parts.make_replay()
    replay.add(slab)
    rows = replay.sample(0, 4)
    observed = observe(rows.state)
    wanted = np.asarray(model.opinion(weights, observed.reshape(-1, *observed.shape[2:])))
    np.testing.assert_allclose(rows.target.reshape(wanted.shape), wanted, atol=2e-3)


def test_teachers_that_cannot_teach_are_refused(tmp_path: Path) -> None:
    teacher_in(tmp_path / "pig", game="pig")
    teacher_in(tmp_path / "mute", policy=False)
    for name, said in (
        (f"path:{tmp_path / 'nowhere'}", "nowhere is no exported network"),
        ("random", "'random' names no network; write bundled, run:NAME"),
        (f"path:{tmp_path / 'pig'},sims=4", "names no network"),
        (f"path:{tmp_path / 'pig'}", "pig"),
        (f"path:{tmp_path / 'mute'}", "which has no policy: model.policy must be the same"),
    ):
        with pytest.raises(AleaError, match=said):
            parts_of(f"selfplay.teacher={name}")
