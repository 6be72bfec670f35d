"""`alea bench` from the outside, and what `alea train` takes from its profiles."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import jax
import pytest

from aleazero.bench import measure, profiles
from aleazero.cli.main import run
from aleazero.core.settings import load_file
from aleazero.run import main as run_without_alea
from tests.cli.conftest import TINY, Alea

SETTINGS = {key: value for key, value in TINY.items() if key != "selfplay.num_games"}


@pytest.fixture(autouse=True)
def shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECONDS", 0.05)


@pytest.fixture
def compiled_plainly() -> Generator[None, None, None]:
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def keep(batch: int) -> Path:
    """A profile of this machine."""
    here = profiles.hardware()
    path = profiles.place("selfplay", "tictactoe", "quick", here)
    sizes = {str(batch): [100.0, 99.0, 101.0]}
    made = profiles.Profile(here.name, here.jax_version, "tictactoe", "selfplay", {}, batch, "rows", sizes, "")
    profiles.save(path, made, force=True)
    return path


def sets() -> list[str]:
    return [text for key, value in SETTINGS.items() for text in ("--set", f"{key}={value}")]


def test_one_object_for_programs(alea: Alea) -> None:
    report = alea("bench", "game-env", "--game", "tictactoe", "--batch-sizes", "4, 8")
    assert (report["kind"], report["game"], report["unit"]) == ("game-env", "tictactoe", "steps/s")
    assert [size["batch"] for size in report["sizes"]] == [4, 8]
    assert report["batch"] in (4, 8)
    assert report["throughput"] == max(size["rates"]["ours"]["per_second"] for size in report["sizes"])
    assert report["command"] == "alea bench game-env --game tictactoe --batch-sizes 4,8"
    assert {path.name for path in Path(report["folder"]).iterdir()} == {"bench.json", "bench.png"}


def test_a_table_for_people(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["bench", "game-env", "--game", "tictactoe", "--single-batch", "4", "--out", str(tmp_path / "out")]
    assert run([*arguments, "--verbose"]) == 0
    printed = capsys.readouterr()
    assert "game-env of tictactoe" in printed.out
    assert "ours (steps)" in printed.out
    assert "a step is one action of a player" in printed.out
    assert f"written to {tmp_path / 'out'}" in printed.out
    assert printed.err.startswith("batch 4: ")
    assert run(arguments) == 1
    assert "--force" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("bench gameenv", 2, "did you mean 'game-env'"),
        ("bench mcts --game tictactoo", 2, "did you mean 'tictactoe'"),
        ("bench mcts --game pig", 2, "stochastic-mcts"),
        ("bench network --validate", 1, "make one with --discover"),
        ("bench network --batch-sizes 1,x", 2, "write them with commas"),
        ("bench network --single-batch 0", 2, "whole numbers from 1 on"),
        ("bench game-env --game tictactoe --single-batch 200000 --duration 0.06", 1, "too short to measure"),
        ("bench game-env --game tictactoe --single-batch 4 --memory-limit 0.001", 1, "ran out"),
    ],
)
def test_mistakes_say_what_to_do(arguments: str, code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    if words == "ran out":  # 1 MB is enough for four games, so more are asked for
        arguments, words = arguments.replace("batch 4", "batch 400000"), "--memory-limit allows 0.001 GB"
    assert run(arguments.split()) == code
    printed = capsys.readouterr()
    assert words in printed.err
    assert not printed.out


@pytest.mark.usefixtures("compiled_plainly")
def test_training_uses_the_profile_and_keeps_what_it_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = keep(24)
    where = ["--runs", str(tmp_path), "--name", "by-profile", "--seconds", "0"]
    assert run(["train", "tictactoe", "--preset", "quick", *where, *sets(), "--json"]) == 0
    said = capsys.readouterr().err
    assert f"alea: selfplay.num_games is 24, from this machine's profile ({path})" in said
    kept = load_file(tmp_path / "by-profile" / "config.toml").values
    assert kept["selfplay"]["num_games"] == 24
    assert kept["learn"]["batch_size"] == TINY["learn.batch_size"]


def test_training_says_what_it_would_use(capsys: pytest.CaptureFixture[str]) -> None:
    keep(24)
    command = ["train", "tictactoe", "--preset", "quick", *sets(), "--print-config"]
    assert run(command) == 0
    printed = capsys.readouterr()
    assert "num_games = 24" in printed.out
    assert run([*command, "--set", "selfplay.num_games=16"]) == 0
    printed = capsys.readouterr()
    assert "num_games = 16" in printed.out
    assert "profile" not in printed.err
    keep(1 << 20)
    assert run(command) == 0
    printed = capsys.readouterr()
    assert "num_games = 1048576" not in printed.out
    assert "replay.capacity_rows" in printed.err


def test_the_other_command_uses_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(1 << 20)
    file = tmp_path / "config.toml"
    file.write_text('game = "tictactoe"\n')
    arguments = [str(file), "--preset", "quick", "--runs", str(tmp_path), "--set", "evaluate.opponents=nobody"]
    assert run_without_alea(arguments) == 2  # before anything is played
    said = capsys.readouterr().err
    assert "aleazero.run: selfplay.num_games stays" in said
    assert "nobody" in said


def test_it_runs_with_the_core_dependencies_alone(tmp_path: Path) -> None:
    """As on a host where nothing can be installed: no command line library, no peers."""
    code = (
        "import sys\n"
        "for name in ('cyclopts', 'pydantic', 'pgx', 'mctx', 'pyspiel', 'matplotlib', 'psutil'):\n"
        "    sys.modules[name] = None\n"
        "from aleazero.bench import measure\n"
        "measure.SECONDS = 0.05\n"
        "from aleazero.bench.__main__ import main\n"
        f"sys.exit(main(['game-env', '--game', 'tictactoe', '--single-batch', '4', '--out', {str(tmp_path)!r}]))\n"
    )
    environment = {**os.environ, "ALEA_DATA": str(tmp_path / "data"), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "ours (steps)" in done.stdout
    assert (tmp_path / "bench.png").is_file()
