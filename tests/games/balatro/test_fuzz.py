from __future__ import annotations

import numpy as np
import pytest

from aleazero.games.balatro import fuzz, jit
from aleazero.games.balatro.engine import Batch


def test_fuzzing_counts_and_finds_nothing_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "RUNS", 2)
    monkeypatch.setattr(fuzz, "STEPS", 40)
    found = fuzz.fuzz(150, seed=2, threads=1, sample_runs=0)
    assert found.decisions >= 150
    assert found.fine
    assert (found.broken, found.overflows, found.sample) == ({}, 0, "not compared")
    assert found.highest_ante >= 1


def test_a_broken_law_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "RUNS", 1)
    wander = Batch.wander

    def with_a_stolen_card(self: Batch, *arguments: int, **options: bool) -> tuple[int, np.ndarray]:
        self.states["deck_count"] -= 1
        return wander(self, 1, *arguments[1:], **options)

    monkeypatch.setattr(Batch, "wander", with_a_stolen_card)
    found = fuzz.fuzz(1, sample_runs=0)
    assert not found.fine
    assert sum(found.broken.values()) == 1


def test_the_sample_tells_seeds_apart_and_is_always_the_same() -> None:
    assert jit.PLAIN
    assert fuzz.sample(1, 1, 10) == fuzz.sample(1, 1, 10) != fuzz.sample(2, 1, 10)
