"""How fast the simulator is on this machine: decisions a second, threads, memory, runs an hour, compiling.

Rates are medians of several rounds; what is compared is measured by turns, so that a busy machine harms both alike.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from aleazero.games.balatro import engine, observe
from aleazero.games.balatro.contest import numbered_seeds, play_runs
from aleazero.games.balatro.engine import Batch, cores, random_words, spread
from aleazero.games.balatro.observe import observe_batch

LANES = 4096
_FIRST_USE = """
import json, time
started = time.perf_counter()
import numpy as np
from aleazero.games.balatro.engine import Batch
from aleazero.games.balatro.observe import observe_batch
batch = Batch.start(["ALEEB", "2K9H9HN"])
batch.step(batch.masks.argmax(1))
observe_batch(batch)
print(json.dumps({"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time()}))
"""


@cache
def _many_seeds() -> list[str]:
    return numbered_seeds(200_000, 1)


def _seeds() -> Iterator[str]:
    return itertools.cycle(_many_seeds())


def decisions(
    threads: int, seconds: float, charmed: bool, seed: int = 1, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, float]:
    """Random decisions a second, observation and mask included, and the mean ante where runs ended or were left.

    Plain random runs are short: lanes that ended begin anew, which is part of the time. A charmed player wins every
    hand, and so meets what late antes bring.
    """
    spare = _seeds()
    batch = Batch.start([next(spare) for _ in range(LANES)], last_ante=12, threads=threads)
    words = random_words(LANES, seed)
    antes: list[np.ndarray] = []
    made, seen = 0, observe_batch(batch)
    started = clock()
    while clock() - started < seconds:
        chosen, moving = batch.random_actions(words)
        if charmed:
            batch.states["target"] = np.minimum(batch.states["target"], 1.0)
            batch.states["money"] = np.maximum(batch.states["money"], 10)
        batch.step(chosen, moving)
        made += int(moving.sum())
        over = np.flatnonzero(batch.over)
        if len(over) >= LANES // 16:
            antes.append(batch.states["ante"][over])
            batch.restart(over, list(itertools.islice(spare, len(over))), last_ante=12)
        observe_batch(batch, seen)
    rate = made / (clock() - started)
    reached = np.concatenate([*antes, batch.states["ante"]])
    return rate, float(np.minimum(reached, 12).mean())


class _Threads:
    """Counts the processor time on the longest way through calls that are shared out to threads."""

    def __init__(self) -> None:
        self.longest = 0.0  # seconds of the slowest thread of each call, added up

    def spread(self, function: Callable[..., Any], count: int, threads: int, *arguments: Any) -> list[Any]:
        """As `engine.spread`, each part timed by its own thread."""

        def part(*inner: Any) -> tuple[Any, float]:
            started = time.thread_time()
            return function(*inner), time.thread_time() - started

        done = spread(part, count, threads, *arguments)
        if threads > 1:  # one thread is this one, whose time is counted anyway
            self.longest += max(seconds for _, seconds in done)
        return [result for result, _ in done]


def by_processor(threads: int, seconds: float, charmed: bool, seed: int = 1) -> float:
    """Decisions per second of processor time on the longest way: about what an idle machine would do."""
    clock = _Threads()
    engine.spread, observe.spread = clock.spread, clock.spread
    try:
        started = time.thread_time()
        made = decisions(threads, seconds, charmed, seed, lambda: time.thread_time() - started + clock.longest)[0]
    finally:
        engine.spread, observe.spread = spread, spread
    return made


def two_threads(seconds: float, rounds: int) -> dict[str, Any]:
    """One thread and all cores by turns: medians of the rates, and the median of their ratios.

    The same again by processor time, which a busy machine hardly changes.
    """
    report: dict[str, Any] = {}
    for name, charmed in (("random", False), ("charmed", True)):
        decisions(1, 0.2, charmed)
        pairs = [[decisions(n, seconds, charmed, k) for n in (1, cores())] for k in range(1, rounds + 1)]
        bare = [[by_processor(n, seconds, charmed, k) for n in (1, cores())] for k in range(1, rounds + 1)]
        report[name] = {
            "decisions_per_second": statistics.median(one[0] for one, _ in pairs),
            "all_cores_decisions_per_second": statistics.median(two[0] for _, two in pairs),
            "cores_factor": statistics.median(two[0] / one[0] for one, two in pairs),
            "decisions_per_processor_second": statistics.median(one for one, _ in bare),
            "cores_factor_by_processor_time": statistics.median(two / one for one, two in bare),
            "mean_ante": statistics.median(one[1] for one, _ in pairs),
        }
    return report


def memory() -> dict[str, float]:
    """Megabytes of 4,096 games: records and masks, and with one observation of all."""
    batch = Batch.start(numbered_seeds(LANES, 3), threads=cores())
    seen = observe_batch(batch)
    games = batch.states.nbytes + batch.masks.nbytes
    extra = sum(array.nbytes for name, array in seen.items() if name != "action_mask")
    return {"games": LANES, "megabytes": games / 1e6, "with_observation_megabytes": (games + extra) / 1e6}


def runs_per_hour(games: dict[str, int], rounds: int) -> dict[str, Any]:
    """Runs an hour on all cores for each player, and how far they come."""
    report: dict[str, Any] = {}
    for player, count in games.items():
        play_runs(player, numbered_seeds(2, 1))
        played = [play_runs(player, numbered_seeds(count, 100 + k)) for k in range(rounds)]
        report[player] = {
            "runs": count,
            "games_per_hour": statistics.median(one.games_per_hour for one in played),
            "mean_ante": statistics.mean(float(one.ante.mean()) for one in played),
            "mean_rounds": statistics.mean(float(one.rounds.mean()) for one in played),
            "win_rate": statistics.mean(float(one.won.mean()) for one in played),
        }
    return report


def compiling() -> dict[str, Any]:
    """Seconds of the first use with an empty cache, and of the next one, in processes of their own."""
    import json

    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ALEA_BALATRO_CACHE": folder}
        environment.pop("ALEA_BALATRO_PLAIN", None)
        times = []
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", _FIRST_USE], env=environment, capture_output=True, text=True, check=True
            )
            times.append(json.loads(done.stdout))
    return {"first_use": times[0], "cached": times[1]}
