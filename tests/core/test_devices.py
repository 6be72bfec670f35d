"""Every core a device, and games spread over as many as suit."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import pytest

from aleazero.core.devices import devices_for, lanes_step, use_every_core


def _python(lines: str, **environ: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, env=os.environ | environ, check=True
    )
    return done.stdout.strip()


def test_every_core_is_a_device() -> None:
    count = "import jax; from aleazero.core.devices import *; use_every_core(); print(jax.local_device_count())"
    assert _python(count, JAX_PLATFORMS="cpu", XLA_FLAGS="") == str(len(os.sched_getaffinity(0)))
    told = "--xla_force_host_platform_device_count=3"
    assert _python(count, JAX_PLATFORMS="cpu", XLA_FLAGS=told) == "3"


def test_it_is_too_late_once_something_was_computed() -> None:
    before = jax.local_device_count()
    use_every_core()
    assert jax.local_device_count() == before


@pytest.mark.parametrize(
    ("lanes", "used"), [(256, 4), (128, 4), (96, 3), (64, 2), (63, 1), (127, 1), (32, 1), (8, 1), (130, 2)]
)
def test_as_many_cores_as_divide_the_games_fairly(lanes: int, used: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "local_devices", lambda: list("abcd"))
    assert devices_for(lanes) == list("abcd")[:used]


def test_accelerators_are_all_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number of games that they cannot share is an error that the run reports: none is left idle unsaid."""
    monkeypatch.setattr(jax, "local_devices", lambda: list("abcd"))
    assert lanes_step() == 1
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert devices_for(63) == list("abcd")
    assert lanes_step() == 4
