"""Episodes: finished games, put together on the host from the slabs that a rollout brings.

A game spans slabs, and a slab holds the ends and beginnings of many games; an episode is one game, whole. Its id
follows from where it was played, so that whoever gets it twice can tell.
Knows trajectories only; not what episodes are for.
"""

from __future__ import annotations

import dataclasses

import jax
import numpy as np

from aleazero.core.errors import AleaError
from aleazero.core.records import Trajectory


class EpisodeError(AleaError):
    """A slab does not go on where the one before it ended."""


@dataclasses.dataclass(frozen=True)
class Episode:
    """One game from its first move to its last."""

    id: str  # "SEED-LANE-MOVE": the run's seed, the lane, the number of the first move
    version: int  # of the weights that its first move was played with
    moves: Trajectory  # numpy arrays [L, ...]; the last move, and no other, is ended or truncated

    def __len__(self) -> int:
        return len(self.moves.action)


@dataclasses.dataclass
class _Head:
    """The moves so far of a lane's game."""

    first: int  # the number of its first move
    version: int
    whole: bool  # its first move is among them
    parts: list[Trajectory]  # [n, ...] each


class EpisodeAssembler:
    """Takes slabs in the order in which they were played; holds what is unfinished.

    A slab that was taken before is ignored; one that leaves a gap, or is new in part, is an error. Where the first slab
    does not begin with move 0, the games under way there lack their beginnings and are left out.
    """

    def __init__(self, seed: int, lanes: np.ndarray) -> None:
        """`lanes` `[B]` are the lanes' own numbers."""
        self._seed = seed
        self._lanes = np.asarray(lanes)
        self._next: int | None = None  # the number of the move that comes next; None before the first slab
        self._heads = [_Head(0, 0, True, []) for _ in self._lanes]

    @property
    def pending(self) -> np.ndarray:
        """`[B]` int: moves of unfinished games, lane by lane."""
        return np.array([sum(len(part.action) for part in head.parts) for head in self._heads])

    def add(self, first_move: int, slab: Trajectory, version: int = 0) -> list[Episode]:
        """The games that end in a slab, by lane and then by move.

        Args:
            first_move: the number of the slab's first move in the life of the run.
            slab: `[T, B, ...]`, on any device.
            version: of the weights that played it.
        """
        host: Trajectory = jax.tree.map(np.asarray, slab)
        moves, lanes = host.action.shape
        if lanes != len(self._lanes):
            raise EpisodeError(f"a slab of {lanes} lanes was added; this assembler is for {len(self._lanes)}")
        if self._next is None:
            self._next = first_move
            for head in self._heads:
                head.whole = first_move == 0
        if first_move + moves <= self._next:
            return []
        if first_move != self._next:
            raise EpisodeError(
                f"a slab of moves {first_move} to {first_move + moves - 1} was added; the next one begins with move "
                f"{self._next}. Add slabs in order, each once"
            )
        self._next = first_move + moves
        return [episode for place in range(lanes) for episode in self._cut(place, host, first_move, version)]

    def _cut(self, place: int, slab: Trajectory, first_move: int, version: int) -> list[Episode]:
        """One lane's games that end in the slab; what is left over is its new head."""
        found, start = [], 0
        head = self._heads[place]
        if not head.parts:
            head.version = version
        over = np.flatnonzero(slab.ended[:, place] | slab.truncated[:, place])
        for end in (over + 1).tolist():
            head.parts.append(_stretch(slab, place, start, end))
            if head.whole:
                found.append(self._episode(place, head))
            start = end
            head = _Head(first_move + start, version, True, [])
        if start < len(slab.action):
            head.parts.append(_stretch(slab, place, start, len(slab.action)))
        self._heads[place] = head
        return found

    def _episode(self, place: int, head: _Head) -> Episode:
        moves = jax.tree.map(lambda *parts: np.concatenate(parts), *head.parts)
        return Episode(f"{self._seed}-{int(self._lanes[place])}-{head.first}", head.version, moves)


def _stretch(slab: Trajectory, place: int, start: int, end: int) -> Trajectory:
    return jax.tree.map(lambda field: field[start:end, place], slab)
