"""What is used is seen, what cannot fit is refused beforehand, and running out is recognised."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.bench import memory
from aleazero.bench.memory import GB, DoesNotFit, Room


def test_what_is_held_is_seen_and_so_is_its_peak() -> None:
    before = memory.read()
    assert before.source == "resident set"
    held = np.ones(300_000_000 // 8)
    during = memory.read()
    assert during.in_use - before.in_use > 250_000_000
    del held
    after = memory.read()
    assert after.peak >= during.in_use - 50_000_000
    if memory.forget_peak():
        assert memory.read().peak < after.peak - 150_000_000


def test_a_limit_that_is_given_counts() -> None:
    assert memory.room(1.5) == Room(1_500_000_000, given=True)
    with pytest.raises(DoesNotFit, match=r"batch 8 needs about 2 GB, and --memory-limit allows 1\.5 GB.*--discover"):
        memory.room(1.5).check("batch 8", 2 * GB)
    memory.room(1.5).check("batch 8", GB)
    Room(None, given=False).check("batch 8", 2**60)


def test_what_there_is_is_less_than_the_machine_has_and_more_than_we_hold() -> None:
    room = memory.room(None)
    assert room.limit is not None
    assert memory.read().in_use < room.limit < 2**45
    with pytest.raises(DoesNotFit, match="this machine has room for"):
        room.check("batch 8", 2**60)


def test_running_out_is_told_from_other_errors() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError) as ran_out:
        jax.block_until_ready(jnp.zeros(1 << 45, jnp.uint8))
    assert memory.ran_out(ran_out.value)
    assert memory.ran_out(MemoryError())
    assert not memory.ran_out(RuntimeError("RESOURCE_EXHAUSTED, says somebody else"))
    assert not memory.ran_out(jax.errors.JaxRuntimeError("INTERNAL: something else"))


def test_bytes_of_arrays_and_of_shapes() -> None:
    tree = {"a": jnp.zeros((3, 4), jnp.int16), "b": jax.ShapeDtypeStruct((5,), jnp.float32)}
    assert memory.bytes_of(tree) == 24 + 20
