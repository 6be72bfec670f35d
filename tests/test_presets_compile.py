"""Every preset's programs compile in the time that people have, each preset in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import resources

import pytest

GENERAL = ("general", "gym")  # presets of games that others bring


def _presets() -> list[tuple[str, str]]:
    files = sorted((resources.files("aleazero") / "presets").iterdir(), key=lambda file: file.name)
    return [
        (game, preset)
        for file in files
        if (game := file.name.removesuffix(".toml")) not in GENERAL
        for preset in tomllib.loads(file.read_text("utf-8"))
    ]


@pytest.mark.parametrize(("game", "preset"), _presets())
def test_a_presets_programs_compile(game: str, preset: str) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.programs", game, preset], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
    assert "updates" in done.stdout
