"""Who is in a Ray cluster, and what it has. Only looks."""

from __future__ import annotations

from typing import Any

import ray

from aleazero.ray_settings import RayConfig
from aleazero.runtimes.ray.cluster import connected


def look(settings: RayConfig) -> dict[str, Any]:
    """Machines and resources."""
    with connected(settings):
        nodes = [
            {"ip": node["NodeManagerAddress"], "alive": node["Alive"], "resources": node["Resources"]}
            for node in ray.nodes()
        ]
        return {
            "ray": ray.__version__,
            "nodes": nodes,
            "all": ray.cluster_resources(),
            "free": ray.available_resources(),
        }
