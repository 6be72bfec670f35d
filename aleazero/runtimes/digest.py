"""From what roles saw to reports: collects a few iterations' numbers and says them in one report each.

Arrays are fetched here and nowhere else, one iteration late, so that the device never waits for a report.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator
from typing import Any, Protocol

import jax
import numpy as np

from aleazero.assemble import Parts
from aleazero.core.game import GameSpec
from aleazero.core.records import RESIGNED, RIGHT, WRONG
from aleazero.learn.update import UpdateStats
from aleazero.observe.alarms import Alarm, non_finite
from aleazero.observe.reports import NOBODY, EvalReport, LearnReport, ReplayReport, Report, SelfPlayReport
from aleazero.play.alone import Alone
from aleazero.play.luck import take_off
from aleazero.play.match import MatchResult
from aleazero.play.ratings import clustered_interval, mean_interval, results_from_points, score_interval, wilson
from aleazero.replay.store import QUANTILES, Held
from aleazero.roles.actor import PlayStats


@dataclasses.dataclass(frozen=True)
class Iteration:
    """What one turn of the loop left behind; arrays are still on the device."""

    began: float  # when, by the monotonic clock
    step: int  # updates so far, this iteration's included
    rows: int
    play: Any  # PlayStats or Played; None where it only learned
    updates: list[Any]  # UpdateStats or PpoStats, each of several updates in a row
    learning_rate: float
    rows_trained: int
    rows_held: int
    window_rows: int
    held: Any  # Held, or what else a replay says; None where no report is near


class Digesting(Protocol):
    """What a run asks of whoever makes its reports."""

    games: int  # finished in the whole run
    complete: bool  # whether there is all that a report says

    def take(self, iteration: Iteration, checkpoint: str) -> Alarm | None:
        """Fetches an iteration's numbers; an alarm if one of them is not finite."""

    def note(self, held: Any) -> None:
        """Fetches what the replay holds."""

    def reports(self, seconds: float, elapsed: float) -> Iterator[Report]:
        """What was seen in the last `elapsed` seconds; starts anew."""


