"""Notebooks run from top to bottom, and are kept without what they printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_compile")]
NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def code(path: Path) -> list[str]:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells), "keep notebooks without outputs"
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_there_are_four() -> None:
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aleazero.runtimes.profile.SECONDS", 0.0)
    namespace = {"__name__": "notebook"}
    for number, cell in enumerate(code(path), 1):
        exec(compile(cell, f"{path.name}, cell {number}", "exec", dont_inherit=True), namespace)
