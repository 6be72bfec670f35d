"""A small version of `scripts/faults.py`: whatever happens, what was acknowledged is counted once."""

from __future__ import annotations

from pathlib import Path

from scripts.faults import small


def test_kills_an_outage_a_freeze_and_a_wrong_clock_and_nothing_is_lost(tmp_path: Path) -> None:
    found = small(tmp_path, seed=1)
    assert found["counted_exactly_once"]
    assert [role for role, seconds in found["recovery_seconds"].items() if seconds] == ["redis", "learner", "guest"]
    assert found["updates"] > 0
    assert found["back_after_outage_seconds"] < 30.0  # 10 s are the limit on a quiet machine; tests share theirs
    assert found["back_after_cut_seconds"] < 30.0
    assert found["dead_after_seconds"] > 15.0
