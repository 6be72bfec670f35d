"""Reports for Prometheus: the newest number of every metric in the catalogue, and the page that is scraped.

A scrape never waits for a report, nor a report for a scrape. However many opponents, versions and workers come and go,
a metric has at most `Metric.most` series. Knows the catalogue; no metric by name.
"""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from aleazero.core.errors import MissingExtra
from aleazero.observe.catalogue import CATALOGUE, PREFIX, Metric, Series
from aleazero.observe.reports import Report

PATH = "/metrics"


class PrometheusSink:
    """Keeps the newest numbers; `page` renders them."""

    def __init__(self, prefix: str = PREFIX) -> None:
        try:
            self._client = import_module("prometheus_client")
            self._families = import_module("prometheus_client.core")
        except ImportError as error:
            raise MissingExtra("metrics for Prometheus", "prometheus-client", "track") from error
        self._prefix = prefix
        self._turn = threading.Lock()
        self._newest: dict[str, collections.OrderedDict[Series, float]] = {
            metric.name: collections.OrderedDict() for metric in CATALOGUE
        }
        self._by_kind: dict[str, list[Metric]] = {}
        for metric in CATALOGUE:
            self._by_kind.setdefault(metric.report, []).append(metric)
        self._registry = self._client.CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def emit(self, report: Report) -> None:
        """Takes a report's numbers in place of older ones, all at once: a scrape sees all of a report or nothing."""
        record = {**report.as_dict(), "time": time.time()}
        with self._turn:
            for metric in self._by_kind.get(report.kind, ()):
                self._take(metric, record)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """Nothing is held."""

    def page(self) -> tuple[str, bytes]:
        """The page for Prometheus: type and content."""
        return "text/plain; version=0.0.4; charset=utf-8", self._client.generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """The families of metrics that have numbers, as prometheus-client asks for them."""
        with self._turn:
            newest = [(metric, list(self._newest[metric.name].items())) for metric in CATALOGUE]
        for metric, series in newest:
            if not series:
                continue
            make = {"gauge": self._families.GaugeMetricFamily, "counter": self._families.CounterMetricFamily}
            family = make[metric.type](f"{self._prefix}_{metric.name}", metric.help, labels=metric.labels)
            for labels, value in series:
                family.add_metric(labels, value)
            yield family

    def _take(self, metric: Metric, record: dict[str, Any]) -> None:
        series = self._newest[metric.name]
        if metric.has_entries:
            series.clear()  # an entry that is gone from the report is gone
        for labels, value in metric.values(record):
            series[labels] = series.get(labels, 0.0) + value if not metric.field else value
            series.move_to_end(labels)
        while len(series) > metric.most:
            series.popitem(last=False)
