"""What passes between actors of a run: orders to play, and receipts for what was played. Knows nobody who sends them.

A slab is named by its source and a number that counts the source's slabs: one that comes twice counts once. It lies in
the object store, its player is its owner, and it is kept until a checkpoint of the learner holds it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import ray
from ray import exceptions

from aleazero.core.errors import AleaError

Named = tuple[int, int]  # weights: by whose they are (a later learner has a larger number), and by their version


@dataclasses.dataclass(frozen=True)
class Order:
    """What to play with."""

    name: Named  # of the weights
    weights: list[Any]  # one reference to their arrays: inside a list it is fetched only by one who has not got them
    rows: int  # of the run so far: schedules go by them
    epoch: int
    saved: dict[int, int]  # by source: slabs below this number are in a checkpoint

    @property
    def version(self) -> int:
        """Of the weights."""
        return self.name[1]


@dataclasses.dataclass(frozen=True)
class Receipt:
    """A slab that was played."""

    source: int
    number: int  # of the source's slabs, from 0 on
    version: int  # of the weights that played it
    games: int  # that are over with a move of it
    played: float  # seconds
    slab: list[Any]  # one reference to its arrays, by field


def answer_of(question: Any, timeout: float | None = None) -> Any:
    """What an actor answers; what it complains of in our words comes without the traceback of another process."""
    try:
        return ray.get(question, timeout=timeout)
    except exceptions.RayTaskError as error:
        if isinstance(error.cause, AleaError):
            raise error.cause from None
        raise
