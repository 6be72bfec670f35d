"""`alea train`: what it shows and refuses before it trains, and what it says afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import chess
import jax
import pytest

from aleazero.cli.main import run
from aleazero.cli.train import tell
from aleazero.config import resolve
from aleazero.core.game import Game
from aleazero.core.settings import flatten
from aleazero.games.registry import make_game
from aleazero.observe.jsonl import read_jsonl
from aleazero.observe.reports import EvalReport
from aleazero.players import load_run_weights
from aleazero.runs import RunFolder
from aleazero.runtimes.start import Finished
from tests.cli.conftest import TINY, Alea
from tests.frozen.shape import check_file, shape_of
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")


def test_one_object_says_what_came_of_it(trained: Path) -> None:
    (line,) = (trained / "said").read_text().splitlines()
    report = json.loads(line)
    assert (report["run"], report["status"], report["folder"]) == ("tiny", "done", str(trained / "tiny"))
    matches = [record for record in read_jsonl(trained / "tiny" / "metrics.jsonl") if record["kind"] == "eval"]
    (rating,) = report["ratings"]
    assert rating == {key: matches[-1][key] for key in rating}
    assert Path(report["plot"]).is_file()


def test_a_profile_is_in_the_report_and_the_run_can_go_on(
    alea: Alea,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    regenerate: bool,
) -> None:
    monkeypatch.setattr("aleazero.runtimes.profile.SECONDS", 0.0)
    settings = [text for key, value in TINY.items() for text in ("--set", f"{key}={value}")]
    where = ["--runs", str(tmp_path)]
    try:
        report = alea("train", "tictactoe", "--preset", "quick", "--name", "it", "--profile", *where, *settings)
    finally:
        jax.config.update("jax_compilation_cache_include_metadata_in_key", False)
    assert report["status"] == "stopped"
    check_file("json/train-profile.txt", shape_of(report["profile"], ("shares", "kernels")), regenerate)
    assert sum(report["profile"]["shares"].values()) == pytest.approx(1.0)
    assert Path(report["profile"]["trace"]).is_file()
    assert "profile = true" not in (tmp_path / "it" / "config.toml").read_text()
    assert run(["runs", "resume", "nothing", "--profile", *where]) == 2
    assert "nothing" in capsys.readouterr().err
    assert alea("runs", "resume", "it", *where)["profile"] is None


# ---- flags


def demo(alea: Alea, *flags: str) -> dict[str, Any]:
    return alea("train", "chess", "--preset", "demo", "--print-config", *flags)


def test_the_demo_is_what_its_flags_say(alea: Alea) -> None:
    flags = (
        "--episodes 4 --batch-size 16 --checkpoint-interval 2 --exploration-rate 0.1 --seed 7 --grad-accum-steps 1 "
        "--mcts-simulations 32 --mcts-cpuct 1.5 --producer-workers 0 --producer-queue-size 16 "
        "--producer-device cpu --no-amp"
    )
    assert demo(alea, *flags.split()) == demo(alea)


def test_each_flag_is_a_setting(alea: Alea) -> None:
    plain = demo(alea)
    flags = {
        "--episodes 9": ("total_games", 9),
        "--batch-size 32": ("learn.batch_size", 32),
        "--checkpoint-interval 3": ("checkpoint.every_games", 3),
        "--exploration-rate 0.25": ("selfplay.epsilon", 0.25),
        "--seed 8": ("seed", 8),
        "--learning-rate 0.5": ("learn.learning_rate.start", 0.5),
        "--l2 0.125": ("learn.weight_decay", 0.125),
        "--mcts-simulations 5": ("search.max_simulations", 5),
        "--mcts-cpuct 2.5": ("selfplay.exploration", 2.5),
        "--producer-workers 2": ("producers.workers", 2),
        "--producer-queue-size 2": ("producers.queue_size", 2),
        "--producer-device auto": ("producers.device", "auto"),
        "--amp": ("model.compute", "bfloat16"),
    }
    words = [word for flag in flags for word in flag.split()]
    found = demo(alea, *words)
    for path, value in flags.values():
        at, before = found, plain
        for key in path.split("."):
            at, before = at[key], before[key]
        assert (path, at) == (path, value)
        assert before != value


def test_a_learning_rate_is_constant(alea: Alea) -> None:
    found = alea("train", "chess", "--print-config", "--learning-rate", "0.25")["learn"]["learning_rate"]
    assert (found["start"], found["end"], found["warmup_rows"]) == (0.25, 0.25, 0)


def test_an_exploration_that_nobody_heeds_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "chess", "--preset", "quick", "--print-config", "--mcts-cpuct", "2"]) == 2
    assert "--mcts-cpuct is PUCT's; search.kind is 'gumbel'" in capsys.readouterr().err


def test_rows_do_not_end_a_run_before_its_episodes(alea: Alea, monkeypatch: pytest.MonkeyPatch) -> None:
    few = ["train", "tictactoe", "--preset", "quick", "--print-config", "--set", "selfplay.num_games=32"]
    plain = alea(*few)["total_rows"]
    assert alea(*few, "--episodes", "4")["total_rows"] == plain
    many = plain  # no game is over after one move
    assert alea(*few, "--episodes", many)["total_rows"] >= many * 9
    assert alea(*few, "--episodes", many, "--set", "total_rows=5000")["total_rows"] == 5000
    monkeypatch.setenv("ALEA_TOTAL_ROWS", "6000")
    assert alea(*few, "--episodes", many)["total_rows"] == 6000


CYCLE = {  # variables of the demo's cycle, with values unlike the preset's: the setting, and what it becomes
    "EPISODES": ("200", "total_games", 200),
    "BATCH_SIZE": ("32", "learn.batch_size", 128),  # an update is of so many batches as the next one says
    "GRAD_ACCUM_STEPS": ("4", "learn.accumulate", 4),
    "CHECKPOINT_INTERVAL": ("3", "checkpoint.every_games", 3),
    "EXPLORATION_RATE": ("0.25", "selfplay.epsilon", 0.25),
    "SEED": ("8", "seed", 8),
    "LEARNING_RATE": ("0.5", "learn.learning_rate.start", 0.5),
    "L2": ("0.125", "learn.weight_decay", 0.125),
    "MCTS_SIMULATIONS": ("5", "search.max_simulations", 5),
    "MCTS_CPUCT": ("2.5", "selfplay.exploration", 2.5),
    "PRODUCER_WORKERS": ("2", "producers.workers", 2),
    "PRODUCER_QUEUE_SIZE": ("2", "producers.queue_size", 2),
    "PRODUCER_DEVICE": ("auto", "producers.device", "auto"),
    "NO_AMP": ("0", "model.compute", "bfloat16"),
}


def cycle(*words: str, alea: Path, **given: str) -> subprocess.CompletedProcess[str]:
    script = Path(__file__).parents[2] / "scripts" / "demo" / "run_training_cycle.sh"
    environment = os.environ | given | {"ALEA": str(alea)}
    return subprocess.run([script, *words], env=environment, capture_output=True, text=True, cwd=alea.parent)


def program(path: Path, lines: str) -> Path:
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


def test_the_cycle_is_set_by_the_environment(tmp_path: Path) -> None:
    real = program(tmp_path / "alea", f'exec {sys.executable} -m aleazero.cli.main "$@"')
    given = {name: value for name, (value, _, _) in CYCLE.items()}
    found = cycle("--print-config", "--json", alea=real, **given)
    assert found.returncode == 0, found.stderr
    settings, plain = json.loads(found.stdout), flatten(resolve("chess", preset="demo", environ={}))
    for name, (_, path, value) in CYCLE.items():
        at = settings
        for key in path.split("."):
            at = at[key]
        assert (name, at) == (name, value)
        assert plain[path] != value


def test_the_cycle_writes_its_games_when_it_has_trained(tmp_path: Path) -> None:
    """By a program in the place of ours that says what it was asked, and makes the run's folder."""
    said = tmp_path / "said"
    stand_in = program(tmp_path / "alea", f'echo "$*" >> {said}; [ "$1" != train ] || mkdir -p runs/job')
    assert cycle("--seconds", "9", alea=stand_in, NO_AMP="1", JOB_ID="job").returncode == 0
    trains, writes = said.read_text().splitlines()
    assert trains == "train chess --preset demo --name job --no-amp --seconds 9"
    assert writes == "runs pgn job --out runs/job/games.pgn --force"
    refused = cycle(alea=stand_in, NO_AMP="maybe")
    assert (refused.returncode, "maybe is neither 1 nor 0" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_a_small_cycle_of_chess_from_play_to_what_it_gets_wrong(
    alea: Alea,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    regenerate: bool,
) -> None:
    """By a network that sees earlier positions."""
    monkeypatch.setenv("TENSORBOARD_LOG_DIR", str(tmp_path / "boards"))
    smaller = {"search.kind": "direct", "model.width": 8, "model.blocks": 1, "evaluate.opponents": [], "learn.ema": 0}
    smaller |= {"targets.wait": "false", "targets.td_lambda": 0.9}
    sets = [word for key, value in smaller.items() for word in ("--set", f"{key}={value}")]
    where = ["--runs", str(tmp_path / "runs")]
    report = alea("train", "chess:history=2", "--preset", "demo", "--episodes", "2", *sets, *where)
    name = "chess_history_2-demo-1"
    assert (report["run"], report["status"]) == (name, "done")
    assert list((tmp_path / "boards" / name).glob("events.out.tfevents.*"))
    assert not (tmp_path / "runs" / name / "tensorboard").exists()
    game = make_game("chess:history=2")
    assert isinstance(game, Game)
    model, weights = load_run_weights(name, game, tmp_path / "runs")
    assert model.spec.observation_shape == (8, 8, 55)
    assert any(leaf.shape[-2:] == (55, 8) for leaf in jax.tree.leaves(weights))
    reports = RunFolder(tmp_path / "runs" / name).read_reports()
    assert [r for r in reports if r["kind"] == "learn"][-1]["step"] > 0
    games = [r["games"] for r in reports if r["kind"] == "selfplay"]
    assert 2 <= games[-1] < 10
    assert run(["runs", "pgn", name, "--out", str(tmp_path / "games.pgn"), *where]) == 0
    assert (tmp_path / "games.pgn").read_text().count("[Event ") == games[-1]
    worst = alea("runs", "worst", name, "--count", "5", *where)
    check_file("json/runs-worst.txt", shape_of(worst), regenerate)
    assert len(worst["positions"]) == 5
    losses = [float(line.partition('c0 "loss ')[2].rstrip('";')) for line in worst["positions"]]
    assert losses == sorted(losses, reverse=True)
    for line in worst["positions"]:
        assert chess.Board().set_epd(line)["c0"].startswith("loss ")
    assert run(["runs", "worst", name, "--count", "0", *where]) == 2
    assert "count is 0" in capsys.readouterr().err


def test_words_say_how_to_go_on_and_to_play(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rating = EvalReport(5, 6, 7.0, "run:mine@5", "random", 16, 0.75, 0.5, 0.9, 0.5, 0.0, 1.0)
    curves = tmp_path / "curves.svg"
    finished = Finished(RunFolder(tmp_path / "mine"), "stopped", [rating], curves, None, step=9, best_step=5)
    tell(finished, resolve("pig", environ={}), tmp_path, as_json=False)
    said = capsys.readouterr().out
    assert "against random: 75.0% of the points in 16 games (95 %: 50.0% to 90.0%)" in said
    assert "the newest weights, of step 9, were not measured: run:mine@best is of step 5" in said
    assert f"alea runs resume mine --runs {tmp_path}" in said
    assert f"alea play pig --player run:mine --runs {tmp_path}" in said


def test_infinities_of_a_rating_are_null(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unbounded = (float("-inf"), float("inf"))
    rating = EvalReport(5, 6, 7.0, "run:mine@5", "random", 2, 1.0, 0.2, 1.0, 1.0, *unbounded)
    tell(Finished(RunFolder(tmp_path / "mine"), "done", [rating], None), resolve("pig", environ={}), None, as_json=True)
    report = json.loads(capsys.readouterr().out)
    assert (report["ratings"][0]["points_low"], report["ratings"][0]["points_high"]) == (None, None)


def test_print_config_shows_what_would_run_and_starts_nothing(
    alea: Alea, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALEA_LEARN__BATCH_SIZE", "128")
    command = ["train", "pig", "--preset", "quick", "--set", "seed=7", "--print-config", "--runs", str(tmp_path)]
    shown = alea(*command)
    assert (shown["game"], shown["seed"], shown["learn"]["batch_size"]) == ("pig", 7, 128)
    assert run(command) == 0
    written = capsys.readouterr().out
    assert tomllib.loads(written)["learn"]["batch_size"] == 128
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine.toml").write_text(written)
    assert alea("train", "--config", tmp_path / "mine.toml", "--print-config") == shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "tictactoe", "--preset", "quik"], ["did you mean 'quick'"]),
        (["train", "tictactoe", "--presett", "quick"], ["Did you mean --preset"]),
        (["train", "tictacto"], ["did you mean 'tictactoe'"]),
        (["train"], ["no game is named"]),
        (
            ["train", "tictactoe", "--set", "lern.batch_size=3", "--set", "model.widht=3", "--set", "seed=x"],
            ["learn", "width", "seed"],
        ),
        (
            ["train", "tictactoe", "--set", "replay.capacity_rows=3000", "--set", "total_rows=5"],
            ["replay.capacity_rows is 3000", "total_rows is 5"],
        ),
        (["train", "tictactoe", "--config", "nowhere.toml"], ["nowhere.toml"]),
    ],
)
def test_misuse_exits_with_2(
    arguments: list[str], said: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "--runs", str(tmp_path), "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    for text in said:
        assert text in " ".join(printed.err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "tictactoe", "--preset", "quick", "--name", "tiny", "--runs", str(trained)]
    assert run(command) == 1
    assert "alea runs resume tiny" in capsys.readouterr().err
