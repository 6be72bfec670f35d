"""`--device`: chosen before JAX starts, and said clearly where it is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import pytest

from aleazero.cli.main import run

COMMANDS = {
    "eval": ["eval", "tictactoe", "--player", "random", "--games", "2"],
    "rate": ["rate", "tictactoe", "--player", "random", "--positions", "3"],
    "play": ["play", "tictactoe"],
    "train": ["train", "tictactoe"],
    "resume": ["runs", "resume", "nobody"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_device_that_is_not_there_fails_and_changes_nothing(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*COMMANDS[command], "--device", "tpu"]) == 1
    printed = capsys.readouterr()
    assert "there is no tpu device here" in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""
    assert jax.config.jax_platforms == "cpu"  # type: ignore[attr-defined]  # as tests/conftest.py says


def test_the_environment_gives_the_default(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ALEA_DEVICE", "tpu")
    assert run(COMMANDS["rate"]) == 1
    assert "no tpu device" in capsys.readouterr().err
    assert run([*COMMANDS["rate"], "--device", "cpu"]) == 0
    monkeypatch.setenv("ALEA_DEVICE", "abacus")
    assert run(COMMANDS["rate"]) == 2
    assert "cuda" in capsys.readouterr().err  # the choices


def test_metal_goes_on_on_the_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*COMMANDS["rate"], "--device", "metal", "--json"]) == 0
    printed = capsys.readouterr()
    assert "Metal plug-in lags" in printed.err
    assert printed.out.startswith("{")


def test_it_is_chosen_before_jax_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, which would start on a device that is not there if the choice came too late."""
    monkeypatch.setenv("JAX_PLATFORMS", "tpu")
    command = [sys.executable, "-m", "aleazero.cli.main", *COMMANDS["train"], "--preset", "quick", "--print-config"]
    here = Path(__file__).parents[2]
    done = subprocess.run([*command, "--device", "cpu"], capture_output=True, text=True, check=False, cwd=here)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('game = "tictactoe"')
