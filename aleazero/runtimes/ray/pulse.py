"""Signs of life of an actor: `Pulse` asks for them, `Heart` gives them.

An actor that owes an answer for SILENCE_SECONDS hangs. One that nobody asks any more has no driver, and ends itself.
Knows neither what the actor does nor who starts it again.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import ray
from ray import exceptions

BEAT_SECONDS = 5.0  # between two questions
SILENCE_SECONDS = 30.0  # without an answer: it hangs
START_SECONDS = 180.0  # for the first answer, on a busy machine
LOOK_SECONDS = 1.0  # between two looks whether anybody asks
READ_SECONDS = 0.5  # for an answer that is there

GONE = (exceptions.RayActorError, exceptions.NodeDiedError, exceptions.OutOfMemoryError)
"""What Ray says of somebody who is gone."""
LOST = (*GONE, exceptions.ObjectLostError, exceptions.GetTimeoutError)
"""The same, and what it says of what they had."""


class Pulse:
    """Whether one actor is alive, as somebody else sees it."""

    def __init__(self, actor: Any) -> None:
        """`actor` is a handle; it must answer `alive`."""
        self.actor = actor
        self.met = False  # it has answered since it was started
        self._question: Any = None
        self._at = 0.0  # when it was asked, or answered
        self._owes: float | None = None  # an answer, since then

    def look(self) -> bool:
        """Asks if it is time; whether an answer has come. Raises one of `LOST` where the actor is gone."""
        now = time.monotonic()
        if self._question is None:
            if now - self._at >= BEAT_SECONDS:
                self._question, self._at = self.actor.alive.remote(), now
                self._owes = now if self._owes is None else self._owes
            return False
        if not ray.wait([self._question], timeout=0)[0]:
            return False
        question, self._question, self._at = self._question, None, now
        ray.get(question, timeout=READ_SECONDS)
        self.hear()
        return True

    def hear(self) -> None:
        """It has said something, or answered."""
        self.met, self._owes = True, None if self._question is None else time.monotonic()

    def lose(self) -> None:
        """It is gone: if it comes back, that takes a while, and its silence is counted from now."""
        if self.met and self._owes is not None:
            self._owes = time.monotonic()
        self.met = False

    @property
    def silence(self) -> float:
        """Seconds for which it has owed an answer."""
        return 0.0 if self._owes is None else time.monotonic() - self._owes

    @property
    def hangs(self) -> bool:
        """Whether it is there and does not answer."""
        return self.met and self.silence > SILENCE_SECONDS


class Heart:
    """An actor's own: it ends the actor for good once nobody has asked for so long."""

    def __init__(self, linger_seconds: float) -> None:
        """In the actor's constructor."""
        self._asked, self._linger = time.monotonic(), linger_seconds
        me = ray.get_runtime_context().current_actor
        threading.Thread(target=self._work, args=(me,), name="alea-heart", daemon=True).start()

    def beat(self) -> int:
        """Somebody has asked; the number of this process."""
        self._asked = time.monotonic()
        return os.getpid()

    def _work(self, me: Any) -> None:
        while time.monotonic() - self._asked < self._linger:
            time.sleep(LOOK_SECONDS)
        ray.kill(me)
