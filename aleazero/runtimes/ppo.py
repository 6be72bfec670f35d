"""A PPO run: the local loop with a producer of fragments and a learner that uses them at once.

Knows the parts of such a run and what of them belongs into checkpoints and reports; no training logic is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aleazero.assemble_ppo import PpoParts
from aleazero.learn.ppo import PpoStats
from aleazero.observe.alarms import Alarm, non_finite
from aleazero.observe.hardware import most_resident_bytes
from aleazero.observe.reports import LearnReport, PpoReport, SelfPlayReport
from aleazero.observe.sink import Sink
from aleazero.play.fragments import Played
from aleazero.play.selves import SelvesPlay
from aleazero.runs import RunFolder
from aleazero.runtimes.digest import Iteration
from aleazero.runtimes.local import LocalRun
from aleazero.runtimes.ppo_play import DevicePlay, HostPlay


class PpoDigest:
    """Numbers since the last report of a PPO run."""

    def __init__(self, parts: PpoParts, memory: Callable[[], int] | None = None) -> None:
        """`memory` says what the run holds, where that is more than this process."""
        self._config, self._memory = parts.config, memory or most_resident_bytes
        self.games = 0
        self._clear()

    def _clear(self) -> None:
        self._plays: list[Played] = []
        self._stats: list[PpoStats] = []
        self._last: Iteration | None = None
        self.complete = False

    def take(self, iteration: Iteration, checkpoint: str) -> Alarm | None:
        """Fetches an iteration's numbers; an alarm if one of them is not finite."""
        if iteration.held is not None:
            self.note(iteration.held)
        played: Played | None = iteration.play
        if played is not None:
            self._plays.append(played)
            self.games += played.ended + played.truncated
        for stats in jax.device_get(iteration.updates):
            self._stats.append(stats)
            terms = {"policy loss": stats.measures.policy, "value loss": stats.measures.value}
            for term, values in {**terms, "kl": stats.measures.kl, "gradient norm": stats.gradient_norm}.items():
                wrong = ~np.isfinite(values)
                if wrong.any():
                    step = iteration.step - len(values) + int(wrong.argmax()) + 1
                    return non_finite(step, term, float(values[wrong.argmax()]), checkpoint)
        self._last = iteration
        return None

    def note(self, held: Any) -> None:
        """A report is near."""
        self.complete = True

    def reports(self, seconds: float, elapsed: float) -> Iterator[SelfPlayReport | LearnReport | PpoReport]:
        """What was seen in the last `elapsed` seconds; starts anew."""
        last = self._last
        if last is None:
            return
        where: dict[str, Any] = {"step": last.step, "rows": last.rows, "seconds": seconds}
        elapsed = max(elapsed, 1e-9)
        if self._plays:
            yield self._played(where, elapsed)
        if self._stats:
            yield self._learned(where, last, elapsed)
        if self._plays and self._stats:
            yield self._followed(where, elapsed)
        self._clear()

    def _played(self, where: dict[str, Any], elapsed: float) -> SelfPlayReport:
        plays, rows = self._plays, sum(play.rows for play in self._plays)
        truncated = sum(play.truncated for play in plays)
        finished = truncated + sum(play.ended for play in plays)
        return SelfPlayReport(
            **where,
            games=self.games,
            finished=finished,
            games_per_second=finished / elapsed,
            rows_per_second=rows / elapsed,
            simulations_per_second=rows / elapsed,
            mean_moves=rows / max(finished, 1),
            truncated_fraction=truncated / max(finished, 1),
            duplicate_fraction=0.0,
            policy_entropy=float(np.mean([play.entropy for play in plays])),
            legal_entropy=float(np.mean([play.legal_entropy for play in plays])),
            outcomes={},
        )

    def _mean(self, pick: Any) -> float:
        return float(np.mean([np.mean(pick(stats)) for stats in self._stats]))

    def _learned(self, where: dict[str, Any], last: Iteration, elapsed: float) -> LearnReport:
        updates = sum(len(stats.loss) for stats in self._stats)
        return LearnReport(
            **where,
            loss=self._mean(lambda s: s.loss),
            losses={
                "policy": self._mean(lambda s: s.measures.policy),
                "value": self._mean(lambda s: s.measures.value),
            },
            gradient_norm=self._mean(lambda s: s.gradient_norm),
            learning_rate=last.learning_rate,
            rows_trained=last.rows_trained,
            rows_per_second=updates * self._config.learn.batch_size / elapsed,
            updates_per_second=updates / elapsed,
            value_target_variance=self._mean(lambda s: s.return_variance),
            value_error=self._mean(lambda s: s.value_error),
        )

    def _followed(self, where: dict[str, Any], elapsed: float) -> PpoReport:
        plays = self._plays
        over = np.array([play.ended + play.truncated for play in plays])
        games, antes = int(over.sum()), sum((play.antes for play in plays), np.zeros(1, np.int64))
        points = sum(play.points * count for play, count in zip(plays, over, strict=True) if count)
        shares = antes / max(antes.sum(), 1)
        each = self._config.ppo.epochs
        return PpoReport(
            **where,
            policy_loss=self._mean(lambda s: s.measures.policy),
            value_loss=self._mean(lambda s: s.measures.value),
            entropy=self._mean(lambda s: s.measures.entropy),
            kl=self._mean(lambda s: s.measures.kl[-max(len(s.loss) // each, 1) :]),
            kl_target=self._config.ppo.kl_target,
            kl_weight=float(self._stats[-1].kl_weight),
            clip_fraction=self._mean(lambda s: s.measures.clipped),
            explained_variance=self._mean(lambda s: s.explained),
            decisions_per_second=sum(play.rows for play in plays) / elapsed,
            games_per_hour=3600 * games / elapsed,
            mean_points=float(points) / max(games, 1),
            win_rate=sum(play.won for play in plays) / max(games, 1),
            mean_ante=float((shares * np.arange(len(shares))).sum()),
            antes={str(ante): float(share) for ante, share in enumerate(shares) if share},
            horizon=plays[-1].horizon,
            rewards={name: float(np.mean([play.terms[name] for play in plays])) for name in plays[-1].terms},
            memory_bytes=self._memory(),
            memory_cap_bytes=int(self._config.ppo.memory_gb * 2**30),
        )


def ppo_run(parts: PpoParts, folder: RunFolder, sink: Sink, *, root: Path | None = None) -> LocalRun:
    """The run."""
    producer = DevicePlay if isinstance(parts.rollout, SelvesPlay) else HostPlay
    return LocalRun(parts, folder, sink, root=root, make_producer=producer, make_digest=PpoDigest)
