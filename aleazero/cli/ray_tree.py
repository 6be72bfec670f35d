"""`alea ray`, and the options by which `alea train` runs on Ray. Nothing heavy is imported for `--help`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from aleazero.cli.options import Json

ray_app = App(name="ray", help="A Ray cluster of machines that you own: start its head, join it, look at it, leave it.")

Runtime = Annotated[
    Literal["local", "ray", "rllib"] | None,
    Parameter(help="In this process, by actors of a Ray cluster, or by Ray's RLlib: PPO (runtime)."),
]
_FIELDS = ("address", "local", "workers", "inference")


@dataclasses.dataclass(frozen=True)
class OnRay:
    """How a run is laid out on Ray; all of it, and more, are settings of `ray` too."""

    address: Annotated[
        str | None, Parameter(help="auto, or HOST:PORT of a head; a cluster of the run's own if left out.")
    ] = None
    local: Annotated[
        Literal["true", "false"] | None, Parameter(help="true: a small cluster of the run's own, to try it.")
    ] = None
    workers: Annotated[int | None, Parameter(help="Actors that play; 0: the cluster's cores less two.")] = None
    inference: Annotated[
        Literal["local", "server"] | None, Parameter(help="A network in every actor, or one that answers for all.")
    ] = None

    def assignments(self, runtime: str | None) -> list[str]:
        """As settings."""
        given = [f"ray.{name}={value}" for name in _FIELDS if (value := getattr(self, name)) is not None]
        return given + ([f"runtime={runtime}"] if runtime is not None else [])


Gpus = Annotated[int | None, Parameter(help="GPUs to offer; those that are found if left out.")]
Cores = Annotated[int | None, Parameter(help="Cores to offer; all if left out.")]
StoreGb = Annotated[float | None, Parameter(help="Memory for objects, in GB; 30 % of the machine's if left out.")]
SpillDir = Annotated[Path | None, Parameter(help="Where objects go when that is full.")]
NodeIp = Annotated[str | None, Parameter(name="--ip", help="This machine's address, as the others see it.")]
Ports = Annotated[str, Parameter(help="FIRST-LAST: ports of this machine's workers.")]


@ray_app.command
def head(
    *,
    port: Annotated[int, Parameter(help="Where others join; another than 6379 where Redis has it.")] = 6379,
    dashboard_port: Annotated[int, Parameter(help="Of Ray's page.")] = 8265,
    dashboard_bind: Annotated[str, Parameter(help="Where the page listens; 0.0.0.0 for others too.")] = "127.0.0.1",
    ip: NodeIp = None,
    cores: Cores = None,
    gpus: Gpus = None,
    object_store_gb: StoreGb = None,
    spill_dir: SpillDir = None,
    worker_ports: Ports = "10001-10100",
    as_json: Json = False,
) -> int:
    """Start a cluster on this machine, in the background; prints how others join it."""
    from aleazero.cli import ray as command

    return command.head(
        port=port,
        dashboard_port=dashboard_port,
        dashboard_bind=dashboard_bind,
        offer=command.offer(ip, cores, gpus, object_store_gb, spill_dir, worker_ports),
        as_json=as_json,
    )


@ray_app.command
def worker(
    *,
    address: Annotated[str, Parameter(help="IP:PORT of the head, as it printed them.")],
    ip: NodeIp = None,
    cores: Cores = None,
    gpus: Gpus = None,
    object_store_gb: StoreGb = None,
    spill_dir: SpillDir = None,
    worker_ports: Ports = "10001-10100",
    as_json: Json = False,
) -> int:
    """Join a cluster with this machine, in the background."""
    from aleazero.cli import ray as command

    return command.worker(address, command.offer(ip, cores, gpus, object_store_gb, spill_dir, worker_ports), as_json)


@ray_app.command
def status(
    *,
    address: Annotated[str, Parameter(help="auto, or IP:PORT of a head.")] = "auto",
    as_json: Json = False,
) -> int:
    """Who is in a cluster, and what it has."""
    from aleazero.cli import ray as command

    return command.status(address, as_json)


@ray_app.command
def stop(*, as_json: Json = False) -> int:
    """End what alea ray head and alea ray worker have started on this machine."""
    from aleazero.cli import ray as command

    return command.stop(as_json)
