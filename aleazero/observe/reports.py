"""The metric catalogue: everything a run reports, as typed records. Sinks render them; nothing else names a metric.

A report's numbers become metrics called `kind/field`. Knows no sink and no role.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

NOBODY = "nobody"  # the opponent in games for one
NOT_METRICS = ("step", "rows", "seconds", "time")  # where and when a report was made


def metrics_of(record: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a report that was written down (`as_dict`), by metric name."""
    found: dict[str, float] = {}
    for field, value in record.items():
        if field in NOT_METRICS:
            continue
        entries = value.items() if isinstance(value, dict) else [("", value)]
        for key, number in entries:
            if isinstance(number, int | float) and not isinstance(number, bool):
                found["/".join(part for part in (str(record["kind"]), field, key) if part)] = number
    return found


@dataclasses.dataclass(frozen=True)
class Report:
    """What every report says: where the run stood when it was made."""

    kind: ClassVar[str] = ""

    step: int  # training updates so far; also the weights' version
    rows: int  # positions played by self-play so far
    seconds: float  # of the run, earlier stretches of a resumed one included

    def metrics(self) -> dict[str, float]:
        """The report's own numbers by metric name."""
        return metrics_of(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Every field, with the kind: what JSON Lines hold."""
        return {"kind": self.kind, **dataclasses.asdict(self)}


@dataclasses.dataclass(frozen=True)
class RunReport(Report):
    """The run began, went on or came to an end."""

    kind: ClassVar[str] = "run"

    status: Literal["started", "resumed", "done", "stopped", "failed"]
    run: str  # its name
    game: str
    total_rows: int  # rows the run is to play
    message: str = ""


@dataclasses.dataclass(frozen=True)
class SelfPlayReport(Report):
    """What the actor did since the last report."""

    kind: ClassVar[str] = "selfplay"

    games: int  # finished so far, in the whole run
    finished: int  # of them since the last report
    games_per_second: float
    rows_per_second: float
    simulations_per_second: float
    mean_moves: float  # rows played for every game that ended
    truncated_fraction: float  # of the games that ended
    duplicate_fraction: float  # of the games that ended: the same moves as another one of them
    policy_entropy: float  # of the policy targets, in nats
    legal_entropy: float  # of a uniform policy in the same positions
    outcomes: dict[str, float]  # how games ended for seat 0, as shares
    resigned_fraction: float = 0.0  # of the games that ended: given up
    resign_checked: int = 0  # of them: could have been given up and were played on, to see
    resign_wrong: int = 0  # of them: not lost after all


@dataclasses.dataclass(frozen=True)
class LearnReport(Report):
    """What the learner did since the last report: means over its updates."""

    kind: ClassVar[str] = "learn"

    loss: float
    losses: dict[str, float]  # by term: policy, value, ...
    gradient_norm: float
    learning_rate: float
    rows_trained: int
    rows_per_second: float  # trained on
    updates_per_second: float
    value_target_variance: float  # over the rows of a batch
    value_error: float  # mean |predicted value - target|


@dataclasses.dataclass(frozen=True)
class ReplayReport(Report):
    """What the replay holds."""

    kind: ClassVar[str] = "replay"

    rows_held: int
    rows_ready: int  # whose targets are known
    window_rows: int  # that samples are drawn from
    games_held: int  # whose end is among the rows held
    mean_surprise: float
    surprise: dict[str, float]  # its quantiles over a sample of them: 0.5, 0.9, 0.99


@dataclasses.dataclass(frozen=True)
class PpoReport(Report):
    """What policy gradients saw since the last report: means over iterations."""

    kind: ClassVar[str] = "ppo"

    policy_loss: float
    value_loss: float
    entropy: float  # of the policy, in nats
    kl: float  # nats that an iteration moved the policy by
    kl_target: float
    kl_weight: float  # of the penalty, now
    clip_fraction: float  # of the rows
    explained_variance: float  # share of the returns' variance that the values had foreseen
    decisions_per_second: float
    games_per_hour: float
    mean_points: float  # of the games that ended, the game's own
    win_rate: float  # of the games that ended: won by the rules, or the horizon was reached, where that is nearer
    mean_ante: float  # where they ended; 0 where a game has no antes
    antes: dict[str, float]  # shares of the games, by the ante they ended in
    horizon: int  # the ante whose end is a win
    rewards: dict[str, float]  # mean a decision, by term
    memory_bytes: int  # resident, of this process: the most since the last report
    memory_cap_bytes: int  # that it may take


@dataclasses.dataclass(frozen=True)
class ProducersReport(Report):
    """What the processes that play for a run did since the last report, and what the run took."""

    kind: ClassVar[str] = "producers"

    processes: int  # that are alive
    restarts: int  # so far
    rows_per_second: float  # as fast as they play, their waiting left out
    taken_per_second: float  # rows that the run took
    waiting_share: float  # of their time: until the run had room
    queue: int  # slabs that wait now
    queue_size: int  # that may


@dataclasses.dataclass(frozen=True)
class RayReport(Report):
    """What the actors of a run on Ray did since the last report, and what the learner took."""

    kind: ClassVar[str] = "ray"

    players: int  # actors that play and were not given up
    restarts: int  # of them, so far
    rows_per_second: float  # as fast as they play, their waiting left out
    taken_per_second: float  # rows that the learner took
    busy_share: float  # of their time: playing
    lag_updates: float  # between the weights that played a slab and those that learned from it, on average
    waiting: int  # slabs that wait for the learner
    lost: int  # slabs that were gone with their player before a checkpoint held them, so far
    inference: dict[str, float]  # of the inference server, where there is one: rows a second, fill, latency in ms


@dataclasses.dataclass(frozen=True)
class RllibReport(Report):
    """What RLlib did since the last report: means over iterations."""

    kind: ClassVar[str] = "rllib"

    iteration: int  # so far, earlier stretches of a resumed run included
    env_runners: int  # that are well
    restarts: int  # of them, in this stretch of the run
    games: int  # that are over, in the whole run
    sampling_seconds: float  # of an iteration: runners play
    learning_seconds: float  # of an iteration: the learner learns
    best_reward: float  # mean points of the games that proved the best weights; 0 before there are any


@dataclasses.dataclass(frozen=True)
class EvalReport(Report):
    """A match of the weights of this step."""

    kind: ClassVar[str] = "eval"

    player: str
    opponent: str
    games: int
    score: float  # wins and half the draws, over the games
    score_low: float  # 95 %
    score_high: float
    points_per_game: float
    points_low: float
    points_high: float
    luck_off: bool = False  # what chance brought is taken off the points
    details: dict[str, float] = dataclasses.field(default_factory=dict)  # of games for one: mean_ante, ante1_clear

    @property
    def strength(self) -> float:
        """What the best of several is chosen by: the score, or points where there is nobody to beat."""
        return self.points_per_game if self.opponent == NOBODY else self.score


@dataclasses.dataclass(frozen=True)
class CheckpointReport(Report):
    """A checkpoint was saved, or could not be."""

    kind: ClassVar[str] = "checkpoint"

    path: str
    saved: bool
    message: str = ""


@dataclasses.dataclass(frozen=True)
class ProfileReport(Report):
    """Where a stretch of wall time went: how much of it the device worked, and on what."""

    kind: ClassVar[str] = "profile"

    device_share: float
    wall_seconds: float
    device_seconds: float  # overlaps counted once
    shares: dict[str, float]  # of wall time, by part of the system; they sum to one
    kernels: dict[str, float]  # those that took longest, in seconds
    trace: str  # the file


@dataclasses.dataclass(frozen=True)
class AlarmReport(Report):
    """Something is wrong: `stop` ends the run, `warn` does not."""

    kind: ClassVar[str] = "alarm"

    level: Literal["stop", "warn"]
    name: str
    message: str  # what was seen, and the likely cause
    setting: str  # the setting to look at


@dataclasses.dataclass(frozen=True)
class HardwareReport(Report):
    """How busy the machine was since the last report, and how warm and full it is."""

    kind: ClassVar[str] = "hardware"

    cpu_percent: float  # of all cores together
    process_cpu_percent: float  # this process; 100 is one core
    memory_percent: float  # of the machine's
    memory_used_bytes: int
    process_memory_bytes: int  # resident
    gpu_utilization_percent: dict[str, float]  # by the GPU's number; empty where there is none
    gpu_memory_percent: dict[str, float]
    gpu_temperature_celsius: dict[str, float]
    gpu_power_watts: dict[str, float]


@dataclasses.dataclass(frozen=True)
class WorkersReport(Report):
    """Who takes part in a run on many machines, and what waits between them."""

    kind: ClassVar[str] = "workers"

    active: dict[str, float]  # workers that are alive, by role
    queue_rows: int  # sent, and not taken yet
    quarantined: int  # slabs that were refused since the learner began
    refused: dict[str, float]  # the same by reason
    # What each worker said last of itself and its machine, by its name; GPUs: the mean, the hottest, the sum.
    games_per_minute: dict[str, float]
    rows_per_second: dict[str, float]
    cpu_percent: dict[str, float]
    memory_percent: dict[str, float]
    gpu_utilization_percent: dict[str, float]
    gpu_memory_percent: dict[str, float]
    gpu_temperature_celsius: dict[str, float]
    gpu_power_watts: dict[str, float]


@dataclasses.dataclass(frozen=True)
class WorkerReport(Report):
    """What one worker does, as its own page says it. None: not its work, or not yet."""

    kind: ClassVar[str] = "worker"

    version: int | None = None  # of the weights it plays with
    games: int | None = None  # finished and acknowledged
    games_per_minute: float | None = None
    rows_per_second: float | None = None
    blocked_share: float | None = None  # of the time: waiting until what it played is taken
    waiting: int | None = None  # slabs that are not acknowledged yet
    chunks: int | None = None  # of matches that it has played


def report_of(record: Mapping[str, Any]) -> Report | None:
    """The report that was written down (`as_dict`); None where it is of no kind that is known here."""
    kind = next((kind for kind in Report.__subclasses__() if kind.kind == record.get("kind")), None)
    if kind is None:
        return None
    names = {field.name for field in dataclasses.fields(kind)}
    fields: dict[str, Any] = {n: math.nan if value is None else value for n, value in record.items() if n in names}
    return kind(**fields)
