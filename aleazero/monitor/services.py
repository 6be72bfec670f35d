"""Starting and stopping the desk's programs, and remembering which processes are ours.

A process is known by its number and the time it began, so that nobody else's is ever stopped. Knows programs only as
`programs` describes them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import logging
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from importlib import import_module
from typing import Any

from filelock import BaseFileLock, FileLock

from aleazero.core.errors import AleaError, MissingExtra
from aleazero.core.files import replace_file
from aleazero.monitor.programs import HOW_TO_GET, PORTS, Desk, Program, find_program
from aleazero.observe.endpoint import LOOPBACK, family_of, in_url

_log = logging.getLogger(__name__)

START_SECONDS = 30.0
STOP_SECONDS = 10.0
_TRIES = 100
_started: list[subprocess.Popen[bytes]] = []  # kept: Python would complain of a process that nobody holds


class MonitorError(AleaError):
    """A program of the desk does not start."""


@dataclasses.dataclass(frozen=True)
class Service:
    """One program of the desk, and how it stands."""

    name: str
    url: str | None  # None where it does not run
    said: str  # running already, started, stopped, or how to get it


def up(desk: Desk, ports: dict[str, int] | None = None) -> list[Service]:
    """Starts what is installed and does not run yet; Prometheus reads its settings again if it does."""
    wanted = {**PORTS, **(ports or {})}
    _psutil()  # before anything is started that nobody could stop without it
    try:
        desk.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MonitorError(f"{desk.folder} cannot be used: {error}; name another folder by --runs") from error
    with _alone(desk):
        return _up(desk, wanted)


def _alone(desk: Desk) -> BaseFileLock:
    """Return the lock that keeps two processes from starting the same program, of which one would be forgotten."""
    return FileLock(desk.folder / "monitor.lock")


def _up(desk: Desk, wanted: dict[str, int]) -> list[Service]:
    _forget_dead_targets(desk)
    known, found = _known(desk), []
    for name in PORTS:
        entry = known.get(name)
        if entry and _alive(entry):
            prometheus = (known.get("prometheus") or {}).get("url", "")
            find_program(name, desk, int(entry["port"]), prometheus)  # its files, as of now
            if name == "prometheus":
                os.kill(entry["pid"], signal.SIGHUP)
            found.append(Service(name, entry["url"], "runs already"))
            continue
        port = _free_port(desk.bind, wanted[name])
        prometheus = (known.get("prometheus") or {}).get("url", f"http://{LOOPBACK}:{PORTS['prometheus']}")
        program = find_program(name, desk, port, prometheus)
        if program is None:
            found.append(Service(name, None, f"is not installed: {HOW_TO_GET[name]}"))
            continue
        known[name] = _start(name, program, desk, port)
        _keep(desk, known)
        taken = "" if port == wanted[name] or not wanted[name] else f" (port {wanted[name]} is taken)"
        found.append(Service(name, known[name]["url"], f"started{taken}"))
    return found


def down(desk: Desk) -> list[Service]:
    """Stops what `up` has started; what is not there any more is no error."""
    if not desk.folder.is_dir():
        return []
    found = []
    with _alone(desk):
        for name, entry in _known(desk).items():
            if _alive(entry):
                _stop(entry)
                found.append(Service(name, None, "stopped"))
            else:
                found.append(Service(name, None, "had ended already"))
        (desk.folder / "monitor.json").unlink(missing_ok=True)
    return found


def _start(name: str, program: Program, desk: Desk, port: int) -> dict[str, Any]:
    log = desk.folder / f"{name}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            list(program.command),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **program.environment},
            cwd=desk.folder,
            start_new_session=True,  # Ctrl-C in the terminal that started it is not for it
        )
    _started.append(process)
    host = LOOPBACK if desk.bind in ("0.0.0.0", "") else in_url(desk.bind)
    url = f"http://{host}:{port}"
    end = time.monotonic() + START_SECONDS
    while not _answers(url + program.ready):
        code = process.poll()
        if code is not None or time.monotonic() > end:
            process.kill()
            process.wait()
            tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-5:])
            how = f"ended with code {code}" if code is not None else f"does not answer at {url}"
            raise MonitorError(f"{name} {how}; the end of {log}:\n{tail}")
        time.sleep(0.1)
    if process.poll() is not None:
        raise MonitorError(f"{name} ended with code {process.poll()}, and something else answers at {url}; see {log}")
    return {"pid": process.pid, "began": _psutil().Process(process.pid).create_time(), "port": port, "url": url}


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def _stop(entry: dict[str, Any]) -> None:
    psutil = _psutil()
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(entry["pid"])
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)


def _alive(entry: dict[str, Any]) -> bool:
    psutil = _psutil()
    try:
        process = psutil.Process(entry["pid"])
        same = abs(process.create_time() - entry["began"]) < 0.01
        return bool(same and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _free_port(bind: str, port: int) -> int:
    """The port, or the next free one; 0: any."""
    for number in range(port, port + _TRIES):
        with socket.socket(family_of(bind)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((bind, number))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
                raise MonitorError(f"cannot listen on {bind}: {error}; name an address of this machine") from error
            return int(probe.getsockname()[1])
    raise MonitorError(f"ports {port} to {port + _TRIES - 1} are all taken on {bind}")


def _forget_dead_targets(desk: Desk) -> None:
    """Targets of runs that were deleted; those of a run that was killed stay, and are what an alert is for."""
    for path in desk.targets.glob("*.json"):
        if not (desk.root / path.stem.removesuffix("~head") / "config.toml").exists():
            path.unlink(missing_ok=True)


def _known(desk: Desk) -> dict[str, dict[str, Any]]:
    try:
        known = json.loads((desk.folder / "monitor.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _keep(desk: Desk, known: dict[str, dict[str, Any]]) -> None:
    replace_file(desk.folder / "monitor.json", json.dumps(known, indent=1).encode() + b"\n")


def _psutil() -> Any:
    try:
        return import_module("psutil")
    except ImportError as error:
        raise MissingExtra("alea monitor", "psutil", "track") from error
