"""The standard panels of a run, from the records its reports left. Knows no file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from aleazero.observe.plot import Curve, Panel
from aleazero.observe.reports import EvalReport, LearnReport, PpoReport, ReplayReport, SelfPlayReport

Record = Mapping[str, Any]


def run_panels(records: Sequence[Record]) -> list[Panel]:
    """Losses, scores, speed, entropy and replay, of records as `read_jsonl` gives them; only panels with data."""
    learn, selfplay, replay, evals, ppo = (
        [record for record in records if record.get("kind") == report.kind]
        for report in (LearnReport, SelfPlayReport, ReplayReport, EvalReport, PpoReport)
    )
    panels = [
        Panel("Losses", "updates", "loss", _losses(learn)),
        Panel("Score", "rows played", "score, with 95 % interval", _scores(evals), y_range=(0.0, 1.0)),
        # Simulations outnumber games by orders of magnitude; a shared linear axis would flatten one of them.
        Panel(
            "Speed",
            "seconds",
            "per second",
            [
                _curve("games", selfplay, "seconds", "games_per_second"),
                _curve("rows", selfplay, "seconds", "rows_per_second"),
                _curve("simulations", selfplay, "seconds", "simulations_per_second"),
            ],
            log_y=True,
        ),
        Panel(
            "Policy entropy",
            "rows played",
            "nats",
            [
                _curve("policy target", selfplay, "rows", "policy_entropy"),
                _curve("uniform over legal", selfplay, "rows", "legal_entropy"),
            ],
        ),
        Panel("Where games end", "rows played", "ante", [_curve("mean", ppo, "rows", "mean_ante")]),
        Panel("Points of games", "rows played", "points", [_curve("mean", ppo, "rows", "mean_points")]),
        Panel("Explained variance", "rows played", "share", [_curve("of returns", ppo, "rows", "explained_variance")]),
        Panel(
            "Memory",
            "seconds",
            "bytes",
            [_curve("held", ppo, "seconds", "memory_bytes"), _curve("cap", ppo, "seconds", "memory_cap_bytes")],
        ),
        Panel(
            "Replay",
            "rows played",
            "rows",
            [
                _curve("held", replay, "rows", "rows_held"),
                _curve("ready", replay, "rows", "rows_ready"),
                _curve("window", replay, "rows", "window_rows"),
            ],
        ),
    ]
    return [panel for panel in panels if any(_has_points(curve, panel.log_y) for curve in panel.curves)]


def _losses(learn: Sequence[Record]) -> list[Curve]:
    """The total, and a curve for each term in the order the terms first came."""
    steps = _column(learn, "step")
    by_record = [record.get("losses") or {} for record in learn]
    terms = dict.fromkeys(term for losses in by_record for term in losses)
    return [
        Curve("total", steps, _column(learn, "loss")),
        *(Curve(term, steps, _column(by_record, term)) for term in terms),
    ]


def _scores(evals: Sequence[Record]) -> list[Curve]:
    """A curve for each pairing; players are named only where there are several.

    A run is one player all along, though each match is of the weights of another step (`run:NAME@STEP`).
    """
    pairings: dict[tuple[str, str], list[Record]] = {}
    for record in evals:
        player = str(record.get("player")).partition("@")[0]
        pairings.setdefault((player, str(record.get("opponent"))), []).append(record)
    several = len({player for player, _ in pairings}) > 1
    return [
        Curve(
            f"{player} against {opponent}" if several else f"against {opponent}",
            _column(matches, "rows"),
            _column(matches, "score"),
            _column(matches, "score_low"),
            _column(matches, "score_high"),
        )
        for (player, opponent), matches in pairings.items()
    ]


def _curve(label: str, records: Sequence[Record], x: str, y: str) -> Curve:
    return Curve(label, _column(records, x), _column(records, y))


def _column(records: Sequence[Record], name: str) -> list[float]:
    """A field of every record, with NaN for null and for what an older version did not write."""
    values = (record.get(name) for record in records)
    return [float(value) if isinstance(value, int | float) else math.nan for value in values]


def _has_points(curve: Curve, log_y: bool) -> bool:
    return any(
        math.isfinite(x) and math.isfinite(y) and (y > 0 or not log_y) for x, y in zip(curve.x, curve.y, strict=True)
    )
