"""A run in Weights & Biases, online or offline: its settings and its reports' numbers.

A resumed run goes on under the same id. Is called from a `Follower`'s thread only. Knows reports as records.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from aleazero.observe.follow import Record
from aleazero.observe.reports import metrics_of

INIT_SECONDS = 20
_ENDS = {"done": 0, "stopped": 0, "failed": 1}


@dataclasses.dataclass(frozen=True)
class WandbPlan:
    """What is to be told, and where."""

    project: str
    run_name: str
    mode: Literal["offline", "online"]
    folder: Path  # offline runs and the cache of online ones lie in wandb/ below it
    params: Mapping[str, str]
    tags: Sequence[str]


class WandbBackend:
    """One run of Weights & Biases."""

    name = "Weights & Biases"

    def __init__(self, plan: WandbPlan) -> None:
        self._plan = plan
        self._run: Any = None
        self.state: dict[str, Any] = {}  # id, code

    def open(self) -> bool:
        """Begins the run, or goes on with the one of the id."""
        wandb = import_module("wandb")
        self.state.setdefault("id", secrets.token_hex(4))
        self._run = wandb.init(
            project=self._plan.project,
            name=self._plan.run_name,
            id=self.state["id"],
            mode=self._plan.mode,
            dir=str(self._plan.folder),
            config=dict(self._plan.params),
            tags=[tag[:64] for tag in self._plan.tags],
            resume="allow" if self._plan.mode == "online" else None,
            reinit="create_new",
            settings=wandb.Settings(
                init_timeout=INIT_SECONDS,
                silent=True,
                console="off",
                x_disable_stats=True,
                x_save_requirements=False,
                disable_git=True,
            ),
        )
        self._run.define_metric("*", step_metric="step")
        return False

    def send(self, records: list[Record]) -> None:
        """One entry for each report."""
        for record in records:
            middle = f"/{record['opponent']}" if record["kind"] == "eval" else ""
            numbers = {}
            for name, value in metrics_of(record).items():
                kind, _, rest = name.partition("/")
                numbers[f"{kind}{middle}/{rest}"] = value
            if numbers:
                self._run.log({**numbers, "step": record["step"], "time": record["time"]})
            if record["kind"] == "run":
                self.state["code"] = _ENDS.get(record["status"], 1)

    def close(self) -> None:
        """Says how the run ended."""
        self._run.finish(exit_code=self.state.get("code", 1))
