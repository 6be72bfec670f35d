"""An evaluation worker: plays the chunks of matches that the head hands out, on whatever machine, and says what came.

Its results go with its signs of life, again and again until the head has something else for it: nothing is lost, and
what comes twice counts once. Knows how to play a match; not what it is for.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from aleazero.assemble import Parts, build_parts
from aleazero.core.errors import AleaError
from aleazero.core.records import Weights
from aleazero.players import make_player
from aleazero.runtimes.codec import unpack_weights
from aleazero.runtimes.redis.access import Keys, Token
from aleazero.runtimes.redis.board import read_config
from aleazero.runtimes.redis.evaluation import PREVIOUS, Chunk
from aleazero.runtimes.redis.game import device
from aleazero.runtimes.redis.link import Link
from aleazero.runtimes.redis.member import Member

logger = logging.getLogger(__name__)

IDLE_SECONDS = 0.2


def measured(keys: Keys, version: int) -> str:
    """The key of a version that is being measured, kept as long as it is."""
    return keys.public(f"measured:{version}")


class EvalWorker:
    """Plays chunks until it is told to stop."""

    def __init__(
        self, link: Link, token: Token, *, stop: Callable[[], bool], wait: bool = False, root: Path | None = None
    ) -> None:
        """`root` is where the runs are kept that opponents may name."""
        self._link, self._token, self._keys = link, token, Keys(token.run)
        self._asked, self._wait, self._root = stop, wait, root
        self._result: dict[str, Any] = {}
        self._can: list[str] | None = None  # the opponents that it can play, once it knows
        self._chunks = 0
        self._weights: dict[int, Weights] = {}
        self._member = Member(link, token, "eval", self._status)

    def run(self) -> None:
        """Joins, plays what it is given, and leaves when told to."""
        self._member.serve(self._serve_one_life, self._stops, wait=self._wait)

    def _stops(self) -> bool:
        return self._asked() or self._member.told_to_stop

    def _serve_one_life(self) -> None:
        config, incarnation = read_config(self._link, self._keys)
        self._member.page.open(config)
        parts = build_parts(config, [jax.local_devices()[0]], self._root)
        self._can, self._weights, self._result = self._playable(parts), {}, {}
        while not self._stops() and self._member.notices.incarnation in ("", incarnation):
            self._member.check()
            chunk = _chunk(self._member.orders.get("chunk"))
            if chunk is None or (chunk.version, chunk.number) == self._key_of_result():
                time.sleep(IDLE_SECONDS)
            else:
                self._play(parts, chunk)

    def _key_of_result(self) -> tuple[Any, Any]:
        return self._result.get("version"), self._result.get("number")

    def _playable(self, parts: Parts) -> list[str]:
        """The opponents that there are on this machine."""
        found = []
        for opponent in parts.config.evaluate.opponents:
            try:
                make_player(opponent, parts.game, self._root)
                found.append(opponent)
            except AleaError as error:
                logger.warning("opponent %s is left to others: %s", opponent, error)
        return found

    def _play(self, parts: Parts, chunk: Chunk) -> None:
        weights, before = self._fetch(parts, chunk.version), self._fetch(parts, chunk.against)
        if weights is None or (before is None and chunk.opponent == PREVIOUS):
            time.sleep(IDLE_SECONDS)  # the head has gone on meanwhile
            return
        other = chunk.opponent if before is None else parts.match_player(before, chunk.opponent)
        result = parts.play_match(weights, other, self._root, pairs=chunk.pairs, seed=chunk.seed)
        self._chunks += 1
        self._result = {
            "version": chunk.version,
            "number": chunk.number,
            "points": _listed(result.points),
            "luck": None if result.luck is None else _listed(result.luck),
        }
        self._member.speak()

    def _fetch(self, parts: Parts, version: int) -> Weights | None:
        """A version that is being measured, fetched once; None where there is none."""
        if version < 0:
            return None
        if version not in self._weights:
            data: Any = self._link.call(lambda client: client.get(measured(self._keys, version)), writes=False)
            if data is None:
                return None
            like = jax.eval_shape(parts.model.init, jax.random.key(0))
            self._weights[version] = jax.device_put(unpack_weights(data, like)[1], jax.local_devices()[0])
            while len(self._weights) > 2:  # the one measured, and the one before
                del self._weights[next(iter(self._weights))]
        return self._weights[version]

    def _status(self) -> dict[str, Any]:
        """For signs of life."""
        return {"device": device(), "can": self._can, "chunks": self._chunks, "result": self._result}


def _chunk(said: Any) -> Chunk | None:
    """From the head's orders."""
    if not isinstance(said, dict):
        return None
    try:
        return Chunk(**said)
    except TypeError:
        return None


def _listed(values: np.ndarray) -> list[list[float | None]]:
    return [[None if math.isnan(x) else float(x) for x in row] for row in values]


def order_of(chunk: Chunk) -> dict[str, Any]:
    """For the head's orders."""
    return dataclasses.asdict(chunk)
