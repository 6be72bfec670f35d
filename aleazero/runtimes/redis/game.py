"""A game worker: plays what the head's settings say, with the newest weights, and sends what it played.

The actor is the local run's; only its sink, its weights and its pace come from afar. Several groups of games, each as
large as the settings say, go in one rollout: how many, this machine decides. Knows neither replay nor learning.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax

from aleazero.assemble import Parts
from aleazero.config import RunConfig
from aleazero.runtimes.groups import far_parts
from aleazero.runtimes.lanes import lanes_of
from aleazero.runtimes.redis.access import Keys, Token
from aleazero.runtimes.redis.board import read_config
from aleazero.runtimes.redis.link import Link
from aleazero.runtimes.redis.member import Member
from aleazero.runtimes.redis.stream import SlabSender
from aleazero.runtimes.redis.weights import RedisWeights
from aleazero.runtimes.selfplay import SelfPlay
from aleazero.runtimes.slabs import SlabSchema

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 20.0
IDLE_SECONDS = 0.2


def most_waiting(config: RunConfig, rows: int) -> int:
    """Rows that may wait for the learner when a run has so many; with more, they would be of old weights when it comes
    to them. A quarter of what is learned from, or two rollouts: enough for it to go on with."""
    rollout = config.selfplay.num_games * config.selfplay.moves_per_rollout
    return max(config.replay.window_rows(rows) // 4, 2 * rollout)


def device() -> str:
    """Where this process computes, in words."""
    found = jax.local_devices()
    return f"{len(found)} x {found[0].device_kind}" if len(found) > 1 else str(found[0].device_kind)


class GameWorker:
    """Plays until it is told to stop."""

    def __init__(
        self,
        link: Link,
        token: Token,
        *,
        num_games: Callable[[RunConfig], int],
        stop: Callable[[], bool],
        wait: bool = False,
    ) -> None:
        """`num_games(config)` is how many games this machine would play at once; `wait`: for a head that is away."""
        self._link, self._token, self._keys = link, token, Keys(token.run)
        self._num_games, self._asked, self._wait = num_games, stop, wait
        self._began = time.monotonic()
        self._actor: SelfPlay | None = None
        self._sender: SlabSender | None = None
        self._games = 0
        self._member = Member(link, token, "game", self._status)

    def run(self) -> None:
        """Joins, plays, and leaves when told to; begins anew where the run does."""
        self._member.serve(self._play_one_life, self._stops, wait=self._wait)

    def _stops(self) -> bool:
        return self._asked() or self._member.told_to_stop

    def _play_one_life(self) -> None:
        """Until it is told to stop, or the run is another one under the same name."""
        config, incarnation = read_config(self._link, self._keys)
        self._member.page.open(config)
        lanes = config.selfplay.num_games
        groups = max(self._num_games(config) // lanes, 1)
        self._games = groups * lanes
        logger.info("%s: %d games at once, on %s", config.game, self._games, device())
        parts = far_parts(config, groups)
        weights = RedisWeights(self._link, self._keys, jax.eval_shape(parts.model.init, jax.random.key(0)))
        if not self._await_weights(weights):
            return
        # Never used by anybody before, so that no slab is taken for another.
        sources = [secrets.randbits(62) for _ in range(groups)]
        with self._sending(parts, sources, lanes) as sender:
            self._actor = SelfPlay(parts, sender, weights, lanes_of(sources, lanes), self._pace(parts))
            self._began = time.monotonic()
            while not self._stops() and self._member.notices.incarnation in ("", incarnation):
                self._member.check()
                if self._rests(config):
                    time.sleep(IDLE_SECONDS)
                else:
                    # Whoever went on at once would play rollout upon rollout with the weights of now.
                    jax.block_until_ready(self._actor.step())

    def _rests(self, config: RunConfig) -> bool:
        """Whether playing on would be of no use now."""
        progress = self._member.progress
        behind = progress.backlog_rows > most_waiting(config, progress.rows)
        return behind or self._member.told_to_wait or (config.selfplay.rest_while_training and progress.trains)

    def _await_weights(self, weights: RedisWeights) -> bool:
        """Whether there are some; False where it was told to stop before."""
        while not self._stops():
            self._member.check()
            with contextlib.suppress(LookupError):
                weights.latest()
                return True
            time.sleep(IDLE_SECONDS)
        return False

    @contextlib.contextmanager
    def _sending(self, parts: Parts, sources: list[int], lanes: int) -> Iterator[SlabSender]:
        """A sender, drained at the end: what was played is acknowledged, or it is said how much is not."""
        schema = SlabSchema.of(parts.slab_like(), parts.game.spec, lanes)
        sender = SlabSender(
            self._link, self._token, schema, sources, lambda: self._actor.version if self._actor else -1
        )
        self._sender = sender
        try:
            yield sender
        finally:
            self._actor, self._sender = None, None
            if not sender.close(DRAIN_SECONDS):
                logger.warning("%d slabs were not acknowledged before the end, and are lost", sender.waiting)

    def _pace(self, parts: Parts) -> Callable[[int], Any]:
        """Schedules go by how far the run is, not this worker."""
        return lambda rows: parts.pace(self._member.progress.rows, self._member.progress.epoch)

    def _status(self) -> dict[str, Any]:
        """For signs of life."""
        actor, sender = self._actor, self._sender
        if actor is None or sender is None:
            return {"device": device(), "num_games": self._games}
        counts, seconds = sender.counts, max(time.monotonic() - self._began, 1e-3)
        return {
            "device": device(),
            "num_games": self._games,
            "version": actor.version,
            "rows": counts.rows_acknowledged,
            "games": counts.games_acknowledged,
            "rows_per_second": round(counts.rows_acknowledged / seconds, 1),
            "games_per_minute": round(counts.games_acknowledged / seconds * 60, 1),
            "blocked_share": round(counts.seconds_blocked / seconds, 4),
            "waiting": sender.waiting,
        }
