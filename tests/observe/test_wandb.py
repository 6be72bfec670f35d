"""A run in Weights & Biases, offline: what its own reader finds in the files it leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aleazero.observe.follow import Follower
from aleazero.observe.jsonl import JsonlSink
from aleazero.observe.wandb import WandbBackend, WandbPlan
from tests.observe import examples

pytest.importorskip("wandb")
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning", "ignore::FutureWarning"
)


def send(run: Path, *reports: Any) -> None:
    sink = JsonlSink(run / "metrics.jsonl")
    for report in reports:
        sink.emit(report)
    sink.close()
    plan = WandbPlan("aleazero", run.name, "offline", run, {"learn.batch_size": "64"}, ["pig"])
    follower = Follower(
        *(run / "metrics.jsonl", run / "wandb.json", WandbBackend(plan)), every_seconds=0.05, patience_seconds=60
    )
    assert follower.drain(60)


def pieces(content: bytes) -> Iterator[bytes]:
    """The records of a file in LevelDB's log format, behind a header of seven bytes."""
    place, record = 7, b""
    while place + 7 <= len(content):
        room = 32768 - place % 32768
        if room < 7:  # no header fits into the rest of a block
            place += room
            continue
        length, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        record += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


def history(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any], int | None]:
    """The entries, the settings and the exit code in a file of a run."""
    from wandb.proto import wandb_internal_pb2

    entries: list[dict[str, Any]] = []
    settings: dict[str, Any] = {}
    code = None
    for data in pieces(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        match record.WhichOneof("record_type"):
            case "history":
                items = record.history.item
                entries.append({"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items})
            case "run":
                settings |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
            case "exit":
                code = record.exit.exit_code
    return entries, settings, code


def test_an_offline_run_holds_every_number_and_goes_on_under_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_DIR"):
        monkeypatch.delenv(variable, raising=False)
    reports = [examples.learn(step=3, loss=0.25), examples.match(step=4), examples.ppo(step=4, win_rate=0.125)]
    send(tmp_path, *reports, examples.run(status="stopped"))
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    entries, settings, code = history(file)
    assert settings["learn.batch_size"] == "64"
    assert code == 0
    learned, played = entries[:2]
    assert learned["step"] == 3
    assert {key: value for key, value in learned.items() if key.startswith("learn/")} == reports[0].metrics()
    assert played["eval/random/score"] == 0.75
    followed = entries[2]
    assert followed["ppo/win_rate"] == 0.125
    assert {"ppo/games_per_hour", "ppo/mean_ante"} <= followed.keys()
    first = json.loads((tmp_path / "wandb.json").read_text())["backend"]["id"]
    assert first in file.name
    send(tmp_path, examples.learn(step=5), examples.run(status="failed"))
    assert json.loads((tmp_path / "wandb.json").read_text())["backend"]["id"] == first
    newest = max(tmp_path.glob("wandb/offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime_ns)
    entries, _, code = history(newest)
    assert ([entry["step"] for entry in entries if "learn/loss" in entry], code) in (([5], 1), ([3, 5], 1))
