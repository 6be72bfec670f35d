"""Who takes part in a run beside its learner: actors that play, and the one that answers for the network.

They have names, in a namespace that only the run knows, and outlive their driver for `ray.linger_seconds`: the next
driver finds them, with what they have played and nobody has saved. Whoever does not fit its settings, and a learner
that is left, is ended before anybody is started: never do two sets play for a run. Knows who there is; not what they
do.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
import os
import secrets
import time
from collections.abc import Set
from typing import Any

import jax
import ray
from ray import exceptions

from aleazero import __version__
from aleazero.config import RunConfig
from aleazero.core.errors import AleaError
from aleazero.core.settings import to_toml
from aleazero.runs import RunFolder
from aleazero.runtimes.children import ONE_CORE, memory_share
from aleazero.runtimes.ray.cluster import has_gpu
from aleazero.runtimes.ray.inference import InferenceServer
from aleazero.runtimes.ray.player import Player
from aleazero.runtimes.ray.pulse import SILENCE_SECONDS

logger = logging.getLogger(__name__)

_remote: Any = ray.remote  # its types know fewer options than it has

FEW_ROWS = 128  # of a request to the inference server
END_SECONDS = 30.0  # for somebody to end
PAUSE_SECONDS = 0.1


class StillThere(AleaError):  # noqa: N818 - the name says what happened
    """Somebody of a driver before does not end."""


@dataclasses.dataclass(frozen=True)
class Crew:
    """Who takes part beside the learner; they outlive a learner, and a driver."""

    space: str  # the namespace of all their names
    players: list[Any]
    server: Any  # None: players ask their own networks
    gpu: bool  # whether the learner and the server have their shares of one
    server_name: str | None = None

    @property
    def asks(self) -> tuple[str, str] | None:
        """Where the server is found: its name and its namespace, for another one may have them later."""
        return None if self.server_name is None else (self.server_name, self.space)


def space_of(folder: RunFolder) -> str:
    """The run's namespace: by a secret in its folder and by where that is, so that a copy of a run is another run."""
    file = folder.path / "ray-crew"
    with contextlib.suppress(FileExistsError), file.open("x") as fresh:
        fresh.write(secrets.token_hex(16))
    return "alea-" + hashlib.sha256(f"{file.read_text()} {folder.path.resolve()}".encode()).hexdigest()[:32]


def start_crew(config: RunConfig, space: str, new: bool) -> Crew:
    """Finds those whom a driver before has left and who fit the settings, ends the others, starts whom it lacks."""
    settings, gpu, text = config.ray, has_gpu(config.ray), to_toml(config)
    fits = hashlib.sha256(f"{__version__} {gpu} {text}".encode()).hexdigest()[:16]
    names = [f"player-{number}-{fits}" for number in range(settings.workers)]
    name = f"inference-{fits}" if settings.inference == "server" else None
    found = dismiss(space, keep=_answering(space, {*names, *filter(None, [name])}))
    if found:
        logger.info("%d actors of a driver before are still there, and go on", len(found))
    stays = _stays(space)
    server = _start_server(config, text, gpu, stays | {"name": name}) if name else None
    actor = _remote(
        num_cpus=1,
        max_restarts=settings.restarts,
        max_task_retries=0,
        scheduling_strategy="SPREAD",
        concurrency_groups={"life": 1},
        runtime_env={"env_vars": _as_alone() if settings.lock_step else ONE_CORE},
    )(Player)
    first = 0 if new and settings.lock_step else None  # the games of a local run
    crew = Crew(space, [], server, gpu, name)
    # The server by name: a handle among the arguments of an actor that may be started again is not safe with Ray.
    crew.players.extend(
        actor.options(**stays, name=each).remote(text, settings.groups, first, crew.asks, settings.linger_seconds)
        for each in names
    )
    return crew


def regroup(crew: Crew, config: RunConfig) -> Crew:
    """The crew once its GPU may be gone: then the server begins again on the CPU, by the name that players know.

    Raises where the settings ask for a GPU.
    """
    if not crew.gpu or has_gpu(config.ray):
        return crew
    logger.warning("the cluster has no GPU for the run any more: it goes on on the CPU")
    server = None
    if crew.server_name is not None:
        dismiss(crew.space, keep=_named(crew.space) - {crew.server_name})
        server = _start_server(config, to_toml(config), False, _stays(crew.space) | {"name": crew.server_name})
    return dataclasses.replace(crew, server=server, gpu=False)


def _stays(space: str) -> dict[str, Any]:
    """Of actors that outlive their driver."""
    return {"namespace": space, "lifetime": "detached", "get_if_exists": True}


def _start_server(config: RunConfig, text: str, gpu: bool, stays: dict[str, Any]) -> Any:
    settings = config.ray
    rows = config.selfplay.num_games * config.search.in_flight
    if rows < FEW_ROWS:
        logger.warning(
            "a request to the inference server has %d rows: with fewer than %d it spends its time on requests; raise "
            "selfplay.num_games",
            rows,
            FEW_ROWS,
        )
    actor = _remote(
        num_cpus=0,
        num_gpus=settings.inference_gpu if gpu else 0,
        max_restarts=settings.restarts,
        max_task_retries=0,
        runtime_env={"env_vars": device(settings.inference_gpu if gpu else 0.0)},
    )(InferenceServer)
    return actor.options(**stays).remote(
        text, settings.inference_rows, settings.inference_wait_ms, settings.linger_seconds
    )


def _as_alone() -> dict[str, str]:
    """The environment of a player that spreads its games over cores as a local run here would.

    A product of fewer rows may have other last bits.
    """
    spread = f"--xla_force_host_platform_device_count={len(jax.local_devices(backend='cpu'))}"
    return {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {spread}".strip()}


def device(gpu: float) -> dict[str, str]:
    """As much of a GPU's memory as of the GPU, for JAX would take most of it; or the CPU."""
    return memory_share(0.9 * min(gpu, 1.0)) if gpu else {"JAX_PLATFORMS": "cpu"}


def dismiss(space: str, keep: Set[str] = frozenset()) -> set[str]:
    """Ends everybody of a run but some; who of those is there."""
    for name in _named(space) - keep:
        with contextlib.suppress(ValueError, exceptions.RayError):  # gone meanwhile
            ray.kill(ray.get_actor(name, space))
    until = time.monotonic() + END_SECONDS
    while left := _named(space) - keep:
        if time.monotonic() > until:
            raise StillThere(f"actors of this run's last driver do not end: {', '.join(sorted(left))}")
        time.sleep(PAUSE_SECONDS)
    return _named(space) & keep


def _answering(space: str, names: set[str]) -> set[str]:
    """Who of them is there, and does not hang."""
    asked: dict[Any, str] = {}
    for name in names & _named(space):
        with contextlib.suppress(ValueError):  # gone meanwhile
            asked[ray.get_actor(name, space).alive.remote()] = name
    ready = ray.wait(list(asked), num_returns=len(asked), timeout=SILENCE_SECONDS)[0] if asked else []
    found = set()
    for question in ready:
        with contextlib.suppress(exceptions.RayError):  # an answer that is an error is none
            ray.get(question)
            found.add(asked[question])
    return found


def _named(space: str) -> set[str]:
    told: Any = ray.util.list_named_actors(all_namespaces=True)
    return {each["name"] for each in told if each["namespace"] == space}
