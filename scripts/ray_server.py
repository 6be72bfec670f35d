"""The inference server under load: rows a second against rows a request, beside the network alone in the same run.

    python scripts/ray_server.py [--clients 4] [--seconds 10] [--rows 8,32,128,256] [--groups 2] [--out FILE]
Clients are processes of their own that send observations and wait for answers, `--groups` requests at a time each. The
network alone is the same compiled network on batches of the same padded size, with nobody who asks, before and after.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import ray

from aleazero.config import resolve
from aleazero.core.settings import to_toml
from aleazero.ray_settings import RayConfig
from aleazero.runtimes.children import ONE_CORE
from aleazero.runtimes.groups import far_parts_of
from aleazero.runtimes.ray.asker import lean
from aleazero.runtimes.ray.cluster import connected
from aleazero.runtimes.ray.inference import InferenceServer, Network


def observations(rows: int, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros and ones, as the game's are."""
    return np.random.default_rng(0).integers(0, 2, (rows, *shape)).astype(np.float32)


class Client:
    """Asks as fast as it is answered."""

    def __init__(self, server: Any, shape: tuple[int, ...]) -> None:
        self._server, self._shape = server, shape

    def load(self, rows: int, groups: int, seconds: float) -> list[float]:
        """Latencies in ms."""
        batch = lean(observations(rows, self._shape))
        end, found = time.monotonic() + seconds, []
        asked = {self._server.infer.remote((0, 1), batch): time.monotonic() for _ in range(groups)}
        while asked:
            ready, _ = ray.wait(list(asked), num_returns=1)
            ray.get(ready[0])
            now = time.monotonic()
            found.append((now - asked.pop(ready[0])) * 1000)
            if now < end:
                asked[self._server.infer.remote((0, 1), batch)] = now
        return found


def alone(config: str, leaves: list[np.ndarray], rows: int, seconds: float) -> float:
    """Rows a second of the network, on batches of so many rows."""
    network = Network(config)
    network.load((0, 1), leaves)
    shape = far_parts_of(config, 1).game.spec.observation_shape
    batch = [observations(rows, shape)]
    network.compute(batch)
    began, count = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        network.compute(batch)
        count += 1
    return count * rows / (time.monotonic() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--groups", type=int, default=2, help="requests that a client has under way")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rows", default="8,32,128,256")
    parser.add_argument("--most-rows", type=int, default=512)
    parser.add_argument("--wait-ms", type=float, default=2.0)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    sets = ["model.kind=mlp", "model.width=256", "model.blocks=6"]
    text = to_toml(resolve(given.game, preset="quick", assignments=sets))
    parts = far_parts_of(text, 1)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(parts.model.init)(jax.random.key(0)))]
    shape = parts.game.spec.observation_shape
    table = []
    with connected(RayConfig(local=True, workers=given.clients, object_store_gb=0.5)):
        server = ray.remote(num_cpus=0, runtime_env={"env_vars": {"JAX_PLATFORMS": "cpu"}})(InferenceServer).remote(
            text, given.most_rows, given.wait_ms
        )
        ray.get(server.load.remote((0, 1), [ray.put(leaves)]))
        make = ray.remote(num_cpus=1, runtime_env={"env_vars": ONE_CORE})(Client)
        clients = [make.remote(server, shape) for _ in range(given.clients)]
        for rows in map(int, given.rows.split(",")):
            ray.get([client.load.remote(rows, given.groups, 2.0) for client in clients])  # compiles
            joined = min(given.most_rows // rows, given.clients * given.groups) * rows or rows  # in one batch
            before = alone(text, leaves, joined, given.seconds / 3)
            ray.get(server.figures.remote())
            latencies = ray.get([client.load.remote(rows, given.groups, given.seconds) for client in clients])
            figures = ray.get(server.figures.remote())
            after = alone(text, leaves, joined, given.seconds / 3)
            network = statistics.mean([before, after])
            every = np.sort(np.concatenate(latencies))
            table.append(
                {
                    "rows_a_request": rows,
                    "rows_per_second": round(figures["rows_per_second"]),
                    "network_alone": round(network),
                    "share": round(figures["rows_per_second"] / network, 3),
                    "batch_rows": round(figures["batch_rows"], 1),
                    "fill": round(figures["batch_fill"], 3),
                    "p50_ms": round(float(np.quantile(every, 0.5)), 2),
                    "p99_ms": round(float(np.quantile(every, 0.99)), 2),
                }
            )
            print(json.dumps(table[-1]), file=sys.stderr, flush=True)
    print(json.dumps(table, indent=2))
    if given.out is not None:
        given.out.write_text(json.dumps(table, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
