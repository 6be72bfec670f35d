"""A run of backgammon by single checkers and a tree search that keeps its trees: it learns, and resumes exactly."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

from aleazero.observe.reports import LearnReport, SelfPlayReport
from aleazero.replay.log import ReplayLog
from aleazero.search.reuse import Reusing
from tests.runtimes.support import (  # noqa: F401 - fixtures
    Recorder,
    StopAfter,
    checkers,
    differences,
    finite,
    make_run,
    newest,
    programs,
    quick_programs,
    shared_parts,
    train,
)

pytestmark = pytest.mark.slow

CONFIG = checkers()


@pytest.mark.usefixtures("quick_programs")
def test_a_run_that_keeps_trees_resumes_exactly(tmp_path: Path) -> None:
    """Stopped between two rollouts, where trees are let go of anyway: nothing of them is in the checkpoint."""
    assert isinstance(shared_parts(CONFIG).rollout.search, Reusing)
    sink = Recorder()
    whole = train(CONFIG, tmp_path, "whole", sink)
    parts = train(CONFIG, tmp_path, "parts", stop=3)
    before = newest(parts)
    assert before.facts["rows"] == CONFIG.total_rows // 2
    assert differences(newest(whole), before) != []
    with contextlib.closing(make_run(CONFIG, tmp_path, "parts")) as run:
        run.resume(before, "exact")
        run.train(StopAfter())
    assert differences(newest(whole), newest(parts)) == []
    assert finite(newest(whole))
    assert newest(whole).facts["rows"] == CONFIG.total_rows
    assert len(sink.of(SelfPlayReport)) == 6
    assert len(sink.of(LearnReport)) > 2
    # A policy is a share of visits: only with kept ones can it be of more visits than a search makes.
    log = ReplayLog(whole.replay / f"{0:012d}")
    policy = np.concatenate([slab["policy"] for _, slab in log.read(0, 6)]).astype(np.float32)
    visits = policy * CONFIG.search.max_simulations
    off = np.abs(visits - np.round(visits)).max(-1) > 0.01  # [48, 8]
    starts = np.arange(48) % 8 == 0
    assert not off[starts].any()
    assert off[~starts].mean() > 0.3
