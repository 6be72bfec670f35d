"""How fast slabs reach a learner, how long a batch takes meanwhile, and what sending costs an actor. On this machine.

    python scripts/ingest.py [--seconds 20] [--soak 600] [--out ingest.json]
The whole way counts: packing, signing and compressing in the workers' processes, a real Redis, and everything that the
learner's intake does: reading, checking, a look at the rules, and the write into a ring of a million rows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.assemble import Parts, build_parts
from aleazero.config import RunConfig, resolve
from aleazero.core.records import Trajectory
from aleazero.runtimes.legal import LegalCheck
from aleazero.runtimes.redis.access import HEAD, Keys, Token
from aleazero.runtimes.redis.intake import Intake
from aleazero.runtimes.redis.learner import LEGAL_ROWS
from aleazero.runtimes.redis.link import announce, connect
from aleazero.runtimes.redis.quarantine import Quarantine
from aleazero.runtimes.redis.server import RedisServer
from aleazero.runtimes.redis.stream import SlabSender
from aleazero.runtimes.redis.users import admit
from aleazero.runtimes.slabs import SlabSchema

ROWS = 1_000_000  # of the ring
BATCH = 1024
INGEST_ROWS = 80_000  # a second, while batches are timed: two cores are not to be busy with nothing but sending


def settings() -> RunConfig:
    """The rows of the `classic` preset, with policies, 128 games a group; played quickly: that is not measured."""
    sets = [f"replay.capacity_rows={ROWS}", f"learn.batch_size={BATCH}", "replay.capacity_games=0"]
    quick = ["search.max_simulations=2", "selfplay.fast_simulations=1", "search.max_nodes=32", "model.width=32"]
    return resolve("backgammon", preset="classic", environ={}, assignments=[*sets, *quick, "model.blocks=1"])


def played(parts: Parts, count: int = 8) -> list[Trajectory]:
    """Slabs of real play."""
    play, games, weights = parts.make_play(), parts.start_games(), parts.start_learning().average
    slabs, moves = [], parts.config.selfplay.moves_per_rollout
    for first in range(0, count * moves, moves):
        games, slab = play(weights, games, parts.pace(0), jnp.uint32(first))
        slabs.append(jax.device_get(slab))
    return slabs


def send(url: str, text: str, file: str, seconds: float, rate: float | None) -> None:
    """A worker's process that does nothing but send, as fast as it can or so many rows a second."""
    token, config = Token.parse(text), settings()
    parts = build_parts(config, jax.local_devices()[:1])
    arrays = np.load(file)
    slabs = [
        Trajectory(**{name: arrays[f"{n}/{name}"] for name in {key.split("/")[1] for key in arrays.files}})
        for n in range(len({key.split("/")[0] for key in arrays.files}))
    ]
    schema = SlabSchema.of(slabs[0], parts.game.spec)
    with contextlib.closing(connect(url, token)) as link:
        sender = SlabSender(link, token, schema, [int.from_bytes(os.urandom(7), "little")], lambda: 0)
        end, number = time.monotonic() + seconds, 0
        began = time.monotonic()
        while (now := time.monotonic()) < end:
            if rate is not None and number * schema.rows > rate * (now - began):
                time.sleep(0.005)
                continue
            sender.add(slabs[number % len(slabs)])
            number += 1
        sender.close(30)


class Learner:
    """A ring of a million rows, and the intake that fills it."""

    def __init__(self, server: RedisServer, parts: Parts, tokens: dict[str, Token]) -> None:
        self.replay = parts.make_replay()
        self.link = connect(server.url, server.head)
        keys = Keys("bench")
        self.intake = Intake(
            self.link,
            keys,
            SlabSchema.of(parts.slab_like(), parts.game.spec),
            self.replay,
            workers=lambda: list(tokens),
            secret_of=lambda name: tokens[name].signing_key if name in tokens else None,
            newest_version=lambda: 0,
            legal=LegalCheck(parts.game, LEGAL_ROWS),
            quarantine=Quarantine(self.link, keys),
        )

    def step(self) -> bool:
        """Takes a slab, and now and then lets go of what was read, as after a checkpoint."""
        took = self.intake.step() is not None
        if self.intake.slabs % 100 == 99:
            self.intake.saved()
        return took


