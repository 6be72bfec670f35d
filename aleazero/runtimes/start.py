"""Starting and resuming a run on this machine: its folder, its sinks, its signals, and the loop between them.

Knows every part of a run by name and none of them inside.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Literal

from aleazero import checkpoint as checkpoints
from aleazero.assemble import Parts, build_parts
from aleazero.assemble_ppo import PpoParts, build_ppo_parts
from aleazero.config import MAY_CHANGE, RunConfig, changes_refused
from aleazero.core.compilation import keep_names
from aleazero.core.errors import AleaError, ConfigError
from aleazero.core.settings import Layer, build, parse_assignments, to_dict
from aleazero.observe.curves import run_panels
from aleazero.observe.jsonl import truncate_jsonl
from aleazero.observe.logs import configure_logging
from aleazero.observe.plot import write_svg
from aleazero.observe.reports import EvalReport, ProfileReport
from aleazero.observe.sink import Fanout
from aleazero.players import make_player
from aleazero.runs import RunError, RunFolder, find_run, new_run
from aleazero.runtimes.desk import model_name, need_extras, need_ray, need_rllib, open_sinks, register
from aleazero.runtimes.local import LocalRun, Resume
from aleazero.runtimes.ppo import ppo_run
from aleazero.runtimes.processes import run_with_producers
from aleazero.runtimes.profile import in_words, operations_in_words
from aleazero.runtimes.rllib_memory import need_memory
from aleazero.starting import starting_weights

logger = logging.getLogger(__name__)


class ProfileMissing(AleaError):  # noqa: N818 - the name says what is wrong
    """A run was over before it could be profiled."""


@dataclasses.dataclass(frozen=True)
class Finished:
    """What came of a run."""

    folder: RunFolder
    status: Literal["done", "stopped"]
    ratings: list[EvalReport]
    plot: Path | None  # None where it could not be written
    profile: ProfileReport | None = None  # where the time went, if that was asked for
    step: int = 0  # updates of the newest weights
    best_step: int | None = (
        None  # of those that were measured best; None where none were: a stopped run measures no more
    )


@dataclasses.dataclass(frozen=True)
class Until:
    """When a run is stopped before its end."""

    seconds: float | None  # after so many
    profiled: bool  # once it is known where the time goes


def start(
    config: RunConfig,
    root: Path,
    *,
    name: str | None = None,
    preset: str = "run",
    seconds: float | None = None,
    profile: bool = False,
    quiet: bool = False,
) -> Finished:
    """Starts a run in a new folder and trains it to its end, for so many seconds, or until its profile is known."""
    parts = _checked_parts(config, root)  # all that is wrong is said before anything is made
    if config.learn.start_from:
        starting_weights(parts.config, parts.game, parts.model, root)
    stem = f"{model_name(config)}-{preset}"
    folder = new_run(root, name, stem)
    folder.write_config(parts.config)
    return _train(parts, folder, root, None, Until(seconds, profile), quiet)


def resume(
    name: str,
    root: Path,
    how: Resume = "exact",
    assignments: Sequence[str] = (),
    *,
    seconds: float | None = None,
    profile: bool = False,
    quiet: bool = False,
) -> Finished:
    """Goes on with a run from its newest intact checkpoint, as `start` does."""
    folder = find_run(root, name)
    old = folder.read_config()
    config = build(RunConfig, [Layer(str(folder.config_file), to_dict(old)), parse_assignments(assignments)])
    refused = changes_refused(old, config)
    if refused:
        allowed = ", ".join(MAY_CHANGE)
        raise ConfigError("\n".join([*refused, f"a resumed run may change only {allowed}; start a new run"]))
    return _train(_checked_parts(config, root), folder, root, how, Until(seconds, profile), quiet)


def _train(
    parts: Parts | PpoParts, folder: RunFolder, root: Path, how: Resume | None, until: Until, quiet: bool
) -> Finished:
    """In this process, on Ray, or by its RLlib."""
    if parts.config.runtime == "rllib":
        from aleazero.runtimes.rllib.runtime import train_by_rllib

        assert isinstance(parts, PpoParts)
        return train_by_rllib(parts, folder, root, how, until, quiet)
    if parts.config.runtime == "ray":
        from aleazero.runtimes.ray.runtime import train_on_ray

        return train_on_ray(parts.config, folder, root, how, until, quiet)
    return train_in(parts, folder, root, how, until, quiet)


def where_time_went(finished: Finished) -> list[str]:
    """Lines for whoever asked for a profile; ProfileMissing where there is none."""
    if finished.profile is None:
        raise ProfileMissing(
            f"--profile: run {finished.folder.name!r} ended before there was anything to measure: its first update "
            "comes when replay.min_rows rows are ready; raise total_rows (or --seconds), or lower replay.min_rows"
        )
    report = finished.profile
    if Path(report.trace).suffix == ".json":
        return operations_in_words(report)
    return in_words(report.shares, Path(report.trace))


def plot_run(folder: RunFolder) -> Path:
    """Draws a run's curves from its metrics."""
    path = folder.path / "curves.svg"
    write_svg(path, run_panels(folder.read_reports()), folder.name)
    return path


