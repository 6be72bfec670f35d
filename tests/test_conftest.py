"""The tests' own rules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("required", "code"), [("0", 0), ("1", 1)])
def test_a_skip_fails_where_everything_is_required(required: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\ndef test_runs():\n    assert True\n\ndef test_skips():\n    pytest.skip('no server')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "--rootdir", str(tmp_path), str(tmp_path)]
    environment = os.environ | {"ALEA_REQUIRE_ALL": required, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("does not allow" in done.stdout) == (required == "1")
