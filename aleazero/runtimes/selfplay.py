"""Who brings a run its slabs, and the one who plays them in the run's own process.

Knows the actor and what of it belongs into a checkpoint; not who learns.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

from aleazero import checkpoint as checkpoints
from aleazero.assemble import Parts
from aleazero.core.records import Trajectory
from aleazero.observe.alarms import Alarm, stale_weights
from aleazero.roles.actor import Actor
from aleazero.roles.ports import EpisodeSink, WeightStore

Resume = Literal["exact", "weights"]


class Producer(Protocol):
    """Brings slabs: by playing, or from others who do."""

    @property
    def rows(self) -> int:
        """Rows brought so far, in earlier stretches of the run too."""

    def step(self) -> Trajectory | None:
        """The next slab, once it is in the sink; None where none came for a while."""

    def alarm(self, learner_version: int) -> Alarm | None:
        """What is wrong with how it plays, now that the learner is so far."""

    def arrays(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""

    def facts(self) -> dict[str, Any]:
        """And in words."""

    def take_up(self, found: checkpoints.Checkpoint, how: Resume) -> None:
        """Goes on from a checkpoint: exactly, or with games of its own beginning."""


class SelfPlay(Actor):
    """Plays in this process."""

    def __init__(self, parts: Parts, sink: EpisodeSink, weights: WeightStore) -> None:
        play = parts.config.selfplay
        super().__init__(
            parts.make_play(),
            parts.pace,
            parts.start_games(),
            sink,
            weights,
            num_games=play.num_games,
            moves=play.moves_per_rollout,
        )
        self._parts = parts

    def alarm(self, learner_version: int) -> Alarm | None:
        """Weights that do not reach it."""
        return stale_weights(self.version, learner_version)

    def arrays(self) -> dict[str, Any]:
        """The games in flight."""
        return {"games": self.games}

    def facts(self) -> dict[str, Any]:
        """How far they are."""
        return {"move": self.move}

    def take_up(self, found: checkpoints.Checkpoint, how: Resume) -> None:
        """The count of moves goes on in any case: it names the randomness, which must not come twice."""
        self.move = found.facts["move"]
        if how == "exact":
            self.games = self._parts.place_games(checkpoints.restore(found, "games", self.games))
