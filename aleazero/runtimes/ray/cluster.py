"""A Ray cluster to run on: one that is there, or one of the run's own that ends with it. What is wrong is said at once.

Knows how to reach a cluster and what it has; not what is run there.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import socket
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import ray
from ray import exceptions
from ray._private.services import get_ray_address_from_environment
from ray._private.utils import get_dashboard_dependency_error

from aleazero import __version__
from aleazero.core.devices import cores
from aleazero.core.errors import AleaError, ConfigError
from aleazero.ray_settings import RayConfig

logger = logging.getLogger(__name__)

REACH_SECONDS = 3.0  # for a port to answer
SPEAK_SECONDS = 10.0  # for the first word of who is there, on a busy machine
_SETTINGS_FRAME = b"\0\0\0\4\0\0\0\0\0"  # of HTTP/2, with none in it
SMALL_STORE = 0.1  # GB, of the small mode
LEAST_STORE_SLABS = 8  # that an object store must have room for
LABEL = "aleazero"  # of a machine in a cluster: the version that it runs


class ClusterError(AleaError):
    """A Ray cluster cannot be reached, or has not got what a run needs."""


@contextlib.contextmanager
def connected(settings: RayConfig) -> Iterator[None]:
    """A cluster, inside."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    quietly: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    own = settings.local or not settings.address
    try:
        address = "local" if own else settings.address
        if address == "auto":
            address = get_ray_address_from_environment(address, None)
        if not own:
            greet(address)
        with warnings.catch_warnings():
            # JAX warns of forks; what Ray forks becomes another program at once.
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            ray.init(address=address, **(own_cluster(settings) if own else {}), **quietly)
    except Exception as error:
        raise ClusterError(why_not(settings, error)) from error
    try:
        alive = [node for node in ray.nodes() if node["Alive"]]
        check_machines(settings.address, [(node["NodeManagerAddress"], node["Labels"].get(LABEL)) for node in alive])
        yield
    finally:
        ray.shutdown()


def has_page() -> bool:
    """Whether Ray's own page, the dashboard, is installed: it takes more packages than Ray itself."""
    return get_dashboard_dependency_error() is None


def token_file() -> Path:
    """Where this user's token lies; all machines of a cluster must have the same."""
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")


def has_token() -> bool:
    """Whether there is one."""
    file = token_file()
    return bool(os.environ.get("RAY_AUTH_TOKEN")) or (file.is_file() and bool(file.read_text().strip()))


def own_cluster(settings: RayConfig) -> dict[str, Any]:
    """What a cluster of the run's own is started with."""
    told: dict[str, Any] = {"include_dashboard": not settings.local and has_page()}
    if not settings.local and not has_page():
        logger.info("Ray's page is not installed, so there is none: pip install 'ray[default]'")
    told["num_cpus"] = max(cores(), settings.workers)
    store = settings.object_store_gb or (SMALL_STORE if settings.local else 0.0)
    if store:
        told["object_store_memory"] = int(store * 1e9)
    if settings.spill_dir:
        folder = Path(settings.spill_dir)
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise ConfigError(f"ray.spill_dir is {settings.spill_dir!r}; it must be a folder that can be written to")
        told["object_spilling_directory"] = str(folder)
    return told


def reach(address: str) -> None:
    """Raises unless something answers at HOST:PORT."""
    host, _, port = address.rpartition(":")
    if not (port.isdecimal() and 0 < int(port) < 2**16):
        raise ConfigError(f"ray.address is {address!r}; write auto, or HOST:PORT as alea ray head prints it")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except OSError as error:
        raise ClusterError(
            f"nothing answers at {address} ({error.strerror or error}): is the head running there (alea ray head), and "
            f"does its firewall let port {port} in?"
        ) from error


def _speaks(address: str) -> bool:
    """Whether HTTP/2 is spoken at HOST:PORT, as every Ray cluster does: Ray would ask a Redis for 40 seconds."""
    if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
        return True  # enciphered: Ray has to find out
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), SPEAK_SECONDS) as link:
        link.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS_FRAME)
        return link.recv(9, socket.MSG_WAITALL)[3:4] == _SETTINGS_FRAME[3:4]
    return False


