"""What the dashboards show, as a table: seven of them, each a list of panels with their questions to Prometheus.

Every metric is taken from the catalogue, so that a panel cannot ask for one that nobody exports; and those that no
panel asks for get one each, on the page where their kind of report belongs. Knows nothing of Grafana's format: that is
`dashboards`.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from aleazero.observe.catalogue import CATALOGUE, PREFIX, Metric, metric_of

JOB = "alea"  # of everything that Prometheus scrapes for us


@dataclasses.dataclass(frozen=True)
class Question:
    """One question to Prometheus, and what its answers are called."""

    expr: str
    legend: str = "{{run}}"


@dataclasses.dataclass(frozen=True)
class Panel:
    """One picture."""

    title: str
    questions: tuple[Question, ...]
    unit: str = "short"  # in Grafana's words
    kind: Literal["timeseries", "stat"] = "timeseries"
    help: str = ""


@dataclasses.dataclass(frozen=True)
class Dashboard:
    """One page. Its uid never changes: links to it stay good."""

    uid: str
    title: str
    panels: tuple[Panel, ...]


def dashboards(prefix: str = PREFIX) -> tuple[Dashboard, ...]:
    """All pages, for metrics of a prefix."""
    shown = _Metrics(prefix)
    pages = (
        Dashboard("alea-overview", "Alea: overview", _overview(shown)),
        Dashboard("alea-training", "Alea: training", _training(shown)),
        Dashboard("alea-collection", "Alea: collection", _collection(shown)),
        Dashboard("alea-replay", "Alea: replay and surprise", _replay(shown)),
        Dashboard("alea-evaluation", "Alea: evaluation", _evaluation(shown)),
        Dashboard("alea-workers", "Alea: workers and hardware", _workers(shown)),
        Dashboard("alea-alarms", "Alea: alarms", _alarms(shown)),
    )
    rest: dict[str, list[Panel]] = {}
    for metric in CATALOGUE:
        if metric.name not in shown.asked:
            rest.setdefault(_PAGES.get(metric.report, "alea-training"), []).append(shown.plain(metric))
    return tuple(dataclasses.replace(page, panels=(*page.panels, *rest.get(page.uid, ()))) for page in pages)


_PAGES = {"selfplay": "alea-collection", "producers": "alea-collection", "ray": "alea-workers"}  # by kind of report
_UNITS = {"ratio": "percentunit", "percent": "percent", "bytes": "bytes", "seconds": "s"}  # by how a name ends


class _Metrics:
    """Metrics of the runs that are chosen on the page."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.asked: set[str] = set()  # names of metrics

    def __call__(self, name: str, **labels: str) -> str:
        """A metric as PromQL names it."""
        self.asked.add(name)
        wanted = "".join(f',{label}="{value}"' for label, value in labels.items())
        return f'{self._prefix}_{metric_of(name).name}{{run=~"$run"{wanted}}}'

    def graph(self, title: str, unit: str, **lines: str) -> Panel:
        """Several metrics in one picture, each by what it is called."""
        asked = tuple(Question(self(name), f"{{{{run}}}} {called.replace('_', ' ')}") for called, name in lines.items())
        return Panel(title, asked, unit)

    def one(self, title: str, name: str, unit: str = "short", legend: str = "{{run}}") -> Panel:
        """One metric, a line for each of its series."""
        return Panel(title, (Question(self(name), legend),), unit, help=metric_of(name).help)

    def plain(self, metric: Metric) -> Panel:
        """The same by what the catalogue says of it."""
        legend = " ".join(["{{run}}", *(f"{{{{{label}}}}}" for label in metric.labels)])
        return self.one(metric.help, metric.name, _UNITS.get(metric.name.rpartition("_")[2], "short"), legend)


def _overview(m: _Metrics) -> tuple[Panel, ...]:
    progress = f"{m('collection_rows_total')} / {m('run_rows_target')}"
    firing = 'count(ALERTS{alertstate="firing"}) or vector(0)'
    return (
        Panel("Progress", (Question(progress),), "percentunit", "stat", "Positions played, of those to play"),
        Panel("Updates", (Question(m("training_steps_total")),), "short", "stat"),
        Panel("Games", (Question(m("games_total")),), "short", "stat"),
        Panel("Alerts that fire", (Question(firing, "alerts"),), "short", "stat"),
        m.one("Score", "evaluation_score", "percentunit", "{{run}} against {{opponent}}"),
        m.one("Loss", "training_loss"),
        m.one("Games a minute", "games_per_minute"),
        m.one("Updates a second", "training_steps_per_second"),
    )


def _training(m: _Metrics) -> tuple[Panel, ...]:
    return (
        m.graph("Loss", "short", total="training_loss", policy="training_policy_loss", value="training_value_loss"),
        m.one("Terms of the loss", "training_loss_term", legend="{{run}} {{term}}"),
        m.one("Updates a second", "training_steps_per_second"),
        m.one("Version of the weights", "model_version"),
        m.one("Learning rate", "training_learning_rate"),
        m.one("Gradient norm", "training_gradient_norm"),
        m.graph("Value", "short", error="training_value_error", variance_of_targets="training_value_target_variance"),
        m.one("Rows trained on", "training_rows_total"),
        m.one("Rows trained on a second", "training_rows_per_second"),
    )


