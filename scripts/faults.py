"""Faults, on purpose, in a real run on this machine: processes killed and frozen, Redis away and full. Nothing is lost.

    python scripts/faults.py [kills|away|frozen|full|small|all] [--kills 50] [--seconds N] [--seed 0] [--out FILE]
A head, a second worker and a witness take part. The witness sends slabs of its own and knows which of them were
acknowledged; in the end all of them must have been counted, once, and so must those of the other workers. The second
worker's clock is an hour fast, and its connections go through a proxy that can cut them. Exit code 1 where it takes
longer than 10 s to recover from an outage.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jax
import jax.numpy as jnp

from aleazero import checkpoint
from aleazero.assemble import Parts, build_parts
from aleazero.config import RunConfig
from aleazero.core.records import Trajectory
from aleazero.core.settings import Layer, build, parse_assignments, to_toml
from aleazero.runs import RunFolder
from aleazero.runtimes.redis.access import Token
from aleazero.runtimes.redis.home import Home
from aleazero.runtimes.redis.link import connect
from aleazero.runtimes.redis.look import look
from aleazero.runtimes.redis.stream import SlabSender
from aleazero.runtimes.slabs import SlabSchema

SETTINGS = (
    *("total_rows=1000000000", "model.kind=mlp", "model.width=16", "model.blocks=1", "search.kind=direct"),
    *("selfplay.num_games=16", "selfplay.moves_per_rollout=8", "replay.capacity_rows=4096", "replay.min_rows=256"),
    *("replay.rows_per_new_row=0.5", "learn.batch_size=64", "learn.updates_per_call=4"),
    *("evaluate.opponents=random", "evaluate.games=8", "evaluate.every_rows=20000"),
    *("checkpoint.every_rows=20000", "observe.every_seconds=1"),
)
ROLES = ("redis", "learner", "guest", "game", "eval", "head")
PATIENCE_SECONDS = 240.0
RECOVERY_SECONDS = 10.0  # from the return of Redis until all go on
BREATH_SECONDS = 5.0  # the oldest sign of life of somebody who takes part
CLOCK = """import time
real, real_ns = time.time, time.time_ns
time.time, time.time_ns = lambda: real() + 3600.0, lambda: real_ns() + 3600 * 10**9
"""


def log(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def until(happened: Callable[[], Any], what: str, seconds: float = PATIENCE_SECONDS) -> float:
    """Seconds until it has happened."""
    began = time.monotonic()
    while True:
        with contextlib.suppress(Exception):
            if happened():
                return time.monotonic() - began
        if time.monotonic() - began > seconds:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.1)


class Proxy:
    """Lets connections through to a port, or cuts them all."""

    def __init__(self, port: int) -> None:
        self._to, self._open = port, True
        self._pairs: list[socket.socket] = []
        self._listen()

    def _listen(self, port: int = 0) -> None:
        self._server = socket.create_server(("127.0.0.1", port))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def _accept(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = server.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._to))
                except OSError:  # the server is down: so is the way to it
                    near.close()
                    continue
                self._pairs += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    @staticmethod
    def _pump(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for end in self._pairs:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._pairs = []

    def mend(self) -> None:
        self._listen(self.port)


class Witness:
    """A worker of this process, which knows what was acknowledged."""

    def __init__(self, url: str, token: Token, parts: Parts, pause: float = 0.2) -> None:
        lanes = parts.config.selfplay.num_games
        self._slabs = _played(parts)
        self._link = connect(url, token)
        self.source = random.getrandbits(62)
        schema = SlabSchema.of(self._slabs[0], parts.game.spec, lanes)
        self.sender = SlabSender(self._link, token, schema, [self.source], lambda: 0)
        self._stop, self._pause = threading.Event(), pause
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(self._pause):
            self.sender.add(self._slabs[number % len(self._slabs)])
            number += 1

    def finish(self) -> int:
        """How many slabs were acknowledged: all that were added."""
        self._stop.set()
        self._thread.join(PATIENCE_SECONDS)
        assert self.sender.drain(PATIENCE_SECONDS), "what was added must be acknowledged in the end"
        counts = self.sender.counts
        self.sender.close()
        self._link.close()
        assert counts.slabs_acknowledged == counts.slabs_added
        return counts.slabs_acknowledged


def _played(parts: Parts) -> list[Trajectory]:
    play, games, weights = parts.make_play(), parts.start_games(), parts.start_learning().average
    slabs, moves = [], parts.config.selfplay.moves_per_rollout
    for first in range(0, 4 * moves, moves):
        games, slab = play(weights, games, parts.pace(0), jnp.uint32(first))
        slabs.append(jax.device_get(slab))
    return slabs


class Cluster:
    """A head with all it starts, a second worker, and a witness."""

    def __init__(self, folder: Path, *options: str, settings: tuple[str, ...] = ()) -> None:
        layers = [Layer("faults", {"game": "tictactoe"}), parse_assignments(SETTINGS), parse_assignments(settings)]
        self.config = build(RunConfig, layers)
        self.root = folder / "runs"
        (folder / "settings.toml").write_text(to_toml(self.config))
        self.folder = RunFolder(self.root / "it")
        self.home = Home(self.folder)
        self._options = [*options, "--config", str(folder / "settings.toml")]
        self._printed, self._clock = folder / "printed", folder / "clock"
        self._clock.mkdir()
        self._environment = os.environ | {"JAX_PLATFORMS": "cpu"}
        self._environment.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder / "programs"))
        self.guest: subprocess.Popen[bytes] | None = None
        self.proxy: Proxy | None = None
        self.start_head()
        self.parts = build_parts(self.config)
        self.witness = Witness(self.home.address().url, self.token("witness"), self.parts)

    # ---- processes

    def _alea(self, *words: str, **more: str) -> subprocess.Popen[bytes]:
        with self._printed.open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "aleazero.cli.main", *words],
                stdout=out,
                stderr=out,
                env=self._environment | more,
                start_new_session=True,
            )

    def start_head(self) -> None:
        words = ["head", "--run", "it", "--runs", str(self.root), "--worker", "--device", "cpu", *self._options]
        self.head = self._alea(*words)
        until(lambda: self.home.owner() == self.head.pid and look(self.folder)["head"]["reachable"], "a head")

    def start_guest(self) -> None:
        """By way of a proxy, and with a clock that is an hour fast."""
        if self.proxy is None:
            self.proxy = Proxy(urlsplit(self.home.address().url).port or 0)
            (self._clock / "sitecustomize.py").write_text(CLOCK)
        access = {"ALEA_REDIS_URL": f"redis://127.0.0.1:{self.proxy.port}/0", "ALEA_TOKEN": self.token("guest-1").text}
        path = os.pathsep.join([str(self._clock), *filter(None, [os.environ.get("PYTHONPATH")])])
        words = ["worker", "game", "--wait", "--device", "cpu", "--num-games", "16"]
        self.guest = self._alea(*words, **access, PYTHONPATH=path)

    def token(self, name: str) -> Token:
        """Of a worker, made where there is none: the head lets it in within a second or so."""
        token = self.home.keyring().token(name)
        until(lambda: connect(self.home.address().url, token).close() is None, f"{name} to be let in")
        return token

    def pid(self, role: str) -> int | None:
        """The process that has a role now."""
        if role == "head":
            return self.head.pid
        if role == "guest":
            return self.guest.pid if self.guest else None
        if role == "redis":
            text = ""
            with contextlib.suppress(FileNotFoundError):  # a good end removes it, at any moment
                text = (self.home.path / "redis.pid").read_text().strip()
            return int(text) if text else None
        said = (self.home.logs / "head_1.log").read_text().splitlines()
        found = [line for line in said if f": {role} is process " in line]
        return int(found[-1].rpartition(" ")[2]) if found else None

    def send(self, role: str, number: int) -> None:
        pid = self.pid(role)
        assert pid is not None, role
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    # ---- what it has come to

    def look(self) -> dict[str, Any]:
        return look(self.folder)

    def rows(self) -> int:
        return int(self.look().get("rows", -1))

    def worker(self, name: str) -> dict[str, Any]:
        return next((worker for worker in self.look()["workers"] if worker["name"] == name), {})

    def all_breathe(self) -> bool:
        """Whether everybody has given a sign of life just now."""
        ages = {worker["name"]: worker["age_seconds"] for worker in self.look()["workers"]}
        return all(ages[name] < BREATH_SECONDS for name in ("game-1", "eval-1", "guest-1"))

    def goes_on(self, what: str, seconds: float = PATIENCE_SECONDS) -> float:
        """Seconds until rows come in that were not there."""
        before: list[int] = []

        def more() -> bool:
            rows = self.rows()
            if rows >= 0 and not before:
                before.append(rows)
            return rows > before[0] + 2000 if before else False

        return until(more, f"training after {what}", seconds)

    def kill(self, role: str) -> None:
        """SIGKILL; the harness starts again what it has started, the head all else."""
        self.send(role, signal.SIGKILL)
        if role == "guest":
            assert self.guest is not None
            self.guest.wait()
            self.start_guest()
        if role == "head":
            self.head.wait()
            until(lambda: not any(_runs(self.pid(r)) for r in ("redis", "learner", "eval", "game")), "no orphan", 60)
            self.start_head()

    def finish(self) -> dict[str, Any]:
        """Stops everything in order; what was counted, checked against what was acknowledged."""
        acknowledged = self.witness.finish()
        if self.guest is not None:
            self.guest.send_signal(signal.SIGTERM)
            self.guest.wait(PATIENCE_SECONDS)
        self.send("game", signal.SIGSTOP)  # nothing new comes in: what is there can be taken to its end
        until(lambda: self._caught_up(), "everything taken")
        self.send("game", signal.SIGCONT)
        self.head.send_signal(signal.SIGTERM)
        assert self.head.wait(PATIENCE_SECONDS) == 0, self._printed.read_text()[-2000:]
        for role in ("redis", "learner", "eval", "game"):
            assert not _runs(self.pid(role)), f"{role} was left behind"
        found = checkpoint.newest(self.folder.checkpoints, log)
        assert found is not None
        kept = found.facts["intake"]
        counted = sum(last + 1 for sources in kept["seen"].values() for last in sources.values())
        assert kept["seen"]["witness"][str(self.witness.source)] == acknowledged - 1, "acknowledged and not counted"
        assert kept["slabs"] == counted, f"{kept['slabs']} slabs were counted, {counted} were sent: twice, or with gaps"
        return {
            "witness_slabs_acknowledged": acknowledged,
            "slabs_counted": kept["slabs"],
            "sources": sum(len(sources) for sources in kept["seen"].values()),
            "updates": found.step,
            "counted_exactly_once": True,
        }

    def _caught_up(self) -> bool:
        counts = self.witness.sender.counts
        said = self.look()
        return said["backlog_rows"] == 0 and counts.slabs_acknowledged == counts.slabs_added

    def abandon(self) -> None:
        """Whatever still runs is ended."""
        for process in (self.guest, self.head):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
        for role in ("redis", "learner", "eval", "game"):
            with contextlib.suppress(Exception):
                until(lambda role=role: not _runs(self.pid(role)), role, 45)  # type: ignore[misc]


def _runs(pid: int | None) -> bool:
    if pid is None:
        return False
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


# ---- the faults


def kills(folder: Path, count: int, seed: int) -> dict[str, Any]:
    """SIGKILL of whatever, at random moments."""
    return _with(Cluster(folder), lambda cluster: _kills(cluster, count, seed))


def away(folder: Path, seconds: float) -> dict[str, Any]:
    """Redis does not answer, for all; then one worker alone is cut off."""
    return _with(Cluster(folder), lambda cluster: _away(cluster, seconds))


def frozen(folder: Path, seconds: float) -> dict[str, Any]:
    """A worker stops breathing, and comes back."""
    return _with(Cluster(folder), lambda cluster: _frozen(cluster, seconds))


def small(folder: Path, seed: int) -> dict[str, Any]:
    """Three kills, an outage and a freeze in one short run, in which one worker's clock is an hour fast."""

    def all_of_it(cluster: Cluster) -> dict[str, Any]:
        found = _kills(cluster, 3, seed) | _away(cluster, 6.0)
        return found | _frozen(cluster, 0.0, rests=True)

    return _with(Cluster(folder), all_of_it)


