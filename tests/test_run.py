"""`python -m aleazero.run`: trains with the core dependencies alone; mistakes end with 2, failures with 1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aleazero.core.settings import to_toml
from aleazero.run import main
from aleazero.runs import RunFolder, new_run
from tests.runtimes.support import ROOT, newest, programs, statuses, tiny, write_config  # noqa: F401 - fixtures

pytestmark = pytest.mark.slow

# Everything that is no core dependency: whoever imports it learns that it is not installed. Flax needs some of it for
# itself, and has it before it is gone.
WITHOUT = """
import runpy, sys
import flax.linen, jax, numpy, optax, safetensors.numpy
FORBIDDEN = {
    "cyclopts", "rich", "tensorboardX", "onnx", "onnxruntime", "yaml", "redis", "ray", "torch", "numba", "pgx", "mctx",
    "matplotlib", "pandas", "hypothesis", "pytest", "psutil", "pynvml", "prometheus_client", "mlflow", "sqlalchemy",
    "alembic", "wandb",
}
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in FORBIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
for name in [name for name in sys.modules if name.partition(".")[0] in FORBIDDEN]:
    del sys.modules[name]
sys.argv[0] = "aleazero.run"
runpy.run_module("aleazero.run", run_name="__main__")
"""


def test_the_core_dependencies_are_enough_to_train(tmp_path: Path, programs: Path) -> None:  # noqa: F811
    config = tiny("total_rows=512", "evaluate.opponents=random")
    file = write_config(config, tmp_path / "it.toml")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ALEA_")},
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(programs),
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "ALEA_RUNS": str(tmp_path / "runs"),
        "ALEA_SEED": "3",
    }
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(file), "--preset", "quick", "--name", "one", "--set", "evaluate.games=8"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    folder = RunFolder(tmp_path / "runs" / "one")
    assert folder.read_config() == tiny("total_rows=512", "evaluate.opponents=random", "seed=3", "evaluate.games=8")
    assert statuses(folder) == ["started", "done"]
    assert newest(folder).facts["rows"] == 512
    reports = [json.loads(line) for line in folder.metrics_file.read_text().splitlines()]
    assert {"run", "selfplay", "replay", "learn", "eval", "checkpoint"} <= {report["kind"] for report in reports}
    matches = [report for report in reports if report["kind"] == "eval"]
    assert [(match["opponent"], match["games"]) for match in matches] == [("random", 8)]
    assert (folder.path / "curves.svg").read_text().startswith("<svg")
    log = folder.log_file.read_text()
    assert "run one: started" in log
    assert "run one: done" in log
    # Plain lines, for people and for grep.
    kinds = [line.split()[0] for line in done.stdout.splitlines() if line]
    assert {"run", "train", "eval", "checkpoint"} <= set(kinds)
    assert done.stderr == ""


# Mistakes.


@pytest.fixture(autouse=True)
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands turn on a cache of compiled programs in the user's home, unless there is one already."""
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_config(tiny(), tmp_path / "it.toml")


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return code, captured.err


def test_settings_that_are_wrong_end_with_2_and_all_problems(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("game = 'tictactoe'\nsede = 1\n[learn]\nbatch_size = -4\n")
    code, error = run(capsys, file, "--preset", "quick", "--runs", tmp_path / "runs", "--set", "model.depth=3")
    assert code == 2
    for problem in ("unknown key sede", "did you mean seed?", "unknown key model.depth"):
        assert problem in error
    file.write_text(to_toml(tiny("model.kind=cnn", "total_rows=10", game="pig")))
    code, error = run(capsys, file, "--preset", "quick", "--runs", tmp_path / "runs")
    assert (code, "model.kind is 'cnn'" in error, "total_rows is 10" in error) == (2, True, True)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "name a settings file, or --resume a run"),
        (("missing.toml",), "there is no such file"),
        (("--set", "seed=1"), "no game is named"),
        (("--set", "game=tictacto"), "unknown game 'tictacto': did you mean 'tictactoe'?"),
        (("--set", "game=pig", "--preset", "quik"), "unknown preset 'quik': did you mean 'quick'?"),
        (("--set", "game=pig", "--set", "nonsense"), "'nonsense' is no assignment"),
        (("--resume", "nobody"), "unknown run"),
    ],
)
def test_misuse_ends_with_2(
    arguments: tuple[str, ...], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = run(capsys, *arguments, "--runs", tmp_path / "runs")
    assert code == 2
    assert error.startswith("aleazero.run: ")
    assert told in error
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("arguments", [["--sets", "x=1", "--frobnicate"], ["--how", "partly"], ["--seconds", "soon"]])
def test_a_command_line_that_is_none_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: python -m aleazero.run" in capsys.readouterr().err


def test_what_fails_for_other_reasons_ends_with_1(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new_run(tmp_path / "runs", "taken", "").write_config(tiny())
    code, error = run(capsys, file, "--preset", "quick", "--runs", tmp_path / "runs", "--name", "taken")
    assert (code, "there is a run 'taken'" in error) == (1, True)
    code, error = run(capsys, "--resume", "taken", "--runs", tmp_path / "runs")
    assert (code, "has no usable checkpoint to resume from; start it anew" in error) == (1, True)


def test_help_says_how_it_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    said = capsys.readouterr().out
    for word in ("--preset", "--runs", "--name", "--seconds", "--resume", "--how", "--set"):
        assert word in said
