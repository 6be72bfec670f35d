"""The settings of a run on Ray. Knows their bounds; neither Ray nor a run."""

from __future__ import annotations

import dataclasses
from typing import Literal


@dataclasses.dataclass(frozen=True)
class RayConfig:
    """Who takes part in a run on Ray, and what passes between them."""

    address: str = ""  # auto: the cluster of this machine; HOST:PORT: that one; empty: a cluster of the run's own
    local: bool = False  # a small cluster of the run's own, whatever `address` says: no dashboard, little memory
    workers: int = 0  # actors that play; 0: the cluster's cores less two, at least one
    groups: int = 1  # of selfplay.num_games games: so many does each actor play at once
    queue: int = 2  # rollouts an actor is asked for in advance; it waits where the learner is so far behind
    sync_every: int = 2  # games that are over before newer weights are sent; 0: every version
    lock_step: bool = False  # one actor and the learner take turns: the run is what a local one would be, bit for bit
    inference: Literal["local", "server"] = "local"  # where networks are asked: in every actor, or in one of their own
    inference_rows: int = 512  # server: rows that are joined, at most
    inference_wait_ms: float = 2.0  # server: how long the first of them waits for others
    learner_gpu: float = 0.5  # the learner's share of a GPU, where the cluster has one
    inference_gpu: float = 0.5  # the inference server's
    player_gpu: float = 0.0  # runtime rllib: the share of each of its environment runners
    gpu: Literal["auto", "yes", "no"] = "auto"  # yes: without a GPU in the cluster the run does not start
    object_store_gb: float = 0.0  # memory for what is under way, of a cluster of the run's own; 0: Ray decides
    spill_dir: str = ""  # where it goes when that is full; empty: Ray decides
    restarts: int = 20  # of one actor, before it is given up
    linger_seconds: float = 600.0  # how long players wait for another driver when theirs was killed

    def problems(self) -> list[str]:
        """What is wrong with it."""
        least = {
            "workers": 0, "groups": 1, "queue": 1, "sync_every": 0, "inference_rows": 1, "inference_wait_ms": 0,
            "learner_gpu": 0, "inference_gpu": 0, "player_gpu": 0, "object_store_gb": 0, "restarts": 0,
            "linger_seconds": 30,
        }  # fmt: skip
        found = [
            f"{name} is {getattr(self, name)}; it must be at least {value}"
            for name, value in least.items()
            if getattr(self, name) < value
        ]
        if 0 < self.object_store_gb < 0.08:
            found.append(f"object_store_gb is {self.object_store_gb}; Ray needs 0.08 at least")
        if self.lock_step and (self.workers > 1 or self.groups > 1):
            found.append("lock_step is true; it needs one worker and one group: leave workers and groups at 1")
        if self.lock_step and self.inference == "server":
            found.append("lock_step is true; it needs inference = 'local'")
        return found
