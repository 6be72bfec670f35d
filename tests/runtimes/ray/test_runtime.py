"""A run on a real Ray cluster: what a local one learns, bit for bit in lock-step, and every slab once whoever dies."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import exceptions

from aleazero.config import RunConfig
from aleazero.core.errors import AleaError
from aleazero.core.settings import to_toml
from aleazero.observe.jsonl import read_jsonl
from aleazero.runs import RunFolder, new_run
from aleazero.runtimes.local import LocalRun
from aleazero.runtimes.ray import crew, pulse, runtime, watch
from aleazero.runtimes.ray.crew import Crew, dismiss, space_of, start_crew
from aleazero.runtimes.ray.intake import Intake
from aleazero.runtimes.ray.learner import Learner
from aleazero.runtimes.ray.player import Player
from aleazero.runtimes.ray.pulse import Heart
from aleazero.runtimes.ray.runtime import train_with
from aleazero.runtimes.ray.weights import StoredWeights
from aleazero.runtimes.start import Finished, Until
from tests.runtimes.support import PATIENCE_SECONDS, Recorder, StopAfter, make_run, newest, shared_parts, tiny

pytestmark = pytest.mark.usefixtures("small_cluster")


def player(config: RunConfig, source: int | None = None) -> Any:
    actor = ray.remote(num_cpus=1, max_restarts=3, concurrency_groups={"life": 1})(Player)
    return actor.remote(to_toml(config), config.ray.groups, source)


def fed(config: RunConfig, root: Path, players: list[Any], name: str = "ray") -> LocalRun:
    """A learner in this process."""
    weights = StoredWeights(0 if config.ray.lock_step else config.ray.sync_every)
    folder = RunFolder(root / name)
    if not folder.path.exists():
        folder = new_run(root, name, "")
        folder.write_config(config)
    return LocalRun(
        shared_parts(config), folder, Recorder(), root=root, weights=weights,
        make_producer=lambda parts, sink, _: Intake(parts, sink, weights, players),
    )  # fmt: skip


def eventually(happened: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + PATIENCE_SECONDS
    while not (found := happened()):
        assert time.monotonic() < end, f"no {what} within {PATIENCE_SECONDS} seconds"
        time.sleep(0.02)
    return found


def test_in_lock_step_it_learns_what_it_learns_locally(batches: list[str], tmp_path: Path) -> None:
    rows = "total_rows=1280"  # the ring goes round
    with contextlib.closing(make_run(tiny(rows), tmp_path, "local")) as local:
        local.train(StopAfter())
    wanted, batches[:] = list(batches), []
    config = tiny("runtime=ray", "ray.lock_step=true", rows)
    far = fed(config, tmp_path, [player(config, 0)])
    with contextlib.closing(far):
        far.train(StopAfter())
    assert len(wanted) == 20
    assert batches == wanted
    one, other = newest(far.folder), newest(local.folder)
    assert one.step == other.step
    for name in other.arrays:
        if not name.startswith("games"):
            assert one.arrays[name].tobytes() == other.arrays[name].tobytes(), name


def test_what_no_checkpoint_holds_is_taken_again_and_nothing_twice(tmp_path: Path) -> None:
    """A learner that begins again from its checkpoint gets from its players what another one had taken since."""
    config = tiny("runtime=ray", "ray.groups=2", "replay.capacity_rows=4096")
    players = [player(config), player(config)]
    with contextlib.closing(fed(config, tmp_path, players)) as first:
        first.train(StopAfter(6))  # ends with a checkpoint
        saved = newest(first.folder)
        eventually(lambda: first.producer.step() and first.producer.rows >= saved.facts["rows"] + 512, "slabs")
        taken = dict(taken_by(first))
    with contextlib.closing(fed(config, tmp_path, players)) as second:
        second.resume(saved, "exact")
        second.learner.publish()
        eventually(
            lambda: second.producer.step() and all(taken_by(second).get(s, 0) >= n for s, n in taken.items()),
            "the same",
        )
        assert isinstance(second.producer, Intake)
        assert second.producer.counts["taken"] * 128 == second.producer.rows - saved.facts["rows"]
        assert set(second.producer.counts) == {"taken"}
        assert second.producer.rows == 128 * sum(taken_by(second).values())  # each slab of each source, once


def taken_by(run: LocalRun) -> dict[int, int]:
    return {source: number for source, number, _ in run.producer.facts()["ray"]["taken"]}


class InThread:
    """A driver whose learner and players may be killed meanwhile."""

    def __init__(self, crew: Crew, config: RunConfig, folder: RunFolder, root: Path) -> None:
        self.found: Finished | BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(crew, config, folder, root), daemon=True)
        self._thread.start()

    def _run(self, crew: Crew, config: RunConfig, folder: RunFolder, root: Path) -> None:
        try:
            self.found = train_with(crew, config, folder, root, None, Until(None, False))
        except BaseException as error:
            self.found = error

    def finish(self) -> Finished:
        self._thread.join(PATIENCE_SECONDS)
        assert isinstance(self.found, Finished), self.found
        return self.found


def test_whoever_is_killed_or_hangs_is_replaced_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pulse, "BEAT_SECONDS", 0.5)  # the driver's, which is in this process
    monkeypatch.setattr(pulse, "SILENCE_SECONDS", 10.0)
    config = tiny(
        *("runtime=ray", "ray.workers=2", "replay.capacity_rows=4096", "total_rows=1e8", "checkpoint.every_rows=1280"),
        *("ray.inference=server", "search.kind=direct"),
    )
    folder = new_run(tmp_path, "it", "")
    folder.write_config(config)
    actors = start_crew(config, space_of(folder), new=True)
    driver = InThread(actors, config, folder, tmp_path)

    def reports(kind: str) -> list[dict[str, Any]]:
        with contextlib.suppress(AleaError):  # a learner that died before it had saved anything leaves none
            return [report for report in read_jsonl(folder.metrics_file) if report["kind"] == kind]
        return []

    def await_training(lives: int) -> int:
        """The process of the learner, once it has saved something."""
        eventually(lambda: len(reports("run")) == lives, "life of a learner")
        began = reports("run")[-1]["rows"]
        eventually(lambda: any(r["saved"] and r["rows"] > began for r in reports("checkpoint")), "checkpoint")
        return int(eventually(folder.owner, "learner"))

    os.kill(eventually(folder.owner, "learner"), signal.SIGKILL)  # before it has saved anything
    owner, killed = await_training(1), pid_of(actors.players[0])
    hanging = {actor: pid_of(actor) for actor in (actors.players[1], actors.server)}
    os.kill(killed, signal.SIGKILL)
    for process in (*hanging.values(), owner):
        os.kill(process, signal.SIGSTOP)
    await_training(2)
    for who in ("a player has not", "the inference server has not", "the learner is gone (it has not"):
        assert any(f"{who} answered for" in line for line in caplog.messages), who
    assert killed != pid_of(actors.players[0])
    assert not {pid_of(actor) for actor in hanging} & set(hanging.values())
    folder.stop_file.touch()
    assert driver.finish().status == "stopped"
    assert [report["status"] for report in reports("run")] == ["started", "resumed", "stopped"]
    assert reports("ray")[-1]["players"] == 2
    told = [report["inference"] for report in reports("ray") if report["inference"]]  # none while it was gone
    assert any(figures["latency_p99_ms"] > 0 for figures in told)
    facts = newest(folder).facts
    assert facts["ray"]["slabs"] * 128 == facts["rows"]
    assert facts["ray"]["slabs"] == sum(number for _, number, _ in facts["ray"]["taken"])  # each once
    dismiss(actors.space)


class Mortal:
    """A learner that notes its number, and dies."""

    def alive(self) -> int:
        return os.getpid()

    def train(self, task: Any, players: Any, server: Any, keeper: Any) -> None:
        with (task.folder / "numbers").open("a") as file:
            file.write(f"{task.number}\n")
        os._exit(1)


def test_every_learner_has_a_larger_number_also_where_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or else the weights of a dead one would answer for it."""
    monkeypatch.setattr(runtime, "Learner", Mortal)
    monkeypatch.setattr(runtime, "MOST_LEARNERS", 1)
    folder = new_run(tmp_path, "it", "")
    last = 2 * time.time_ns()
    (folder.path / "ray-learner").write_text(str(last))
    with pytest.raises(runtime.LearnerFailed, match="died 2 times"):
        train_with(Crew("mortal", [], None, gpu=False), tiny(), folder, tmp_path, None, Until(None, False))
    assert (folder.path / "numbers").read_text().split() == [str(last + 1), str(last + 2)]


