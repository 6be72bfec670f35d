"""A run on Ray: the driver starts players and a learner, shows what it reports, and starts it again if it dies.

Training itself is a local run's, inside the learner. The driver's machine has the run's folder. All that it starts ends
with it; if it is killed, the players wait for another one. Knows who takes part; not what they do.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from aleazero.assemble import build_parts
from aleazero.config import RunConfig
from aleazero.core.errors import AleaError
from aleazero.core.files import replace_file
from aleazero.observe.follow import Follower
from aleazero.observe.logs import configure_logging
from aleazero.observe.reports import report_of
from aleazero.observe.sink import Fanout
from aleazero.runs import DRIVER_LOCK, RUN_LOCK, RunFolder
from aleazero.runtimes.desk import add_sinks, register
from aleazero.runtimes.ray.cluster import check_store, connected, count_players, has_gpu
from aleazero.runtimes.ray.crew import END_SECONDS, Crew, device, dismiss, regroup, space_of, start_crew
from aleazero.runtimes.ray.learner import Learner, Task
from aleazero.runtimes.ray.messages import answer_of
from aleazero.runtimes.ray.mirror import DRIVER_LOG, LAST_LEARNER, Keeper
from aleazero.runtimes.ray.pulse import GONE, Pulse
from aleazero.runtimes.ray.watch import LearnerHangs, Watch
from aleazero.runtimes.selfplay import Resume
from aleazero.runtimes.slabs import SlabSchema
from aleazero.runtimes.start import Finished, Until, how_to_go_on, stopping

logger = logging.getLogger(__name__)

_remote: Any = ray.remote  # its types know fewer options than it has

LOOK_SECONDS = 0.2
SHOW_SECONDS = 0.5
MOST_LEARNERS = 5  # that may die, one after the other


class LearnerFailed(AleaError):  # noqa: N818 - the name says what happened
    """A learner died again and again."""


def train_on_ray(
    config: RunConfig, folder: RunFolder, root: Path, how: Resume | None, until: Until, quiet: bool
) -> Finished:
    """Trains a run on Ray; `how` is None where it is new."""
    with folder.held(DRIVER_LOCK), _logged(config, folder), connected(config.ray):  # or somebody trains it already
        space = space_of(folder)
        try:
            crew = start_crew(_with_players(config), space, new=how is None)
            _await_end(folder)  # of a learner whose driver was killed
            with folder.held():
                folder.write_config(config)
            with _shown(config, folder, root, quiet):
                finished = train_with(crew, config, folder, root, how, until)
        finally:
            try:
                dismiss(space)
            except (AleaError, exceptions.RayError) as error:  # how the run ended is what counts
                logger.warning("not everybody of the run has ended: %s", error)
        if finished.status == "done":
            register(config, folder, root)
        return finished


@contextlib.contextmanager
def _logged(config: RunConfig, folder: RunFolder) -> Iterator[None]:
    """What the driver says is kept, inside; the learner has the run's other log."""
    undo = configure_logging(folder.path / DRIVER_LOG, config.observe.json_logs, config.observe.log_level)
    try:
        yield
    finally:
        undo()


def _await_end(folder: RunFolder) -> None:
    """A learner that hangs ends only a while after it was told to."""
    until = time.monotonic() + END_SECONDS
    while folder.holder(RUN_LOCK) is not None and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)


def _with_players(config: RunConfig) -> RunConfig:
    """The settings with a number of players, checked again: replay must have room for all their games."""
    players = count_players(config.ray)
    config = dataclasses.replace(config, ray=dataclasses.replace(config.ray, workers=players))
    parts = build_parts(config)
    check_store(SlabSchema.of(parts.slab_like(), parts.game.spec).nbytes, players * config.ray.groups)
    return config


def train_with(
    crew: Crew, config: RunConfig, folder: RunFolder, root: Path, how: Resume | None, until: Until
) -> Finished:
    """Trains by one learner after the other, as long as they die and the crew does not."""
    began, died, watch = time.monotonic(), 0, Watch(crew)
    while True:
        left = None if until.seconds is None else max(until.seconds - (time.monotonic() - began), 0.0)
        until_then = dataclasses.replace(until, seconds=left)
        task = Task(folder.path.resolve(), root.resolve(), how, until_then, _next_number(folder))
        with _learner(config, folder, watch.crew) as (learner, keeper):
            try:
                question = learner.train.remote(task, crew.players, crew.asks, keeper)
                return _await(folder, question, functools.partial(_look, watch, Pulse(learner), config))
            except (*GONE, LearnerHangs) as error:
                died += 1
                why = str(error).partition("\n")[0]
        if died > MOST_LEARNERS:
            raise LearnerFailed(f"the learner died {died} times, the last time so: {why}")
        logger.warning("the learner is gone (%s): another one goes on from the newest checkpoint", why)
        watch.see(regroup(watch.crew, config))  # its GPU may be gone with the learner's machine
        _await_end(folder)
        how = how_to_go_on(folder, config)


