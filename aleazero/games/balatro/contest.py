"""Players by name, and whole runs played by them: how far they come.

Players choose for a batch of runs at once. Knows no rules; what a baseline thinks is in `baselines`.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

import numpy as np

from aleazero.core.errors import UnknownName
from aleazero.games.balatro.engine import Batch, cores, random_words, spread
from aleazero.games.balatro.rng import ALPHABET

PLAYERS = {"random": 0, "greedy": 1, "expectimax": 2}
CHUNK = 2048  # runs played at once
LONGEST = 5000  # decisions after which a run is stopped

Choose = Callable[[Batch], np.ndarray]


def make_chooser(text: str, seed: int, count: int) -> Choose:
    """What a player string does with a batch of so many runs: the actions `[B]` it chooses."""
    name = text.strip()
    if name not in PLAYERS:
        raise UnknownName("player of balatro", name, PLAYERS)
    if name == "random":
        words = random_words(count, seed)
        return lambda batch: batch.random_actions(words)[0]
    kind = PLAYERS[name]
    numbers = iter(range(1, 1 << 62))

    return lambda batch: by_rule(batch, kind, seed * 1_000_003 + next(numbers))


def by_rule(batch: Batch, kind: int, word: int) -> np.ndarray:
    """The actions `[B]` of a baseline, by its number in `PLAYERS`; what it draws follows from `word`."""
    from aleazero.games.balatro.baselines import choose_range

    chosen = np.zeros(len(batch), np.int64)
    spares = np.empty(len(batch), batch.states.dtype).view(np.recarray)  # only a few are ever touched
    rows, spare_rows = (x.view(np.ndarray).view(np.uint8).reshape(len(x), -1) for x in (batch.states, spares))
    given = (batch.states, rows, spares, spare_rows, batch.masks, kind, word % 2147483646, chosen)
    spread(choose_range, len(batch), batch.threads, *given)
    return chosen


@dataclasses.dataclass(frozen=True)
class Runs:
    """How runs ended."""

    seeds: list[str]
    ante: np.ndarray  # [N] int: where each ended
    rounds: np.ndarray  # [N] int: blinds beaten
    won: np.ndarray  # [N] bool: ante 8's boss was beaten
    best: np.ndarray  # [N] float: the best hand's score
    decisions: int
    seconds: float

    @property
    def games_per_hour(self) -> float:
        """Runs an hour at the speed they were played with."""
        return 3600.0 * len(self.ante) / self.seconds


def play_runs(
    player: str,
    seeds: Sequence[str],
    *,
    deck: str = "Red Deck",
    stake: str = "White",
    last_ante: int = 8,
    threads: int = 0,
    seed: int = 0,
    chunk: int = CHUNK,
    make: Callable[[str, int, int], Choose] = make_chooser,
) -> Runs:
    """Plays the runs of these seeds to their ends; `seed` is the player's own, and `make` knows who it is."""
    started = time.perf_counter()
    done = []
    decisions = 0
    for first in range(0, len(seeds), chunk):
        batch = Batch.start(list(seeds[first : first + chunk]), deck, stake, last_ante, threads or cores())
        choose = make(player, seed + first, len(batch))
        for _ in range(LONGEST):
            moving = ~batch.over & (batch.states["error"] == 0)  # what no record holds ends where it is
            if not moving.any():
                break
            batch.try_step(choose(batch), moving)
            decisions += int(moving.sum())
        done.append(batch.states)
    states = np.concatenate(done)
    # A won run ends after its boss: the ante that would come next was not reached.
    ante = np.minimum(states["ante"], last_ante)
    seconds = time.perf_counter() - started
    won = states["won"] != 0
    return Runs(list(seeds), ante, states["beaten"].copy(), won, states["best_hand"].copy(), decisions, seconds)


def numbered_seeds(count: int, seed: int) -> list[str]:
    """`count` seeds of eight characters that a number names."""
    places = np.random.default_rng(seed).integers(0, len(ALPHABET), (count, 8))
    text = np.frombuffer(ALPHABET.encode(), np.uint8)[places].tobytes().decode()
    return [text[i : i + 8] for i in range(0, len(text), 8)]