def _collection(m: _Metrics) -> tuple[Panel, ...]:
    return (
        m.one("Games a minute", "games_per_minute"),
        m.one("Positions a second", "collection_steps_per_second"),
        m.one("Simulations a second", "simulations_per_second"),
        m.one("Length of games", "game_length_mean"),
        m.one("How games end for seat 0", "game_outcome_ratio", "percentunit", "{{run}} {{outcome}}"),
        m.graph("Entropy", "short", policy_targets="policy_entropy_nats", uniform="legal_entropy_nats"),
        m.graph(
            "Games to worry about", "percentunit", cut_short="games_truncated_ratio", alike="games_duplicate_ratio"
        ),
        m.graph("So far", "short", games="games_total", positions="collection_rows_total"),
    )


def _replay(m: _Metrics) -> tuple[Panel, ...]:
    reuse = f"{m('training_rows_total')} / {m('collection_rows_total')}"
    lines = {"held": "buffer_size", "ready": "buffer_ready_rows", "drawn_from": "buffer_window_rows"}
    return (
        m.graph("Rows", "short", **lines),
        m.one("Games held", "buffer_episodes"),
        m.one("Surprise, by quantile", "surprise_quantile", legend="{{run}} {{quantile}}"),
        m.one("Mean surprise", "surprise_mean"),
        Panel("Times a row is trained on", (Question(reuse),)),
        m.one("Value error of what is drawn", "training_value_error"),
    )


def _evaluation(m: _Metrics) -> tuple[Panel, ...]:
    def interval(title: str, unit: str, middle: str, low: str, high: str) -> Panel:
        who = "{{run}} against {{opponent}}"
        lines = (Question(m(middle), who), Question(m(low), f"{who}, 95 % low"), Question(m(high), f"{who}, 95 % high"))
        return Panel(title, lines, unit)

    score = ("evaluation_score", "evaluation_score_low", "evaluation_score_high")
    points = ("evaluation_points_per_game", "evaluation_points_low", "evaluation_points_high")
    return (
        interval("Score", "percentunit", *score),
        interval("Points per game", "short", *points),
        m.one("Version that played", "evaluation_model_version", legend="{{run}} against {{opponent}}"),
        m.one("Games of the match", "evaluation_games", legend="{{run}} against {{opponent}}"),
    )


def _workers(m: _Metrics) -> tuple[Panel, ...]:
    up = f'sum by (role) (up{{job="{JOB}",run=~"$run"}})'
    machine, gpu = "{{run}} {{role}} {{worker}} {{instance}}", "{{run}} {{worker}} {{instance}} GPU {{gpu}}"
    worker = "{{run}} {{worker}}"
    return (
        Panel("Processes that answer", (Question(up, "{{role}}"),), help="Of those that were told to Prometheus"),
        m.one("Workers that are alive", "active_workers", legend="{{run}} {{kind}}"),
        m.one("Rows on their way", "queue_depth"),
        m.one("Games a minute, as the head hears", "worker_games_per_minute", legend=worker),
        m.one("Positions a second, as the head hears", "worker_rows_per_second", legend=worker),
        m.one("Games a minute, as each worker says", "own_games_per_minute", legend=worker),
        m.one("Positions a second, as each worker says", "own_steps_per_second", legend=worker),
        m.one("Games played by each", "own_games_total", legend=worker),
        m.one("Slabs sent and not acknowledged", "own_waiting_slabs", legend=worker),
        m.one("Version that each plays with", "own_model_version", legend=worker),
        m.one("Time spent waiting to be heard", "own_blocked_ratio", "percentunit", worker),
        m.one("Chunks of matches", "own_chunks_total", legend=worker),
        m.one("CPU of each worker's machine", "worker_cpu_percent", "percent", worker),
        m.one("Memory of each worker's machine", "worker_memory_percent", "percent", worker),
        m.one("CPU", "cpu_percent", "percent", machine),
        m.one("CPU of the process; 100 is a core", "process_cpu_percent", "percent", machine),
        m.one("Memory", "memory_percent", "percent", machine),
        m.one("Memory in use", "memory_used_bytes", "bytes", machine),
        m.one("Memory of the process", "process_memory_bytes", "bytes", machine),
        m.one("GPU", "gpu_utilization_percent", "percent", gpu),
        m.one("GPU memory", "gpu_memory_percent", "percent", gpu),
        m.one("GPU temperature", "gpu_temperature_celsius", "celsius", gpu),
        m.one("GPU power", "gpu_power_watts", "watt", gpu),
        m.one("GPUs of each worker", "worker_gpu_utilization_percent", "percent", worker),
        m.one("Their memory", "worker_gpu_memory_percent", "percent", worker),
        m.one("The hottest of them", "worker_gpu_temperature_celsius", "celsius", worker),
        m.one("Their power", "worker_gpu_power_watts", "watt", worker),
    )


def _alarms(m: _Metrics) -> tuple[Panel, ...]:
    age = f"time() - {m('training_last_report_timestamp_seconds')}"
    return (
        Panel(
            "Alerts that fire", (Question('count(ALERTS{alertstate="firing"}) or vector(0)', "alerts"),), kind="stat"
        ),
        m.one("Alarms", "alarms_total", legend="{{run}} {{level}}: {{name}}"),
        Panel("Seconds since the learner spoke", (Question(age),), "s"),
        m.one("Slabs refused", "quarantined_total"),
        m.one("Slabs refused, by reason", "quarantined_by_reason_total", legend="{{run}} {{reason}}"),
        m.one("Checkpoints", "checkpoints_total", legend="{{run}} saved: {{saved}}"),
        m.one("Version in the last checkpoint", "checkpoint_version"),
    )
