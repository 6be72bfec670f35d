"""Alert rules and Prometheus' own settings. Both are written as JSON, which is YAML too."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aleazero.core.errors import ConfigError
from aleazero.monitor.panels import JOB
from aleazero.observe.catalogue import PREFIX, metric_of

SCRAPE_SECONDS = 5
STALLED_SECONDS = 600  # without a word of the learner


def alert_rules(prefix: str = PREFIX) -> str:
    """When somebody should look: dead workers, a learner that stalls, alarms, and what is lost."""

    def metric(name: str, labels: str = "") -> str:
        return f"{prefix}_{metric_of(name).name}{labels}"

    rules = [
        _rule(
            "AleaWorkerDead",
            f'up{{job="{JOB}"}} == 0',
            "1m",
            "critical",
            "{{ $labels.role }} of run {{ $labels.run }} at {{ $labels.instance }} does not answer",
            "It was killed, or its machine is gone. A run goes on from its newest checkpoint: alea runs resume.",
        ),
        _rule(
            "AleaLearnerStalled",
            f"time() - {metric('training_last_report_timestamp_seconds')} > {STALLED_SECONDS}",
            "1m",
            "critical",
            "run {{ $labels.run }} has made no update for {{ $value | humanizeDuration }}",
            "It is paused, waits for games, or plays a long match. See its alea.log.",
        ),
        _rule(
            "AleaAlarm",
            f"{metric('alarms_total')} > 0",
            "0m",
            "warning",
            "run {{ $labels.run }}: {{ $labels.name }} ({{ $labels.level }})",
            "The alarm itself, with its likely cause and the setting to look at, is in the run's metrics.jsonl.",
        ),
        _rule(
            "AleaCheckpointFailed",
            metric("checkpoints_total", '{saved="false"}') + " > 0",
            "0m",
            "critical",
            "run {{ $labels.run }} could not save a checkpoint",
            "Is the disk full? What was learned since the last checkpoint would be lost.",
        ),
        _rule(
            "AleaQuarantine",
            f"increase({metric('quarantined_total')}[10m]) > 0",
            "0m",
            "warning",
            "run {{ $labels.run }} refuses what a worker sends",
            "A worker of another version, or one that is broken.",
        ),
    ]
    return json.dumps({"groups": [{"name": "alea", "rules": rules}]}, indent=1) + "\n"


def prometheus_settings(targets: Path, rules: Path, http_sd: Sequence[str] = ()) -> str:
    """What Prometheus scrapes: the files in a folder, and whoever answers to `http_sd` addresses."""
    seconds = f"{SCRAPE_SECONDS}s"
    found: dict[str, Any] = {
        "job_name": JOB,
        "file_sd_configs": [{"files": [f"{_literal(targets.resolve())}/*.json"], "refresh_interval": seconds}],
    }
    if http_sd:
        found["http_sd_configs"] = [{"url": url, "refresh_interval": seconds} for url in http_sd]
    settings = {
        "global": {"scrape_interval": seconds, "evaluation_interval": seconds},
        "rule_files": [str(rules.resolve())],
        "scrape_configs": [found],
    }
    return json.dumps(settings, indent=1) + "\n"


def _literal(path: Path) -> str:
    """A folder's path where a pattern is asked for; Prometheus takes no star before the last name."""
    if "*" in str(path):
        raise ConfigError(
            f"{str(path)!r} has a '*', and Prometheus watches no such folder: keep runs elsewhere (--runs)"
        )
    return re.sub(r"([?\[\\])", r"\\\1", str(path))


def _rule(name: str, expr: str, wait: str, severity: str, summary: str, description: str) -> dict[str, Any]:
    annotations = {"summary": summary, "description": description}
    return {"alert": name, "expr": expr, "for": wait, "labels": {"severity": severity}, "annotations": annotations}
