"""The standard panels: which there are, and which numbers are in them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from aleazero.observe.curves import run_panels
from aleazero.observe.jsonl import JsonlSink, read_jsonl
from aleazero.observe.plot import Panel, write_svg
from aleazero.observe.reports import Report
from tests.observe import examples


def _panels(*reports: Report) -> dict[str, Panel]:
    return {panel.title: panel for panel in run_panels([report.as_dict() for report in reports])}


def _curves(panel: Panel) -> dict[str, list[tuple[float, float]]]:
    return {curve.label: list(zip(curve.x, curve.y, strict=True)) for curve in panel.curves}


def test_losses_by_term_against_updates():
    panel = _panels(
        examples.learn(step=1, loss=3.0, losses={"policy": 2.0, "value": 1.0}),
        examples.learn(step=5, loss=1.75, losses={"policy": 1.5, "value": 0.25}),
    )["Losses"]
    assert _curves(panel) == {
        "total": [(1, 3.0), (5, 1.75)],
        "policy": [(1, 2.0), (5, 1.5)],
        "value": [(1, 1.0), (5, 0.25)],
    }


def test_a_term_that_comes_later_has_a_gap_before():
    panel = _panels(examples.learn(losses={"a": 1.0}), examples.learn(losses={"b": 2.0}))["Losses"]
    curves = {curve.label: curve.y for curve in panel.curves}
    assert math.isnan(curves["a"][1])
    assert math.isnan(curves["b"][0])
    assert (curves["a"][0], curves["b"][1]) == (1.0, 2.0)


def test_scores_with_their_intervals_against_rows():
    panel = _panels(
        examples.match(rows=100, score=0.5, score_low=0.4, score_high=0.6),
        examples.match(rows=100, opponent="pubeval"),
        examples.match(rows=200, score=0.6, score_low=0.5, score_high=0.7),
    )["Score"]
    random, pubeval = panel.curves
    assert (random.label, pubeval.label) == ("against random", "against pubeval")
    assert (random.x, random.y, random.low, random.high) == ([100, 200], [0.5, 0.6], [0.4, 0.5], [0.6, 0.7])
    assert list(pubeval.x) == [100]
    assert panel.y_range == (0, 1)


def test_several_players_are_told_apart():
    panel = _panels(examples.match(), examples.match(player="bundled"))["Score"]
    assert [curve.label for curve in panel.curves] == ["self against random", "bundled against random"]


def test_a_run_is_one_player_at_every_step():
    matches = (examples.match(player=f"run:mine@{step}", rows=step, score=0.5) for step in (64, 128))
    assert _curves(_panels(*matches)["Score"]) == {"against random": [(64, 0.5), (128, 0.5)]}


def test_speed_against_seconds():
    panel = _panels(examples.selfplay(seconds=2.5), examples.selfplay(seconds=4.0, games_per_second=0.0))["Speed"]
    assert _curves(panel) == {
        "games": [(2.5, 12.5), (4.0, 0.0)],
        "rows": [(2.5, 250.0), (4.0, 250.0)],
        "simulations": [(2.5, 8000.0), (4.0, 8000.0)],
    }
    assert panel.log_y


def test_entropy_and_replay_against_rows():
    panels = _panels(examples.selfplay(), examples.replay())
    assert _curves(panels["Policy entropy"]) == {"policy target": [(100, 0.5)], "uniform over legal": [(100, 0.75)]}
    assert _curves(panels["Replay"]) == {"held": [(100, 90)], "ready": [(100, 80)], "window": [(100, 70)]}


def test_what_ppo_says_against_rows_and_memory_against_seconds():
    panels = _panels(examples.ppo(), examples.ppo(rows=200, seconds=5.0, mean_ante=2.0, memory_bytes=60))
    assert _curves(panels["Where games end"]) == {"mean": [(100, 1.75), (200, 2.0)]}
    assert _curves(panels["Points of games"]) == {"mean": [(100, 2.5), (200, 2.5)]}
    assert _curves(panels["Explained variance"]) == {"of returns": [(100, 0.75), (200, 0.75)]}
    assert _curves(panels["Memory"]) == {"held": [(3.0, 50), (5.0, 60)], "cap": [(3.0, 100), (5.0, 100)]}


def test_only_panels_with_data():
    assert _panels() == {}
    assert _panels(examples.run(), examples.alarm(), examples.checkpoint()) == {}
    assert list(_panels(examples.learn())) == ["Losses"]
    assert list(_panels(examples.replay())) == ["Replay"]
    assert list(_panels(examples.match())) == ["Score"]
    assert list(_panels(examples.selfplay())) == ["Speed", "Policy entropy"]
    still = {"games_per_second": 0.0, "rows_per_second": 0.0, "simulations_per_second": 0.0}
    assert list(_panels(examples.selfplay(**still))) == ["Policy entropy"]
    nothing: dict[str, Any] = {"loss": math.nan, "losses": {"policy": math.inf}}
    assert _panels(examples.learn(**nothing)) == {}


def test_from_a_run_to_a_file(tmp_path: Path):
    sink = JsonlSink(tmp_path / "metrics.jsonl")
    for step in range(5):
        sink.emit(examples.learn(step=step, loss=math.nan if step == 2 else 1.0))
        sink.emit(examples.match(rows=step, score=math.nan if step == 2 else 0.5))
    sink.close()
    panels = run_panels(read_jsonl(tmp_path / "metrics.jsonl"))
    assert [panel.title for panel in panels] == ["Losses", "Score"]
    assert math.isnan(panels[0].curves[0].y[2])
    write_svg(tmp_path / "run.svg", panels, "pig-1")
    assert (tmp_path / "run.svg").read_text().count("<polygon") == 1


def test_records_of_an_older_version_leave_gaps():
    (losses,) = run_panels([{"kind": "learn", "step": 1, "loss": 2.0}, {"kind": "learn", "step": 2}, {"other": 1}])
    (total,) = losses.curves
    assert (total.x, total.y[0]) == ([1, 2], 2.0)
    assert math.isnan(total.y[1])
