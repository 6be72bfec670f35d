"""A small run, trained once for all tests of the command line, and the way they call it."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import pytest

from aleazero.cli.main import run

# Without a search, so that it compiles in seconds.
TINY = {
    "total_rows": 2048,
    "model.width": 16,
    "model.blocks": 1,
    "search.kind": "direct",
    "selfplay.num_games": 32,
    "selfplay.moves_per_rollout": 8,
    "replay.capacity_rows": 4096,
    "replay.min_rows": 256,
    "learn.batch_size": 64,
    "evaluate.opponents": "random",
    "evaluate.games": 16,
    "evaluate.every_rows": 1024,
    "observe.every_seconds": 0,
}

Alea = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nobody's settings and nobody's profiles."""
    for variable in ("ALEA_RUNS", "ALEA_DEVICE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("ALEA_DATA", str(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with one in it, `tiny`, and in `said` what training it printed. Nobody may change it."""
    root = tmp_path_factory.mktemp("trained")
    settings = [text for key, value in TINY.items() for text in ("--set", f"{key}={value}")]
    arguments = ["train", "tictactoe", "--preset", "quick", "--runs", str(root), "--name", "tiny", "--json"]
    jax.config.update("jax_disable_most_optimizations", True)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert run([*arguments, *settings]) == 0
    jax.config.update("jax_disable_most_optimizations", False)
    (root / "said").write_text(said.getvalue())
    return root


@pytest.fixture
def runs(trained: Path, tmp_path: Path) -> Path:
    """A copy that may be changed."""
    shutil.copytree(trained, tmp_path / "runs")
    return tmp_path / "runs"


@pytest.fixture
def alea(capsys: pytest.CaptureFixture[str]) -> Alea:
    """Runs a command with `--json`; checks that it ends well and prints one object and nothing else."""

    def call(*arguments: object) -> dict[str, Any]:
        capsys.readouterr()
        code = run([*map(str, arguments), "--json"])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        assert printed.out.count("\n") == 1
        report = json.loads(printed.out, parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
        assert isinstance(report, dict)
        return report

    return call
