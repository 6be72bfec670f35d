"""Experiments over runs of a game for one: what they are compared by, and what they cannot be asked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("ALEA_BALATRO_PLAIN", "1")  # the same functions, nothing to compile

from aleazero.cli.experiment import report
from aleazero.core.errors import ConfigError
from aleazero.experiment.plan import read_plan
from aleazero.experiment.run import run_experiment
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compile")]

ROOT = Path(__file__).parents[1]
ALONE = """
name = "alone"
game = "balatro"
preset = "classic"
seeds = [0]
[base]
total_rows = 64
model = { kind = "balatro", width = 16 }
selfplay = { num_games = 4, moves_per_rollout = 8 }
learn = { batch_size = 16 }
ppo = { epochs = 1 }
evaluate = { every_rows = 32, games = 2 }
[variants.classic]
[variants.quick]
preset = "quick"
"""


def test_runs_of_a_game_for_one_are_compared_by_how_far_they_came(tmp_path: Path) -> None:
    file = tmp_path / "alone.toml"
    file.write_text(ALONE)
    plan = read_plan(file)
    assert [measure.name for measure in plan.measures] == ["points", "wins", "mean ante", "ante-1 clear"]
    assert [config.rewards.win for config in plan.configs.values()] == [0.0, 5.0]
    result = run_experiment(plan, tmp_path / "out", "x", lambda line: None)
    found = result["variants"]["quick"]["measures"]
    assert 1 <= found["mean ante"]["final"]["low"] <= found["mean ante"]["final"]["value"] <= 8
    assert 0 <= found["ante-1 clear"]["final"]["value"] <= 1
    assert len(found["wins"]["curves"]["rows"]["mean"]) == 2
    assert "difference" in found["points"]  # in time only where one run is not over before the other reports
    assert "ante-1 clear" in "\n".join(report(result))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('preset = "quick"', 'preset = "quik"'), "unknown preset 'quik'"),
        (("seeds = [0]", 'seeds = [0]\nmeasure = ["random"]'), "balatro is for one: write 'nobody'"),
        (("seeds = [0]", "seeds = [0]\nrate = true"), "balatro is not solved"),
    ],
)
def test_what_a_game_for_one_cannot_be_asked(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    file = tmp_path / "alone.toml"
    file.write_text(ALONE.replace(*change))
    with pytest.raises(ConfigError, match=said):
        read_plan(file)


def test_the_experiment_of_the_results_can_be_run() -> None:
    plan = read_plan(ROOT / "docs" / "results" / "experiments" / "balatro-ppo.toml")
    assert list(plan.configs) == ["classic", "tuned"]
    assert plan.configs["classic"].learn.batch_size == 128
