"""Dashboards in Grafana's JSON, from the table in `panels`. The same table gives the same text, byte for byte."""

from __future__ import annotations

import json
from typing import Any

from aleazero.monitor.panels import Dashboard, Panel, dashboards
from aleazero.observe.catalogue import PREFIX

DATASOURCE = "alea-prometheus"  # its uid
_SOURCE = {"type": "prometheus", "uid": DATASOURCE}
_COLUMNS, _WIDTH = 2, 12  # a page is 24 wide
_HEIGHT = {"stat": 4, "timeseries": 8}


def dashboard_files(prefix: str = PREFIX) -> dict[str, str]:
    """The text of each dashboard, by file name."""
    return {f"{page.uid}.json": json.dumps(as_json(page, prefix), indent=1) + "\n" for page in dashboards(prefix)}


def as_json(page: Dashboard, prefix: str = PREFIX) -> dict[str, Any]:
    """A dashboard as Grafana reads it."""
    return {
        "uid": page.uid,
        "title": page.title,
        "tags": ["alea"],
        "editable": False,
        "schemaVersion": 39,
        "refresh": "10s",
        "timezone": "browser",
        "time": {"from": "now-3h", "to": "now"},
        "links": [{"type": "dashboards", "title": "Alea", "tags": ["alea"], "asDropdown": True, "keepTime": True}],
        "templating": {"list": [_run_variable(prefix)]},
        "panels": _placed(page.panels),
    }


def _run_variable(prefix: str) -> dict[str, Any]:
    query = f"label_values({prefix}_run_rows_target, run)"
    return {
        "type": "query",
        "name": "run",
        "label": "run",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": "run"},
        "refresh": 2,  # whenever the time range changes
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _placed(panels: tuple[Panel, ...]) -> list[dict[str, Any]]:
    """Panels in two columns; small ones four to a row."""
    placed, x, y, row = [], 0, 0, 0
    for number, panel in enumerate(panels, start=1):
        width, height = (6 if panel.kind == "stat" else _WIDTH), _HEIGHT[panel.kind]
        if x + width > _COLUMNS * _WIDTH or (row and row != height):
            x, y, row = 0, y + row, 0
        placed.append(_panel(panel, number, {"x": x, "y": y, "w": width, "h": height}))
        x, row = x + width, height
    return placed


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + place), "datasource": _SOURCE, "expr": asked.expr, "legendFormat": asked.legend}
        for place, asked in enumerate(panel.questions)
    ]
    options: dict[str, Any] = (
        {"reduceOptions": {"calcs": ["lastNotNull"], "values": False}}
        if panel.kind == "stat"
        else {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}}
    )
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.help,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "options": options,
        "targets": targets,
    }