def _look(watch: Watch, learner: Pulse, config: RunConfig) -> None:
    """After everybody; and whether who waits for a GPU may still get one, for its machine may just have ended."""
    watch.look(learner)
    if not watch.crew.gpu or (learner.met and watch.served) or has_gpu(config.ray):
        return
    if not learner.met:
        raise LearnerHangs("the GPU that it waits for is gone")
    watch.see(regroup(watch.crew, config))  # it was the inference server's alone


def _next_number(folder: RunFolder) -> int:
    """A learner's: larger than any before, also where the clock was set back or the run has come from elsewhere."""
    file = folder.path / LAST_LEARNER
    last = int(file.read_text()) if file.exists() else 0
    number = max(last + 1, time.time_ns())
    replace_file(file, str(number).encode())
    return number


@contextlib.contextmanager
def _learner(config: RunConfig, folder: RunFolder, crew: Crew) -> Iterator[tuple[Any, Any]]:
    """A learner, where the GPU is or else here; and who keeps the folder for it, where it is elsewhere."""
    here = ray.get_runtime_context().get_node_id()
    share = config.ray.learner_gpu if crew.gpu else 0.0
    far = share > 0 and not _node_has_gpu(here)
    stays = NodeAffinitySchedulingStrategy(here, soft=False)
    keeper = None
    if far:
        keeper = _remote(**_name("keeper", crew), num_cpus=0, max_restarts=3, scheduling_strategy=stays)(Keeper).remote(
            folder.path.resolve()
        )
    learner = _remote(
        **_name("learner", crew),
        num_cpus=0,
        concurrency_groups={"life": 1},
        num_gpus=share,
        scheduling_strategy="DEFAULT" if far else stays,
        runtime_env={"env_vars": device(share)},
    )(Learner).remote()
    try:
        with folder.held() if far else contextlib.nullcontext():
            yield learner, keeper
    finally:
        for actor in filter(None, (learner, keeper)):
            with contextlib.suppress(exceptions.RayError):
                ray.kill(actor)


def _name(role: str, crew: Crew) -> dict[str, str]:
    """By which the next driver finds, and ends, whom this one leaves when it is killed."""
    return {"name": f"{role}-{secrets.token_hex(8)}", "namespace": crew.space}


def _node_has_gpu(node: str) -> bool:
    found = [entry for entry in ray.nodes() if entry["NodeID"] == node]
    return bool(found) and found[0]["Resources"].get("GPU", 0) > 0


def _await(folder: RunFolder, question: Any, look: Callable[[], None]) -> Finished:
    """Waits for a learner's end; hands on what asks the run to stop."""
    with stopping(folder, None) as stop:
        while not ray.wait([question], timeout=LOOK_SECONDS)[0]:
            if stop.asked:
                folder.stop_file.touch()
            look()
    finished: Finished = answer_of(question)
    return finished


class _Desk:
    """What the learner's journal says, for every sink that the settings ask for."""

    name = "the desk"

    def __init__(self, sinks: Fanout) -> None:
        self._sinks = sinks
        self.state: dict[str, Any] = {}

    def open(self) -> bool:
        """It goes on where it was."""
        return False

    def send(self, records: list[dict[str, Any]]) -> None:
        """To the sinks, as reports."""
        for record in records:
            report = report_of(record)
            if report is not None:
                self._sinks.emit(report)

    def close(self) -> None:
        """The sinks are closed by who made them."""


@contextlib.contextmanager
def _shown(config: RunConfig, folder: RunFolder, root: Path, quiet: bool) -> Iterator[None]:
    """Whatever the learner reports is shown and sent from here, inside."""
    sinks = Fanout([])
    add_sinks(sinks, config, folder, root, quiet, sends=True)
    place = folder.path / "ray-desk.json"
    desk = Follower(folder.metrics_file, place, _Desk(sinks), every_seconds=SHOW_SECONDS)
    try:
        yield
    finally:
        desk.close()
        sinks.close()
