"""`make` takes the newest Python that runs, wherever it is; the Pythons here are scripts that only tell a version."""

from __future__ import annotations

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "newest_python.sh"


def put(program: Path, says: str) -> str:
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o755)
    return str(program)


def choose(root: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{root / 'one'}:{root / 'two'}", "PYENV_ROOT": str(root / "pyenv")}
    return subprocess.run(["/bin/sh", SCRIPT], env=environment, capture_output=True, text=True, check=False)


def test_the_newest_that_runs_is_taken_from_the_path_or_from_pyenv(tmp_path: Path) -> None:
    put(tmp_path / "one" / "python3.14", "exit 127")  # a shim of pyenv whose version is not chosen
    put(tmp_path / "one" / "python3", "echo 311")
    put(tmp_path / "two" / "python3", "echo 315")  # not tried with our dependencies
    newer = put(tmp_path / "two" / "python3.12", "echo 312")
    assert choose(tmp_path).stdout == f"{newer}\n"
    newest = put(tmp_path / "pyenv" / "versions" / "3.13.0" / "bin" / "python3", "echo 313")
    assert choose(tmp_path).stdout == f"{newest}\n"


def test_without_one_it_says_what_to_install(tmp_path: Path) -> None:
    put(tmp_path / "one" / "python3", "echo 310")
    done = choose(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no Python from 3.11 to 3.14 was found" in done.stderr
    assert "PYTHON=" in done.stderr
