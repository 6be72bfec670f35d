"""The programs that a GPU was measured with are still the same ones: a guard that needs no GPU.

A change that moves or renames code leaves every line of the golden files as it is. One that means to change a program
regenerates them (`pytest tests/test_cuda_programs.py --regenerate`), and its commit says which and why.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from tests.cuda_programs import GROUPS

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent / "golden" / "cuda_programs"


@pytest.mark.parametrize("group", GROUPS)
def test_compiled_programs_are_those_that_were_measured(group: str, regenerate: bool) -> None:
    """In a process of its own, whose hashes of strings differ each time; the compiler sees one device."""
    file = FOLDER / f"{group}.txt"
    version = f"jax {jax.__version__}"
    if not regenerate:
        assert file.read_text().startswith(f"{version}\n"), (
            f"{file} was written with another version of JAX than {version}, so that no program can be compared: "
            "run this test with --regenerate in the commit that raises JAX"
        )
    command = [sys.executable, "-m", "tests.cuda_programs", group]
    environment = os.environ | {"XLA_FLAGS": "", "PYTHONHASHSEED": "random"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    if regenerate:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(done.stdout)
    now, then = done.stdout.splitlines(), file.read_text().splitlines()
    changed = "\n".join(line for line in now if line not in then)
    assert now == then, (
        f"programs have changed, or their list has:\n{changed}\nThe docstring of this test's file says what to do"
    )
