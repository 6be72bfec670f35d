"""Balatro from the command line: trained for a moment, measured, with and without looking ahead."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

os.environ.setdefault("ALEA_BALATRO_PLAIN", "1")  # the same functions, nothing to compile

from aleazero import checkpoint
from aleazero.cli.main import run
from aleazero.runs import RunFolder
from tests.games.conftest import quick_compile  # noqa: F401
from tests.runtimes.support import change_facts

pytestmark = pytest.mark.usefixtures("quick_compile")

TINY = {
    **{"total_rows": "48", "model.width": "16", "selfplay.num_games": "2", "selfplay.moves_per_rollout": "8"},
    **{"learn.batch_size": "8", "ppo.epochs": "1", "evaluate.games": "2", "rewards.progress": "0.5"},
    **{"ppo.teacher": "greedy", "ppo.teacher_rows": "16", "rewards.first_ante": "1", "evaluate.every_rows": "0"},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    sets = [part for key, value in TINY.items() for part in ("--set", f"{key}={value}")]
    assert run(["train", "balatro", "--preset", "classic", "--runs", str(root), "--name", "it", "--json", *sets]) == 0
    return root


def test_a_run_is_taught_then_follows_its_own_advantages(runs: Path) -> None:
    lines = (runs / "it" / "metrics.jsonl").read_text().splitlines()
    reports = [record for record in map(json.loads, lines) if record["kind"] == "ppo"]
    assert reports[-1]["rows"] == 48
    assert reports[-1]["horizon"] == 1
    assert set(reports[-1]["rewards"]) == {"points", "progress"}
    assert reports[-1]["memory_bytes"] < reports[-1]["memory_cap_bytes"]
    evals = [record for record in map(json.loads, lines) if record["kind"] == "eval"]
    assert evals[-1]["details"]["mean_ante"] >= 1


def test_its_network_is_measured_beside_the_baselines(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = runs / "seeds"
    seeds.write_text("ALEEBALE\nSHORT\n")
    line = ["eval", "balatro", "--seeds", str(seeds), "--runs", str(runs), "--json"]
    for player in ("run:it", "run:it,search,candidates=2,samples=1,depth=1"):
        assert run([*line, "--player", player]) == 0
        out, err = capsys.readouterr()
        found = json.loads(out)
        assert found["player"] == player
        assert found["games"] == 2
        assert 0 <= found["win_low"] <= found["win_rate"] <= found["win_high"] <= 1
        assert "1 of the seeds have fewer than 8 characters: training may have seen them" in err


@pytest.mark.parametrize(
    ("player", "said"),
    [
        ("run:it,serch", "did you mean 'search'"),
        ("run:it,search,depth=x", "depth is 'x'; it must be a number"),
        ("run:it,search,depth=0", "depth is 0; it must be at least 1"),
        ("run:nobody", "unknown run"),
        ("run:it@7", "unknown checkpoint"),
        ("run:", "write run:NAME"),
    ],
)
def test_players_that_are_none_are_named(
    runs: Path, player: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", "balatro", "--player", player, "--games", "1", "--runs", str(runs)]) != 0
    assert said in capsys.readouterr().err


def test_a_checkpoint_of_another_observation_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = RunFolder(runs / "it").checkpoints
    path = root / f"{checkpoint.steps(root)[-1]:012d}"
    change_facts(path, game_version=0)
    try:
        assert run(["eval", "balatro", "--player", "run:it", "--games", "1", "--runs", str(runs)]) != 0
    finally:
        change_facts(path, game_version=1)
    assert "is of balatro version 0, not of balatro version 1" in capsys.readouterr().err
