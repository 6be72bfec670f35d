"""An actor that plays: rollouts when it is asked for them, with the weights it is told, kept until they are saved.

Plays by the same actor as a local run, several groups of games at once. Started again after a fault it has no weights
and no games: the next order brings the weights, and it begins games that nobody has played. Knows the object store;
neither replay nor learning.
"""

from __future__ import annotations

import functools
import math
import secrets
import time
from typing import Any

import jax
import numpy as np
import ray
from ray import exceptions

from aleazero.assemble import Parts
from aleazero.core.compilation import set_up_compiling
from aleazero.core.errors import AleaError
from aleazero.core.records import Trajectory, Weights
from aleazero.runtimes.groups import far_parts_of
from aleazero.runtimes.lanes import lanes_of
from aleazero.runtimes.ray.asker import ServerAsker
from aleazero.runtimes.ray.far_play import FarGroup, Steps, roll_all
from aleazero.runtimes.ray.messages import Named, Order, Receipt
from aleazero.runtimes.ray.pulse import Heart
from aleazero.runtimes.ray.weights import received
from aleazero.runtimes.selfplay import SelfPlay
from aleazero.runtimes.slabs import Slab, count_games


class StoreFull(AleaError):  # noqa: N818 - the name says what happened
    """There is no room for what was played."""


class OrderedWeights:
    """The weights that the last order named, fetched once; the store of a player."""

    def __init__(self, like: Any) -> None:
        """`like` are arrays, or shapes, of such weights."""
        self._like = like
        self._latest: tuple[int, Weights] | None = None
        self._name: Named | None = None

    def take(self, order: Order) -> None:
        """Fetches what is not here yet."""
        if self._name != order.name:
            leaves = ray.get(order.weights[0])
            self._latest = order.version, received(order.version, leaves, self._like)
            self._name = order.name

    def publish(self, version: int, weights: Weights) -> None:
        """Nobody publishes here: a player only plays."""
        raise NotImplementedError

    def latest(self) -> tuple[int, Weights]:
        """Those of the last order."""
        assert self._latest is not None, "an order comes before play"
        return self._latest


class Kept:
    """What was played and is in no checkpoint yet, in the object store."""

    def __init__(self) -> None:
        self._receipts: dict[tuple[int, int], Receipt] = {}

    def put(self, slab: Slab, source: int, number: int, version: int, played: float) -> Receipt:
        """Keeps a slab; its receipt."""
        try:
            reference = ray.put(slab)
        except (exceptions.ObjectStoreFullError, exceptions.OutOfDiskError) as error:
            raise StoreFull(
                "a machine's object store is full, and so is the folder that it spills to: give it more "
                "(--object-store-gb, --spill-dir), or save checkpoints more often (checkpoint.every_rows)"
            ) from error
        receipt = Receipt(source, number, version, count_games(slab), played, [reference])
        self._receipts[source, number] = receipt
        return receipt

    def drop(self, saved: dict[int, int]) -> None:
        """Lets go of what is in a checkpoint."""
        for source, number in [name for name in self._receipts if name[1] < saved.get(name[0], 0)]:
            del self._receipts[source, number]

    def all(self) -> list[Receipt]:
        """In the order in which they were played."""
        return list(self._receipts.values())


class LocalPlay:
    """Plays with a network of its own: the actor of a local run, with all groups in one rollout."""

    def __init__(self, parts: Parts, sources: list[int]) -> None:
        lanes = parts.config.selfplay.num_games // len(sources)
        self._groups, self._slabs = len(sources), list[Slab]()
        self._weights = OrderedWeights(jax.eval_shape(parts.model.init, jax.random.key(0)))
        self._when = (0, 0)
        self._actor = SelfPlay(
            parts, self, self._weights, lanes_of(sources, lanes), lambda rows: parts.pace(*self._when)
        )

    def prepare(self, order: Order) -> None:
        """Fetches the weights."""
        self._weights.take(order)

    def roll(self, order: Order) -> list[Slab]:
        """One rollout: a slab of each group."""
        self._when = order.rows, order.epoch
        self._actor.step()
        return self._slabs

    def add(self, slab: Trajectory) -> None:
        """The actor's sink."""
        whole = {name: np.split(np.asarray(array), self._groups, axis=1) for name, array in slab.arrays().items()}
        self._slabs = [
            {name: np.ascontiguousarray(split[group]) for name, split in whole.items()} for group in range(self._groups)
        ]


class FarPlay:
    """Plays with a network that a server has: every group's leaves go in one request."""

    def __init__(self, parts: Parts, sources: list[int], server: tuple[str, str]) -> None:
        lanes = parts.config.selfplay.num_games // len(sources)
        self._parts, self._asker = parts, ServerAsker(functools.partial(ray.get_actor, *server))
        steps = Steps(parts)
        self._groups = [FarGroup(steps, lanes_of([source], lanes)) for source in sources]

    def prepare(self, order: Order) -> None:
        """The server is to answer by these weights."""
        self._asker.use(order.name, order.weights)

    def roll(self, order: Order) -> list[Slab]:
        """One rollout: a slab of each group."""
        found = roll_all(self._groups, self._parts.pace(order.rows, order.epoch), self._asker)
        return [{name: np.asarray(array) for name, array in slab.arrays().items()} for slab in found]


class Player:
    """Plays when it is asked to. One process, one core."""

    def __init__(
        self,
        config: str,
        groups: int,
        first_source: int | None,
        server: tuple[str, str] | None = None,
        linger_seconds: float = math.inf,
    ) -> None:
        """`config` is the run's, as TOML; `server` is the name and the namespace of who answers for the network.

        `first_source` names its games in its first life; None: any that are new. Once nobody has asked for
        `linger_seconds` it ends itself.
        """
        self._heart = Heart(linger_seconds)
        set_up_compiling()
        again = ray.get_runtime_context().was_current_actor_reconstructed
        self._parts, self._groups, self._server = far_parts_of(config, groups), groups, server
        self._kept = Kept()
        self._begin(None if again else first_source)

    def _begin(self, first_source: int | None) -> None:
        """Begins games; where they have no names, with some that nobody has ever used, so that no slab is another."""
        if first_source is None:
            self._sources = [secrets.randbits(62) for _ in range(self._groups)]
        else:
            self._sources = [first_source + group for group in range(self._groups)]
        self._number = 0
        self._play: LocalPlay | FarPlay
        if self._server is None:
            self._play = LocalPlay(self._parts, self._sources)
        else:
            self._play = FarPlay(self._parts, self._sources, self._server)

    def play(self, order: Order) -> list[Receipt]:
        """One rollout: a receipt for each group's slab."""
        began = time.monotonic()
        self._kept.drop(order.saved)
        self._play.prepare(order)
        try:
            slabs = self._play.roll(order)
        except Exception:  # some of its moves may have been made: a slab that went on from there would have a hole
            self._begin(None)
            raise
        played = (time.monotonic() - began) / len(slabs)
        receipts = [
            self._kept.put(slab, source, self._number, order.version, played)
            for source, slab in zip(self._sources, slabs, strict=True)
        ]
        self._number += 1
        return receipts

    def kept(self, saved: dict[int, int]) -> list[Receipt]:
        """What no checkpoint holds: for a learner that has begun again from one."""
        self._kept.drop(saved)
        return self._kept.all()

    @ray.method(concurrency_group="life")
    def alive(self) -> int:
        """Answered whatever else it does: the number of its process."""
        return self._heart.beat()
