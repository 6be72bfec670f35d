"""What tests of several runtimes share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import jax
import numpy as np
import pytest

from aleazero.core.records import Rows
from aleazero.replay.store import Replay


@pytest.fixture(autouse=True, scope="package")
def forget_compiled_programs() -> Iterator[None]:
    """At the end of this folder, and not after each module: most of them run the same small programs."""
    yield
    jax.clear_caches()


@pytest.fixture(autouse=True, scope="module")
def forget_profiles() -> Iterator[None]:
    """A profile takes kept programs by their names, too."""
    yield
    jax.config.update("jax_compilation_cache_include_metadata_in_key", False)


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sha256 of every batch that a learner draws."""
    found: list[str] = []
    plain = Replay.sample

    def sample(self: Replay, number: int, count: int) -> Rows:
        rows = plain(self, number, count)
        found.append(hashlib.sha256(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(rows))).hexdigest())
        return rows

    monkeypatch.setattr(Replay, "sample", sample)
    return found