def _with(cluster: Cluster, faults: Callable[[Cluster], dict[str, Any]]) -> dict[str, Any]:
    try:
        cluster.start_guest()
        cluster.goes_on("the start")
        return faults(cluster) | cluster.finish()
    finally:
        cluster.abandon()


def _kills(cluster: Cluster, count: int, seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    order = [ROLES[number % len(ROLES)] for number in range(count)]
    draw.shuffle(order)
    recovery: dict[str, list[float]] = {role: [] for role in ROLES}
    for number, role in enumerate(order, 1):
        time.sleep(draw.uniform(0.2, 2.5))
        cluster.kill(role)
        recovery[role].append(round(cluster.goes_on(f"killing {role}"), 1))
        log(f"kill {number}/{count}: {role}; rows come in again after {recovery[role][-1]} s")
    return {"kills": count, "seed": seed, "recovery_seconds": recovery}


def _away(cluster: Cluster, seconds: float) -> dict[str, Any]:
    until(lambda: cluster.all_breathe(), "everybody")
    pids = {role: cluster.pid(role) for role in ("learner", "eval", "game", "guest", "head")}
    cluster.send("redis", signal.SIGSTOP)
    time.sleep(seconds)
    cluster.send("redis", signal.SIGCONT)
    frozen = until(lambda: cluster.rows() > 0, "an answer", 15)
    frozen += cluster.goes_on("an outage", 30)
    frozen += until(lambda: cluster.all_breathe(), "everybody", 30)
    assert cluster.proxy is not None
    cluster.proxy.cut()
    time.sleep(seconds)
    before = cluster.worker("guest-1")
    assert before["age_seconds"] > seconds / 2, "it was cut off"
    cluster.proxy.mend()
    cut = until(lambda: cluster.worker("guest-1")["age_seconds"] < before["age_seconds"], "the guest", 30)
    # A worker rests while the learner is behind: its slabs may take longer than its way back.
    known = before["rows"] or 0  # nothing yet where it had just been started again
    until(lambda: cluster.worker("guest-1")["rows"] > known, "the guest's slabs")
    assert pids == {role: cluster.pid(role) for role in pids}, "nobody had to be started again"
    assert all(map(_runs, pids.values()))
    found = {"away_seconds": seconds, "back_after_outage_seconds": round(frozen, 1)}
    return found | {"back_after_cut_seconds": round(cut, 1)}


def _frozen(cluster: Cluster, seconds: float, rests: bool = False) -> dict[str, Any]:
    """`rests`: the others wait meanwhile, so that it costs nothing."""
    until(lambda: cluster.worker("guest-1").get("rows"), "the guest")
    cluster.send("guest", signal.SIGSTOP)
    if rests:
        cluster.folder.pause_file.touch()
    dead = until(lambda: cluster.worker("guest-1")["state"] == "dead", "its death", max(seconds, 60.0))
    time.sleep(max(seconds - dead, 0))
    before = cluster.worker("guest-1")["rows"]
    cluster.folder.pause_file.unlink(missing_ok=True)
    cluster.send("guest", signal.SIGCONT)
    alive = until(lambda: cluster.worker("guest-1")["state"] == "alive", "its return", 15)
    until(lambda: cluster.worker("guest-1")["rows"] > before, "its slabs")
    return {
        "frozen_seconds": max(seconds, round(dead, 1)),
        "dead_after_seconds": round(dead, 1),
        "alive_after_thaw_seconds": round(alive, 1),
    }


def full(folder: Path) -> dict[str, Any]:
    """The learner sleeps while workers fill the memory; then it makes room."""
    cluster = Cluster(folder, "--max-memory", "0.02", settings=("checkpoint.every_rows=100000000",))
    try:
        cluster.start_guest()
        cluster.goes_on("the start")
        cluster.send("learner", signal.SIGSTOP)
        logs = [cluster.home.logs / "game_1.log", cluster._printed]
        said = until(lambda: any("is out of memory" in file.read_text() for file in logs), "a full server", 300)
        time.sleep(5.0)
        cluster.send("learner", signal.SIGCONT)
        room = until(lambda: _share(cluster.look()) < 0.8, "room")
        recovery = cluster.goes_on("a full server")
        found = {"full_after_seconds": round(said, 1), "room_after_seconds": round(room, 1)}
        return found | {"recovery_seconds": round(recovery, 1)} | cluster.finish()
    finally:
        cluster.abandon()


def _share(said: dict[str, Any]) -> float:
    return float(said["head"]["memory_bytes"] / said["head"]["max_memory_bytes"])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", nargs="?", default="all", choices=("kills", "away", "frozen", "full", "small", "all"))
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=None, help="of an outage (60) or a freeze (90)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None, help="what came of it, as JSON")
    given = parser.parse_args()
    runs: dict[str, Callable[[Path], dict[str, Any]]] = {
        "kills": lambda folder: kills(folder, given.kills, given.seed),
        "away": lambda folder: away(folder, given.seconds or 60.0),
        "frozen": lambda folder: frozen(folder, given.seconds or 90.0),
        "full": full,
        "small": lambda folder: small(folder, given.seed),
    }
    found = {}
    for name, run in runs.items():
        if given.what == name or (given.what == "all" and name != "small"):
            log(name)
            with tempfile.TemporaryDirectory(prefix="alea-faults-") as folder:
                found[name] = run(Path(folder))
            print(json.dumps({name: found[name]}), flush=True)
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=2) + "\n")
    slow = [s for one in found.values() for k, s in one.items() if k.startswith("back_after") and s > RECOVERY_SECONDS]
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
