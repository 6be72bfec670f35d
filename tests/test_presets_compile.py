"""Every preset's programs compile in the time that people have, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.programs import presets

pytestmark = pytest.mark.slow

PRESETS = presets()


def compile_programs(*words: str) -> str:
    """Return what is said of each program; fail if one does not compile in time."""
    done = subprocess.run([sys.executable, "-m", "tests.programs", *words], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.mark.parametrize("game", PRESETS)
def test_programs_of_every_preset_compile(game: str) -> None:
    said = compile_programs(game)
    assert all(f"{preset}, updates" in said for preset in PRESETS[game])


@pytest.mark.long
@pytest.mark.parametrize(("game", "preset"), [(game, preset) for game in PRESETS for preset in PRESETS[game]])
def test_programs_of_a_preset_compile_in_their_own_sizes(game: str, preset: str) -> None:
    assert f"{preset}, updates" in compile_programs(game, preset)
