"""The learner of policy gradients: what it learns from is its own."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.core.records import Fragment
from aleazero.learn.update import LearnerState
from aleazero.replay.fifo import Fifo
from aleazero.roles.ports import LocalWeights
from aleazero.roles.ppo import PpoLearner


def on_a_boundary(shape: tuple[int, ...]) -> np.ndarray:
    """Zeros where a device would share the memory rather than copy it."""
    size = int(np.prod(shape)) * 4
    room = np.zeros(size + 64, np.uint8)
    first = -room.ctypes.data % 64
    return room[first : first + size].view(np.float32).reshape(shape)


@pytest.mark.parametrize("moves", [2, 500])
def test_buffers_that_are_written_again_change_nothing_that_is_learned_from(moves):
    names = [field.name for field in dataclasses.fields(Fragment)]
    buffers = Fragment(**{name: on_a_boundary((moves, 16)) for name in names})
    given: list[Fragment] = []

    def update(state: LearnerState, fragment: Fragment, *_: Any) -> tuple[LearnerState, None]:
        given.append(fragment)
        return state, None

    source, state = Fifo(moves * 16), LearnerState({"w": jnp.zeros(1)}, {"w": jnp.zeros(1)}, {})
    learner = PpoLearner(
        update,  # type: ignore[arg-type]
        lambda rows: 0.1,
        lambda rows: 0.0,
        state,
        source,
        LocalWeights(),
        batch_size=16,
        updates=1,
        seed=0,
    )
    source.add(buffers)
    learner.step()
    for name in names:
        getattr(buffers, name)[...] = 1
    assert {name: float(np.max(getattr(given[0], name))) for name in names} == dict.fromkeys(names, 0.0)
