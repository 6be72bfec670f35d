"""This machine's part in a Ray cluster: the head or a worker, as a process in the background that can be ended again.

Everything that can be known before is checked before, and all of it is said at once. Only what was started here is ever
ended: a record of each lies in a folder. Knows Ray's command line; not what runs on the cluster.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ray._private.utils import get_ray_client_dependency_error

from aleazero import __version__
from aleazero.core.errors import ConfigError
from aleazero.runtimes.guard import end_all
from aleazero.runtimes.ray.cluster import LABEL, ClusterError, greet, has_page, has_token, token_file

START_SECONDS = 60.0
END_SECONDS = 3.0  # Ray would wait half a minute for its neighbours
LEAST_PORTS = 20
_STARTED = "Ray runtime started"
_CLIENT = "ray-client-server-port"  # only where Ray's client is installed: then it would take one of ours
_PORTS = (  # of Ray itself, the first of the range: so that a firewall has to let in nothing else
    "object-manager-port", "node-manager-port", "runtime-env-agent-port", "metrics-export-port",
    "dashboard-agent-listen-port", "dashboard-agent-grpc-port", _CLIENT,
)  # fmt: skip
_LEAST_STORE_GB = 0.08
_SETTINGS = {  # a machine that is gone is noticed after about eight seconds
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_period_ms": "2000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_AUTH_MODE": "token",
}


@dataclasses.dataclass(frozen=True)
class Offer:
    """What a machine gives to a cluster; None: what it has."""

    ip: str | None = None
    cores: int | None = None
    gpus: int | None = None
    object_store_gb: float | None = None
    spill_dir: Path | None = None
    ports: str = "10001-10100"  # of its workers, and of Ray's own parts

    def problems(self) -> list[str]:
        """What is wrong with it, on this machine."""
        found = []
        if self.cores is not None and self.cores < 1:
            found.append(f"--cores is {self.cores}; it must be at least 1")
        if self.gpus is not None and self.gpus > (there := count_gpus()):
            found.append(f"--gpus is {self.gpus}; this machine has {there} (looked for: /dev/nvidia0 and so on)")
        if self.object_store_gb is not None and self.object_store_gb < _LEAST_STORE_GB:
            found.append(f"--object-store-gb is {self.object_store_gb}; Ray needs {_LEAST_STORE_GB} at least")
        if self.spill_dir is not None and not (self.spill_dir.is_dir() and os.access(self.spill_dir, os.W_OK)):
            found.append(f"--spill-dir is {self.spill_dir}; it must be a folder that can be written to")
        if self.range is None:
            found.append(f"--worker-ports is {self.ports!r}; write FIRST-LAST, as in 10001-10100")
        elif self.range[1] - self.range[0] + 1 < LEAST_PORTS:
            found.append(
                f"--worker-ports is {self.ports!r}; Ray has some, every actor needs one: give {LEAST_PORTS} at least"
            )
        return found

    @property
    def range(self) -> tuple[int, int] | None:
        """The first and the last port."""
        found = re.fullmatch(r"(\d{1,5})-(\d{1,5})", self.ports)
        ports = (int(found[1]), int(found[2])) if found else (0, 0)
        return ports if 1024 <= ports[0] <= ports[1] < 2**16 else None

    def _own_ports(self) -> dict[str, int]:
        """Of Ray's own parts, by the option that says so."""
        own = [name for name in _PORTS if name != _CLIENT or get_ray_client_dependency_error() is None]
        return {name: self.range[0] + place for place, name in enumerate(own)} if self.range else {}

    def taken(self) -> list[str]:
        """What is wrong with it because others have its ports: those for actors Ray chooses itself."""
        taken = [str(port) for port in self._own_ports().values() if not _free(port)]
        if not taken:
            return []
        return [
            f"--worker-ports is {self.ports!r}, and of these {', '.join(taken)} are taken: take another range, as in "
            "--worker-ports 11001-11100, or stop who has them (alea ray stop)"
        ]

    def arguments(self) -> list[str]:
        """For Ray's command line."""
        assert self.range is not None
        first, last = self.range
        said = [f"--{name}={port}" for name, port in self._own_ports().items()]
        said += [f"--min-worker-port={first + len(_PORTS)}", f"--max-worker-port={last}"]
        said += [f"--labels={LABEL}={__version__}"]
        said += [f"--node-ip-address={self.ip}"] if self.ip else []
        said += [f"--num-cpus={self.cores}"] if self.cores is not None else []
        said += [f"--num-gpus={self.gpus}"] if self.gpus is not None else []
        said += [f"--object-store-memory={int(self.object_store_gb * 1e9)}"] if self.object_store_gb else []
        said += [f"--object-spilling-directory={self.spill_dir}"] if self.spill_dir else []
        return said


