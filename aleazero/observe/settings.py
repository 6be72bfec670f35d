"""What a run shows and keeps of itself, and whom it tells: settings only."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Literal

from aleazero.observe.catalogue import PREFIX, prefix_problems
from aleazero.observe.endpoint import LOOPBACK, PORTS

DESK = ".desk"  # beside the runs: what is kept of all of them together
MLFLOW_LOCAL = "local"
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclasses.dataclass(frozen=True)
class ObserveConfig:
    """Reports and logs."""

    every_seconds: float = 5.0  # between two reports of self-play and learning
    profile: bool = False  # trace a few iterations, once learning is under way, and report the device's share of time
    tensorboard: bool = False  # also write TensorBoard files, under tensorboard/
    json_logs: bool = False  # alea.log as JSON Lines
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    hardware_seconds: float = 10.0  # between two reports of CPU, memory and GPUs; 0: none
    prometheus: bool = False  # serve metrics to Prometheus
    metrics_port: int = PORTS["train"]  # or the next free one; 0: any
    metrics_bind: str = LOOPBACK  # the address to serve them on
    metrics_prefix: str = PREFIX  # of their names
    mlflow: str = ""  # "local": a database beside the runs; http://...: a tracking server; "": none
    mlflow_checkpoint_steps: int = 1000  # updates between two checkpoints that are kept there; 0: none
    mlflow_model: str = ""  # the registered model that the best weights become a version of; the game's name if empty
    register: bool = True  # without MLflow: the best weights of a run that is done become a version in files
    wandb: Literal["off", "offline", "online"] = "off"
    wandb_project: str = "aleazero"

    def problems(self) -> list[str]:
        """What is wrong with it."""
        found = []
        for name in ("every_seconds", "hardware_seconds"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                found.append(f"{name} is {value}; it must not be negative")
        if not 0 <= self.metrics_port < 65536:
            found.append(f"metrics_port is {self.metrics_port}; it must be in 0..65535")
        found += prefix_problems(self.metrics_prefix)
        if not re.fullmatch(rf"|{MLFLOW_LOCAL}|https?://\S+|sqlite:///\S+", self.mlflow):
            found.append(
                f"mlflow is {self.mlflow!r}; write {MLFLOW_LOCAL!r}, http://HOST:PORT, sqlite:///FILE, or nothing"
            )
        if self.mlflow_checkpoint_steps < 0:
            found.append(f"mlflow_checkpoint_steps is {self.mlflow_checkpoint_steps}; it must not be negative")
        if self.mlflow_model and not _MODEL_NAME.fullmatch(self.mlflow_model):
            found.append(f"mlflow_model is {self.mlflow_model!r}; letters, digits, dots, dashes and underscores only")
        return found
