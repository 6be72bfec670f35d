"""A small version of `scripts/faults.py`: whatever is killed, what was acknowledged is counted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.faults import kills


def test_five_kills_and_nothing_is_lost(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "compiled"))
    found = kills(tmp_path, 5, seed=1)
    assert found["counted_exactly_once"]
    assert sum(map(len, found["recovery_seconds"].values())) == 5
    assert found["updates"] > 0
