"""How a run goes on whose learner is gone, by what lies in its folder."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import pytest

from aleazero import checkpoint
from aleazero.runs import RunError, RunFolder, new_run
from aleazero.runtimes.start import how_to_go_on
from tests.runtimes.support import tiny

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run that has played and reported."""
    made = new_run(tmp_path, "it", "")
    made.replay.mkdir(exist_ok=True)
    (made.replay / "1.log").write_text("rows")
    made.metrics_file.write_text("{}\n")
    return made


def left(folder: RunFolder) -> list[bool]:
    return [(folder.replay / "1.log").exists(), folder.metrics_file.exists()]


def test_a_run_that_has_saved_nothing_begins_anew(folder: RunFolder) -> None:
    (folder.checkpoints / ".tmp-4-1").mkdir(parents=True)  # it died while it saved
    assert how_to_go_on(folder, tiny()) is None
    assert left(folder) == [False, False]


def test_a_run_whose_checkpoints_are_all_damaged_keeps_what_it_has(folder: RunFolder) -> None:
    checkpoint.save(folder.checkpoints, 4, {"weights": jnp.ones(4)}, {"replay_logged": True})
    assert how_to_go_on(folder, tiny()) == "exact"
    (folder.checkpoints / f"{4:012d}" / "manifest.json").write_text("{")
    with pytest.raises(RunError, match="has no usable checkpoint to resume from"):
        how_to_go_on(folder, tiny())
    assert left(folder) == [True, True]
