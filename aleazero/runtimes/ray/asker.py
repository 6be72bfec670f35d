"""A player's way to the inference server: requests that outlive it.

A server that is gone is asked again until it is back, or another one has its name; one that has come back without
weights is given them first. Asking twice is as good as once. Knows how to find the server; not what is asked for.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ray
from ray import exceptions

from aleazero.core.errors import AleaError
from aleazero.runtimes.ray.far_play import Answer
from aleazero.runtimes.ray.messages import Named
from aleazero.runtimes.ray.pulse import GONE, SILENCE_SECONDS, START_SECONDS

LOOK_SECONDS = 60.0  # without an answer, before it is asked whether it is alive
PATIENCE_SECONDS = START_SECONDS  # for a server to come back
COMPILE_SECONDS = 900.0  # for one that is alive to answer
PAUSE_SECONDS = 0.25  # before it is asked again


class ServerGone(AleaError):  # noqa: N818 - the name says what happened
    """The inference server does not come back."""


def lean(rows: np.ndarray) -> np.ndarray:
    """The same numbers in a quarter of the bytes where all are small and whole, as those of most boards are."""
    with np.errstate(invalid="ignore"):  # others are found out
        short = rows.astype(np.int8)
    return short if np.array_equal(short, rows) else rows


class ServerAsker:
    """Asks the server; where it is gone, again until it is back."""

    def __init__(self, find: Callable[[], Any]) -> None:
        """`find` gets the handle of an `InferenceServer`; a ValueError says that there is none now."""
        self._find, self._server = find, find()
        self._name, self._weights = (-1, -1), list[Any]()
        self._open: dict[Any, np.ndarray] = {}  # by question
        self._again: dict[Any, Any] = {}  # by the question first asked: the one that stands for it now
        self._silent_since: float | None = None

    def use(self, name: Named, weights: list[Any]) -> None:
        """Weights that answers must come from, or from newer ones."""
        self._name, self._weights = name, weights

    def ask(self, observations: np.ndarray) -> Any:
        """Sends a request."""
        observations = lean(observations)
        question = self._server.infer.remote(self._name, observations)
        self._open[question] = observations
        return question

    def wait(self, questions: Any) -> tuple[Any, Answer]:
        """The next one that is answered, whatever happens to the server meanwhile."""
        began = time.monotonic()
        while True:
            by_now = {self._again.get(question, question): question for question in questions}
            ready, _ = ray.wait(list(by_now), num_returns=1, timeout=LOOK_SECONDS)
            for asked in ready:
                question = by_now[asked]
                answer = self._read(asked)
                if answer is not None:
                    self._silent_since = None
                    self._again.pop(question, None)
                    return question, answer
                observations = self._open.pop(asked)
                self._again[question] = self._server.infer.remote(self._name, observations)
                self._open[self._again[question]] = observations
            if not ready and (waited := time.monotonic() - began) > self._patience():
                raise ServerGone(f"the inference server has not answered for {waited:.0f} s")

    def _patience(self) -> float:
        """How long it is worth waiting: one that is alive compiles, or has much to do; the others may come back."""
        try:
            ray.get(self._server.alive.remote(), timeout=SILENCE_SECONDS)
        except (*GONE, exceptions.GetTimeoutError):
            return PATIENCE_SECONDS
        return COMPILE_SECONDS

    def _read(self, asked: Any) -> Answer | None:
        """None where it must be asked again; by then the server has weights, or has had time to come back."""
        try:
            answer: Answer | None = ray.get(asked)
            if answer is None:
                ray.get(self._server.load.remote(self._name, self._weights))
        except GONE as error:
            now = time.monotonic()
            self._silent_since = self._silent_since or now
            if now - self._silent_since > PATIENCE_SECONDS:
                raise ServerGone(f"the inference server is gone: {error}") from error
            time.sleep(PAUSE_SECONDS)
            with contextlib.suppress(ValueError):
                self._server = self._find()
            return None
        if answer is not None:
            self._open.pop(asked, None)
        return answer
