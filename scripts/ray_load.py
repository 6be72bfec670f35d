"""Where a run on Ray saturates: what a player, the learner and a row cost here, the model, and the model checked.

    python scripts/ray_load.py [--game connect_four] [--seconds 40] [--workers 1,2] [--wire-mb 117] [--store-gb 1]
        [--out FILE]
r is what one player makes a second when it has a core to itself, in a run of its own, L what the learner takes when
slabs cost nothing (one is handed to it again and again), b the bytes of a row. Rows a second of N players are min(N r,
L, wire / b). On one machine of C cores they share them with the learner, which takes all of them when it is alone: a
row costs a core 1 / r + C / L seconds, and there are at most C / (1 / r + C / L) rows a second. Both are compared with
runs of N players. The object store keeps what was made since the last checkpoint: rows a second x b x seconds between
two.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax

from aleazero.assemble import Parts, build_parts
from aleazero.config import RunConfig, resolve
from aleazero.core.devices import cores
from aleazero.core.records import Trajectory
from aleazero.observe.jsonl import read_jsonl
from aleazero.observe.sink import Fanout
from aleazero.roles.ports import SourcedSink, WeightStore
from aleazero.runs import new_run
from aleazero.runtimes.local import LocalRun
from aleazero.runtimes.ray.intake import FULL
from aleazero.runtimes.selfplay import SelfPlay
from aleazero.runtimes.slabs import SlabSchema
from aleazero.runtimes.start import start

SKIPPED = 0.4  # of a run's time: compiling, and filling the replay


class Again(SelfPlay):
    """Plays once, and hands over the same slab from then on."""

    def __init__(self, parts: Parts, sink: SourcedSink, weights: WeightStore) -> None:
        super().__init__(parts, sink, weights)
        self._slab: Trajectory | None = None

    def step(self) -> Trajectory:
        if self._slab is None:
            self._slab = jax.block_until_ready(super().step())
            return self._slab
        self.move += self._moves
        self._sink.add(self._slab)
        return self._slab


class Timer:
    """Stops a run after so many seconds, and knows how many rows it had when it was warm."""

    def __init__(self, seconds: float) -> None:
        self.run: LocalRun | None = None
        self._began, self._seconds = time.monotonic(), seconds
        self.warm: tuple[float, int] | None = None

    def stop_requested(self) -> bool:
        assert self.run is not None
        gone = time.monotonic() - self._began
        if self.warm is None and gone > SKIPPED * self._seconds:
            self.warm = (time.monotonic(), self.run.producer.rows)
        return gone > self._seconds

    def rate(self) -> float:
        assert self.run is not None
        assert self.warm is not None
        return (self.run.producer.rows - self.warm[1]) / (time.monotonic() - self.warm[0])


def learner_alone(config: RunConfig, folder: Path, seconds: float) -> float:
    """L."""
    timer = Timer(seconds)
    parts = build_parts(config, [jax.local_devices()[0]])
    timer.run = LocalRun(parts, new_run(folder, "learner", ""), Fanout([]), make_producer=Again)
    timer.run.train(timer)
    timer.run.close()
    return timer.rate()


def on_ray(config: RunConfig, folder: Path, name: str, players: int, seconds: float) -> dict[str, float]:
    """What N players bring: rows taken a second, and rows a second of one while it plays."""
    sets = {"address": "", "workers": players}
    config = dataclasses.replace(config, runtime="ray", ray=dataclasses.replace(config.ray, **sets))  # type: ignore[arg-type]
    finished = start(config, folder, name=name, seconds=seconds, quiet=True)
    reports = [record for record in read_jsonl(finished.folder.metrics_file) if record["kind"] == "ray"]
    warm = [record for record in reports if record["seconds"] >= SKIPPED * seconds]
    first, last = warm[0], warm[-1]
    return {
        "taken": (last["rows"] - first["rows"]) / (last["seconds"] - first["seconds"]),
        "one": sum(record["rows_per_second"] / players for record in warm) / len(warm),
    }


def in_store(config: RunConfig, bytes_a_row: float, rows_a_second: float, store_gb: float) -> dict[str, float]:
    """What is kept between two checkpoints at such a rate; where it would be too much, they come early."""
    wanted, room = config.checkpoint.every_rows / rows_a_second, FULL * store_gb * 1e9
    between = min(wanted, room / (rows_a_second * bytes_a_row))
    return {"seconds_between_checkpoints": between, "share": rows_a_second * bytes_a_row * between / (store_gb * 1e9)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--game", default="connect_four")
    parser.add_argument("--seconds", type=float, default=40.0, help="of every part")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--wire-mb", type=float, default=117.0, help="MB a second between machines; 117: 1 Gbit/s")
    parser.add_argument("--store-gb", type=float, default=1.0, help="of all object stores together")
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    sets = ["total_rows=1000000000", "evaluate.every_rows=0", "observe.every_seconds=2", "evaluate.opponents="]
    config = resolve(given.game, preset="quick", assignments=sets)
    parts = build_parts(config)
    schema = SlabSchema.of(parts.slab_like(), parts.game.spec)
    bytes_a_row = schema.nbytes / schema.rows
    with tempfile.TemporaryDirectory(prefix="alea-load-") as name:
        folder = Path(name)
        most = learner_alone(config, folder, given.seconds)
        one = on_ray(config, folder, "r", 1, given.seconds)["one"]
        seen = {n: on_ray(config, folder, f"ray-{n}", n, given.seconds) for n in map(int, given.workers.split(","))}
    wire = given.wire_mb * 1e6 / bytes_a_row
    found: dict[str, Any] = {"r": one, "L": most, "bytes_a_row": bytes_a_row, "wire_rows": wire, "cores": cores()}
    found["checked"] = [
        {"players": n, "measured": of["taken"], "model": min(n * one, most, cores() / (1 / one + cores() / most))}
        for n, of in seen.items()
    ]
    found["model"] = {n: min(n * one, most, wire) for n in (1, 2, 4, 8, 16, 32, 64, 128)}
    found["store"] = {n: in_store(config, bytes_a_row, rows, given.store_gb) for n, rows in found["model"].items()}
    found["learner_saturates_at"] = most / one
    found["wire_saturates_at"] = wire / one
    print(json.dumps(found, indent=2))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
