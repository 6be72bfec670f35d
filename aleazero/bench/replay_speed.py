"""Replay speed: a weighted batch from small and large rings, and the insertion of a slab.

    python -m aleazero.bench.replay_speed --rows 100000 10000000 --batch 1024

Rows are Connect Four's, from games of an untrained network. Prints a table, or with `--json` one object.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import jax

from aleazero.assemble import build_parts
from aleazero.bench.timing import Timing, interleave
from aleazero.config import resolve
from aleazero.replay.store import Replay

LANES, MOVES = 512, 64  # a slab of 32,768 rows, long enough that most games end within it
SURPRISE = 0.5


def main(argv: list[str] | None = None) -> int:
    """Measures and reports; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m aleazero.bench.replay_speed", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 10_000_000], help="ring sizes")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    report = measure(options.rows, options.batch, options.rounds)
    print(json.dumps(report) if options.json else _table(report))
    return 0


def measure(sizes: list[int], batch: int, rounds: int) -> dict[str, Any]:
    """Median times of a batch and of an insertion for every size, interleaved; the ratio of the last to the first."""
    rings = {size: _filled(size, batch) for size in sizes}

    def sampler(replay: Replay) -> Any:
        return lambda number: replay.sample(number, 1)

    def inserter(replay: Replay, slab: Any) -> Any:
        def insert(number: int) -> Any:
            replay.add(slab)
            return replay.ring.slab_ready

        return insert

    samples = interleave({str(size): sampler(ring) for size, (ring, _) in rings.items()}, rounds=rounds)
    inserts = interleave({str(size): inserter(ring, slab) for size, (ring, slab) in rings.items()}, rounds=rounds)
    first, last = str(sizes[0]), str(sizes[-1])
    return {
        "kind": "replay",
        "backend": jax.default_backend(),
        "batch": batch,
        "sample_ms": {name: _milliseconds(timing) for name, timing in samples.items()},
        "insert_ms": {name: _milliseconds(timing) for name, timing in inserts.items()},
        "sample_ratio": samples[first].ratio_to(samples[last]),
        "insert_ratio": inserts[first].ratio_to(inserts[last]),
    }


def _filled(rows: int, batch: int) -> tuple[Replay, Any]:
    """A full ring of about `rows` rows, and the slab it was filled with."""
    config = resolve(
        "connect_four",
        preset="quick",
        assignments=[
            f"replay.capacity_rows={max(rows, 3 * LANES * MOVES)}",
            f"replay.surprise={SURPRISE}",
            f"learn.batch_size={batch}",
            f"selfplay.num_games={LANES}",
            f"selfplay.moves_per_rollout={MOVES}",
            "search.kind=direct",
            f"total_rows={10 * LANES * MOVES}",
        ],
        environ={},
    )
    parts = build_parts(config, jax.local_devices()[:1])
    replay = parts.make_replay()
    _, slab = parts.make_play()(parts.start_learning().weights, parts.start_games(), parts.pace(0), jax.numpy.uint32(0))
    for _ in range(replay.slabs):
        replay.add(slab)
    return replay, slab


def _milliseconds(timing: Timing) -> float:
    return round(1e3 * timing.median, 4)


def _table(report: dict[str, Any]) -> str:
    lines = [f"{'rows':>12} {'batch of ' + str(report['batch']):>16} {'insert a slab':>16}"]
    for size, sample in report["sample_ms"].items():
        lines.append(f"{int(size):12,} {sample:13.3f} ms {report['insert_ms'][size]:13.3f} ms")
    ratio, low, high = report["sample_ratio"]
    lines.append(f"the last against the first: {ratio:.2f} times ({low:.2f} to {high:.2f}) for a batch")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
