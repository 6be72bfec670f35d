"""`alea ray head | worker | status | stop`: this machine's part in a Ray cluster, and who else is there."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aleazero.bench.profiles import data_root
from aleazero.cli.answer import DONE, print_json
from aleazero.cli.common import table
from aleazero.ray_settings import RayConfig
from aleazero.runtimes.desk import need_ray

if TYPE_CHECKING:
    from aleazero.runtimes.ray.nodes import Offer

NO_PAGE = "none; Ray's page is installed by: pip install 'ray[default]'"


def _folder() -> Path:
    return data_root() / "ray"


def offer(
    ip: str | None,
    cores: int | None,
    gpus: int | None,
    object_store_gb: float | None,
    spill_dir: Path | None,
    ports: str,
) -> Offer:
    """What this machine gives."""
    need_ray()
    from aleazero.runtimes.ray.nodes import Offer

    return Offer(ip, cores, gpus, object_store_gb, spill_dir, ports)


def head(*, port: int, dashboard_port: int, dashboard_bind: str, offer: Offer, as_json: bool) -> int:
    """Starts a cluster here."""
    from aleazero.runtimes.ray.cluster import token_file
    from aleazero.runtimes.ray.nodes import start_head

    node = start_head(_folder(), port, (dashboard_bind, dashboard_port), offer)
    join_with = f"alea ray worker --address {node.address}"
    if as_json:
        print_json({**dataclasses.asdict(node), "token_file": str(token_file()), "join": join_with})
        return DONE
    print(f"head:      {node.address}")
    print(f"dashboard: {node.dashboard or NO_PAGE}")
    print(f"token:     copy {token_file()} to the same place on every machine")
    print(f"join:      {join_with}")
    print("train:     alea train GAME --runtime ray --ray.address auto")
    return DONE


def worker(address: str, offer: Offer, as_json: bool) -> int:
    """Joins a cluster."""
    from aleazero.runtimes.ray.nodes import join

    node = join(_folder(), address, offer)
    if as_json:
        print_json(dataclasses.asdict(node))
    else:
        print(f"joined {node.address}; leave with: alea ray stop")
    return DONE


def status(address: str, as_json: bool) -> int:
    """Who is in a cluster."""
    need_ray()
    from aleazero.runtimes.ray.look import look

    found = look(RayConfig(address=address))
    if as_json:
        print_json(found)
        return DONE
    head = ["node", "state", "cores", "GPUs", "objects", "memory"]
    rows = [_row(node) for node in found["nodes"]]
    table([head, *rows])
    print(f"cores free: {found['free'].get('CPU', 0):g} of {found['all'].get('CPU', 0):g}; Ray {found['ray']}")
    return DONE


def _row(node: dict[str, Any]) -> list[str]:
    has = node["resources"]
    sizes = [f"{has.get(name, 0) / 1e9:.1f} GB" for name in ("object_store_memory", "memory")]
    return [
        node["ip"],
        "alive" if node["alive"] else "gone",
        f"{has.get('CPU', 0):g}",
        f"{has.get('GPU', 0):g}",
        *sizes,
    ]


def stop(as_json: bool) -> int:
    """Ends what was started here."""
    need_ray()
    from aleazero.runtimes.ray.nodes import stop_all

    ended = stop_all(_folder())
    if as_json:
        print_json({"stopped": [dataclasses.asdict(node) for node in ended]})
        return DONE
    for node in ended:
        print(f"stopped the {node.role} of {node.address}")
    if not ended:
        print("nothing of alea ray runs here")
    return DONE
