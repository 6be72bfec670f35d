"""What Prometheus is told: one table of metrics, each with the field of the report that it comes from.

The endpoint, the dashboards, the alert rules and the documentation are made from this table. Names are without their
prefix. Knows the reports by kind and field; neither HTTP nor Prometheus.
"""

from __future__ import annotations

import dataclasses
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from aleazero.core.errors import UnknownName

PREFIX = "alea"
MOST_SERIES = 32  # of one metric: label values that came first go first
MOST_WORKERS = 256  # of a metric that each worker has
LONGEST_LABEL = 64
_PREFIX = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")

Series = tuple[str, ...]  # one value for each label


@dataclasses.dataclass(frozen=True)
class Metric:
    """One metric: what it is called, and where its numbers are."""

    name: str
    type: Literal["gauge", "counter"]
    help: str
    report: str  # the kind of report
    field: str  # of the report; `losses.policy` is an entry of a field; `time` is when it came; "" counts reports
    labels: tuple[str, ...] = ()  # fields of the report; where `field` has entries, the last one is the entry's name
    scale: float = 1.0

    def values(self, record: Mapping[str, Any]) -> Iterator[tuple[Series, float]]:
        """What a report, as a record, says of it. Nothing where the report has no such number."""
        if not self.field:
            yield self._series(record, self.labels), 1.0
            return
        field, _, entry = self.field.partition(".")
        value = record.get(field)
        if isinstance(value, Mapping):
            if entry:
                value = value.get(entry)
            else:
                for key, number in list(value.items())[: self.most]:
                    yield (*self._series(record, self.labels[:-1]), _label(key)), float(number) * self.scale
                return
        if isinstance(value, int | float):
            yield self._series(record, self.labels), float(value) * self.scale

    @property
    def has_entries(self) -> bool:
        """Whether one report says everything that there is of this metric."""
        return bool(self.labels) and self.labels[-1] in _ENTRIES

    @property
    def most(self) -> int:
        """How many series of it there are at most."""
        return MOST_WORKERS if "worker" in self.labels else MOST_SERIES

    def _series(self, record: Mapping[str, Any], labels: tuple[str, ...]) -> Series:
        return tuple(_label(record.get(label, "")) for label in labels)


_ENTRIES = (
    "term",
    "outcome",
    "gpu",
    "kind",
    "quantile",
    "reason",
    "worker",
    "figure",
    "ante",
)  # labels that name the entries of a field


