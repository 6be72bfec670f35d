"""Who brings a run its slabs, and the one who plays them in the run's own process.

Knows the actor and what of it belongs into a checkpoint; not who learns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, Protocol, cast

from jax import Array

from aleazero import checkpoint as checkpoints
from aleazero.assemble import Parts
from aleazero.core.errors import AleaError
from aleazero.core.records import Trajectory
from aleazero.observe.alarms import Alarm, stale_weights
from aleazero.observe.reports import Report
from aleazero.roles.actor import Actor
from aleazero.roles.ports import EpisodeSink, SourcedSink, WeightStore

Resume = Literal["exact", "weights"]


class ProducersFailed(AleaError):  # noqa: N818 - the name says what happened
    """Whoever played cannot be kept going."""


@dataclasses.dataclass(frozen=True)
class SoFar:
    """What a run has come to."""

    step: int  # updates
    games: int  # that are over; as many as the last reports knew
    rows_held: int  # in the replay
    trains: bool  # an epoch's games are there, and its updates are being made
    over: bool  # nothing more will come of this process


class Producer(Protocol):
    """Brings slabs: by playing, or from others who do."""

    epoch: int  # epochs that are over: the run says so, and schedules may go by it

    @property
    def rows(self) -> int:
        """Rows brought so far, in earlier stretches of the run too."""

    def step(self) -> Any | None:
        """The next slab, once it is in the sink, or what is to be said of it; None where none came for a while."""

    def alarm(self, learner_version: int) -> Alarm | None:
        """What is wrong with how it plays, now that the learner is so far."""

    def arrays(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""

    def facts(self) -> dict[str, Any]:
        """And in words."""

    def take_up(self, found: checkpoints.Checkpoint, how: Resume) -> None:
        """Goes on from a checkpoint: exactly, or with games of its own beginning."""

    def tend(self, so_far: SoFar) -> bool:
        """Called after every iteration, and in the end: does what there is to do. Whether to save a checkpoint early.

        It should where what it would hold need then not be kept elsewhere any more.
        """

    def saved(self) -> None:
        """A checkpoint with these arrays and facts is safely on the disk."""

    def report(self, where: dict[str, Any]) -> Report | None:
        """What there is to be said of it beside what it played; `where` is where the run stands."""

    def close(self) -> None:
        """Lets go of whatever it holds, however the run ended."""


class SelfPlay(Actor):
    """Plays in this process."""

    def __init__(
        self,
        parts: Parts,
        sink: EpisodeSink,
        weights: WeightStore,
        lanes: Array | None = None,
        pace: Callable[[int], Any] | None = None,
    ) -> None:
        """`lanes` `[B]` are the numbers of its games, and `pace(rows)` what they go by, where others play too."""
        play = parts.config.selfplay
        self.epoch = 0
        self.source = 0  # whose its games are; another where they began after those of producers
        super().__init__(
            parts.make_play(lanes),
            pace or (lambda rows: parts.pace(rows, self.epoch)),
            parts.start_games(lanes),
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
        return {"move": self.move, "source": self.source}

    def take_up(self, found: checkpoints.Checkpoint, how: Resume) -> None:
        """The count of moves goes on in any case: it names the randomness, which must not come twice."""
        if (others := found.facts.get("producers")) is not None:  # played until now: games begin anew
            self.move, self.source = found.facts["rows"] // self._num_games, others["next_source"]
            return
        self.move, self.source = found.facts["move"], found.facts.get("source", 0)
        if how == "exact":
            self.games = self._parts.place_games(checkpoints.restore(found, "games", self.games))

    def hand_over(self, slab: Trajectory) -> None:
        """As what it is: a source's games go on from slab to slab."""
        if self.source:
            cast(SourcedSink, self._sink).add(slab, self.source)  # a run's own, or there were no checkpoint to take up
        else:
            super().hand_over(slab)

    def tend(self, so_far: SoFar) -> bool:
        """Nothing: what it played is in the sink."""
        return False

    def saved(self) -> None:
        """Nothing of it is kept elsewhere."""

    def report(self, where: dict[str, Any]) -> None:
        """Nothing: what it played says it all."""

    def close(self) -> None:
        """Nothing is held."""