def ingest(
    folder: Path, parts: Parts, file: str, fsync: Any, seconds: float, rate: float | None = None
) -> dict[str, Any]:
    """Rows a second from workers to ring, once it runs; where a rate is given, how long batches take meanwhile."""
    with RedisServer(folder, Token.new("bench", HEAD), fsync=fsync) as server, contextlib.ExitStack() as stack:
        tokens = {"one": Token.new("bench", "one")}
        with contextlib.closing(connect(server.url, server.head)) as link:
            announce(link, "bench")
            for token in tokens.values():
                admit(link, token)
        learner = Learner(server, parts, tokens)
        stack.callback(learner.link.close)
        context = multiprocessing.get_context("spawn")
        senders = [
            context.Process(target=send, args=(server.url, token.text, file, seconds + 10, rate))
            for token in tokens.values()
        ]
        for process in senders:
            process.start()
        while learner.intake.slabs < 20:
            learner.step()
        if rate is not None:  # so that batches come from a million rows
            slabs = played(parts)
            while learner.replay.rows_held < ROWS - learner.replay.slab_rows:
                learner.replay.add(slabs[learner.replay.num_slabs % len(slabs)], 1000)
        jax.block_until_ready(learner.replay.sample(0, 1))
        began, before, times, sizes, work = time.monotonic(), learner.intake.rows, [], [], []
        while (now := time.monotonic()) < began + seconds:
            learner.step()
            if rate is not None and learner.intake.slabs % 5 == 0:
                jax.block_until_ready(learner.replay.ring)
                start, busy = time.perf_counter(), time.process_time()
                jax.block_until_ready(learner.replay.sample(learner.intake.slabs, 1))
                times.append(time.perf_counter() - start)
                work.append(time.process_time() - busy)
            if not sizes or now - sizes[-1][0] > 10:
                sizes.append((now, _resident()))
        jax.block_until_ready(learner.replay.ring)
        came = (learner.intake.rows - before) / (time.monotonic() - began)
        for process in senders:
            process.terminate()
            process.join()
        assert set(learner.intake.counts) == {"next"}, learner.intake.counts
        found: dict[str, Any] = {"fsync": fsync, "seconds": seconds, "rows_per_second": round(came)}
        found["rows_in_ring"] = learner.replay.rows_held
        found["memory_mb"] = [round(size) for _, size in sizes]
        if times:
            found["batch_ms_median"] = round(statistics.median(times) * 1e3, 2)
            found["batch_cpu_ms_mean"] = round(statistics.mean(work) * 1e3, 2)
            found["batch_ms_99"] = round(sorted(times)[int(len(times) * 0.99)] * 1e3, 2)
        return found


def _resident() -> float:
    """MB of this process."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
    return 0.0


def sending_cost(folder: Path, parts: Parts, seconds: float) -> dict[str, Any]:
    """The rate of an actor that sends beside one that does not, taking turns."""

    class Nowhere:
        def add(self, slab: Trajectory) -> None:
            jax.block_until_ready(slab)

    from aleazero.roles.ports import LocalWeights
    from aleazero.runtimes.redis.game import lanes_of
    from aleazero.runtimes.selfplay import SelfPlay

    weights = LocalWeights()
    weights.publish(0, parts.start_learning().average)
    with RedisServer(folder, Token.new("bench", HEAD)) as server:
        token = Token.new("bench", "one")
        link = connect(server.url, server.head)
        announce(link, "bench")
        admit(link, token)
        own = connect(server.url, token)
        schema = SlabSchema.of(parts.slab_like(), parts.game.spec)
        sender = SlabSender(own, token, schema, [1], lambda: 0)
        actors = {"alone": SelfPlay(parts, Nowhere(), weights, lanes_of([1], 128)),
                  "sending": SelfPlay(parts, sender, weights, lanes_of([1], 128))}  # fmt: skip
        rates: dict[str, list[float]] = {name: [] for name in actors}
        for actor in actors.values():
            actor.step()
        sender.drain(30)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for name, actor in actors.items():
                start = time.perf_counter()
                for _ in range(10):
                    actor.step()
                jax.block_until_ready(actor.games)
                if name == "sending":
                    sender.drain(30)
                rates[name].append(10 * schema.rows / (time.perf_counter() - start))
        blocked = sender.counts.seconds_blocked
        sender.close()
        own.close()
        link.close()
    alone, sending = (statistics.median(rates[name]) for name in ("alone", "sending"))
    return {
        "rows_per_second_alone": round(alone),
        "rows_per_second_sending": round(sending),
        "lost_share": round(1 - sending / alone, 4),
        "seconds_blocked": round(blocked, 3),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--soak", type=float, default=0.0, help="seconds of a soak, in which memory must stay flat")
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    parts = build_parts(settings(), jax.local_devices()[:1])
    found: dict[str, Any] = {"cores": os.cpu_count()}
    with tempfile.TemporaryDirectory(prefix="alea-ingest-") as name:
        folder = Path(name)
        slabs = played(parts)
        np.savez(folder / "slabs.npz", **{f"{n}/{k}": v for n, slab in enumerate(slabs) for k, v in vars(slab).items()})
        file = str(folder / "slabs.npz")
        for fsync in ("always", "everysec"):
            found[f"ingest_{fsync}"] = ingest(folder / fsync, parts, file, fsync, given.seconds)
            print(json.dumps(found[f"ingest_{fsync}"]), flush=True)
        found["batches"] = ingest(folder / "batches", parts, file, "always", given.seconds, INGEST_ROWS)
        print(json.dumps(found["batches"]), flush=True)
        found["sending"] = sending_cost(folder / "sending", parts, given.seconds)
        print(json.dumps(found["sending"]), flush=True)
        if given.soak:
            found["soak"] = ingest(folder / "soak", parts, file, "always", given.soak)
            print(json.dumps(found["soak"]), flush=True)
    if given.out:
        given.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
