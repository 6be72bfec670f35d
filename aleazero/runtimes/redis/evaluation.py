"""A measurement shared by several workers: cut into chunks, each handed out until its result has come, counted once.

Which games a chunk has is in its seed, so that whoever plays it brings the same result. A chunk is lent: whoever gives
no sign of life for too long loses it to another, and a result that comes after all is still the chunk's, once. Knows
chunks and times as durations; neither Redis nor how a game is played.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from aleazero.play.match import MatchResult

CHUNK_PAIRS = 16
LEND_SECONDS = 600.0  # for a chunk, by a worker that is alive
PREVIOUS = "previous"  # the opponent that was measured before


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Games to be played."""

    number: int
    version: int  # of the weights that are measured
    opponent: str  # a player string, or `PREVIOUS`
    against: int  # the version of the previous one; -1 where it is not needed
    pairs: int
    seed: int


@dataclasses.dataclass
class _Loan:
    worker: str
    until: float


class Evaluation:
    """One version against some opponents."""

    def __init__(
        self,
        version: int,
        rows: int,
        seconds: float,
        opponents: Sequence[str],
        *,
        previous: int,
        pairs: int,
        seed: int,
        results: dict[int, list[Any]] | None = None,
    ) -> None:
        """`previous` is the version measured before, -1 where there is none; `results` those that came already."""
        self.version, self.rows, self.seconds, self.previous = version, rows, seconds, previous
        self.pairs, self.seed = pairs, seed
        self.opponents = [name for name in opponents if name != PREVIOUS]
        if previous >= 0:
            self.opponents.append(PREVIOUS)
        size = min(CHUNK_PAIRS, pairs)
        self._each = math.ceil(pairs / size)
        self.chunks = [
            Chunk(
                number=place * self._each + part,
                version=version,
                opponent=opponent,
                against=previous if opponent == PREVIOUS else -1,
                pairs=size,
                seed=_seed(seed, opponent, part),
            )
            for place, opponent in enumerate(self.opponents)
            for part in range(self._each)
        ]
        self.results = dict(results or {})  # by chunk
        self._loans: dict[int, _Loan] = {}

    # ---- handing out

    def hand_out(self, worker: str, can: Iterable[str], now: float) -> Chunk | None:
        """The chunk that a worker has, or the next one that it can play; None where there is nothing for it."""
        mine = next((n for n, loan in self._loans.items() if loan.worker == worker), None)
        if mine is not None:
            return self.chunks[mine]
        able = {*can, PREVIOUS}
        for chunk in self.chunks:
            if chunk.number not in self.results and chunk.number not in self._loans and chunk.opponent in able:
                self._loans[chunk.number] = _Loan(worker, now + LEND_SECONDS)
                return chunk
        return None

    def take_back(self, alive: Iterable[str], now: float) -> None:
        """Chunks of those who are not alive, or take too long, go to others."""
        living = set(alive)
        self._loans = {n: loan for n, loan in self._loans.items() if loan.worker in living and now < loan.until}

    def take(self, number: Any, points: Any, luck: Any) -> bool:
        """A chunk's result, whoever brings it; whether it is sound, and the first."""
        if type(number) is not int or not 0 <= number < len(self.chunks):
            return False
        self._loans.pop(number, None)
        shape = (self.chunks[number].pairs, 2)
        if number in self.results or not _sound(points, shape) or not (luck is None or _sound(luck, shape)):
            return False
        self.results[number] = [points, luck]
        return True

    # ---- what came of it

    def done(self, can: Iterable[str]) -> bool:
        """Whether everything that anybody can play was played."""
        able = {*can, PREVIOUS}
        return all(chunk.number in self.results or chunk.opponent not in able for chunk in self.chunks)

    def matches(self) -> list[MatchResult]:
        """A whole match against each opponent that was played to the end."""
        found = []
        for place, opponent in enumerate(self.opponents):
            numbers = range(place * self._each, (place + 1) * self._each)
            if not all(number in self.results for number in numbers):
                continue
            points, luck = (self._column(numbers, which) for which in (0, 1))
            assert points is not None
            found.append(MatchResult("self", opponent, points, np.zeros(points.shape, int), luck=luck))
        return found

    def _column(self, numbers: Iterable[int], which: int) -> np.ndarray | None:
        parts = [self.results[number][which] for number in numbers]
        if any(part is None for part in parts):
            return None
        rows = [[math.nan if x is None else float(x) for x in row] for part in parts for row in part]
        return np.array(rows[: self.pairs], np.float64)

    # ---- keeping it

    def state(self) -> dict[str, Any]:
        """For msgpack; `Evaluation.of` makes it again. Who plays what is not in it: that is handed out anew."""
        return {
            "version": self.version,
            "rows": self.rows,
            "seconds": self.seconds,
            "opponents": self.opponents,
            "previous": self.previous,
            "pairs": self.pairs,
            "seed": self.seed,
            "results": list(self.results.items()),
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> Evaluation:
        """From its `state`."""
        return cls(**state | {"results": dict(state["results"])})


def _seed(seed: int, opponent: str, part: int) -> int:
    """Other games in every chunk; the same ones for every version, so that versions can be compared."""
    text = f"{seed} {opponent} {part}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def _sound(values: Any, shape: tuple[int, int]) -> bool:
    """Whether they are pairs of numbers, or of nothing where a game was stopped."""
    if not isinstance(values, list) or len(values) != shape[0]:
        return False
    return all(
        isinstance(row, list)
        and len(row) == shape[1]
        and all(x is None or (isinstance(x, int | float) and math.isfinite(x)) for x in row)
        for row in values
    )
