"""One report of each kind, with any field replaced."""

from __future__ import annotations

from typing import Any

from aleazero.observe.reports import (
    AlarmReport,
    CheckpointReport,
    EvalReport,
    LearnReport,
    PpoReport,
    ProducersReport,
    ReplayReport,
    RunReport,
    SelfPlayReport,
)


def run(**changes: Any) -> RunReport:
    fields: dict[str, Any] = {"status": "started", "run": "pig-1", "game": "pig", "total_rows": 1000}
    return RunReport(**{"step": 0, "rows": 0, "seconds": 0.0, **fields, **changes})


def selfplay(**changes: Any) -> SelfPlayReport:
    fields: dict[str, Any] = {
        "games": 40,
        "finished": 4,
        "games_per_second": 12.5,
        "rows_per_second": 250.0,
        "simulations_per_second": 8000.0,
        "mean_moves": 20.0,
        "truncated_fraction": 0.0,
        "duplicate_fraction": 0.125,
        "policy_entropy": 0.5,
        "legal_entropy": 0.75,
        "outcomes": {"win": 0.625, "loss": 0.375},
    }
    return SelfPlayReport(**{"step": 10, "rows": 100, "seconds": 2.0, **fields, **changes})


def learn(**changes: Any) -> LearnReport:
    fields: dict[str, Any] = {
        "loss": 1.5,
        "losses": {"policy": 1.0, "value": 0.5},
        "gradient_norm": 0.25,
        "learning_rate": 0.001,
        "rows_trained": 640,
        "rows_per_second": 320.0,
        "updates_per_second": 5.0,
        "value_target_variance": 0.9,
        "value_error": 0.4,
    }
    return LearnReport(**{"step": 10, "rows": 100, "seconds": 3.0, **fields, **changes})


def ppo(**changes: Any) -> PpoReport:
    fields: dict[str, Any] = {
        "policy_loss": -0.01,
        "value_loss": 1.5,
        "entropy": 2.5,
        "kl": 0.01,
        "kl_target": 0.02,
        "kl_weight": 0.2,
        "clip_fraction": 0.1,
        "explained_variance": 0.75,
        "decisions_per_second": 2500.0,
        "games_per_hour": 90000.0,
        "mean_points": 2.5,
        "win_rate": 0.125,
        "mean_ante": 1.75,
        "antes": {"1": 0.25, "2": 0.75},
        "horizon": 8,
        "rewards": {"points": 0.05, "progress": 0.01},
        "memory_bytes": 50,
        "memory_cap_bytes": 100,
    }
    return PpoReport(**{"step": 10, "rows": 100, "seconds": 3.0, **fields, **changes})


def producers(**changes: Any) -> ProducersReport:
    fields: dict[str, Any] = {
        "processes": 2,
        "restarts": 1,
        "rows_per_second": 500.0,
        "taken_per_second": 250.0,
        "waiting_share": 0.5,
        "queue": 3,
        "queue_size": 16,
    }
    return ProducersReport(**{"step": 10, "rows": 100, "seconds": 3.0, **fields, **changes})


def replay(**changes: Any) -> ReplayReport:
    fields: dict[str, Any] = {
        "rows_held": 90,
        "rows_ready": 80,
        "window_rows": 70,
        "games_held": 9,
        "mean_surprise": 0.3,
        "surprise": {"0.5": 0.25, "0.9": 0.75, "0.99": 1.25},
    }
    return ReplayReport(**{"step": 10, "rows": 100, "seconds": 3.0, **fields, **changes})


def match(**changes: Any) -> EvalReport:
    fields: dict[str, Any] = {
        "player": "self",
        "opponent": "random",
        "games": 400,
        "score": 0.75,
        "score_low": 0.7,
        "score_high": 0.8,
        "points_per_game": 0.5,
        "points_low": 0.4,
        "points_high": 0.6,
    }
    return EvalReport(**{"step": 10, "rows": 100, "seconds": 4.0, **fields, **changes})


def checkpoint(**changes: Any) -> CheckpointReport:
    return CheckpointReport(
        **{"step": 10, "rows": 100, "seconds": 4.0, "path": "checkpoints/10", "saved": True, **changes}
    )


def alarm(**changes: Any) -> AlarmReport:
    fields: dict[str, Any] = {
        "level": "warn",
        "name": "duplicate games",
        "message": "31 % of the games are [bold]the same[/bold]",
        "setting": "search.noise",
    }
    return AlarmReport(**{"step": 10, "rows": 100, "seconds": 4.0, **fields, **changes})
