"""The devices that games are spread over: all accelerators, or else the cores of a CPU.

A compiler gives large products to all cores, and nearly everything else that a search does to one. So commands make a
device of every core (`use_every_core`), and games are spread over them: each core then plays its own. Games are
independent: they are played as on one device, but for the last bits of numbers. Knows neither games nor searches.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import jax

LEAST_LANES = 32  # of a core: with fewer, its products take longer than the others' help is worth


def use_every_core() -> None:
    """Makes a device of every core this process may use. Does nothing once JAX has begun to compute, or if told how."""
    if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    update: Callable[[str, object], None] = jax.config.update
    with contextlib.suppress(RuntimeError):  # too late: what runs already goes on as it is
        update("jax_num_cpu_devices", cores())


def cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def devices_for(lanes: int) -> list[jax.Device]:
    """Those that so many lanes are spread over: every accelerator, or as many cores as divide them fairly."""
    found: list[jax.Device] = jax.local_devices()
    if jax.default_backend() != "cpu":
        return found
    fair = [n for n in range(1, len(found) + 1) if lanes % n == 0 and lanes // n >= LEAST_LANES]
    return found[: max(fair, default=1)]


def lanes_step() -> int:
    """What a number of lanes must be a multiple of."""
    return 1 if jax.default_backend() == "cpu" else len(jax.local_devices())
