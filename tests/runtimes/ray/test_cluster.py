"""What is wrong with a cluster, in words; no cluster is needed for that."""

from __future__ import annotations

import dataclasses
import platform
import socket
import socketserver
import threading

import pytest
import ray

from aleazero import __version__
from aleazero.core.errors import ConfigError
from aleazero.ray_settings import RayConfig
from aleazero.runtimes.ray import cluster
from aleazero.runtimes.ray.cluster import (
    ClusterError,
    check_machines,
    check_store,
    connected,
    count_players,
    has_gpu,
    reach,
    version_problem,
)
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
    for wrong in ("somewhere", "127.0.0.1:70000", "127.0.0.1:0"):
        with pytest.raises(ConfigError, match="write auto, or HOST:PORT"):
            reach(wrong)


def test_another_program_than_ray_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Redis answers; also where `auto` finds it."""

    class Stranger(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(100)
            self.request.sendall(b"-ERR unknown command 'PRI'\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
        for address in (f"127.0.0.1:{port}", "auto"):
            with (
                pytest.raises(ClusterError, match=f"what answers at .*:{port} is no Ray cluster"),
                connected(RayConfig(address=address)),
            ):
                pass
        server.shutdown()


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
    for wrong in (RayConfig(gpu="yes", learner_gpu=2), RayConfig(gpu="yes", learner_gpu=0)):
        with pytest.raises(ClusterError, match=rf"has 1 GPUs, of which the run would take {wrong.learner_gpu:g}"):
            has_gpu(wrong)


def test_an_object_store_that_is_too_small_is_named(resources: dict[str, float]) -> None:
    check_store(10_000_000, 12)
    with pytest.raises(ClusterError, match=r"has 1.00 GB; 13 players need 1.04 GB: raise ray.object_store_gb"):
        check_store(10_000_000, 13)


def test_all_that_is_wrong_with_an_offer_is_said() -> None:
    assert Offer().problems() == []
    assert len(Offer(cores=0, gpus=99, object_store_gb=0.01, ports="2-1").problems()) == 4
    assert Offer(ports="10001-10005").problems() == [
        "--worker-ports is '10001-10005'; Ray has some, every actor needs one: give 20 at least"
    ]


def test_all_ports_of_a_machine_lie_in_its_range() -> None:
    said = dict(word[2:].split("=", 1) for word in Offer(ip="10.0.0.1", cores=2, object_store_gb=1.5).arguments())
    ports = [int(said.pop(name)) for name in list(said) if name.endswith("-port")]
    assert len(set(ports)) == len(ports) >= 8
    assert (min(ports), max(ports)) == (10001, 10100)
    assert said == {
        "labels": f"aleazero={__version__}",
        "node-ip-address": "10.0.0.1",
        "num-cpus": "2",
        "object-store-memory": "1500000000",
    }


def test_a_machine_with_another_version_of_the_package_is_named() -> None:
    check_machines("a:1", [("10.0.0.1", __version__), ("10.0.0.2", None)])  # one of them is not ours to know
    with pytest.raises(ClusterError, match=r"another version of AleaZero .*: 10\.0\.0\.3 \(0\.0\.1\)"):
        check_machines("a:1", [("10.0.0.1", __version__), ("10.0.0.3", "0.0.1")])


@pytest.mark.parametrize(
    ("local", "installed", "page"), [(False, True, True), (False, False, False), (True, True, False)]
)
def test_a_cluster_has_a_page_where_one_is_installed(
    local: bool, installed: bool, page: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "has_page", lambda: installed)
    assert cluster.own_cluster(RayConfig(local=local))["include_dashboard"] is page
