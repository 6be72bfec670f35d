"""The driver's look at who takes part in a run: who hangs is named, ended, and started again.

Knows signs of life; not what anybody does.
"""

from __future__ import annotations

import logging

import ray

from aleazero.core.errors import AleaError
from aleazero.runtimes.ray.crew import Crew
from aleazero.runtimes.ray.pulse import LOST, START_SECONDS, Pulse

logger = logging.getLogger(__name__)


class LearnerHangs(AleaError):  # noqa: N818 - the name says what happened
    """The learner is there and does not answer."""


class NobodyStarts(AleaError):  # noqa: N818 - the name says what happened
    """Ray does not start an actor that a run cannot do without."""


class Watch:
    """Asks everybody, again and again; learners come and go meanwhile."""

    def __init__(self, crew: Crew) -> None:
        self._server: Pulse | None = None
        self._players = [Pulse(player) for player in crew.players]
        self.see(crew)

    def see(self, crew: Crew) -> None:
        """The crew, whose inference server may be another one now."""
        self.crew = crew
        if crew.server is None or self._server is None or self._server.actor != crew.server:
            self._server = None if crew.server is None else Pulse(crew.server)

    @property
    def served(self) -> bool:
        """Whether the inference server is there, if there should be one."""
        return self._server is None or self._server.met

    def look(self, learner: Pulse) -> None:
        """Starts again who hangs; raises where that is the learner, whose end ends what was asked of it."""
        if not self._well(learner, "learner", "learner_gpu"):
            raise LearnerHangs(f"it has not answered for {learner.silence:.0f} s")
        if self._server is not None and not self._well(self._server, "inference server", "inference_gpu"):
            _start_again(self._server, "the inference server")
        for pulse in self._players:  # whether any of them starts is the learner's to say
            if not self._well(pulse):
                _start_again(pulse, "a player")

    def _well(self, pulse: Pulse, who: str | None = None, share: str = "") -> bool:
        try:
            pulse.look()
        except LOST:  # Ray starts it again, or what was asked of it says that it is gone
            pulse.lose()
        if who is not None and not pulse.met and pulse.silence > START_SECONDS:
            raise NobodyStarts(
                f"the {who} has not started for {START_SECONDS:.0f} s: has the cluster a GPU free for it "
                f"(ray.{share}), and memory? See: alea ray status"
            )
        return not pulse.hangs


def _start_again(pulse: Pulse, who: str) -> None:
    logger.warning("%s has not answered for %.0f s: it is started again", who, pulse.silence)
    ray.kill(pulse.actor, no_restart=False)
    pulse.lose()
