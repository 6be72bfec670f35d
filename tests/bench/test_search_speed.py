"""The speed check runs on both sides, interleaved, and its ratios mean what they say."""

from __future__ import annotations

import json

import pytest

from aleazero.bench.search_speed import main
from aleazero.bench.timing import Timing, interleave


def test_small_run_reports_everything(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--game tic_tac_toe --batch 4 --simulations 4 8 --kinds gumbel --rounds 2 --json"
    assert main(arguments.split()) == 0
    report = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in report["rows"]}
    assert set(rows) == {"rules", "network", "ours gumbel 4", "mctx gumbel 4", "ours gumbel 8", "mctx gumbel 8"}
    assert all(row["per_second"] > 0 for row in rows.values())
    ours = rows["ours gumbel 8"]
    assert ours["ratio_low"] <= ours["ratio"] <= ours["ratio_high"]
    assert set(report["growth"]) == {"ours gumbel", "mctx gumbel"}


def test_variants_take_turns() -> None:
    order: list[str] = []
    timings = interleave({name: lambda n, name=name: order.append(name) for name in "ab"}, rounds=3)
    assert "".join(order) == "ab" * 5  # once to compile, once to settle, three rounds
    assert len(timings["a"].seconds) == 3


def test_ratio_is_theirs_over_ours_round_by_round() -> None:
    ours, theirs = Timing("ours", 0.0, (1.0, 2.0, 4.0)), Timing("theirs", 0.0, (3.0, 4.0, 20.0))
    assert ours.ratio_to(theirs) == (3.0, 2.0, 5.0)
