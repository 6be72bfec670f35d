"""The examples run as they are, as a reader would run them."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "train_tictactoe.py"
ENVIRONMENT = os.environ | {
    "PYTHONPATH": str(ROOT),
    "JAX_PLATFORMS": "cpu",
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # compiling is most of a small version
    "XDG_CACHE_HOME": os.devnull,
}


def test_the_first_example_trains_and_measures_itself() -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLE), "--iterations", "3", "--games", "20"]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    head, *table, match, share = done.stdout.splitlines()
    assert head.split()[:2] == ["iteration", "rows"]
    rows = [line.split() for line in table]
    assert [(row[0], row[1]) for row in rows] == [("0", "1,152"), ("2", "3,456")]
    for term in (2, 3):
        assert float(rows[1][term]) < float(rows[0][term])  # policy and value loss
    shares = [float(row[4].rstrip("%")) for row in rows]
    assert 50 < shares[0] < shares[1]  # a network that has learned nothing plays half of its moves well
    found = re.fullmatch(r"against the exact solver: 0 won, (\d+) drawn, (\d+) lost", match)
    assert found, match
    assert int(found[1]) + int(found[2]) == 20
    assert share == f"optimal raw moves: {rows[1][4]} of 4520 positions"


def test_the_first_example_is_short_and_made_of_parts() -> None:
    text = EXAMPLE.read_text("utf-8")
    assert text.count("\n") <= 300
    imported = {node.module or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
    joined = ("aleazero.assemble", "aleazero.runtimes", "aleazero.config", "aleazero.roles")
    assert [name for name in imported if name.startswith(joined)] == []
    assert {"aleazero.play.rollout", "aleazero.learn.update", "aleazero.play.match"} <= imported
