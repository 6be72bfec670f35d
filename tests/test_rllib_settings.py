"""RLlib's names for settings, old and new."""

from __future__ import annotations

from pathlib import Path

import pytest

from aleazero.config import RunConfig, resolve
from aleazero.core.errors import ConfigError


def settings(*assignments: str, file: Path | None = None) -> tuple[RunConfig, list[str]]:
    notes: list[str] = []
    given = ["runtime=rllib", *assignments]
    return resolve("balatro", preset="quick", file=file, assignments=given, environ={}, note=notes.append), notes


def test_old_names_are_ours_with_a_note() -> None:
    config, notes = settings(
        *("num_workers=3", "num_envs_per_worker=8", "sgd_minibatch_size=64", "rllib.num_sgd_iter=5", "lr=0.0003"),
        *("train_batch_size=2400", "rllib.lambda=0.9", "num_gpus_per_worker=0.1"),
    )
    assert (config.ray.workers, config.selfplay.num_games, config.selfplay.moves_per_rollout) == (3, 8, 100)
    assert (config.learn.batch_size, config.ppo.epochs, config.ppo.gae_lambda) == (64, 5, 0.9)
    assert config.learn.learning_rate.at(10**9, 10**9) == config.learn.learning_rate.end == 0.0003
    assert config.ray.player_gpu == 0.1
    assert "num_workers is ray.workers here: 3" in notes
    assert "train_batch_size 2400 is selfplay.moves_per_rollout here: 100, in each of 8 games of 3 runners" in notes
    assert len(notes) == 8


def test_a_file_may_have_a_table_of_them(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[rllib]\nnum_env_runners = 2\nclip_param = 0.3\n")
    config, notes = settings(file=file)
    assert (config.ray.workers, config.ppo.clip) == (2, 0.3)
    assert len(notes) == 2


def test_what_is_said_later_stands(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("train_batch_size = 2400\nnum_workers = 3\n[selfplay]\nnum_games = 8\n")
    assert settings(file=file)[0].selfplay.moves_per_rollout == 100
    assert settings("selfplay.moves_per_rollout=64", file=file)[0].selfplay.moves_per_rollout == 64
    file.write_text("num_workers = 3\n[ray]\nworkers = 2\n")
    config, notes = settings(file=file)
    assert (config.ray.workers, notes) == (2, [])


def test_what_is_unknown_or_too_small_is_said() -> None:
    with pytest.raises(ConfigError, match="did you mean 'num_workers'"):
        settings("rllib.num_worker=2")
    with pytest.raises(ConfigError, match="train_batch_size is 100; 2 runners of 128 games play 256 rows at least"):
        settings("num_workers=2", "train_batch_size=100")
    with pytest.raises(ConfigError, match="train_batch_size is 'many'; it must be a whole number"):
        settings("train_batch_size=many")
    with pytest.raises(ConfigError, match="it must be a table of RLlib's settings"):
        settings("rllib=2")


def test_elsewhere_they_are_unknown() -> None:
    with pytest.raises(ConfigError, match="num_workers"):
        resolve("balatro", preset="quick", assignments=["num_workers=2"], environ={})


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("algorithm=search", "learns by PPO"),
        ("model.kind=cnn", "'balatro', 'balatro_rows' and 'mlp'"),
        ("learn.weight_decay=0.1", "does without it"),
        ("rewards.first_ante=2", "plays whole games"),
        ("learn.accumulate=2", "needs 1"),
        ("ray.player_gpu=-1", "at least 0"),
    ],
)
def test_what_rllib_does_without_is_refused(assignment: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        settings(assignment)
