"""What a run by RLlib may take of a machine's memory, and what it takes. Knows processes; not RLlib.

It is beside `rllib` so that a run can be refused before PyTorch is imported.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from aleazero.config import RunConfig
from aleazero.core.errors import ConfigError
from aleazero.core.game import GameSpec
from aleazero.observe.hardware import resident_bytes
from aleazero.rllib_settings import runners_of

STORE_GB = 2.0  # of the object store
_DRIVER_BYTES = int(1.5 * 2**30)  # with everything imported and compiled, and Ray's own processes
_RUNNER_BYTES = int(0.75 * 2**30)  # the same of a runner
_COPIES = 4  # of an iteration's rows: in a runner, in the store, in the learner's batch, on its device


def need_memory(config: RunConfig, spec: GameSpec) -> None:
    """Raises where all processes together do not fit into `ppo.memory_gb`."""
    play, runners = config.selfplay, runners_of(config.ray.workers)
    row = 4 * math.prod(spec.observation_shape) + spec.num_actions + 64
    rows = runners * play.num_games * play.moves_per_rollout
    store = (config.ray.object_store_gb or STORE_GB) * 1e9
    need = int(store + _DRIVER_BYTES + runners * _RUNNER_BYTES + _COPIES * rows * row)
    if need > config.ppo.memory_gb * 2**30:
        raise ConfigError(
            f"ppo.memory_gb is {config.ppo.memory_gb:g}; {runners} runners, an object store of {store / 1e9:g} GB and "
            f"{rows} rows an iteration need {need / 2**30:.2f} GiB: lower ray.workers, ray.object_store_gb, "
            "selfplay.num_games or selfplay.moves_per_rollout, or raise ppo.memory_gb"
        )


def tree_bytes() -> int:
    """What this process and all that come from it hold in memory now, what they share counted once."""
    if not Path("/proc/self/smaps_rollup").exists():
        return resident_bytes()
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            parents.setdefault(_parent(entry), []).append(int(entry.name))
    waiting, total = [os.getpid()], 0
    while waiting:
        process = waiting.pop()
        total += _shared_out(Path("/proc") / str(process))
        waiting += parents.get(process, [])
    return total


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):  # it has ended meanwhile
        return 0


def _shared_out(process: Path) -> int:
    """Its memory, of what it shares with n others an n-th."""
    try:
        lines = (process / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
