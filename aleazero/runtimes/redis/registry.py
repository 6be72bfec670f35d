"""Who takes part: from signs of life to who is welcome, who is refused and who is dead.

Every start of a worker has a name of its own, its instance. A token has one seat: a new start of the same worker gets
it when the one before has left or gives no sign of life; while that one is alive, it is refused. Times are ages by the
server's clock and the head's own durations; no other machine's clock is asked. Knows no Redis.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from aleazero.runtimes.redis.beats import Beat

DEAD_SECONDS = 20.0  # without a sign of life
TAKE_OVER_SECONDS = 7.0  # that a start must have been silent before the next may have its seat

Verdict = Literal["welcome", "refused"]


@dataclasses.dataclass
class Seat:
    """The start of a worker that has its token's place."""

    instance: str
    status: dict[str, Any]
    last: float  # when it last gave a sign of life, by the head's own count of seconds
    left: bool = False

    def age(self, now: float) -> float:
        """Seconds since then."""
        return max(now - self.last, 0.0)

    def alive(self, now: float) -> bool:
        """Whether it takes part."""
        return not self.left and self.age(now) <= DEAD_SECONDS


class Registry:
    """The seats of a run."""

    def __init__(self) -> None:
        self.seats: dict[str, Seat] = {}  # by worker
        self._waiting: dict[tuple[str, str], float] = {}  # by worker and instance: since when it wants a seat
        self._refused: dict[tuple[str, str], str] = {}

    def see(self, worker: str, beat: Beat, now: float) -> tuple[str, Verdict, str] | None:
        """A worker's last sign of life; what is to be said to which instance, and why. None: nothing yet."""
        instance = beat.status.get("instance")
        if not isinstance(instance, str):
            return None
        moment, key, seat = now - beat.age_seconds, (worker, instance), self.seats.get(worker)
        leaving = beat.status.get("leaving") is True
        if seat is None or seat.instance == instance:
            self.seats[worker] = Seat(instance, beat.status, moment, leaving)
            return instance, "welcome", str(beat.status.get("host", "?"))
        if leaving:  # one that never had the seat
            self._waiting.pop(key, None)
            return None
        since = self._waiting.setdefault(key, moment)
        if key not in self._refused and seat.last > since + 0.1:
            host = seat.status.get("host", "?")
            self._refused[key] = f"its token is in use by a worker on {host}: each worker needs a token of its own"
        if key in self._refused:
            return instance, "refused", self._refused[key]
        if seat.left or seat.age(now) > TAKE_OVER_SECONDS:
            self._waiting.pop(key)
            self.seats[worker] = Seat(instance, beat.status, moment)
            return instance, "welcome", str(beat.status.get("host", "?"))
        return None

    def free(self, worker: str) -> None:
        """A worker whose process is known to have ended."""
        if worker in self.seats:
            self.seats[worker].left = True

    def alive(self, now: float, kind: str | None = None) -> dict[str, Seat]:
        """Those who take part, by name; of one kind, if asked for."""
        return {
            name: seat
            for name, seat in self.seats.items()
            if seat.alive(now) and kind in (None, seat.status.get("kind"))
        }