def greet(address: str) -> None:
    """Raises unless a cluster at HOST:PORT takes our token and runs our versions. Ray itself would try for long."""
    reach(address)
    stranger = (
        f"what answers at {address} is no Ray cluster: Redis often has 6379; is the address the one that alea ray head "
        "has printed?"
    )
    if not _speaks(address):
        raise ClusterError(stranger)
    from ray._common.usage.usage_lib import get_cluster_metadata
    from ray._raylet import GcsClient  # type: ignore[attr-defined]
    from ray.core.generated.gcs_pb2 import GcsNodeInfo  # type: ignore[attr-defined]

    try:
        client = GcsClient(address=address)
        told = get_cluster_metadata(client)
        nodes = client.get_all_node_info().values()
    except exceptions.AuthenticationError as error:
        raise ClusterError(
            f"the Ray cluster at {address!r} does not take this machine's token: copy {token_file()} from the head"
        ) from error
    except Exception as error:  # whatever Ray makes of what another program says
        raise ClusterError(f"{stranger} ({type(error).__name__}: {str(error)[:200]})") from error
    problem = version_problem(address, told or {})
    if problem:
        raise ClusterError(problem)
    alive = [node for node in nodes if node.state == GcsNodeInfo.ALIVE]
    check_machines(address, [(node.node_manager_address, node.labels.get(LABEL)) for node in alive])


def version_problem(address: str, told: dict[str, Any]) -> str | None:
    """What is wrong with the versions that a cluster tells of itself; None where nothing is."""
    ours = {"ray_version": ray.__version__, "python_version": platform.python_version()}
    if all(told.get(name, own) == own for name, own in ours.items()):
        return None
    return (
        f"the Ray cluster at {address!r} runs another version: Ray {told.get('ray_version')} on Python "
        f"{told.get('python_version')} there, Ray {ours['ray_version']} on Python {ours['python_version']} here; "
        "install the same on every machine"
    )


def check_machines(address: str, machines: Iterable[tuple[str, str | None]]) -> None:
    """Raises where a machine of a cluster, given by its IP and its version of AleaZero, runs another one than ours."""
    others = [f"{ip} ({version})" for ip, version in machines if version not in (None, __version__)]
    if others:
        raise ClusterError(
            f"machines of the Ray cluster at {address!r} run another version of AleaZero than this one "
            f"({__version__}): {', '.join(others)}; install the same on every machine, and join again"
        )


def why_not(settings: RayConfig, error: Exception) -> str:
    """What to do about a cluster that could not be had."""
    if isinstance(error, AleaError):
        return str(error)
    text = str(error).strip()
    first = text.partition("\n")[0][:300]
    where = f"the Ray cluster at {settings.address!r}" if settings.address and not settings.local else "Ray"
    if "Version mismatch" in text:
        said = " ".join(text.split())[:500]
        return (
            f"{where} runs another version than this process (Ray {ray.__version__}, Python "
            f"{platform.python_version()}): install the same on every machine. {said}"
        )
    if "token" in text.lower() or "Unauthenticated" in text or type(error).__name__ == "AuthenticationError":
        return f"{where} does not take this machine's token: copy ~/.ray/auth_token from the head ({first})"
    if isinstance(error, ConnectionError):
        return f"{where} cannot be found: start one with alea ray head, or leave ray.address out ({first})"
    if "object_store_memory" in text or "object store" in text.lower():
        return f"Ray cannot have an object store of {settings.object_store_gb} GB (ray.object_store_gb): {first}"
    return f"{where} cannot be used: {first}"


def count_players(settings: RayConfig) -> int:
    """Actors that play: as many as the settings say, or the cluster's cores less two."""
    if settings.workers or settings.lock_step:
        return settings.workers or 1
    return max(int(ray.cluster_resources().get("CPU", 1)) - 2, 1)


def has_gpu(settings: RayConfig) -> bool:
    """Whether the run uses a GPU of the machines that are alive; raises where it should and cannot."""
    if settings.gpu == "no":
        return False
    there = ray.cluster_resources().get("GPU", 0.0)
    needed = settings.learner_gpu + (settings.inference_gpu if settings.inference == "server" else 0.0)
    if settings.gpu == "yes" and not there >= needed > 0:
        raise ClusterError(
            f"ray.gpu is 'yes', and the cluster has {there:g} GPUs, of which the run would take {needed:g} "
            "(ray.learner_gpu, ray.inference_gpu): start their machine with alea ray worker --gpus 1, change these "
            "shares, or set ray.gpu to auto"
        )
    return there >= needed > 0


def check_store(slab_bytes: int, players: int) -> None:
    """Raises where the object stores have no room for a few slabs of every player."""
    there = ray.cluster_resources().get("object_store_memory", 0.0)
    needed = slab_bytes * players * LEAST_STORE_SLABS
    if there < needed:
        raise ClusterError(
            f"the cluster's object store has {there / 1e9:.2f} GB; {players} players need {needed / 1e9:.2f} GB: raise "
            "ray.object_store_gb (or alea ray head --object-store-gb), or lower selfplay.num_games"
        )
