"""`alea status`: how a run stands, and who takes part in it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from aleazero.cli.answer import DONE, print_json
from aleazero.cli.common import active_run, duration, has_head, table
from aleazero.cli.options import need_redis
from aleazero.core.errors import AleaError
from aleazero.runs import RunFolder, runs_root
from aleazero.standing import memory_of, standing


def status(name: str | None, runs: Path | None, as_json: bool, memory: bool = False) -> int:
    """Of a run with a head: by its Redis. Of any: by its folder. `memory`: what its process holds, too."""
    folder = active_run(runs_root(runs), name)
    report = _report(folder)
    if memory:
        report["memory"] = memory_of(_reports(folder))
    if as_json:
        print_json(report)
        return DONE
    head = report["head"]
    of = f" of {report['total_rows']:,}" if report["total_rows"] else ""
    print(
        f"run {report['run']} ({report['game']}): {report['state']}"
        + (f"; {report['message']}" if report["message"] else "")
    )
    print(f"step {report['step']:,}, {report['rows']:,} rows{of}, {report['games']:,} games, epoch {report['epoch']}")
    for rating in report["ratings"]:
        low, high = rating["score_low"], rating["score_high"]
        print(
            f"against {rating['opponent']}: {rating['score']:.3f} ({low:.3f} to {high:.3f}) at step {rating['step']:,}"
        )
    if memory:
        print(_memory_line(report["memory"]))
    if head is None:
        return DONE
    print(f"head: {head['url']}, " + (f"process {head['pid']}" if head["pid"] else "not running on this machine"))
    if not head["reachable"]:
        print(f"its Redis cannot be reached: {head['trouble']}")
        return DONE
    version, held = report["weights_version"], report["rows_held"]
    print(f"weights version {version:,}; {held:,} rows in the replay; {report['games_per_minute']:,.1f} games a minute")
    print(f"Redis: {head['memory_bytes'] / 2**20:,.0f} MB of {head['max_memory_bytes'] / 2**20:,.0f}")
    rows = [["worker", "kind", "host", "device", "state", "rows/s", "games/min", "version", "last sign of life"]]
    for worker in report["workers"]:
        figures = [_number(worker[key]) for key in ("rows_per_second", "games_per_minute", "version")]
        last = f"{duration(worker['age_seconds'])} ago"
        rows.append([*(str(worker[key]) for key in ("name", "kind", "host", "device", "state")), *figures, last])
    if len(rows) > 1:
        table(rows)
    else:
        print("no worker has come yet")
    return DONE


def _report(folder: RunFolder) -> dict[str, Any]:
    found = standing(folder)
    report: dict[str, Any] = {
        "run": found.name,
        "game": found.game,
        "state": found.status,
        "message": found.message,
        "step": found.step,
        "rows": found.rows,
        "total_rows": found.total_rows,
        "games": next((r["games"] for r in reversed(_reports(folder)) if r.get("kind") == "selfplay"), 0),
        "epoch": 0,
        "ratings": found.ratings,
        "losses": found.losses,
        "head": None,
        "weights_version": None,
        "rows_held": None,
        "games_per_minute": None,
        "workers": [],
    }
    if not has_head(folder):
        return report
    need_redis()
    from aleazero.runtimes.redis.look import look

    return report | look(folder)


def _memory_line(memory: dict[str, Any] | None) -> str:
    if memory is None:
        return "memory: no report says; they come with observe.hardware_seconds, and from PPO runs"
    cap, growth = memory["cap_bytes"], memory["growth_bytes_per_hour"]
    of = f" of {cap / 2**30:.2f} GiB that it may take" if cap else ""
    grows = "" if growth is None else f", {growth / 2**20:+,.0f} MiB an hour lately"
    return f"memory: {memory['bytes'] / 2**30:.2f} GiB{of}, at most {memory['most_bytes'] / 2**30:.2f} so far{grows}"


def _reports(folder: RunFolder) -> list[dict[str, Any]]:
    with contextlib.suppress(AleaError):
        return folder.read_reports()
    return []


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:,}"
