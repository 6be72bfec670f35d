"""Dashboards and rules as files: whole, stable, accepted by Grafana's typed SDK and by promtool."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from aleazero.core.errors import ConfigError
from aleazero.monitor import panels
from aleazero.monitor.dashboards import DATASOURCE, as_json, dashboard_files
from aleazero.monitor.panels import dashboards
from aleazero.monitor.rules import alert_rules, prometheus_settings
from aleazero.observe.catalogue import BY_NAME, CATALOGUE, Metric

UIDS = ["overview", "training", "collection", "replay", "evaluation", "workers", "alarms"]
METRIC = re.compile(r"\bbgai_(\w+)")


def test_uids_are_stable_and_the_text_is_always_the_same() -> None:
    files = dashboard_files()
    assert list(files) == [f"alea-{name}.json" for name in UIDS]
    assert files == dashboard_files()
    for text in files.values():
        page = json.loads(text)
        assert [panel["id"] for panel in page["panels"]] == list(range(1, len(page["panels"]) + 1))
        titles = [panel["title"] for panel in page["panels"]]
        assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("page", dashboards(), ids=lambda page: page.uid)
def test_panels_do_not_overlap_and_ask_the_provisioned_source(page: Any) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in as_json(page)["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        taken |= cells
        assert panel["datasource"]["uid"] == DATASOURCE
        assert panel["targets"]


def test_every_metric_of_the_catalogue_is_on_a_page_and_has_the_prefix() -> None:
    asked = " ".join(q.expr for page in dashboards("bgai") for panel in page.panels for q in panel.questions)
    assert set(METRIC.findall(asked)) == {metric.name for metric in CATALOGUE}
    assert "alea_" not in asked
    assert "alea_" not in alert_rules("bgai")


def test_what_no_panel_asks_for_gets_a_panel_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Metric("new_share_ratio", "gauge", "A new number", "producers", "share", ("kind", "name"))
    monkeypatch.setattr(panels, "CATALOGUE", (*CATALOGUE, made))
    monkeypatch.setitem(BY_NAME, made.name, made)
    (panel,) = [panel for page in dashboards() for panel in page.panels if panel.title == "A new number"]
    assert (panel.unit, panel.questions[0].legend) == ("percentunit", "{{run}} {{kind}} {{name}}")
    titles = [panel.title for page in dashboards() if page.uid == "alea-collection" for panel in page.panels]
    assert titles[-1] == "A new number"
    assert "Processes that play for the run" in titles


def test_dashboards_survive_the_typed_sdk() -> None:
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    encoder = pytest.importorskip("grafana_foundation_sdk.cog.encoder")
    plugins = pytest.importorskip("grafana_foundation_sdk.cog.plugins")
    plugins.register_default_plugins()

    def contained(ours: Any, theirs: Any, where: str) -> None:
        """Everything we say is in what the SDK says again; it may add defaults."""
        if isinstance(ours, dict):
            for key, value in ours.items():
                assert key in theirs, f"{where}.{key} is unknown to the SDK"
                contained(value, theirs[key], f"{where}.{key}")
        elif isinstance(ours, list):
            assert len(ours) == len(theirs), where
            for place, (left, right) in enumerate(zip(ours, theirs, strict=True)):
                contained(left, right, f"{where}[{place}]")
        else:
            assert ours == theirs, where

    for name, text in dashboard_files().items():
        typed = models.Dashboard.from_json(json.loads(text))
        assert typed.schema_version == models.Dashboard().schema_version, f"{name}: the SDK is of another schema"
        again = json.loads(json.dumps(typed, cls=encoder.JSONEncoder))
        contained(json.loads(text), again, name)


def promtool(*arguments: object) -> str:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_promtool_accepts_rules_and_settings(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(alert_rules())
    settings = prometheus_settings(tmp_path / "targets", tmp_path / "rules.yml", ["http://127.0.0.1:9/targets"])
    (tmp_path / "prometheus.yml").write_text(settings)
    assert "5 rules found" in promtool("check", "rules", tmp_path / "rules.yml")
    assert "SUCCESS" in promtool("check", "config", tmp_path / "prometheus.yml")


def test_a_folder_with_letters_of_patterns_is_meant_as_it_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "d4 [x]?"
    (pattern,) = json.loads(prometheus_settings(folder, tmp_path / "rules.yml"))["scrape_configs"][0][
        "file_sd_configs"
    ][0]["files"]
    assert pattern == f"{tmp_path}/d4 \\[x]\\?/*.json"
    with pytest.raises(ConfigError, match=r"has a '\*'"):
        prometheus_settings(tmp_path / "a*b", tmp_path / "rules.yml")


def series(text: str, values: str) -> dict[str, str]:
    return {"series": text, "values": values}


def test_alerts_fire_when_they_should_and_not_before(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(alert_rules())
    who = 'job="alea",run="it",role="train",instance="a:1"'
    inputs = [
        series(f"up{{{who}}}", "1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0"),
        series(f"alea_training_last_report_timestamp_seconds{{{who}}}", "0 60 120+0x20"),
        series(f'alea_alarms_total{{{who},level="warn",name="duplicate games"}}', "_ _ _ 1+0x20"),
        series(f'alea_checkpoints_total{{{who},saved="true"}}', "1+1x20"),
        series(f'alea_checkpoints_total{{{who},saved="false"}}', "_ _ _ _ _ 1+0x20"),
        series(f"alea_quarantined_total{{{who}}}", "0 0 0 0 0 0 1+0x20"),
    ]
    firing = {"AleaWorkerDead": 3, "AleaLearnerStalled": 14, "AleaAlarm": 3, "AleaCheckpointFailed": 5}
    firing["AleaQuarantine"] = 6
    checks = [f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)' for alert in firing]
    tests = [
        {"expr": expr, "eval_time": f"{minute + offset}m", "exp_samples": [{"labels": "{}", "value": 1 + offset}]}
        for expr, minute in zip(checks, firing.values(), strict=True)
        for offset in (-1, 0)
    ]
    content = {
        "rule_files": [str(tmp_path / "rules.yml")],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": inputs, "promql_expr_test": tests}],
    }
    (tmp_path / "tests.yml").write_text(json.dumps(content))
    assert "SUCCESS" in promtool("test", "rules", tmp_path / "tests.yml")
