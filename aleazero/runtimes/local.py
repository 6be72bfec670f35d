"""The local runtime: one process, roles taking turns, everything on the device; deterministic for a seed.

A run that is killed and resumed equals one that was not, bit for bit on the CPU with the same cores: a checkpoint
holds the weights, the optimiser, the games in flight and the counters; replay is played back from its log, or is in the
checkpoint too where it has none.
Knows the roles and the run's folder; no training logic is written here.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import math
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Literal, NoReturn

import jax
import jax.numpy as jnp

from aleazero import __version__
from aleazero import checkpoint as checkpoints
from aleazero.assemble import Parts
from aleazero.assemble_ppo import PpoParts
from aleazero.core.errors import AleaError
from aleazero.core.records import Weights
from aleazero.core.settings import fingerprint
from aleazero.observe.alarms import Alarm, alarms_of, non_finite
from aleazero.observe.reports import CheckpointReport, EvalReport, ProfileReport, Report, RunReport
from aleazero.observe.sink import Sink
from aleazero.players import check_game
from aleazero.replay.log import ReplayLogError
from aleazero.roles.evaluator import Evaluator
from aleazero.roles.learner import Learner, all_finite, placed
from aleazero.roles.ports import LocalWeights, SourcedSink, StopSignal, WeightStore
from aleazero.roles.ppo import PpoLearner
from aleazero.runs import RunFolder
from aleazero.runtimes.digest import Digest, Digesting, Iteration, match_report
from aleazero.runtimes.milestones import Count, Milestones
from aleazero.runtimes.profile import profile
from aleazero.runtimes.selfplay import Producer, ProducersFailed, Resume, SelfPlay, SoFar
from aleazero.runtimes.slab_log import SlabLog
from aleazero.starting import starting_weights

logger = logging.getLogger(__name__)

PROFILE_AFTER = 200  # updates, in a run that goes on afterwards: replay is filling
PAUSE_SECONDS = 0.2  # between looks whether a run that is paused may go on
PROFILE_ITERATIONS = 8  # that a cycle of playing and learning may have
LEARNED = ("weights", "average", "optimiser")  # what a checkpoint holds of the learner's state


class TrainingStopped(AleaError):  # noqa: N818 - the name says what happened
    """An alarm ended the run, or what it learned could not be saved in the end."""


class LocalRun:
    """A run of one process. `train` runs it to its end, or until it is told to stop."""

    def __init__(
        self,
        parts: Parts | PpoParts,
        folder: RunFolder,
        sink: Sink,
        *,
        root: Path | None = None,
        weights: WeightStore | None = None,
        make_producer: Callable[[Any, SourcedSink, WeightStore], Producer] = SelfPlay,
        make_digest: Callable[[Any], Digesting] = Digest.of,
        offer: Callable[[dict[str, Any], Weights], None] | None = None,
    ) -> None:
        """`root` is where the runs that opponents may name are kept; `weights` are this process's own by default.

        Where others measure what it learns, `offer(where, weights)` is told what to measure, once it is saved.
        """
        config = parts.config
        self.parts, self.folder, self._sink, self._root = parts, folder, sink, root
        self._weights = weights or LocalWeights()
        self.replay: Any
        self.learner: Learner | PpoLearner
        self.replay, self.learner = parts.make_learning(self._weights)
        self._log = SlabLog(folder)
        self.producer = make_producer(parts, self, self._weights)
        self._evaluator = Evaluator(
            lambda weights, opponent: parts.play_match(weights, opponent, root),
            config.evaluate.opponents if offer is None else (),
            self._weights,
        )
        self._digest = make_digest(parts)
        self._way = Milestones(config)
        self._games = 0  # that are over, counted where anything goes by them
        self._waiting: collections.deque[Iteration] = collections.deque()
        self._began = time.monotonic()
        self._began_steps, self._before = 0, 0.0  # updates before this stretch, and its seconds
        self._reported = self._asked = self._began  # how far reports have told, and what the last was asked for
        self._saved: Any = None  # how far it was when it saved last
        self._best: tuple[float, int] | None = None  # score, step
        self._offer, self._awaited = offer, set[int]()  # steps that others have not done with
        self._resumed = False
        self._warned: set[str] = set()  # alarms that were given: one of a name is enough for a run
        self.profile: ProfileReport | None = None
        self.last_eval: list[EvalReport] = []

    # ---- the loop

    def train(self, stop: StopSignal, *, profile_only: bool = False) -> Literal["done", "stopped"]:
        """Plays and learns until all rows are played or a stop is asked for; ends with a checkpoint and a rating.

        With `profile_only` it stops once everything is compiled and it is known where the time goes.
        """
        config = self.parts.config
        self._began = self._reported = self._asked = time.monotonic()
        self._began_steps = self.learner.steps
        if config.replay.log and not self._log.is_open:
            self._log.open(self.learner.base_steps)
        if config.learn.start_from and not self._resumed:
            self._begin_with(starting_weights(config, self.parts.game, self.parts.model, self._root))
        self._emit(self._run_report("resumed" if self._resumed else "started"))
        self.learner.publish()
        if self._resumed and not self.replay.num_slabs:
            self.save()  # the checkpoint that gave the weights speaks of a replay that is not there any more
        while not (self._way.over(self._count()) and not self._owes()) and not stop.stop_requested():
            if self.folder.pause_file.exists():
                time.sleep(PAUSE_SECONDS)
                continue
            before = self._count()
            self._iterate()
            if self._profile_due(profile_only):
                self._profile()
            # In this order: a run killed in a match plays it again when it is resumed.
            if self._way.measure(before, self._count()):
                self.evaluate()
            if self._tend() or self._way.save(before, self._count()):
                self.save()
            if profile_only and self.profile is not None:
                break
        self._catch_up()
        self._digest.note(self.replay.held())
        self._report()
        finished = self._way.over(self._count()) and not self._owes()
        if finished:
            if self._games < config.total_games:
                logger.warning("%d rows are played, and %d of %d games are over: raise total_rows",
                               self.producer.rows, self._games, config.total_games)  # fmt: skip
            if not self.learner.started:
                ready, least = self.replay.count_ready(), config.replay.min_rows
                logger.warning("nothing was learned: %d rows were ready, and replay.min_rows is %d", ready, least)
            self.evaluate()
        if not self.save():
            self._fail(
                "the last checkpoint could not be saved, so what was learned since the one before it is lost: make "
                f"room on the disk, then go on from there: alea runs resume {self.folder.name}"
            )
        self._tend(over=True)
        self._emit(self._run_report("done" if finished else "stopped"))
        return "done" if finished else "stopped"

    def _profile_due(self, profile_only: bool) -> bool:
        if self.profile is not None or not (profile_only or self.parts.config.observe.profile):
            return False
        return self.learner.steps - self._began_steps >= (1 if profile_only else PROFILE_AFTER)

    def _profile(self) -> None:
        """Times and traces a few iterations, which count like any other."""

        def cycle() -> None:
            """Iterations up to one that learns, unless that takes too many: rows may have to be played for several."""
            before = self.learner.steps
            for _ in range(PROFILE_ITERATIONS):
                if self.learner.steps == before and not self._way.over(self._count()):
                    self._iterate()

        def settle() -> None:
            self._catch_up()
            jax.block_until_ready(self.learner.state)

        seen = profile(cycle, settle, self.folder.profile)
        if seen.device_seconds:  # else all rows were played before the trace began
            self.profile = seen.report(**self._where())
            self._emit(self.profile)

    def close(self) -> None:
        """Lets go of the log, and of who played."""
        self._log.close()
        self.producer.close()

    def add(self, slab: Any, source: int = 0) -> None:
        """The actor's sink: replay, and the log beside it."""
        number = self.replay.num_slabs
        self.replay.add(slab, source)
        self._log.add(number, slab, source)

    def _iterate(self) -> None:
        config, trains, began = self.parts.config, self._owes(), time.monotonic()
        due = began - self._asked >= config.observe.every_seconds
        try:
            slab = None if trains else self.producer.step()
        except ProducersFailed as error:  # what was learned from them is worth keeping
            self.save()
            self._fail(str(error))
        except AleaError:
            self._catch_up()  # what was learned last may be why: its alarm says more
            raise
        if slab is None and not trains:
            return
        self._asked = began if due else self._asked
        play = None if slab is None else self.parts.summary(slab)
        if self._way.count_games and play is not None:
            self._games += int(play.ended) + int(play.truncated)
        updates = self.learner.step(self._games)
        self.producer.epoch = self.learner.epoch
        self._waiting.append(
            Iteration(
                began=began,
                step=self.learner.steps,
                rows=self.producer.rows,
                play=play,
                updates=updates,
                learning_rate=self.learner.learning_rate,
                rows_trained=self.learner.rows_trained,
                rows_held=self.replay.rows_held,
                window_rows=self.replay.window_slabs * self.replay.slab_rows,
                held=self.replay.held() if due else None,
            )
        )
        self._catch_up(leave=1)
        if updates and slab is not None and (alarm := self.producer.alarm(self.learner.steps)):
            self._raise(alarm)
        if self._digest.complete:
            self._report()

    def _tend(self, over: bool = False) -> bool:
        so_far = SoFar(self.learner.steps, self._digest.games, self.replay.rows_held, self._owes(), over)
        return self.producer.tend(so_far)

    def _owes(self) -> bool:
        """Whether an epoch's games are there and its updates are not: then nothing is taken until it is over."""
        return self.parts.config.learn.games_per_epoch > 0 and self.learner.owed(self._games) > 0

    def _catch_up(self, leave: int = 0) -> None:
        """Fetches the numbers of iterations gone by; the device works on the newest meanwhile."""
        while len(self._waiting) > leave:
            if alarm := self._digest.take(self._waiting.popleft(), self._last_checkpoint()):
                self._raise(alarm)

    def _count(self) -> Count:
        return Count(self.producer.rows, self._games, self.learner.epoch)

    # ---- reports

    def _report(self) -> None:
        """Of the iterations whose numbers were fetched, and of the time until the next one began."""
        told = self._waiting[0].began if self._waiting else time.monotonic()
        for report in self._digest.reports(self.seconds, told - self._reported):
            self._emit(report)
        if (extra := self.producer.report(self._where())) is not None:
            self._emit(extra)
        self._reported = told

    def _emit(self, report: Report) -> None:
        self._sink.emit(report)
        for alarm in alarms_of(report):
            if alarm.level == "stop":
                self._raise(alarm)
            if alarm.name not in self._warned:
                self._warned.add(alarm.name)
                self._sink.emit(alarm.report(report))

    def _raise(self, alarm: Alarm) -> NoReturn:
        self._sink.emit(alarm.report(self._run_report("failed")))
        self._fail(alarm.message, f"{alarm.name}: {alarm.message}. Look at: {alarm.setting}")

    def _fail(self, message: str, in_full: str = "") -> NoReturn:
        self._sink.emit(dataclasses.replace(self._run_report("failed"), message=message))
        raise TrainingStopped(in_full or message)

    @property
    def seconds(self) -> float:
        """Of the run, earlier stretches included."""
        return self._before + time.monotonic() - self._began

    def _where(self) -> dict[str, Any]:
        return {"step": self.learner.steps, "rows": self.producer.rows, "seconds": self.seconds}

    def _run_report(self, status: Literal["started", "resumed", "done", "stopped", "failed"]) -> RunReport:
        config = self.parts.config
        return RunReport(
            **self._where(), status=status, run=self.folder.name, game=config.game, total_rows=config.total_rows
        )

    # ---- measuring

    def evaluate(self) -> None:
        """Matches of the newest weights, reported; the first opponent's score says which checkpoint is best."""
        self.last_eval = []
        if self._offer is not None:
            if self.save():
                self._awaited.add(self.learner.steps)  # before anybody hears of it: the next checkpoint must not end it
                self._offer(self._where(), self.learner.state.average)
            return
        for version, result in self._evaluator.step():
            report = match_report({**self._where(), "step": version}, f"run:{self.folder.name}@{version}", result)
            if report is None:
                logger.warning("match against %s: every game was stopped at the game's max_plies", result.opponent)
                continue
            self.last_eval.append(report)
            self._emit(report)
        if self.last_eval and (self._best is None or self.last_eval[0].strength >= self._best[0]):
            self._best = (self.last_eval[0].strength, self.last_eval[0].step)
            self.save()  # the best weights are worth keeping

    @property
    def best_step(self) -> int | None:
        """Of the weights that were measured best, if any were."""
        return self._best[1] if self._best else None

    def hear(self, best: tuple[float, int] | None, awaited: Collection[int]) -> None:
        """From those who measure: the best score and its step, and the steps that they have not done with."""
        self._best, self._awaited = best or self._best, set(awaited)

    # ---- checkpoints

    def save(self) -> bool:
        """Saves what is needed to go on, if it is not; drops what is needed no more. A full disk is said: False."""
        far = (self.learner.steps, self.producer.rows, self._best, str(self.producer.facts()))
        if far == self._saved:
            return True
        self._catch_up()
        if not bool(all_finite(self.learner.state)):  # the last update's loss says nothing of what it led to
            self._raise(non_finite(self.learner.steps, "a weight", math.nan, self._last_checkpoint()))
        root, config = self.folder.checkpoints, self.parts.config
        self._log.flush()
        arrays = {name: getattr(self.learner.state, name) for name in LEARNED} | self.producer.arrays()
        if not config.replay.log:
            arrays["replay"] = self.replay.ring
        try:
            path = checkpoints.save(root, self.learner.steps, arrays, self._facts())
        except checkpoints.CheckpointError as error:
            logger.warning("%s", error)
            self._emit(CheckpointReport(**self._where(), path="", saved=False, message=str(error)))
            return False
        self._saved = far
        self.producer.saved()
        try:
            kept = self._awaited | ({self._best[1]} if self._best else set())
            checkpoints.prune(root, config.checkpoint.keep_last, kept)
            self._log.trim(self.learner.base_steps, self.replay.num_slabs, self.replay.slabs)
            if config.checkpoint.keep_weights:
                weights = {"average": arrays["average"]}
                checkpoints.save(self.folder.versions, self.learner.steps, weights, self._facts())
                checkpoints.prune(self.folder.versions, config.checkpoint.keep_weights, ())
        except (checkpoints.CheckpointError, ReplayLogError) as error:
            logger.warning("%s", error)  # nothing is lost that a run goes on from
        self._emit(CheckpointReport(**self._where(), path=str(path), saved=True))
        return True

    def _facts(self) -> dict[str, Any]:
        spec, config = self.parts.game.spec, self.parts.config
        return {
            "game": spec.name,
            "game_version": spec.version,
            "package_version": __version__,
            "config": fingerprint(config),
            "rows": self.producer.rows,
            **self.producer.facts(),
            "slabs": self.replay.num_slabs,
            "sources": sorted(self.replay.sources.items()),
            "learner_started": self.learner.started,
            "base_steps": self.learner.base_steps,
            "games_finished": self._digest.games,
            "seconds": self.seconds,
            "best": list(self._best) if self._best else None,
            "replay_logged": self._log.is_open,
            "replay_saved": not config.replay.log,
            "warned": sorted(self._warned),
        }

    def _last_checkpoint(self) -> str:
        known = checkpoints.steps(self.folder.checkpoints)
        return str(self.folder.checkpoints / f"{known[-1]:012d}") if known else "none was saved yet"

    # ---- going on

    def _begin_with(self, weights: Weights) -> None:
        """Another network's weights in place of fresh ones; the optimiser knows nothing yet."""
        own, average = (jax.tree.map(jnp.copy, weights) for _ in range(2))  # each update writes over both
        self.learner.state = placed(dataclasses.replace(self.learner.state, weights=own, average=average))

    def resume(self, found: checkpoints.Checkpoint, how: Resume) -> None:
        """Takes up a checkpoint: exactly, or from its weights alone with an empty replay."""
        check_game(found, self.parts.game)
        facts, state = found.facts, self.learner.state
        restored = {name: checkpoints.restore(found, name, getattr(state, name)) for name in LEARNED}
        self.learner.state = placed(dataclasses.replace(state, **restored))
        self.learner.steps = found.step
        self.producer.take_up(found, how)
        self._digest.games = self._games = facts["games_finished"]
        self.producer.epoch = self.learner.epoch
        self._best = (facts["best"][0], facts["best"][1]) if facts.get("best") else None
        self._before = facts["seconds"]
        self._warned = set(facts.get("warned", ()))
        self._resumed = True
        if how == "weights":
            self.learner.base_steps = found.step
            self.replay.rows_before = facts["rows"]
            self._log.forget(found.step)
            return
        logged = self.parts.config.replay.log
        if not facts.get("replay_logged" if logged else "replay_saved"):
            raise checkpoints.CheckpointError(
                f"checkpoint {found.path} has no replay log to play back: resume from its weights (--resume weights)"
            )
        self.learner.started, self.learner.base_steps = facts["learner_started"], facts["base_steps"]
        self.replay.rows_before = facts["rows"] - facts["slabs"] * self.replay.slab_rows
        if logged:
            self._log.open(self.learner.base_steps)
            self.replay.num_slabs = max(facts["slabs"] - self.replay.slabs, 0)
            for slab, source in self._log.play_back(self.replay.num_slabs, facts["slabs"], self.parts.slab_like()):
                self.replay.add(slab, source)
        else:
            ring = checkpoints.restore(found, "replay", self.replay.ring)
            self.replay.restore(ring, facts["slabs"], dict(facts["sources"]))
