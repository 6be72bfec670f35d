"""What a run shows and keeps of itself: settings only."""

from __future__ import annotations

import dataclasses
from typing import Literal


@dataclasses.dataclass(frozen=True)
class ObserveConfig:
    """Reports and logs."""

    every_seconds: float = 5.0  # between two reports of self-play and learning
    profile: bool = False  # trace a few iterations, once learning is under way, and report the device's share of time
    tensorboard: bool = False  # also write TensorBoard files, under tensorboard/
    json_logs: bool = False  # alea.log as JSON Lines
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    def problems(self) -> list[str]:
        """What is wrong with it."""
        return [] if self.every_seconds >= 0 else [f"every_seconds is {self.every_seconds}; it must not be negative"]
