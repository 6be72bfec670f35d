"""Alarms: what is wrong with a run, read from its reports. Some stop it, some warn; each names a cause and a setting.

Knows reports; neither roles nor sinks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Literal

from aleazero.observe.reports import AlarmReport, EvalReport, LearnReport, PpoReport, Report, SelfPlayReport

LEAST_VARIANCE = 1e-4  # of value targets: below it all games look alike
LEAST_ENTROPY = 0.02  # of the policy targets, as a share of a uniform policy's
MOST_DUPLICATES = 0.5  # of the games that ended
MOST_WRONG_RESIGNS = 0.05  # of the games that were played on to see
ENOUGH_GAMES = 32  # before games are judged
MOST_KL = 5.0  # of the target that an iteration should move the policy by
MOST_MEMORY = 0.9  # of the cap
STALE_UPDATES = 10_000  # versions that an actor may lag behind


@dataclasses.dataclass(frozen=True)
class Alarm:
    """One thing that is wrong."""

    level: Literal["stop", "warn"]
    name: str
    message: str
    setting: str

    def report(self, at: Report) -> AlarmReport:
        """As a report, made where the run stood at `at`."""
        return AlarmReport(
            step=at.step,
            rows=at.rows,
            seconds=at.seconds,
            level=self.level,
            name=self.name,
            message=self.message,
            setting=self.setting,
        )


def alarms_of(report: Report) -> Iterator[Alarm]:
    """What a report gives rise to."""
    if isinstance(report, LearnReport):
        yield from _learning(report)
    elif isinstance(report, SelfPlayReport):
        yield from _playing(report)
    elif isinstance(report, EvalReport):
        yield from _measuring(report)
    elif isinstance(report, PpoReport):
        yield from _following(report)


def non_finite(step: int, term: str, value: float, checkpoint: str) -> Alarm:
    """A number that is none, in the update that led to `step`."""
    return Alarm(
        "stop",
        "non-finite numbers",
        f"{term} is {value} at step {step}; last good checkpoint: {checkpoint}. "
        "The learning rate is the usual cause, then float16 or bfloat16 overflow",
        "learn.learning_rate, learn.clip, model.compute",
    )


def stale_weights(actor_version: int, learner_version: int) -> Alarm | None:
    """An actor that plays with weights of long ago."""
    behind = learner_version - actor_version
    if behind <= STALE_UPDATES:
        return None
    return Alarm(
        "stop",
        "stale weights",
        f"games are played with weights {behind} updates old (version {actor_version}, the newest is "
        f"{learner_version}); new weights do not reach the actor",
        "selfplay.moves_per_rollout, replay.rows_per_new_row",
    )


def _learning(report: LearnReport) -> Iterator[Alarm]:
    if report.value_target_variance < LEAST_VARIANCE:
        yield Alarm(
            "warn",
            "value-target variance near zero",
            f"value targets vary by {report.value_target_variance:.2g}: all games end alike, so there is nothing to "
            "learn from them. Are outcomes read from the right side?",
            "selfplay.temperature, selfplay.random_plies, targets.td_lambda",
        )


def _playing(report: SelfPlayReport) -> Iterator[Alarm]:
    # Where a game names no outcomes it pays on the way, and one that was stopped has taught all the same.
    if report.truncated_fraction >= 1 and report.finished >= ENOUGH_GAMES and report.outcomes:
        yield Alarm(
            "stop",
            "all games truncated",
            f"all {report.finished} games since the last report were stopped before the rules ended them: no "
            "outcome to learn from",
            "the game's max_plies; targets.td_lambda",
        )
    if report.policy_entropy < LEAST_ENTROPY * report.legal_entropy:
        yield Alarm(
            "warn",
            "entropy collapse",
            f"policy targets have an entropy of {report.policy_entropy:.3g} nats where a uniform policy has "
            f"{report.legal_entropy:.3g}: play has become deterministic",
            "selfplay.temperature, selfplay.noise_fraction, selfplay.gumbel_scale",
        )
    if report.resign_wrong > MOST_WRONG_RESIGNS * report.resign_checked and report.resign_checked >= ENOUGH_GAMES:
        yield Alarm(
            "warn",
            "games given up too early",
            f"{report.resign_wrong} of {report.resign_checked} games that could have been given up were not lost",
            "selfplay.resign, selfplay.resign_moves",
        )
    if report.duplicate_fraction > MOST_DUPLICATES and report.finished >= ENOUGH_GAMES:
        yield Alarm(
            "warn",
            "duplicate games",
            f"{report.duplicate_fraction:.0%} of the games since the last report repeat another one move by move",
            "selfplay.temperature, selfplay.random_plies, selfplay.gumbel_scale",
        )


def _following(report: PpoReport) -> Iterator[Alarm]:
    if report.kl_target and report.kl > MOST_KL * report.kl_target:
        yield Alarm(
            "warn",
            "policy moves too far",
            f"an iteration moves the policy by {report.kl:.3g} nats where {report.kl_target:g} is the target: what is "
            "learned may be forgotten as fast",
            "learn.learning_rate, ppo.epochs, ppo.clip",
        )
    if report.memory_bytes > MOST_MEMORY * report.memory_cap_bytes:
        yield Alarm(
            "warn",
            "memory near its cap",
            f"the process held {report.memory_bytes / 2**30:.2f} GiB of the {report.memory_cap_bytes / 2**30:.2f} it "
            "may take",
            "ppo.memory_gb, selfplay.num_games, selfplay.moves_per_rollout",
        )


def _measuring(report: EvalReport) -> Iterator[Alarm]:
    if report.opponent == "random" and report.score_high < 0.5:
        yield Alarm(
            "warn",
            "worse than random",
            f"scores {report.score:.3f} ({report.score_low:.3f} to {report.score_high:.3f}) against random play: "
            "what is learned is worse than nothing. Look for a wrong sign in rewards or observations (alea doctor)",
            "the game's rules; learn.learning_rate",
        )