class Digest:
    """Numbers since the last report."""

    @classmethod
    def of(cls, parts: Parts) -> Digest:
        """Of a run with these parts."""
        return cls(parts.game.spec)

    def __init__(self, spec: GameSpec, games: int = 0) -> None:
        self._spec = spec
        self.games = games  # finished in the whole run
        self._held: Held | None = None
        self._clear()

    def _clear(self) -> None:
        self._plays: list[PlayStats] = []
        self._updates: list[UpdateStats] = []
        self._last: Iteration | None = None
        self._rows = 0
        self.complete = False  # whether there is all that a report says

    def take(self, iteration: Iteration, checkpoint: str) -> Alarm | None:
        """Fetches an iteration's numbers; an alarm if one of them is not finite."""
        play, updates = jax.device_get((iteration.play, iteration.updates))
        if iteration.held is not None:
            self.note(iteration.held)
        if play is not None:
            self._plays.append(play)
            self._rows += play.fingerprints.size
            self.games += int(play.ended) + int(play.truncated)
        each = [jax.tree.map(lambda x: x[i], call) for call in updates for i in range(len(call.loss))]  # noqa: B023
        self._updates += each
        self._last = iteration
        for step, stats in enumerate(each, iteration.step - len(each) + 1):
            numbers = {f"{term} loss": value for term, value in stats.measures.terms.items()}
            for term, value in {**numbers, "gradient norm": stats.gradient_norm}.items():
                if not math.isfinite(value):
                    return non_finite(step, term, float(value), checkpoint)
        return None

    def note(self, held: Held) -> None:
        """Fetches what the replay holds."""
        self._held, self.complete = jax.device_get(held), True

    def reports(self, seconds: float, elapsed: float) -> Iterator[SelfPlayReport | LearnReport | ReplayReport]:
        """What was seen in the last `elapsed` seconds; starts anew."""
        last = self._last
        if last is None:
            return
        where: dict[str, Any] = {"step": last.step, "rows": last.rows, "seconds": seconds}
        if self._plays:
            yield self._selfplay(where, max(elapsed, 1e-9))
        if self._updates:
            yield self._learn(where, last, max(elapsed, 1e-9))
        held = self._held
        assert held is not None, "whoever asks for reports has noted it"
        yield ReplayReport(
            **where,
            rows_held=last.rows_held,
            rows_ready=int(held.ready),
            window_rows=last.window_rows,
            games_held=int(held.games),
            mean_surprise=float(held.mean_surprise),
            surprise=dict(zip(map(str, QUANTILES), map(float, held.surprise), strict=True)),
        )
        self._clear()

    def _selfplay(self, where: dict[str, Any], elapsed: float) -> SelfPlayReport:
        ended = sum(int(play.ended) for play in self._plays)
        truncated = sum(int(play.truncated) for play in self._plays)
        finished = ended + truncated
        prints = np.concatenate([play.fingerprints[play.fingerprints != 0] for play in self._plays])
        repeats = collections.Counter(prints.tolist())
        points = np.concatenate([play.outcome_points[~np.isnan(play.outcome_points)] for play in self._plays])
        resigns = sum((play.resigns for play in self._plays), np.zeros(4, np.int64))
        return SelfPlayReport(
            **where,
            games=self.games,
            finished=finished,
            games_per_second=finished / elapsed,
            rows_per_second=self._rows / elapsed,
            simulations_per_second=sum(float(play.simulations) for play in self._plays) / elapsed,
            mean_moves=self._rows / max(finished, 1),
            truncated_fraction=truncated / max(finished, 1),
            duplicate_fraction=1 - len(repeats) / max(len(prints), 1) if len(prints) else 0.0,
            policy_entropy=float(np.mean([play.entropy for play in self._plays])),
            legal_entropy=float(np.mean([play.legal_entropy for play in self._plays])),
            outcomes={
                outcome.name: float(np.mean(np.isclose(points, outcome.points))) if len(points) else 0.0
                for outcome in self._spec.outcomes
            },
            resigned_fraction=float(resigns[RESIGNED]) / max(finished, 1),
            resign_checked=int(resigns[RIGHT] + resigns[WRONG]),
            resign_wrong=int(resigns[WRONG]),
        )

    def _learn(self, where: dict[str, Any], last: Iteration, elapsed: float) -> LearnReport:
        def mean(pick: Any) -> float:
            return float(np.mean([pick(stats) for stats in self._updates]))

        terms = self._updates[0].measures.terms
        target_mean = mean(lambda s: s.measures.target_mean)
        return LearnReport(
            **where,
            loss=mean(lambda s: s.loss),
            losses={term: mean(lambda s, term=term: s.measures.terms[term]) for term in terms},
            gradient_norm=mean(lambda s: s.gradient_norm),
            learning_rate=last.learning_rate,
            rows_trained=last.rows_trained,
            rows_per_second=len(self._updates) * last.rows_trained / last.step / elapsed,
            updates_per_second=len(self._updates) / elapsed,
            value_target_variance=max(mean(lambda s: s.measures.target_square) - target_mean**2, 0.0),
            value_error=mean(lambda s: s.measures.value_error),
        )


def match_report(where: dict[str, Any], player: str, result: MatchResult | Alone) -> EvalReport | None:
    """What a match, or games for one, say of strength; None where no game came to its end."""
    if isinstance(result, Alone):
        return alone_report(where, player, result)
    games = int(np.isfinite(result.points).sum())
    if not games:
        return None
    score = score_interval(results_from_points(result.points))
    points = mean_interval(result.points if result.luck is None else take_off(result.points, result.luck)[0])
    return EvalReport(
        **where,
        player=player,
        opponent=result.opponent,
        games=games,
        score=score.value,
        score_low=score.low,
        score_high=score.high,
        points_per_game=points.value,
        points_low=points.low,
        points_high=points.high,
        luck_off=result.luck is not None,
    )


def alone_report(where: dict[str, Any], player: str, result: Alone) -> EvalReport:
    """What games for one say: the score is the share that was won."""
    points = clustered_interval(result.points, np.arange(len(result.points)))
    won = wilson(int(result.won.sum()), len(result.won))
    return EvalReport(
        **where,
        player=player,
        opponent=NOBODY,
        games=len(result.points),
        score=won.value,
        score_low=won.low,
        score_high=won.high,
        points_per_game=points.value,
        points_low=points.low,
        points_high=points.high,
        details=result.details(),
    )