@dataclasses.dataclass(frozen=True)
class Node:
    """What was started on this machine."""

    role: str  # head or worker
    pid: int  # of its process group
    address: str  # of the head
    log: str
    dashboard: str = ""  # empty: it has none


def count_gpus() -> int:
    """NVIDIA GPUs of this machine."""
    return sum(re.fullmatch(r"nvidia\d+", path.name) is not None for path in Path("/dev").glob("nvidia*"))


def need_token(make: bool) -> Path:
    """The token's file; a head makes one where there is none."""
    file = token_file()
    if has_token():
        return file
    if not make:
        raise ClusterError(
            f"this machine has no token of the cluster: copy {file} from the head to the same place here"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(secrets.token_hex(32))
    return file


def start_head(folder: Path, port: int, dashboard: tuple[str, int], offer: Offer) -> Node:
    """Starts a cluster; `dashboard` is where Ray's page listens."""
    problems = [*offer.problems(), *offer.taken()]
    for name, number, hint in (
        ("--port", port, "Redis often has 6379: take another, as in --port 6380"),
        ("--dashboard-port", dashboard[1], "take another, or stop who has it"),
    ):
        if not 0 < number < 2**16:
            problems.append(f"{name} is {number}; it must be from 1 to 65535")
        elif not _free(number):
            problems.append(f"{name} is {number}, which is taken: {hint}")
    if problems:
        raise ConfigError("\n".join(problems))
    need_token(make=True)
    ip = offer.ip or own_ip()
    arguments = ["--head", f"--port={port}", f"--dashboard-host={dashboard[0]}", f"--dashboard-port={dashboard[1]}"]
    page = f"http://{dashboard[0]}:{dashboard[1]}" if has_page() else ""
    arguments.append(f"--include-dashboard={bool(page)}")
    return _start(folder, "head", f"{ip}:{port}", [*arguments, *offer.arguments()], page)


def join(folder: Path, address: str, offer: Offer) -> Node:
    """Joins a cluster."""
    problems = [*offer.problems(), *offer.taken()]
    if problems:
        raise ConfigError("\n".join(problems))
    need_token(make=False)
    greet(address)
    return _start(folder, "worker", address, [f"--address={address}", *offer.arguments()])


def own_ip() -> str:
    """This machine's address on the network, as far as it can be known; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "127.0.0.1"


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _start(folder: Path, role: str, address: str, arguments: Sequence[str], dashboard: str = "") -> Node:
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{role}-{address.replace(':', '-')}.log"
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats", *arguments]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, **_SETTINGS},
            start_new_session=True,
        )
    node = Node(role, process.pid, address, str(log), dashboard)
    record = folder / f"{role}-{process.pid}.json"
    record.write_text(json.dumps(dataclasses.asdict(node)))
    until = time.monotonic() + START_SECONDS
    while _STARTED not in (said := log.read_text(errors="replace")):
        if process.poll() is not None or time.monotonic() > until:
            end_all([process.pid], END_SECONDS)
            record.unlink(missing_ok=True)
            raise ClusterError(_why(role, address, said, log))
        time.sleep(0.1)
    return node


def _why(role: str, address: str, said: str, log: Path) -> str:
    """What a node that did not start has said, in a line."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said)
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    if "ersion mismatch" in plain:
        return f"the head at {address} runs another version of Ray or Python: install the same on both (log: {log})"
    if "token" in plain.lower() and role == "worker":
        return f"the head at {address} does not take this machine's token: copy {token_file()} from there (log: {log})"
    told = next((line for line in reversed(lines) if re.search(r"(error|fail|exception|unable)", line, re.I)), "")
    return f"the {role} did not start: {told or (lines[-1] if lines else 'it said nothing')} (log: {log})"


def stop_all(folder: Path) -> list[Node]:
    """Ends all that was started from here; who was ended."""
    ended = []
    for record in sorted(folder.glob("*-*.json")):
        with contextlib.suppress(ValueError, TypeError, OSError):
            node = Node(**json.loads(record.read_text()))
            if _ours(node.pid):
                end_all([node.pid], END_SECONDS)
                ended.append(node)
        record.unlink(missing_ok=True)
    return ended


def _ours(pid: int) -> bool:
    """Whether the process is still the one that was started, not another one with its number."""
    with contextlib.suppress(OSError):
        return b"ray.scripts.scripts" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
