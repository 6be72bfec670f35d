"""A run by RLlib: a cluster, the local runtime's loop over RLlib's roles, and PyTorch's profile of an iteration.

Knows who takes part; not what they do.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import torch

from aleazero.assemble_ppo import PpoParts
from aleazero.observe.reports import ProfileReport
from aleazero.observe.sink import Sink
from aleazero.ray_settings import RayConfig
from aleazero.replay.fifo import Fifo
from aleazero.rllib_settings import runners_of
from aleazero.roles.ports import WeightStore
from aleazero.runs import RunFolder
from aleazero.runtimes.local import LocalRun
from aleazero.runtimes.ppo import PpoDigest
from aleazero.runtimes.ray.cluster import connected
from aleazero.runtimes.rllib.roles import RllibLearner, RllibPlay
from aleazero.runtimes.rllib_memory import STORE_GB, tree_bytes
from aleazero.runtimes.selfplay import Resume
from aleazero.runtimes.start import Finished, Until, train_in

TOP = 10  # operations that a profile names


@dataclasses.dataclass(frozen=True)
class RllibParts(PpoParts):
    """The parts of a run by RLlib: those of a PPO run, but for who learns."""

    def make_learning(self, weights: WeightStore) -> tuple[Fifo, Any]:
        """A place for what an iteration says, and the learner that takes it."""
        play = self.config.selfplay
        source = Fifo(runners_of(self.config.ray.workers) * play.num_games * play.moves_per_rollout)
        return source, RllibLearner(self, source, weights)


class RllibRun(LocalRun):
    """The loop of a local run, over RLlib's roles."""

    def __init__(self, parts: RllibParts, folder: RunFolder, sink: Sink, *, root: Path | None = None) -> None:
        super().__init__(
            parts,
            folder,
            sink,
            root=root,
            make_producer=lambda _, into, __: RllibPlay(folder.name, folder.checkpoints, into, self.learner),  # type: ignore[arg-type]
            make_digest=lambda _: PpoDigest(parts, tree_bytes),
        )
        assert isinstance(self.producer, RllibPlay)
        self.producer.keep = lambda step: self.hear(None, {step})

    def _profile(self) -> None:
        """Traces an iteration, which counts like any other."""
        kinds = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            kinds.append(torch.profiler.ProfilerActivity.CUDA)
        began = time.perf_counter()
        with torch.profiler.profile(activities=kinds) as found:
            self._iterate()
            self._catch_up()
        wall = time.perf_counter() - began
        self.folder.profile.mkdir(parents=True, exist_ok=True)
        trace = self.folder.profile / "torch.trace.json"
        found.export_chrome_trace(str(trace))
        self.profile = _profile_report(found, wall, trace, self._where())
        self._emit(self.profile)


def _profile_report(found: Any, wall: float, trace: Path, where: dict[str, Any]) -> ProfileReport:
    """The operations that took longest, in themselves."""
    rows = found.key_averages()
    on_gpu = torch.cuda.is_available()

    def seconds(row: Any) -> float:
        return float(row.self_device_time_total if on_gpu else row.self_cpu_time_total) / 1e6

    busy = min(sum(map(seconds, rows)), wall)
    top = sorted(rows, key=seconds, reverse=True)[:TOP]
    return ProfileReport(
        **where,
        device_share=busy / wall,
        wall_seconds=wall,
        device_seconds=busy,
        shares={"update": busy / wall, "host": 1 - busy / wall},
        kernels={row.key: seconds(row) for row in top},
        trace=str(trace),
    )


def train_by_rllib(
    parts: PpoParts, folder: RunFolder, root: Path, how: Resume | None, until: Until, quiet: bool
) -> Finished:
    """Trains a run by RLlib; `how` is None where it is new."""
    parts = RllibParts(**{field.name: getattr(parts, field.name) for field in dataclasses.fields(parts)})
    with connected(_cluster(parts, folder)):
        return train_in(parts, folder, root, how, until, quiet, make_run=RllibRun)


def _cluster(parts: PpoParts, folder: RunFolder) -> RayConfig:
    """A cluster of the run's own has a bounded store, which spills beside the run."""
    settings = parts.config.ray
    if settings.address and not settings.local:
        return settings
    spill = Path(settings.spill_dir or folder.path / "spill")
    if not settings.spill_dir:
        spill.mkdir(exist_ok=True)
    return dataclasses.replace(
        settings,
        local=True,
        workers=runners_of(parts.config.ray.workers),
        object_store_gb=settings.object_store_gb or STORE_GB,
        spill_dir=str(spill.resolve()),
    )