def _label(value: object) -> str:
    """A bounded label; of a long one the end is a hash, so that two that begin alike stay two."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if len(text) <= LONGEST_LABEL:
        return text
    return f"{text[: LONGEST_LABEL - 9]}~{zlib.crc32(text.encode()):08x}"


def _gauge(name: str, help: str, report: str, field: str, *labels: str, scale: float = 1.0) -> Metric:
    return Metric(name, "gauge", help, report, field, labels, scale)


def _counter(name: str, help: str, report: str, field: str, *labels: str) -> Metric:
    return Metric(name, "counter", help, report, field, labels)


CATALOGUE: tuple[Metric, ...] = (
    # Training.
    _gauge("training_loss", "Mean loss of the updates since the last report", "learn", "loss"),
    _gauge("training_policy_loss", "Its policy term", "learn", "losses.policy"),
    _gauge("training_value_loss", "Its value term", "learn", "losses.value"),
    _gauge("training_loss_term", "Every term of the loss", "learn", "losses", "term"),
    _counter("training_steps_total", "Updates of the weights", "learn", "step"),
    _gauge("training_steps_per_second", "Updates a second", "learn", "updates_per_second"),
    _counter("training_rows_total", "Rows trained on", "learn", "rows_trained"),
    _gauge("training_rows_per_second", "Rows trained on a second", "learn", "rows_per_second"),
    _gauge("training_learning_rate", "The learning rate", "learn", "learning_rate"),
    _gauge("training_gradient_norm", "Global norm of the gradient, before clipping", "learn", "gradient_norm"),
    _gauge("training_value_error", "Mean distance of predicted value and target", "learn", "value_error"),
    _gauge("training_value_target_variance", "Variance of value targets", "learn", "value_target_variance"),
    _gauge("training_last_report_timestamp_seconds", "When the learner last reported", "learn", "time"),
    _gauge("model_version", "Version of the newest weights", "learn", "step"),
    # Replay.
    _gauge("buffer_size", "Rows held for replay", "replay", "rows_held"),
    _gauge("buffer_ready_rows", "Of them, rows whose targets are known", "replay", "rows_ready"),
    _gauge("buffer_window_rows", "Rows that samples are drawn from", "replay", "window_rows"),
    _gauge("buffer_episodes", "Games whose end is among the rows held", "replay", "games_held"),
    _gauge("surprise_mean", "Mean surprise of the rows held", "replay", "mean_surprise"),
    _gauge("surprise_quantile", "Quantiles of it, over a sample of the rows held", "replay", "surprise", "quantile"),
    # Collection.
    _counter("games_total", "Games finished", "selfplay", "games"),
    _gauge("games_per_minute", "Games finished a minute", "selfplay", "games_per_second", scale=60.0),
    _counter("collection_rows_total", "Positions played", "selfplay", "rows"),
    _gauge("collection_steps_per_second", "Positions played a second", "selfplay", "rows_per_second"),
    _gauge("simulations_per_second", "Simulations of the search a second", "selfplay", "simulations_per_second"),
    _gauge("game_length_mean", "Positions played for every game that ended", "selfplay", "mean_moves"),
    _gauge("games_truncated_ratio", "Share of games stopped before their end", "selfplay", "truncated_fraction"),
    _gauge("games_duplicate_ratio", "Share of games that repeat another", "selfplay", "duplicate_fraction"),
    _gauge("policy_entropy_nats", "Entropy of the policy targets", "selfplay", "policy_entropy"),
    _gauge("legal_entropy_nats", "Entropy of a uniform policy, in the same positions", "selfplay", "legal_entropy"),
    _gauge("game_outcome_ratio", "How games ended for seat 0", "selfplay", "outcomes", "outcome"),
    _gauge("games_resigned_ratio", "Share of games that were given up", "selfplay", "resigned_fraction"),
    _gauge("resigns_checked", "Games played on that could have been given up", "selfplay", "resign_checked"),
    _gauge("resigns_wrong", "Of them, games that were not lost", "selfplay", "resign_wrong"),
    # Producers.
    _gauge("producers", "Processes that play for the run", "producers", "processes"),
    _counter("producer_restarts_total", "How often one was started again", "producers", "restarts"),
    _gauge("producer_rows_per_second", "As fast as they play, waiting left out", "producers", "rows_per_second"),
    _gauge("producer_taken_rows_per_second", "Positions a second that the run took", "producers", "taken_per_second"),
    _gauge("producer_waiting_ratio", "Share of their time until the run had room", "producers", "waiting_share"),
    _gauge("producer_queue_slabs", "Slabs that wait for the run", "producers", "queue"),
    # PPO.
    _gauge("ppo_entropy_nats", "Entropy of the policy that is learned", "ppo", "entropy"),
    _gauge("ppo_kl_nats", "What an iteration moves the policy by", "ppo", "kl"),
    _gauge("ppo_kl_weight", "Weight of the penalty for it", "ppo", "kl_weight"),
    _gauge("ppo_clip_ratio", "Share of rows beyond the clip", "ppo", "clip_fraction"),
    _gauge(
        "ppo_explained_variance", "Share of the returns' variance that values had foreseen", "ppo", "explained_variance"
    ),
    _gauge("ppo_decisions_per_second", "Decisions a second", "ppo", "decisions_per_second"),
    _gauge("ppo_games_per_hour", "Games an hour", "ppo", "games_per_hour"),
    _gauge("ppo_points_mean", "The game's own points, of games that ended", "ppo", "mean_points"),
    _gauge("ppo_win_ratio", "Share of the games that were won", "ppo", "win_rate"),
    _gauge("ppo_ante_mean", "The ante that games ended in", "ppo", "mean_ante"),
    _gauge("ppo_ante_ratio", "Shares of the games, by that ante", "ppo", "antes", "ante"),
    _gauge("ppo_horizon_ante", "The ante whose end is a win", "ppo", "horizon"),
    _gauge("ppo_reward_mean", "Mean reward a decision, by term", "ppo", "rewards", "term"),
    _gauge("ppo_memory_bytes", "Memory that the run's process holds", "ppo", "memory_bytes"),
    _gauge("ppo_memory_cap_bytes", "Memory that it may take", "ppo", "memory_cap_bytes"),
    # Evaluation.
    _gauge("evaluation_score", "Wins and half the draws, over the games", "eval", "score", "opponent"),
    _gauge("evaluation_score_low", "Lower end of its 95 % interval", "eval", "score_low", "opponent"),
    _gauge("evaluation_score_high", "Upper end of its 95 % interval", "eval", "score_high", "opponent"),
    _gauge("evaluation_points_per_game", "Points per game", "eval", "points_per_game", "opponent"),
    _gauge("evaluation_points_low", "Lower end of its 95 % interval", "eval", "points_low", "opponent"),
    _gauge("evaluation_points_high", "Upper end of its 95 % interval", "eval", "points_high", "opponent"),
    _gauge("evaluation_ante_mean", "Of games for one: the ante they ended in", "eval", "details.mean_ante", "opponent"),
    _gauge("evaluation_first_ante_ratio", "And the share that beat ante 1", "eval", "details.ante1_clear", "opponent"),
    _gauge("evaluation_games", "Games of the match", "eval", "games", "opponent"),
    _gauge("evaluation_model_version", "Version of the weights that played", "eval", "step", "opponent"),
    # The run.
    _gauge("run_rows_target", "Positions the run is to play", "run", "total_rows"),
    _counter("checkpoints_total", "Checkpoints since the process began, saved or not", "checkpoint", "", "saved"),
    _gauge("checkpoint_version", "Version of the weights in the last of them", "checkpoint", "step"),
    _counter("alarms_total", "Alarms since the process began", "alarm", "", "level", "name"),
    # Actors of a run on Ray.
    _gauge("ray_players", "Actors that play", "ray", "players"),
    _counter("ray_restarts_total", "Times one of them was started again", "ray", "restarts"),
    _gauge("ray_taken_rows_per_second", "Rows that the learner took a second", "ray", "taken_per_second"),
    _gauge("ray_busy_ratio", "Share of their time that actors play", "ray", "busy_share"),
    _gauge("ray_lag_updates", "Updates between the weights that play and those that learn", "ray", "lag_updates"),
    _gauge("ray_waiting_slabs", "Slabs that wait for the learner", "ray", "waiting"),
    _counter("ray_lost_slabs_total", "Slabs that were gone with their player", "ray", "lost"),
    _gauge("ray_inference", "The inference server: rows a second, fill, latency", "ray", "inference", "figure"),
    # Ray's RLlib.
    _counter("rllib_iterations_total", "Iterations", "rllib", "iteration"),
    _gauge("rllib_env_runners", "Environment runners that are well", "rllib", "env_runners"),
    _counter("rllib_restarts_total", "Times one of them was started again", "rllib", "restarts"),
    _gauge("rllib_sampling_seconds", "Time of an iteration in which runners play", "rllib", "sampling_seconds"),
    _gauge("rllib_learning_seconds", "Time of an iteration in which the learner learns", "rllib", "learning_seconds"),
    _gauge("rllib_best_reward", "Mean points of the games that proved the best weights", "rllib", "best_reward"),
    # Workers.
    _gauge("active_workers", "Workers that are alive", "workers", "active", "kind"),
    _gauge("queue_depth", "Rows that were sent and not taken yet", "workers", "queue_rows"),
    _counter("quarantined_total", "Slabs that were refused since the learner began", "workers", "quarantined"),
    _counter("quarantined_by_reason_total", "The same by reason", "workers", "refused", "reason"),
    # What the head heard of every worker, and what a worker says on its own page.
    _gauge("worker_games_per_minute", "Games a minute of each worker", "workers", "games_per_minute", "worker"),
    _gauge("worker_rows_per_second", "Positions a second of each worker", "workers", "rows_per_second", "worker"),
    _gauge("worker_cpu_percent", "CPU of each worker's machine", "workers", "cpu_percent", "worker"),
    _gauge("worker_memory_percent", "Memory of each worker's machine", "workers", "memory_percent", "worker"),
    _gauge("worker_gpu_utilization_percent", "Its GPUs, the mean", "workers", "gpu_utilization_percent", "worker"),
    _gauge("worker_gpu_memory_percent", "Their memory, the mean", "workers", "gpu_memory_percent", "worker"),
    _gauge("worker_gpu_temperature_celsius", "The hottest of them", "workers", "gpu_temperature_celsius", "worker"),
    _gauge("worker_gpu_power_watts", "Their power, in all", "workers", "gpu_power_watts", "worker"),
    _counter("own_games_total", "Games that this worker finished", "worker", "games"),
    _gauge("own_games_per_minute", "Games a minute of this worker", "worker", "games_per_minute"),
    _gauge("own_steps_per_second", "Positions a second of this worker", "worker", "rows_per_second"),
    _gauge("own_blocked_ratio", "Share of the time it waits to be heard", "worker", "blocked_share"),
    _gauge("own_waiting_slabs", "Slabs it has sent that nobody acknowledged yet", "worker", "waiting"),
    _gauge("own_model_version", "Version of the weights it plays with", "worker", "version"),
    _counter("own_chunks_total", "Chunks of matches that it has played", "worker", "chunks"),
    # Hardware.
    _gauge("cpu_percent", "The machine's CPU, all cores together", "hardware", "cpu_percent"),
    _gauge("process_cpu_percent", "This process; 100 is one core", "hardware", "process_cpu_percent"),
    _gauge("memory_percent", "The machine's memory in use", "hardware", "memory_percent"),
    _gauge("memory_used_bytes", "The same in bytes", "hardware", "memory_used_bytes"),
    _gauge("process_memory_bytes", "This process's memory", "hardware", "process_memory_bytes"),
    _gauge("gpu_utilization_percent", "Time in which a kernel ran", "hardware", "gpu_utilization_percent", "gpu"),
    _gauge("gpu_memory_percent", "GPU memory in use", "hardware", "gpu_memory_percent", "gpu"),
    _gauge("gpu_temperature_celsius", "GPU temperature", "hardware", "gpu_temperature_celsius", "gpu"),
    _gauge("gpu_power_watts", "GPU power draw", "hardware", "gpu_power_watts", "gpu"),
)

BY_NAME = {metric.name: metric for metric in CATALOGUE}


def metric_of(name: str) -> Metric:
    """The metric of a name; a dashboard cannot ask for one that nobody exports."""
    if name not in BY_NAME:
        raise UnknownName("metric", name, BY_NAME)
    return BY_NAME[name]


def prefix_problems(prefix: str) -> list[str]:
    """What is wrong with a prefix of metric names."""
    if _PREFIX.fullmatch(prefix):
        return []
    return [
        f"metrics_prefix is {prefix!r}; it must be letters, digits and underscores and begin with no digit, as in "
        f"{PREFIX!r} (names become {PREFIX}_training_loss)"
    ]


def as_table(prefix: str = PREFIX) -> str:
    """The catalogue as a Markdown table, for the documentation."""
    lines = ["| metric | type | labels | what | report and field |", "| --- | --- | --- | --- | --- |"]
    for metric in CATALOGUE:
        source = f"`{metric.report}`, `{metric.field}`" if metric.field else f"`{metric.report}`, counted"
        times = f", times {metric.scale:g}" if not math.isclose(metric.scale, 1.0) else ""
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{prefix}_{metric.name}` | {metric.type} | {labels} | {metric.help} | {source}{times} |")
    return "\n".join(lines) + "\n"
