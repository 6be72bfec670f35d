"""The catalogue: every metric comes from a field that there is, and no series grows without bound."""

from __future__ import annotations

import dataclasses
import re

import pytest

from aleazero.core.errors import UnknownName
from aleazero.observe import reports
from aleazero.observe.catalogue import CATALOGUE, LONGEST_LABEL, MOST_SERIES, metric_of, prefix_problems
from tests.observe import examples
from tests.observe.test_prometheus import workers as examples_workers

KINDS = {
    report.kind: report
    for report in vars(reports).values()
    if isinstance(report, type) and issubclass(report, reports.Report) and report.kind
}


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: metric.name)
def test_every_metric_comes_from_a_field_of_a_report(metric):
    fields = {field.name: str(field.type) for field in dataclasses.fields(KINDS[metric.report])}
    field, _, entry = metric.field.partition(".")
    assert field in {*fields, "time", ""}
    assert bool(entry) or metric.has_entries == fields.get(field, "").startswith("dict")
    own = metric.labels[:-1] if metric.has_entries else metric.labels
    assert set(own) <= set(fields)
    # The naming rules of Prometheus, as promtool checks them.
    assert re.fullmatch(r"[a-z][a-z_]*", metric.name)
    assert metric.name.endswith("_total") == (metric.type == "counter")
    assert metric.help


def test_names_of_the_first_dashboards_are_there_and_none_is_twice():
    names = [metric.name for metric in CATALOGUE]
    assert len(set(names)) == len(names)
    expected = """training_loss training_steps_total training_steps_per_second model_version buffer_size games_total
        games_per_minute collection_steps_per_second cpu_percent memory_percent gpu_utilization_percent
        gpu_memory_percent gpu_temperature_celsius gpu_power_watts

        training_policy_loss training_value_loss training_rows_per_second buffer_episodes simulations_per_second
        game_length_mean game_outcome_ratio surprise_quantile evaluation_score alarms_total quarantined_total
        queue_depth active_workers"""
    assert set(expected.split()) <= set(names)
    with pytest.raises(UnknownName, match="did you mean 'training_loss'"):
        metric_of("trainin_loss")


def test_no_label_is_one_that_targets_have():
    # Prometheus would rename it, and dashboards would show the target's. Only the head's has no worker.
    for metric in CATALOGUE:
        assert not {"run", "game", "role", "instance", "job"} & set(metric.labels)
        assert "worker" not in metric.labels or metric.report == "workers"


def test_numbers_and_labels():
    record = {**examples.learn(step=9).as_dict(), "time": 12.5}
    assert list(metric_of("training_policy_loss").values(record)) == [((), 1.0)]
    assert list(metric_of("training_loss_term").values(record)) == [(("policy",), 1.0), (("value",), 0.5)]
    assert list(metric_of("training_steps_total").values(record)) == [((), 9.0)]
    assert list(metric_of("training_last_report_timestamp_seconds").values(record)) == [((), 12.5)]
    assert list(metric_of("games_per_minute").values(examples.selfplay().as_dict())) == [((), 750.0)]
    match = examples.match(opponent="run:old@123456,sims=8").as_dict()
    assert list(metric_of("evaluation_score").values(match)) == [(("run:old@123456,sims=8",), 0.75)]
    alarm = examples.alarm().as_dict()
    assert list(metric_of("alarms_total").values(alarm)) == [(("warn", "duplicate games"), 1.0)]
    saved = examples.checkpoint(saved=False).as_dict()
    assert list(metric_of("checkpoints_total").values(saved)) == [(("false",), 1.0)]
    without_policy = examples.learn(losses={"value": 0.5}).as_dict()
    assert list(metric_of("training_policy_loss").values(without_policy)) == []


def test_labels_are_bounded():
    wide = examples.selfplay(outcomes={f"{number:0200d}": 0.1 for number in range(1000)}).as_dict()
    found = list(metric_of("game_outcome_ratio").values(wide))
    assert len(found) == MOST_SERIES
    assert all(len(labels[0]) <= LONGEST_LABEL for labels, _ in found)
    assert len({labels for labels, _ in found}) == MOST_SERIES, "two that begin alike stay two"
    crew = examples_workers(cpu_percent={f"w{number}": float(number) for number in range(40)}).as_dict()
    assert len(list(metric_of("worker_cpu_percent").values(crew))) == 40


@pytest.mark.parametrize("prefix", ["alea", "bgai", "_x9"])
def test_good_prefixes(prefix):
    assert prefix_problems(prefix) == []


@pytest.mark.parametrize("prefix", ["", "9a", "a-b", "a:b", "a b", "ä", "a\n"])
def test_malformed_prefixes_are_refused_with_an_example(prefix):
    (problem,) = prefix_problems(prefix)
    assert repr(prefix) in problem
    assert "alea_training_loss" in problem