def _checked_parts(config: RunConfig, root: Path) -> Parts | PpoParts:
    need_extras(config.observe)
    if config.runtime == "ray":
        need_ray()
    if config.runtime == "rllib":
        need_rllib()
        import aleazero.runtimes.rllib  # noqa: F401 - its environment, before JAX computes anything
    if config.algorithm == "ppo":
        ppo_parts = build_ppo_parts(config, root)
        if config.runtime == "rllib":
            need_memory(config, ppo_parts.game.spec)
        return ppo_parts
    parts = build_parts(config, root=root)
    problems = []
    for opponent in config.evaluate.opponents:  # or else a misspelt one would end the run at its first match
        try:
            make_player(opponent, parts.game, root)
        except AleaError as error:
            problems.append(f"evaluate.opponents: {error}")
    if problems:
        raise ConfigError("\n".join(problems))
    return parts


def _newest(folder: RunFolder) -> checkpoints.Checkpoint:
    """The checkpoint that a run goes on from; RunError where none is intact."""
    found = checkpoints.newest(folder.checkpoints, logger.warning)
    if found is None:
        raise RunError(f"run {folder.name!r} has no usable checkpoint to resume from; start it anew")
    return found


def how_to_go_on(folder: RunFolder, config: RunConfig) -> Resume | None:
    """How a run goes on whose learner is gone; None where nothing of it was saved yet. Raises where all is damaged.

    What such a try has left would be in the way; whoever played has kept its slabs.
    """
    if not checkpoints.steps(folder.checkpoints) and not any(folder.checkpoints.glob(".old-*")):
        shutil.rmtree(folder.replay, ignore_errors=True)
        folder.metrics_file.unlink(missing_ok=True)
        return None
    kept = _newest(folder).facts.get("replay_logged" if config.replay.log else "replay_saved")
    return "exact" if kept else "weights"


def train_in(
    parts: Parts | PpoParts,
    folder: RunFolder,
    root: Path,
    how: Resume | None,
    until: Until,
    quiet: bool,
    make_run: Callable[..., LocalRun] | None = None,
    sends: bool = True,
    sinks: Callable[..., Fanout] = open_sinks,
) -> Finished:
    """Trains in a folder; `how` is None where the run is new. `make_run`, where given, is called as `LocalRun` is.

    `sends`: whether this process sees to it that services elsewhere are told; `sinks` is where its reports go.
    """
    config = parts.config
    if until.profiled or config.observe.profile:
        keep_names()
    with folder.held(), contextlib.ExitStack() as stack:
        stack.callback(configure_logging(folder.log_file, config.observe.json_logs, config.observe.log_level))
        found = _newest(folder) if how else None
        if found is not None:
            folder.write_config(config)
            if folder.metrics_file.exists():
                truncate_jsonl(folder.metrics_file, found.step)
        sink = sinks(config, folder, root, quiet, sends)
        stack.callback(sink.close)
        make = make_run or _runtime(config)
        run = make(parts, folder, sink, root=root)
        stack.callback(run.close)
        if found is not None and how is not None:
            run.resume(found, how)
        logger.info("run %s: %s", folder.name, "resumed" if found else "started")
        with stopping(folder, until.seconds) as stop:
            status = run.train(stop, profile_only=until.profiled)
        logger.info("run %s: %s", folder.name, status)
        if status == "done" and sends:
            register(config, folder, root)
        return Finished(folder, status, run.last_eval, _try_plot(folder), run.profile, run.learner.steps, run.best_step)


def _runtime(config: RunConfig) -> Callable[..., LocalRun]:
    """What makes a run of parts."""
    if config.algorithm == "ppo":
        return ppo_run
    return run_with_producers if config.producers.workers else LocalRun


def _try_plot(folder: RunFolder) -> Path | None:
    """A run that has trained to its end has not failed because a full disk takes no picture of it."""
    try:
        return plot_run(folder)
    except (AleaError, OSError) as error:
        logger.warning("the curves could not be drawn: %s", error)
        return None


class Stopping:
    """The stop signal of a local run: Ctrl-C, a request by `alea runs stop`, or the end of the time given."""

    def __init__(self, folder: RunFolder, seconds: float | None) -> None:
        self._folder = folder
        self._end = None if seconds is None else time.monotonic() + seconds
        self.asked = False

    def stop_requested(self) -> bool:
        """Whether any of the three has happened."""
        late = self._end is not None and time.monotonic() >= self._end
        return self.asked or late or self._folder.stop_file.exists()

    def ask(self, number: int, frame: FrameType | None) -> None:
        """The first signal asks for a good end, with a checkpoint; the second one does not wait."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        # Not by `print`: the signal may have come in the middle of one, and Python refuses a second inside it.
        os.write(2, b"stopping after this step, with a checkpoint; once more stops at once\n")


@contextlib.contextmanager
def stopping(folder: RunFolder, seconds: float | None) -> Iterator[Stopping]:
    """Signals ask a run to stop, inside."""
    stop = Stopping(folder, seconds)
    numbers = (signal.SIGINT, signal.SIGTERM)
    try:
        before = [signal.signal(number, stop.ask) for number in numbers]
    except ValueError:  # not the main thread: signals are somebody else's
        yield stop
        return
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
