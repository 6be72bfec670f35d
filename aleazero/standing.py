"""How a run stands, read from its lock and its reports from outside. Nothing here looks into checkpoints."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

from aleazero.core.errors import AleaError
from aleazero.observe.reports import EvalReport, LearnReport, RunReport
from aleazero.runs import RunFolder


@dataclasses.dataclass(frozen=True)
class Standing:
    """How a run stands."""

    name: str
    game: str
    # training, paused, done, stopped, failed; killed: it ended without saying so; damaged: it cannot be read
    status: str
    pid: int | None  # of the process that trains it
    step: int
    rows: int
    total_rows: int | None
    seconds: float  # of training
    ratings: list[dict[str, Any]]  # the last one against each opponent
    losses: dict[str, float | None]  # the last ones by term, and "total"; None where one was not finite
    age_seconds: float | None  # since its last report; None before the first one
    message: str  # why it failed, or what is damaged


def standing(folder: RunFolder, known: list[dict[str, Any]] | None = None) -> Standing:
    """How a run stands, by its lock and its reports; those that are known already are not read again."""
    pid, game, total, message = folder.owner(), "?", None, ""
    records: list[dict[str, Any]] = []
    try:
        config = folder.read_config()
        game, total = config.game, config.total_rows
        records = folder.read_reports() if known is None else known
    except AleaError as error:
        message = str(error)
    last = records[-1] if records else {}
    told = next((record for record in reversed(records) if record.get("kind") == RunReport.kind), None)
    learned = next((record for record in reversed(records) if record.get("kind") == LearnReport.kind), None)
    if message:
        status = "damaged"
    elif pid is not None:
        status = "paused" if folder.pause_file.exists() else "training"
    elif told is None or told["status"] in ("started", "resumed"):
        status = "killed"
    else:
        status, message = told["status"], told["message"]
    return Standing(
        name=folder.name,
        game=game,
        status=status,
        pid=pid,
        step=last.get("step", 0),
        rows=last.get("rows", 0),
        total_rows=total,
        seconds=last.get("seconds", 0.0),
        ratings=last_ratings(records),
        losses={"total": learned["loss"], **learned["losses"]} if learned else {},
        age_seconds=max(time.time() - last["time"], 0.0) if last else None,
        message=message,
    )


def last_ratings(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The last match against each opponent, in the order in which opponents first came."""
    by_opponent: dict[str, dict[str, Any]] = {}
    for record in records:
        if record.get("kind") == EvalReport.kind:
            keys = ("opponent", "step", "rows", "games", "score", "score_low", "score_high")
            by_opponent[record["opponent"]] = {key: record[key] for key in keys}
    return list(by_opponent.values())


def memory_of(records: Sequence[Mapping[str, Any]]) -> dict[str, float | int | None] | None:
    """What a run's process holds in memory, by its reports; None where none of them says.

    Growth is by the second half of its time: before that it is filling its buffers.
    """
    fields = {"ppo": "memory_bytes", "hardware": "process_memory_bytes"}
    seen = [(r["seconds"], r[fields[r["kind"]]]) for r in records if r.get("kind") in fields]
    if not seen:
        return None
    cap = next((r["memory_cap_bytes"] for r in reversed(records) if r.get("kind") == "ppo"), None)
    end = max(seconds for seconds, _ in seen)
    late = [point for point in seen if point[0] >= end / 2]
    hours = (late[-1][0] - late[0][0]) / 3600
    return {
        "bytes": seen[-1][1],
        "most_bytes": max(held for _, held in seen),
        "cap_bytes": cap,
        "growth_bytes_per_hour": (late[-1][1] - late[0][1]) / hours if hours > 0 else None,
    }