def test_a_learner_does_not_wait_for_a_gpu_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "Learner", Mortal)
    monkeypatch.setattr(runtime, "MOST_LEARNERS", 1)
    folder, began = new_run(tmp_path, "it", ""), time.monotonic()
    with pytest.raises(runtime.LearnerFailed, match="died 2 times"):
        train_with(Crew("mortal", [], None, gpu=True), tiny(), folder, tmp_path, None, Until(None, False))
    assert time.monotonic() - began < 60
    assert len((folder.path / "numbers").read_text().split()) == 1  # the first was never there, the second on the CPU


def pid_of(actor: Any) -> int:
    """Of an actor that may just be coming back."""

    def ask() -> int | None:
        with contextlib.suppress(exceptions.RayActorError):
            found: int = ray.get(actor.alive.remote(), timeout=PATIENCE_SECONDS)
            return found
        return None

    return int(eventually(ask, "sign of life"))


def test_a_learner_that_ray_does_not_start_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "START_SECONDS", 0.5)
    learner = ray.remote(num_gpus=1, concurrency_groups={"life": 1})(Learner).remote()  # nobody has one
    eye, sign = watch.Watch(Crew("it", [], None, gpu=True)), pulse.Pulse(learner)

    def look() -> None:
        while True:
            eye.look(sign)

    with pytest.raises(
        watch.NobodyStarts, match=r"the learner has not started .*a GPU free for it \(ray.learner_gpu\)"
    ):
        look()
    ray.kill(learner)


