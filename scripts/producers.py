"""How much faster two producers are than one, each with one thread, with a learner that does nothing but take slabs.

    python scripts/producers.py [--game chess] [--preset quick] [--seconds 20] [--rounds 3] [--out producers.json]
One and two take turns; a measurement begins when every producer has sent its first slab, compiled and all.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax

from aleazero.assemble import Parts, build_parts
from aleazero.config import resolve
from aleazero.core.records import Trajectory
from aleazero.runtimes.processes import Place, Producers


class Idle:
    """A learner that takes what comes and does nothing with it."""

    def __init__(self) -> None:
        self.sources: set[int] = set()

    def add(self, slab: Trajectory, source: int = 0) -> None:
        """Notes whose it is."""
        self.sources.add(source)


def rate(parts: Parts, workers: int, seconds: float, folder: Path) -> float:
    """Rows a second of so many producers."""
    config = dataclasses.replace(parts.config, producers=dataclasses.replace(parts.config.producers, workers=workers))
    parts = dataclasses.replace(parts, config=config)
    place, sink = Place(jax.eval_shape(parts.model.init, jax.random.key(0))), Idle()
    place.weights.publish(0, jax.jit(parts.model.init)(jax.random.key(0)))
    made = Producers(parts, sink, place, logs=folder, root=folder)
    try:
        while len(sink.sources) < workers:
            made.step()
        began, before = time.monotonic(), made.rows
        while time.monotonic() < began + seconds:
            made.step()
        return (made.rows - before) / (time.monotonic() - began)
    finally:
        made.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--game", default="chess")
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=None, help="what came of it, as JSON")
    given = parser.parse_args()
    sets = ["producers.workers=2", "replay.capacity_rows=1000000"]
    parts = build_parts(resolve(given.game, preset=given.preset, assignments=sets, environ={}))
    with tempfile.TemporaryDirectory(prefix="alea-producers-") as folder:
        rates: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(given.rounds):
            for workers in rates:
                rates[workers].append(rate(parts, workers, given.seconds, Path(folder)))
                print(f"{workers}: {rates[workers][-1]:.0f} rows/s", file=sys.stderr, flush=True)
    found: dict[str, Any] = {
        "game": given.game,
        "preset": given.preset,
        "rows_per_second": {str(workers): round(statistics.median(each), 1) for workers, each in rates.items()},
        "ratio": round(statistics.median(b / a for a, b in zip(rates[1], rates[2], strict=True)), 3),
    }
    print(json.dumps(found, indent=2))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
