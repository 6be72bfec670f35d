"""What is wrong with a cluster, in words; no cluster is needed for that."""

from __future__ import annotations

import dataclasses
import platform
import socket

import pytest
import ray

from aleazero.core.errors import ConfigError
from aleazero.ray_settings import RayConfig
from aleazero.runtimes.ray import cluster
from aleazero.runtimes.ray.cluster import ClusterError, check_store, count_players, has_gpu, reach, version_problem
from aleazero.runtimes.ray.nodes import Offer

HERE = {"ray_version": ray.__version__, "python_version": platform.python_version()}


def test_another_version_is_named() -> None:
    assert version_problem("a:1", HERE) is None
    assert version_problem("a:1", {}) is None
    said = version_problem("a:1", {**HERE, "ray_version": "2.1.0"})
    assert said is not None
    assert "Ray 2.1.0" in said
    assert f"Ray {ray.__version__}" in said


def test_a_port_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        reach(f"127.0.0.1:{port}")
    with pytest.raises(ClusterError, match=f"nothing answers at 127.0.0.1:{port}.*firewall let port {port} in"):
        reach(f"127.0.0.1:{port}")
    with pytest.raises(ConfigError, match="write auto, or HOST:PORT"):
        reach("somewhere")


@pytest.fixture
def resources(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What the cluster says it has."""
    found = {"CPU": 8.0, "object_store_memory": 1e9}
    monkeypatch.setattr(cluster.ray, "cluster_resources", lambda: found)
    return found


def test_as_many_players_as_cores_less_two(resources: dict[str, float]) -> None:
    assert count_players(RayConfig()) == 6
    assert count_players(RayConfig(workers=3)) == 3
    assert count_players(RayConfig(lock_step=True)) == 1
    resources["CPU"] = 2.0
    assert count_players(RayConfig()) == 1


def test_a_gpu_that_is_asked_for_and_absent_is_named(resources: dict[str, float]) -> None:
    assert not has_gpu(RayConfig())
    with pytest.raises(ClusterError, match=r"ray\.gpu is 'yes', and the cluster has 0 GPUs"):
        has_gpu(RayConfig(gpu="yes"))
    resources["GPU"] = 1.0
    both = RayConfig(gpu="yes", inference="server")
    assert has_gpu(both)
    assert not has_gpu(dataclasses.replace(both, gpu="no"))
    assert not has_gpu(RayConfig(learner_gpu=2))


def test_an_object_store_that_is_too_small_is_named(resources: dict[str, float]) -> None:
    check_store(10_000_000, 12)
    with pytest.raises(ClusterError, match=r"has 1.00 GB; 13 players need 1.04 GB: raise ray.object_store_gb"):
        check_store(10_000_000, 13)


def test_all_that_is_wrong_with_an_offer_is_said() -> None:
    assert Offer().problems() == []
    assert len(Offer(cores=0, gpus=99, object_store_gb=0.01, ports="2-1").problems()) == 4
    assert Offer(ports="10001-10005").problems() == [
        "--worker-ports is '10001-10005'; every actor needs one: give ten at least"
    ]
    assert Offer(ip="10.0.0.1", cores=2, object_store_gb=1.5).arguments() == [
        *("--min-worker-port=10001", "--max-worker-port=10100", "--node-ip-address=10.0.0.1", "--num-cpus=2"),
        "--object-store-memory=1500000000",
    ]
