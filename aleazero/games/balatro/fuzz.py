"""Random decisions across decks and stakes: the laws hold, nothing overflows, and plain Python plays the same.

Half of the runs are charmed (`Batch.wander`), so that late antes are seen too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys

import numpy as np

from aleazero.core.errors import AleaError
from aleazero.games.balatro import facts, jit
from aleazero.games.balatro.engine import Batch, cores, seed_text
from aleazero.games.balatro.invariants import LAWS

RUNS = 64  # at once, of each deck and stake
STEPS = 400  # decisions of one run at most
_SAMPLE = "from aleazero.games.balatro.fuzz import sample; print(sample({seed}, {runs}, {steps}))"


@dataclasses.dataclass(frozen=True)
class Fuzzed:
    """What was found."""

    decisions: int
    runs: int
    mean_ante: float
    highest_ante: int
    broken: dict[str, int]  # law and how many runs broke it
    overflows: int  # runs that needed more room than a record has
    sample: str  # "equal", "different" or "not compared"
    decks: int = 0  # how many were played
    stakes: int = 0

    @property
    def fine(self) -> bool:
        """Nothing was wrong."""
        return not self.broken and not self.overflows and self.sample != "different"


def fuzz(decisions: int, seed: int = 1, threads: int = 0, sample_runs: int = 2) -> Fuzzed:
    """At least so many random decisions; `sample_runs` runs are played again in plain Python, 0 for none."""
    decks, stakes = facts.table("decks"), facts.table("stakes")
    made, runs, number = 0, 0, 0
    antes: list[np.ndarray] = []
    broken: dict[str, int] = {}
    overflows = 0
    while made < decisions:
        # 15 and 8 have no common divisor: after 120 rounds every deck has met every stake.
        deck, stake = decks[number % len(decks)]["name"], stakes[number % len(stakes)]["name"]
        seeds = [seed_text(seed * 1_000_000_007 + number * 6007 + i * 97) for i in range(RUNS)]
        batch = Batch.start(seeds, deck, stake, 12, threads or cores())
        steps, laws = batch.wander(STEPS, seed + number, charmed=number // len(stakes) % 2 == 0)
        made, runs, number = made + steps, runs + RUNS, number + 1
        antes.append(batch.states["ante"].copy())
        overflows += int((batch.states["error"] != 0).sum())
        for law in laws[laws != 0]:
            broken[LAWS[int(law)]] = broken.get(LAWS[int(law)], 0) + 1
    reached = np.concatenate(antes)
    equal = _compare(seed, sample_runs) if sample_runs else "not compared"
    met = min(number, len(decks)), min(number, len(stakes))
    return Fuzzed(made, runs, float(reached.mean()), int(reached.max()), broken, overflows, equal, *met)


def sample(seed: int, runs: int, steps: int) -> str:
    """A digest of some charmed runs, each with another deck and stake: states, masks and all."""
    decks, stakes = facts.table("decks"), facts.table("stakes")
    digest = hashlib.sha256()
    for k in range(runs):
        deck, stake = decks[(seed + 7 * k) % len(decks)]["name"], stakes[(seed + k) % len(stakes)]["name"]
        batch = Batch.start([seed_text(seed * 7919 + k)], deck, stake, 12)
        batch.wander(steps, seed + k, charmed=True)
        digest.update(batch.snapshot()[0] + batch.masks.tobytes())
    return digest.hexdigest()


def _compare(seed: int, runs: int, steps: int = 150) -> str:
    """Whether plain Python plays the same, in a process of its own."""
    if jit.PLAIN:
        return "not compared"
    program = _SAMPLE.format(seed=seed, runs=runs, steps=steps)
    environment = {**os.environ, "ALEA_BALATRO_PLAIN": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AleaError(f"plain Python did not play the sample: {done.stderr.strip().splitlines()[-1:]}")
    return "equal" if done.stdout.strip() == sample(seed, runs, steps) else "different"
