"""The local runtime: one process, roles taking turns, everything on the device; deterministic for a seed.

A run that is killed and resumed equals one that was not, bit for bit on the CPU with the same cores: a checkpoint
holds the weights, the optimiser, the games in flight and the counters; replay is played back from its log.
Knows the roles and the run's folder; no training logic is written here.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import logging
import time
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from aleazero import __version__
from aleazero import checkpoint as checkpoints
from aleazero.assemble import Parts
from aleazero.core.errors import AleaError
from aleazero.core.records import Trajectory
from aleazero.core.settings import fingerprint
from aleazero.observe.alarms import Alarm, alarms_of, stale_weights
from aleazero.observe.reports import CheckpointReport, EvalReport, Report, RunReport
from aleazero.observe.sink import Sink
from aleazero.play.ratings import mean_interval, results_from_points, score_interval
from aleazero.players import check_game
from aleazero.replay.log import BackgroundLog, ReplayLog, ReplayLogError
from aleazero.roles.actor import Actor, compiled_summary
from aleazero.roles.evaluator import Evaluator
from aleazero.roles.learner import Learner
from aleazero.roles.ports import LocalWeights, StopSignal
from aleazero.runs import RunFolder
from aleazero.runtimes.digest import Digest, Iteration

logger = logging.getLogger(__name__)

Resume = Literal["exact", "weights"]


class TrainingStopped(AleaError):  # noqa: N818 - the name says what happened
    """An alarm ended the run."""


class LocalRun:
    """A run of one process. `train` runs it to its end, or until it is told to stop."""

    def __init__(self, parts: Parts, folder: RunFolder, sink: Sink, *, root: Path | None = None) -> None:
        """`root` is where the runs that opponents may name are kept."""
        config = parts.config
        self.parts, self.folder, self._sink = parts, folder, sink
        self._weights = LocalWeights()
        self.replay = parts.make_replay()
        self._disk = ReplayLog(folder.replay) if config.replay.log else None
        self._log = BackgroundLog(self._disk) if self._disk else None
        self.actor = Actor(
            parts.make_play(),
            parts.pace,
            parts.start_games(),
            self,
            self._weights,
            num_games=config.selfplay.num_games,
            moves=config.selfplay.moves_per_rollout,
        )
        self.learner = Learner(
            parts.make_update(),
            parts.learning_rate,
            parts.start_learning(),
            self.replay,
            self._weights,
            batch_size=config.learn.batch_size,
            rows_per_new_row=config.replay.rows_per_new_row,
            min_rows=config.replay.min_rows,
            seed=config.seed,
        )
        self._evaluator = Evaluator(
            lambda weights, opponent: parts.play_match(weights, opponent, root),
            config.evaluate.opponents,
            self._weights,
        )
        self._digest = Digest(parts.game.spec)
        self._waiting: collections.deque[Iteration] = collections.deque()
        self._began = time.monotonic()
        self._before = 0.0  # seconds of earlier stretches
        self._reported = self._began
        self._best: tuple[float, int] | None = None  # score, step
        self._resumed = False
        self.last_eval: list[EvalReport] = []

    # ---- the loop

    def train(self, stop: StopSignal) -> Literal["done", "stopped"]:
        """Plays and learns until all rows are played or a stop is asked for; ends with a checkpoint and a rating."""
        config = self.parts.config
        self._began = self._reported = time.monotonic()
        self._emit(self._run_report("resumed" if self._resumed else "started"))
        self.learner.publish()
        while self.actor.rows < config.total_rows and not stop.stop_requested():
            before = self.actor.rows
            self._iterate()
            if self._due(config.checkpoint.every_rows, before):
                self.save()
            if self._due(config.evaluate.every_rows, before) and self.actor.rows < config.total_rows:
                self.evaluate()
        self._catch_up()
        self._report()
        finished = self.actor.rows >= config.total_rows
        if finished:
            self.evaluate()
        self.save()
        self._emit(self._run_report("done" if finished else "stopped"))
        return "done" if finished else "stopped"

    def close(self) -> None:
        """Lets go of the log."""
        if self._log is not None:
            self._log.close()

    def add(self, slab: Trajectory) -> None:
        """The actor's sink: replay, and the log beside it."""
        number = self.replay.num_slabs
        self.replay.add(slab)
        if self._log is not None:
            try:
                self._log.append(number, _as_dict(slab))
            except ReplayLogError as error:
                self._give_up_log(error)

    def _iterate(self) -> None:
        config = self.parts.config
        slab = self.actor.step()
        budgets = (jnp.int32(config.search.max_simulations), jnp.int32(config.selfplay.fast_simulations))
        play = compiled_summary(slab, *budgets)
        updates = self.learner.step()
        self._waiting.append(
            Iteration(
                step=self.learner.steps,
                rows=self.actor.rows,
                play=play,
                updates=updates,
                learning_rate=self.learner.learning_rate,
                rows_trained=self.learner.rows_trained,
                rows_held=self.replay.rows_held,
                window_rows=self.replay.window_slabs * self.replay.slab_rows,
                rows_ready=self.replay.ring.slab_ready.sum(),
                mean_surprise=self.replay.mean_surprise(),
            )
        )
        self._catch_up(leave=1)
        stale = stale_weights(self.actor.version, self.learner.steps) if updates else None
        if stale:
            self._raise(stale)
        if time.monotonic() - self._reported >= config.observe.every_seconds:
            self._report()

    def _catch_up(self, leave: int = 0) -> None:
        """Fetches the numbers of iterations gone by; the device works on the newest meanwhile."""
        while len(self._waiting) > leave:
            alarm = self._digest.take(self._waiting.popleft(), self._last_checkpoint())
            if alarm:
                self._raise(alarm)

    def _due(self, every: int, before: int) -> bool:
        return every > 0 and self.actor.rows // every > before // every

    # ---- reports

    def _report(self) -> None:
        now = time.monotonic()
        for report in self._digest.reports(self.seconds, now - self._reported):
            self._emit(report)
        self._reported = now

    def _emit(self, report: Report) -> None:
        self._sink.emit(report)
        for alarm in alarms_of(report):
            if alarm.level == "stop":
                self._raise(alarm)
            self._sink.emit(alarm.report(report))

    def _raise(self, alarm: Alarm) -> None:
        self._sink.emit(alarm.report(self._run_report("failed")))
        self._sink.emit(dataclasses.replace(self._run_report("failed"), message=alarm.message))
        raise TrainingStopped(f"{alarm.name}: {alarm.message}. Look at: {alarm.setting}")

    @property
    def seconds(self) -> float:
        """Of the run, earlier stretches included."""
        return self._before + time.monotonic() - self._began

    def _where(self) -> dict[str, Any]:
        return {"step": self.learner.steps, "rows": self.actor.rows, "seconds": self.seconds}

    def _run_report(self, status: Literal["started", "resumed", "done", "stopped", "failed"]) -> RunReport:
        config = self.parts.config
        return RunReport(
            **self._where(), status=status, run=self.folder.name, game=config.game, total_rows=config.total_rows
        )

    # ---- measuring

    def evaluate(self) -> None:
        """Matches of the newest weights, reported; the first opponent's score says which checkpoint is best."""
        self.last_eval = []
        for version, result in self._evaluator.step():
            score, points = score_interval(results_from_points(result.points)), mean_interval(result.points)
            report = EvalReport(
                **{**self._where(), "step": version},
                player=f"run:{self.folder.name}@{version}",
                opponent=result.opponent,
                games=int(np.isfinite(result.points).sum()),
                score=score.value,
                score_low=score.low,
                score_high=score.high,
                points_per_game=points.value,
                points_low=points.low,
                points_high=points.high,
            )
            self.last_eval.append(report)
            self._emit(report)
        if self.last_eval and (self._best is None or self.last_eval[0].score >= self._best[0]):
            self._best = (self.last_eval[0].score, self.last_eval[0].step)
            self.save()  # the best weights are worth keeping

    # ---- checkpoints

    def save(self) -> None:
        """Saves everything needed to go on, and drops what is no longer needed. A full disk is said, and no more."""
        self._catch_up()  # nothing that is not finite is ever saved
        root, config = self.folder.checkpoints, self.parts.config
        try:
            if self._log is not None:
                self._log.flush()
        except ReplayLogError as error:
            self._give_up_log(error)
        arrays = {
            "weights": self.learner.state.weights,
            "average": self.learner.state.average,
            "optimiser": self.learner.state.optimiser,
            "games": self.actor.games,
        }
        try:
            path = checkpoints.save(root, self.learner.steps, arrays, self._facts())
            keep = [self._best[1]] if self._best else []
            checkpoints.prune(root, config.checkpoint.keep_last, keep)
            self._trim_log()
        except checkpoints.CheckpointError as error:
            logger.warning("%s", error)
            self._emit(CheckpointReport(**self._where(), path="", saved=False, message=str(error)))
            return
        self._emit(CheckpointReport(**self._where(), path=str(path), saved=True))

    def _facts(self) -> dict[str, Any]:
        spec, config = self.parts.game.spec, self.parts.config
        return {
            "game": spec.name,
            "game_version": spec.version,
            "package_version": __version__,
            "config": fingerprint(config),
            "rows": self.actor.rows,
            "move": self.actor.move,
            "slabs": self.replay.num_slabs,
            "learner_started": self.learner.started,
            "base_steps": self.learner.base_steps,
            "games_finished": self._digest.games,
            "seconds": self.seconds,
            "best": list(self._best) if self._best else None,
            "replay_logged": self._log is not None,
        }

    def _trim_log(self) -> None:
        """Drops what no kept checkpoint would play back."""
        if self._log is None or self._disk is None:
            return
        needed = [self.replay.num_slabs]
        for step in checkpoints.steps(self.folder.checkpoints):
            with contextlib.suppress(checkpoints.DamagedCheckpoint):
                needed.append(checkpoints.read_facts(self.folder.checkpoints, step)["slabs"])
        self._disk.drop_before(max(min(needed) - self.replay.slabs, 0))

    def _give_up_log(self, error: ReplayLogError) -> None:
        logger.warning("the replay log is given up, so this run can only be resumed from its weights: %s", error)
        self._log = None

    def _last_checkpoint(self) -> str:
        known = checkpoints.steps(self.folder.checkpoints)
        return str(self.folder.checkpoints / f"{known[-1]:012d}") if known else "none was saved yet"

    # ---- going on

    def resume(self, found: checkpoints.Checkpoint, how: Resume) -> None:
        """Takes up a checkpoint: exactly, or from its weights alone with an empty replay."""
        check_game(found, self.parts.game)
        facts = found.facts
        state = self.learner.state
        restored = {
            name: checkpoints.restore(found, name, getattr(state, name)) for name in ("weights", "average", "optimiser")
        }
        self.learner.state = jax.device_put(dataclasses.replace(state, **restored))
        self.learner.steps = found.step
        self.actor.move = facts["move"]
        self._digest.games = facts["games_finished"]
        self._best = (facts["best"][0], facts["best"][1]) if facts.get("best") else None
        self._before = facts["seconds"]
        self._resumed = True
        if how == "weights":
            self.learner.base_steps = found.step
            if self._disk is not None:
                self._disk.clear()
            return
        if not facts["replay_logged"] or self._disk is None:
            raise checkpoints.CheckpointError(
                f"checkpoint {found.path} has no replay log to play back: resume from its weights (--resume weights)"
            )
        self.learner.started, self.learner.base_steps = facts["learner_started"], facts["base_steps"]
        self.actor.games = self.parts.place_games(checkpoints.restore(found, "games", self.actor.games))
        self._play_back(self._disk, facts["slabs"])

    def _play_back(self, disk: ReplayLog, slabs: int) -> None:
        """Fills the replay as it was when `slabs` slabs had been added."""
        disk.truncate(slabs)
        self.replay.num_slabs = max(slabs - self.replay.slabs, 0)
        like = _as_dict(self.parts.slab_like())
        for _, arrays in disk.read(self.replay.num_slabs, slabs):
            self.replay.add(Trajectory(**{name: jnp.asarray(arrays[name], leaf.dtype) for name, leaf in like.items()}))


def _as_dict(slab: Trajectory) -> dict[str, Any]:
    return {field.name: getattr(slab, field.name) for field in dataclasses.fields(Trajectory)}
