"""Balatro from the command line: trained for a moment, measured, with and without looking ahead."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

os.environ.setdefault("ALEA_BALATRO_PLAIN", "1")  # the same functions, nothing to compile

from aleazero import checkpoint
from aleazero.assemble_ppo import choosing_seeds
from aleazero.cli.main import run
from aleazero.games.balatro.engine import seed_text
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
    line = ["eval", "balatro", "--seeds", str(seeds), "--runs", str(runs), "--beside", "random", "--json"]
    alone = []
    for player in ("run:it", "run:it,search,candidates=2,samples=1,depth=1"):
        assert run([*line, "--player", player]) == 0
        out, err = capsys.readouterr()
        found = json.loads(out)
        assert found["player"] == player
        assert found["games"] == 2
        assert 0 <= found["win_low"] <= found["win_rate"] <= found["win_high"] <= 1
        assert "1 of the seeds have fewer than 8 characters: training may have seen them" in err
        (by_chance,) = found["beside"]
        assert (by_chance["player"], by_chance["games"], by_chance["mean_ante"]) == ("random", 2, 1)
        alone.append(by_chance["decisions"])
    assert alone[0] == alone[1]  # the same runs, whoever is beside


@pytest.mark.parametrize(
    ("player", "said"),
    [
        ("run:it,serch", "did you mean 'search'"),
        ("run:it,search,depth=x", "depth is 'x'; it must be a number"),
        ("run:it,search,depth=0", "depth is 0; it must be at least 1"),
        ("run:nobody", "unknown run"),
        ("run:it@7", "unknown checkpoint"),
        ("run:", "write run:NAME"),
        ("path:nowhere", "is no exported network"),
        ("bundled:x", "names no network"),
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
        change_facts(path, game_version=2)
    assert "is of balatro version 0, not of balatro version 2" in capsys.readouterr().err


def test_seeds_that_chose_the_best_checkpoint_do_not_rate_it(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen_by = [seed_text(int(number)) for number in choosing_seeds(0, int(TINY["evaluate.games"]))]
    seeds = runs / "chosen"
    seeds.write_text(f"ALEEBALE\n{chosen_by[1]}\n")
    line = ["eval", "balatro", "--runs", str(runs), "--json"]
    assert run([*line, "--player", "run:it@best", "--seeds", str(seeds)]) == 2
    assert f"1 of the seeds, {chosen_by[1]} first, are those that run:it@best was chosen by" in capsys.readouterr().err
    assert run([*line, "--player", "run:it@best", "--seeds", "2"]) == 0
    assert json.loads(capsys.readouterr().out)["games"] == 2
    seeds.write_text("ALEEB\nNOT A SEED!\n")
    assert run([*line, "--player", "greedy", "--seeds", str(seeds)]) == 2


def test_an_exported_network_plays_as_the_run_does(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = runs / "exported"
    assert run(["export", "it", "--out", str(folder), "--runs", str(runs)]) == 0
    assert f"alea eval balatro --player path:{folder}" in capsys.readouterr().out
    facts = json.loads((folder / "manifest.json").read_text())["facts"]
    assert facts["ppo"]["rewards"]["progress"] == 0.5
    seeds = runs / "chose"
    seeds.write_text(
        "".join(f"{seed_text(int(number))}\n" for number in choosing_seeds(0, int(TINY["evaluate.games"])))
    )
    assert run(["eval", "balatro", "--player", f"path:{folder}", "--seeds", str(seeds)]) == 2
    assert f"2 of the seeds, {seeds.read_text().split()[0]} first" in capsys.readouterr().err
    played = []
    for player in ("run:it", f"path:{folder}"):
        looking = f"{player},search,candidates=2,samples=1,depth=1"
        assert run(["eval", "balatro", "--player", looking, "--seeds", "2", "--runs", str(runs), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        played.append((found["decisions"], found["mean_rounds"]))
    assert played[0] == played[1]


def test_memory_of_a_run_is_told(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", "it", "--memory", "--runs", str(runs), "--json"]) == 0
    memory = json.loads(capsys.readouterr().out)["memory"]
    assert 2**20 < memory["bytes"] <= memory["most_bytes"] < memory["cap_bytes"] == 8 * 2**30
    assert run(["status", "it", "--memory", "--runs", str(runs)]) == 0
    assert "of 8.00 GiB that it may take" in capsys.readouterr().out


def test_where_the_time_goes_is_told(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = [part for key, value in TINY.items() for part in ("--set", f"{key}={value}")]
    line = ["train", "balatro", "--preset", "classic", "--runs", str(runs), "--name", "timed", "--profile", "--json"]
    assert run([*line, *sets, "--set", "total_rows=1000"]) == 0
    found = json.loads(capsys.readouterr().out)["profile"]
    assert sum(found["shares"].values()) == pytest.approx(1)
    assert {"network", "update"} <= found["shares"].keys()
    assert 0 < found["device_share"] <= 1


def test_self_play_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["bench", "selfplay", "--game", "balatro", "--games", "1", "--preset", "classic", "--single-batch", "2"]
    sets = ["--set", "model.width=16", "--set", "selfplay.moves_per_rollout=16", "--set", "learn.batch_size=8"]
    began = time.monotonic()
    assert run([*line, *sets, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["game"], found["batch"], found["unit"]) == ("selfplay", "balatro", 2, "decisions/s")
    assert found["games"] >= 1
    assert found["decisions"] % 32 == 0  # whole fragments: 2 games of 16 moves
    assert found["decisions"] >= 4 * found["games"]  # a blind, and four hands at least before it is lost
    assert found["throughput"] == pytest.approx(found["decisions"] / found["seconds"])
    assert found["games_per_minute"] == pytest.approx(60 * found["games"] / found["seconds"])
    assert 0 < found["seconds"] < time.monotonic() - began
    assert 1 <= found["mean_ante"] < 2  # an untrained network


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["bench", "mcts", "--game", "balatro"], "kind is 'mcts'"),
        (["bench", "selfplay", "--game", "balatro", "--discover"], "discover is True"),
        (["bench", "selfplay", "--game", "balatro", "--games", "0"], "games is 0"),
        (["bench", "selfplay", "--game", "tictactoe", "--games", "5"], "games that run on the host"),
    ],
)
def test_what_cannot_be_measured_is_said(line: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line) == 2
    assert said in capsys.readouterr().err


def test_the_doctor_examines_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "balatro", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["failed"] == 0
    assert {"balatro"} == {finding["game"] for finding in found["findings"]}