def test_actors_wait_for_another_driver_and_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny("runtime=ray", "ray.workers=1", "replay.capacity_rows=4096")
    folder = new_run(tmp_path, "it", "")

    class Lonely:
        """An actor that nobody asks any more."""

        def __init__(self, linger_seconds: float) -> None:
            self._heart = Heart(linger_seconds)

        def alive(self) -> int:
            return self._heart.beat()

    first = start_crew(config, space_of(folder), new=True)
    pid = pid_of(first.players[0])
    leftover = ray.remote(num_cpus=0)(Lonely).options(name="learner-1", namespace=first.space).remote(300.0)
    ray.get(leftover.alive.remote())
    sign = pulse.Pulse(leftover)
    assert not sign.look()  # asked
    assert ray.wait([sign._question], timeout=PATIENCE_SECONDS)[0]
    time.sleep(0.2)
    monkeypatch.setattr(pulse, "SILENCE_SECONDS", 0.1)
    assert sign.look()
    assert not sign.hangs  # whoever looks late finds an answer: that was no silence
    monkeypatch.undo()
    again = start_crew(config, space_of(folder), new=False)  # as another driver would
    assert pid_of(again.players[0]) == pid
    with pytest.raises(exceptions.RayActorError):
        ray.get(leftover.alive.remote())
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(crew, "SILENCE_SECONDS", 1.0)
    other = start_crew(config, space_of(folder), new=False)  # the one that hangs is of no use
    assert pid_of(other.players[0]) != pid
    monkeypatch.undo()
    fits = start_crew(dataclasses.replace(config, seed=5), space_of(folder), new=False)  # the other one does not
    for actor in (first.players[0], other.players[0]):
        with pytest.raises(exceptions.RayActorError):
            ray.get(actor.alive.remote())
    dismiss(fits.space)
    lonely = ray.remote(num_cpus=0, max_restarts=3)(Lonely)
    lonely.options(name="lonely", namespace="x", lifetime="detached").remote(1.0)

    def there() -> bool:
        return {"name": "lonely", "namespace": "x"} in ray.util.list_named_actors(True)

    assert there()
    eventually(lambda: not there(), "end")
