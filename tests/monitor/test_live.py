"""A real Prometheus scrapes a live run: every panel has data, and every number is the one in `metrics.jsonl`."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import shutil
import signal
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
from tests.runtimes.support import Child, Children, programs, tiny, write_config  # noqa: F401 - a fixture

pytest.importorskip("prometheus_client")
pytest.importorskip("psutil")
if shutil.which("prometheus") is None:
    pytest.skip("prometheus is not installed", allow_module_level=True)

PATIENCE = 60.0
NOT_LOCAL = ("workers", "alarm")  # reports that a healthy local run does not make; GPUs it may not have
SETTINGS = (
    *("total_rows=100000000", "search.kind=direct", "learn.updates_per_call=1", "replay.rows_per_new_row=1"),
    *("evaluate.opponents=random", "evaluate.every_rows=2560", "evaluate.games=16", "checkpoint.every_rows=2560"),
    *("observe.every_seconds=0.4", "observe.hardware_seconds=0.3"),
    *("observe.prometheus=true", "observe.metrics_port=0"),
)


@dataclasses.dataclass
class Live:
    url: str
    run: RunFolder
    desk: Desk
    child: Child

    def ask(self, expr: str) -> list[dict[str, Any]]:
        """The series that answer a question."""
        query = urllib.parse.urlencode({"query": expr})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{query}", timeout=10) as answer:
            return json.loads(answer.read())["data"]["result"]


def wait(happened: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, what
        time.sleep(0.1)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[Live]:  # noqa: F811
    root = tmp_path_factory.mktemp("live")
    desk = Desk(root, "127.0.0.1", "alea")
    config = write_config(tiny(*SETTINGS), root / "it.toml")
    # Beside the run, a machine with a GPU, workers and an alarm.
    sink = PrometheusSink()
    for report in every_report():
        sink.emit(report)
    with contextlib.ExitStack() as stack:
        other = Endpoint({PATH: sink.page}, 0)
        stack.callback(other.close)
        child = Children(programs).start(config, "--preset", "quick", "--name", "it", "--runs", root)
        stack.callback(lambda: child.kill() if child.process.is_alive() else None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rules, "SCRAPE_SECONDS", 1)
            services = {service.name: service for service in up(desk, {"prometheus": 0, "grafana": 0, "mlflow": 0})}
        stack.callback(down, desk)
        write_targets(desk.targets / "other.json", [Target(other.address, {"run": "other", "role": "game"})])
        url = services["prometheus"].url
        assert url is not None
        found = Live(url, RunFolder(root / "it"), desk, child)
        for metric in ("evaluation_score", "cpu_percent", "checkpoint_version", "training_loss"):
            seen = f'count_over_time(alea_{metric}{{run="it"}}[10m]) > 4'
            child.wait_for(lambda seen=seen: found.ask(seen) or time.sleep(0.2), metric)
        yield found


def test_every_panel_has_data(live: Live) -> None:
    needed = {f"alea_{m.name}" for m in CATALOGUE if m.report in NOT_LOCAL or m.name.startswith("gpu_")}
    asked = 0
    for page in dashboards():
        for panel in page.panels:
            for question in panel.questions:
                everywhere = live.ask(question.expr.replace("$run", ".*"))
                assert everywhere, f"{page.title}, {panel.title}: nothing answers {question.expr}"
                asked += 1
                if not any(name in question.expr for name in needed):
                    assert live.ask(question.expr.replace("$run", "it")), f"{panel.title} of a local run"
    assert asked > 60


def samples(live: Live, metric: Metric) -> Iterator[tuple[tuple[str, ...], float, float]]:
    """What Prometheus has kept: labels, when it was scraped, the number."""
    for series in live.ask(f'alea_{metric.name}{{run="it"}}[10m]'):
        labels = tuple(series["metric"][label] for label in metric.labels)
        for scraped, value in series["values"]:
            yield labels, float(scraped), float(value)


def test_every_number_is_the_one_in_the_runs_own_record(live: Live) -> None:
    records = live.run.read_reports()
    compared = dict.fromkeys(("run", "learn", "selfplay", "replay", "eval", "hardware", "checkpoint"), 0)
    for metric in CATALOGUE:
        if metric.report not in compared or not metric.field or metric.name.startswith("gpu_"):
            continue
        mine = [record for record in records if record["kind"] == metric.report]
        for labels, scraped, value in samples(live, metric):
            if scraped > records[-1]["time"] - 1.0:
                continue
            # A scrape is stamped when it begins, and answered a moment later.
            before = [record for record in mine if record["time"] <= scraped][-1:]
            soon = [record for record in mine if scraped < record["time"] <= scraped + 1.0]
            said = [dict(metric.values(record)).get(labels, math.nan) for record in (*before, *soon)]
            if metric.field == "time":  # each sink looks at the clock itself
                assert any(abs(value - number) < 0.2 for number in said)
            else:
                assert value in said, f"{metric.name} was {value} at {scraped}; the run wrote {said}"
            compared[metric.report] += 1
    assert all(compared.values()), compared
    assert sum(compared.values()) > 60


def test_numbers_of_one_scrape_belong_to_one_step(live: Live) -> None:
    steps = {int(record["step"]): record for record in live.run.read_reports() if record["kind"] == "learn"}
    by_name = {metric.name: metric for metric in CATALOGUE}
    at = {scraped: int(value) for _, scraped, value in samples(live, by_name["training_steps_total"])}
    losses = {scraped: value for _, scraped, value in samples(live, by_name["training_loss"])}
    shared = [scraped for scraped in at.keys() & losses.keys() if at[scraped] in steps]
    assert len(shared) > 2
    for scraped in shared:
        assert losses[scraped] == steps[at[scraped]]["loss"]


def test_a_run_that_is_killed_is_seen_and_one_that_ends_is_forgotten(live: Live) -> None:
    target = live.desk.targets / "it.json"
    assert live.ask('up{run="it"} == 1')
    live.child.send(signal.SIGKILL)
    live.child.process.join(PATIENCE)
    wait(lambda: live.ask('up{run="it"} == 0'), "the dead run is not seen")
    assert target.exists()  # or else nobody could be told
    target.unlink()
    wait(lambda: not live.ask('up{run="it"}'), "the run is not forgotten")
