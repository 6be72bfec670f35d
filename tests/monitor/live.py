"""A real Prometheus beside a run, and what its numbers are compared with."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aleazero.monitor import rules
from aleazero.monitor.panels import dashboards
from aleazero.monitor.programs import Desk
from aleazero.monitor.services import down, up
from aleazero.observe.catalogue import CATALOGUE, Metric
from aleazero.observe.endpoint import Endpoint
from aleazero.observe.prometheus import PATH, PrometheusSink
from aleazero.observe.targets import Target, write_targets
from aleazero.runs import RunFolder
from tests.observe.test_prometheus import every_report

PATIENCE = 180.0  # for other processes, on a busy machine


@dataclasses.dataclass
class Live:
    """Prometheus, and the run that it scrapes."""

    url: str
    run: RunFolder
    desk: Desk

    def ask(self, expr: str) -> list[dict[str, Any]]:
        """The series that answer a question."""
        query = urllib.parse.urlencode({"query": expr})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{query}", timeout=60) as answer:
            return json.loads(answer.read())["data"]["result"]

    def samples(self, metric: Metric, role: str) -> Iterator[tuple[tuple[str, ...], float, float]]:
        """What Prometheus has kept: labels, when it was scraped, the number."""
        for series in self.ask(f'alea_{metric.name}{{run="{self.run.name}",role="{role}"}}[10m]'):
            labels = tuple(series["metric"][label] for label in metric.labels)
            for scraped, value in series["values"]:
                yield labels, float(scraped), float(value)


def wait(happened: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, what
        time.sleep(0.1)


@contextlib.contextmanager
def watched(run: RunFolder) -> Iterator[Live]:
    """Prometheus scrapes the run, and beside it a machine with a GPU, workers with GPUs, and an alarm."""
    desk = Desk(run.path.parent, "127.0.0.1", "alea")
    sink = PrometheusSink()
    for report in every_report():
        sink.emit(report)
    with contextlib.ExitStack() as stack:
        other = Endpoint({PATH: sink.page}, 0)
        stack.callback(other.close)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rules, "SCRAPE_SECONDS", 1)
            services = {service.name: service for service in up(desk, {"prometheus": 0, "grafana": 0, "mlflow": 0})}
        stack.callback(down, desk)
        write_targets(desk.targets / "other.json", [Target(other.address, {"run": "other", "role": "game"})])
        url = services["prometheus"].url
        assert url is not None
        yield Live(url, run, desk)


def assert_panels_have_data(live: Live, not_made: Callable[[Metric], bool]) -> None:
    """Every question of every panel is answered; by the run itself, unless it does not make such reports."""
    needed = {f"alea_{metric.name}" for metric in CATALOGUE if not_made(metric)}
    asked = own = 0
    for page in dashboards():
        for panel in page.panels:
            for question in panel.questions:
                everywhere = live.ask(question.expr.replace("$run", ".*"))
                assert everywhere, f"{page.title}, {panel.title}: nothing answers {question.expr}"
                asked += 1
                if not any(f"{name}{{" in question.expr for name in needed):
                    assert live.ask(question.expr.replace("$run", live.run.name)), f"{panel.title} of the run"
                    own += 1
    assert asked > 75
    assert own > 50


def assert_numbers_are_the_runs_own(live: Live, roles: dict[str, str]) -> None:
    """Every number that was scraped is the one that the run had written when it was; `roles` say who serves a kind."""
    records = live.run.read_reports()
    compared = dict.fromkeys(roles, 0)
    for metric in CATALOGUE:
        if metric.report not in compared or not metric.field or metric.name.startswith("gpu_"):
            continue
        mine = [record for record in records if record["kind"] == metric.report]
        for labels, scraped, value in live.samples(metric, roles[metric.report]):
            if scraped > records[-1]["time"] - 1.0:
                continue
            # A scrape is stamped when it begins, and answered a moment later.
            before = [record for record in mine if record["time"] <= scraped]
            if not metric.has_entries:  # a match against one opponent leaves what is known of another
                before = [record for record in before if labels in dict(metric.values(record))]
            soon = [record for record in mine if scraped < record["time"] <= scraped + 1.0]
            said = [dict(metric.values(record)).get(labels, math.nan) for record in (*before[-1:], *soon)]
            if metric.field == "time":  # each sink looks at the clock itself
                assert any(abs(value - number) < 0.2 for number in said)
            else:
                assert value in said, f"{metric.name} was {value} at {scraped}; the run wrote {said}"
            compared[metric.report] += 1
    assert all(compared.values()), compared
    assert sum(compared.values()) > 60


def assert_one_scrape_is_one_step(live: Live) -> None:
    """The loss on the dashboard is that of the step on the dashboard."""
    steps = {int(record["step"]): record for record in live.run.read_reports() if record["kind"] == "learn"}
    by_name = {metric.name: metric for metric in CATALOGUE}
    at = {scraped: int(value) for _, scraped, value in live.samples(by_name["training_steps_total"], "train")}
    losses = {scraped: value for _, scraped, value in live.samples(by_name["training_loss"], "train")}
    shared = [scraped for scraped in at.keys() & losses.keys() if at[scraped] in steps]
    assert len(shared) > 2
    for scraped in shared:
        assert losses[scraped] == steps[at[scraped]]["loss"]


def targets_of(path: Path) -> list[dict[str, Any]]:
    """What a `file_sd` file lists; nothing where there is none."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return []
