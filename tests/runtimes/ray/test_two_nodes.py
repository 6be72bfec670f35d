"""Two machines: a learner on the one with the GPU, whose run lies on the other; and a machine that is suddenly gone."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster

from aleazero.config import RunConfig
from aleazero.core.records import Trajectory
from aleazero.core.settings import to_toml
from aleazero.observe.jsonl import read_jsonl
from aleazero.runs import RunFolder, new_run
from aleazero.runtimes.local import LocalRun, TrainingStopped
from aleazero.runtimes.ray.cluster import ClusterError
from aleazero.runtimes.ray.crew import Crew, dismiss, regroup, start_crew
from aleazero.runtimes.ray.intake import Intake
from aleazero.runtimes.ray.player import Player
from aleazero.runtimes.ray.runtime import train_with
from aleazero.runtimes.ray.weights import StoredWeights
from aleazero.runtimes.start import Finished, Until
from tests.runtimes.ray.conftest import SmallCluster
from tests.runtimes.support import PATIENCE_SECONDS, Recorder, newest, shared_parts, tiny

CONFIG: RunConfig = tiny("runtime=ray", "replay.capacity_rows=4096")


class Sink:
    def __init__(self) -> None:
        self.sources: list[int] = []

    def add(self, slab: Trajectory, source: int = 0) -> None:
        assert np.asarray(slab.ended).shape == (8, 16)
        self.sources.append(source)


@pytest.fixture(scope="module")
def two_nodes(quick_actors: None, one_cluster: SmallCluster) -> Iterator[tuple[Cluster, Any]]:
    one_cluster.close()
    small = {"num_cpus": 2, "object_store_memory": 100_000_000}
    quickly = {"health_check_period_ms": 500, "health_check_timeout_ms": 1000, "health_check_failure_threshold": 3}
    cluster = Cluster(
        initialize_head=True,
        head_node_args={**small, "resources": {"here": 1}, "_system_config": quickly, "include_dashboard": False},
    )
    other = cluster.add_node(**small, resources={"there": 1}, num_gpus=1)  # so it says: nobody looks
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster, other
    ray.shutdown()
    cluster.shutdown()


def test_a_learner_where_the_gpu_is_keeps_its_run_where_the_driver_is(
    two_nodes: tuple[Cluster, Any], tmp_path: Path
) -> None:
    config = tiny("runtime=ray", "ray.workers=1", "total_rows=2560", "checkpoint.every_rows=1280")
    folder = new_run(tmp_path, "it", "")
    folder.write_config(config)
    crew = start_crew(config, "it", new=True)
    assert crew.gpu
    finished = train_with(crew, config, folder, tmp_path, None, Until(None, False))
    assert finished.status == "done"
    assert finished.folder == folder
    assert folder.owner() is None
    saved = newest(folder)
    assert saved.facts["rows"] == 2560
    assert [r["status"] for r in read_jsonl(folder.metrics_file) if r["kind"] == "run"] == ["started", "done"]
    assert (folder.path / "curves.svg").exists()
    # What is there is enough to go on from, exactly, anywhere.
    with contextlib.closing(LocalRun(shared_parts(config), folder, Recorder(), make_producer=make_intake(crew))) as run:
        run.resume(saved, "exact")
        assert run.replay.num_slabs == 20
    broken = tiny("runtime=ray", "ray.workers=1", "total_rows=1e8", "learn.learning_rate.start=1e30")
    folder.write_config(broken)
    with pytest.raises(TrainingStopped):
        train_with(crew, broken, folder, tmp_path, "exact", Until(None, False))
    last = [r for r in read_jsonl(folder.metrics_file) if r["kind"] == "run"][-1]
    assert last["status"] == "failed"  # the learner's last word is here, too
    for actor in crew.players:
        ray.kill(actor)


def make_intake(crew: Crew) -> Any:
    return lambda parts, sink, _: Intake(parts, sink, StoredWeights(0), crew.players)


def test_the_run_goes_on_when_a_machine_is_gone(two_nodes: tuple[Cluster, Any]) -> None:
    cluster, other = two_nodes
    actor = ray.remote(num_cpus=1, max_restarts=3, concurrency_groups={"life": 1})(Player)
    players = [
        actor.options(resources={where: 0.1}).remote(to_toml(CONFIG), 1, None) for where in ("here", "there")
    ]  # the second one cannot be anywhere else
    parts, sink, weights = shared_parts(CONFIG), Sink(), StoredWeights(0)
    weights.publish(1, jax.jit(parts.model.init)(jax.random.key(0)))
    intake = Intake(parts, sink, weights, players)

    def take(enough: Any, what: str) -> float:
        began = time.monotonic()
        while not enough():
            assert time.monotonic() - began < PATIENCE_SECONDS, f"no {what}"
            intake.step()
        return time.monotonic() - began

    take(lambda: len(set(sink.sources)) == 2, "slabs of both")
    cluster.remove_node(other, allow_graceful=False)
    before = len(sink.sources)
    assert take(lambda: len(sink.sources) >= before + 20, "slabs of the one that is left") < 60
    take(lambda: intake.report({"step": 0, "rows": 0, "seconds": 0.0}).restarts >= 1, "notice of its end")
    before = len(sink.sources)
    assert take(lambda: len(sink.sources) >= before + 20, "slabs of the one that is left") < 60
    facts = intake.facts()["ray"]
    assert facts["slabs"] == len(sink.sources) == sum(number for _, number, _ in facts["taken"])


@dataclasses.dataclass(frozen=True)
class Driven:
    """A run whose driver is in this process and whose others may be killed meanwhile."""

    crew: Crew
    folder: RunFolder
    driver: concurrent.futures.Future[Finished]

    def await_checkpoint(self, life: int, rows: int = 0) -> float:
        """Seconds until the learner of that life has saved more than so many rows."""
        began = time.monotonic()
        while True:
            reports = self.reports()
            starts = [place for place, report in enumerate(reports) if report["kind"] == "run"]
            after = reports[starts[-1] :] if len(starts) == life else []
            if any(report["kind"] == "checkpoint" and report["saved"] and report["rows"] > rows for report in after):
                return time.monotonic() - began
            assert not self.driver.done(), self.driver.exception()
            assert time.monotonic() - began < PATIENCE_SECONDS, "no checkpoint"
            time.sleep(0.1)

    def reports(self) -> list[dict[str, Any]]:
        return read_jsonl(self.folder.metrics_file) if self.folder.metrics_file.exists() else []


@contextlib.contextmanager
def driven(config: RunConfig, space: str, root: Path) -> Iterator[Driven]:
    """A run, inside; it is stopped at the end, and then has every slab once."""
    folder = new_run(root, "it", "")
    folder.write_config(config)
    crew = start_crew(config, space, new=True)
    assert crew.gpu
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        driver = pool.submit(train_with, crew, config, folder, root, None, Until(None, False))
        try:
            yield Driven(crew, folder, driver)
        finally:
            folder.stop_file.touch()
        assert driver.result().status == "stopped"
    facts = newest(folder).facts
    assert facts["ray"]["slabs"] * 128 == facts["rows"]
    assert facts["ray"]["slabs"] == sum(number for _, number, _ in facts["ray"]["taken"])  # each once
    dismiss(space)


SERVED = (
    *("runtime=ray", "ray.workers=1", "ray.inference=server", "search.kind=direct", "replay.capacity_rows=4096"),
    *("total_rows=1e8", "checkpoint.every_rows=1280"),
)


def machine_with_gpu(cluster: Cluster) -> Any:
    """There, or added where another test has taken it away."""
    found = next(iter(cluster.worker_nodes), None)
    return found or cluster.add_node(num_cpus=2, object_store_memory=100_000_000, num_gpus=1)


def test_the_run_goes_on_on_the_cpu_when_the_machine_with_the_gpu_is_gone(
    two_nodes: tuple[Cluster, Any], tmp_path: Path
) -> None:
    """The learner and the inference server are there, the driver is not."""
    cluster, _ = two_nodes
    lent, config = machine_with_gpu(cluster), tiny(*SERVED)
    with driven(config, "lost", tmp_path) as run:
        run.await_checkpoint(1)
        log = run.folder.log_file.read_text()
        for who in ("the learner", "the inference server"):
            assert f"{who} has a share of a GPU that JAX does not see" in log
        cluster.remove_node(lent, allow_graceful=False)
        assert run.await_checkpoint(2) < 60
    with pytest.raises(ClusterError, match="has 0 GPUs"):  # where one must be there it does not go on
        regroup(run.crew, dataclasses.replace(config, ray=dataclasses.replace(config.ray, gpu="yes")))


def test_the_learner_goes_on_when_only_the_machine_of_the_inference_server_is_gone(
    two_nodes: tuple[Cluster, Any], tmp_path: Path
) -> None:
    """It had the only GPU, of which the learner had no share: the server begins again on the CPU."""
    cluster, _ = two_nodes
    lent = machine_with_gpu(cluster)
    with driven(tiny(*SERVED, "ray.learner_gpu=0"), "unserved", tmp_path) as run:
        run.await_checkpoint(1)
        cluster.remove_node(lent, allow_graceful=False)
        rows = run.reports()[-1]["rows"] + 1280  # more than could be under way
        assert run.await_checkpoint(1, rows) < 60  # the same learner
    assert any(report["inference"] for report in run.reports() if report["kind"] == "ray" and report["rows"] > rows)
