"""Pictures of the dashboards, drawn from what a Prometheus has kept: for the documentation, or without a Grafana.

    python scripts/draw_dashboards.py --url http://127.0.0.1:9090 --run NAME --minutes 10 --out docs/pictures

Asks Prometheus every question of every panel, exactly as Grafana would, and draws the answers with our own line charts.
A panel that nobody answers is left out, and named at the end.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from aleazero.monitor.panels import Panel as Asked
from aleazero.monitor.panels import dashboards
from aleazero.observe.catalogue import PREFIX
from aleazero.observe.plot import Curve, Panel, write_svg

POINTS = 90  # of a line: enough to see, few enough for a small file
UNITS = {"percentunit": "share", "percent": "percent", "bytes": "bytes", "celsius": "degrees Celsius", "watt": "watts"}


def ask(url: str, expr: str, end: float, seconds: float) -> list[dict[str, Any]]:
    """The series that answer, over a stretch of time."""
    asked = {"query": expr, "start": end - seconds, "end": end, "step": max(seconds / POINTS, 1)}
    query = urllib.parse.urlencode(asked)
    with urllib.request.urlopen(f"{url}/api/v1/query_range?{query}", timeout=30) as answer:
        return list(json.loads(answer.read())["data"]["result"])


def draw(panel: Asked, url: str, run: str, end: float, seconds: float) -> Panel | None:
    """The panel; None where nothing answers."""
    curves = []
    for question in panel.questions:
        for series in ask(url, question.expr.replace("$run", run), end, seconds):
            named = {"run": "", **{name: text for name, text in series["metric"].items() if name != "run"}}
            label = question.legend
            for name in re.findall(r"\{\{(\w+)\}\}", label):
                label = label.replace(f"{{{{{name}}}}}", named.get(name, ""))
            label = " ".join(label.split()) or panel.title.lower()
            x, y = zip(*((at - (end - seconds), float(value)) for at, value in series["values"]), strict=True)
            curves.append(Curve(label, x, y))
    return Panel(panel.title, "seconds", UNITS.get(panel.unit, ""), curves) if curves else None


def main() -> int:
    """Parses, asks, draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:9090")
    parser.add_argument("--run", required=True)
    parser.add_argument("--minutes", type=float, default=10.0, help="that are drawn")
    parser.add_argument("--ago", type=float, default=0.0, help="minutes since they ended")
    parser.add_argument("--prefix", default=PREFIX)
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    end, left_out = time.time() - given.ago * 60, []
    for page in dashboards(given.prefix):
        drawn = []
        for panel in page.panels:
            found = draw(panel, given.url, given.run, end, given.minutes * 60)
            if found is None:
                left_out.append(f"{page.title}: {panel.title}")
            else:
                drawn.append(found)
        path = given.out / f"{page.uid}.svg"
        write_svg(path, drawn, page.title)
        print(f"{path}: {len(drawn)} of {len(page.panels)} panels, {path.stat().st_size / 1024:.0f} KB")
    print("without an answer:", "; ".join(left_out) or "none")
    return 0


if __name__ == "__main__":
    sys.exit(main())
