"""An actor that answers for a network: requests of all players joined, up to so many rows or so long, in one batch.

Batches are padded to a few compiled sizes. Where more waits than a few batches, requests are kept at the door. After a
restart it has no weights and says so; whoever asks brings them, and only then is there an answer. Knows the network;
not what is asked for.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import dataclasses
import math
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aleazero.core.compilation import keep_compiled_programs
from aleazero.core.records import Weights
from aleazero.runtimes.groups import far_parts_of
from aleazero.runtimes.ray.far_play import Answer
from aleazero.runtimes.ray.pulse import Heart

LEAST_ROWS = 32  # that a batch is padded to
MOST_BATCHES = 4  # that may wait
REMEMBERED = 4096  # latencies


def padded(rows: int) -> int:
    """The compiled size for so many rows: the next power of two."""
    return max(1 << (rows - 1).bit_length(), LEAST_ROWS)


@dataclasses.dataclass
class _Request:
    observations: np.ndarray  # [N, ...]
    answer: asyncio.Future[Answer]
    came: float


class Network:
    """The network alone: padded batches, compiled."""

    def __init__(self, config: str) -> None:
        """`config` is the run's, as TOML."""
        parts = far_parts_of(config, 1)
        model = parts.model
        self._like = jax.eval_shape(model.init, jax.random.key(0))
        self._weights: Weights | None = None
        self.version = -1

        def answer(weights: Weights, observations: Any) -> Any:
            output = model.apply(weights, observations)
            return output.logits, model.opinion_of(output)

        self._answer = jax.jit(answer)

    def load(self, version: int, leaves: list[np.ndarray]) -> None:
        """Takes weights, unless it has newer ones."""
        if version > self.version:
            self._weights = jax.device_put(jax.tree.unflatten(jax.tree.structure(self._like), leaves))
            self.version = version

    def compute(self, observations: list[np.ndarray]) -> list[Answer]:
        """What the network says of each request's rows."""
        counts = [len(rows) for rows in observations]
        total = sum(counts)
        batch = np.zeros((padded(total), *observations[0].shape[1:]), observations[0].dtype)
        np.concatenate(observations, out=batch[:total])
        logits, opinions = jax.device_get(self._answer(self._weights, jnp.asarray(batch)))
        ends = np.cumsum(counts)[:-1]
        return list(zip(np.split(logits[:total], ends), np.split(opinions[:total], ends), strict=True))


class InferenceServer:
    """Joins requests; an asynchronous actor."""

    def __init__(self, config: str, most_rows: int, wait_ms: float, linger_seconds: float = math.inf) -> None:
        """`most_rows` are joined, at most; the first of them waits `wait_ms` for others.

        Once nobody has asked whether it is alive for `linger_seconds` it ends itself.
        """
        self._heart = Heart(linger_seconds)
        keep_compiled_programs()
        self._network = Network(config)
        self._most, self._wait = most_rows, wait_ms / 1000
        self._requests: asyncio.Queue[_Request] = asyncio.Queue()
        self._waiting = 0  # rows
        self._door = asyncio.Condition()
        self._pool = concurrent.futures.ThreadPoolExecutor(1)
        self._worker: asyncio.Task[None] | None = None
        self._latencies: collections.deque[float] = collections.deque(maxlen=REMEMBERED)
        self._rows, self._room, self._batches, self._since = 0, 0, 0, time.monotonic()

    async def alive(self) -> int:
        """The number of its process."""
        return self._heart.beat()

    async def load(self, version: int, weights: list[Any]) -> None:
        """Takes weights from the object store."""
        if version > self._network.version:
            leaves = await weights[0]
            await asyncio.get_running_loop().run_in_executor(self._pool, self._network.load, version, leaves)

    async def infer(self, version: int, observations: np.ndarray) -> Answer | None:
        """Logits and opinions of observations `[N, ...]`; None where it has not got these weights, or newer ones."""
        if self._network.version < version:
            return None
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work())
        rows = len(observations)
        request = _Request(observations, asyncio.get_running_loop().create_future(), time.monotonic())
        async with self._door:
            await self._door.wait_for(lambda: not self._waiting or self._waiting + rows <= MOST_BATCHES * self._most)
            self._waiting += rows
        await self._requests.put(request)
        answer = await request.answer
        self._latencies.append(time.monotonic() - request.came)
        return answer

    async def figures(self) -> dict[str, float]:
        """How it did since it was last asked."""
        seconds = max(time.monotonic() - self._since, 1e-6)
        latencies = np.sort(np.array(self._latencies or [0.0])) * 1000
        found = {
            "rows_per_second": self._rows / seconds,
            "batch_rows": self._rows / max(self._batches, 1),
            "batch_fill": self._rows / max(self._room, 1),
            "latency_p50_ms": float(np.quantile(latencies, 0.5)),
            "latency_p99_ms": float(np.quantile(latencies, 0.99)),
            "waiting_rows": float(self._waiting),
        }
        self._rows, self._room, self._batches, self._since = 0, 0, 0, time.monotonic()
        self._latencies.clear()
        return found

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        kept: _Request | None = None
        while True:
            batch, kept = await self._gather(kept or await self._requests.get())
            observations = [request.observations for request in batch]
            try:
                answers = await loop.run_in_executor(self._pool, self._network.compute, observations)
            except Exception as error:  # who asked is told; the next batch may be better
                for request in batch:
                    request.answer.set_exception(error)
                answers = []
            for request, answer in zip(batch, answers, strict=False):
                if not request.answer.done():  # nobody waits for it any more
                    request.answer.set_result(answer)
            rows = sum(map(len, observations))
            self._rows, self._room, self._batches = self._rows + rows, self._room + padded(rows), self._batches + 1
            async with self._door:
                self._waiting -= rows
                self._door.notify_all()

    async def _gather(self, first: _Request) -> tuple[list[_Request], _Request | None]:
        """Requests that go together, and one that came too late for them."""
        batch, rows, until = [first], len(first.observations), time.monotonic() + self._wait
        while rows < self._most:
            try:
                left = max(until - time.monotonic(), 0.0)
                request = (
                    self._requests.get_nowait() if not left else await asyncio.wait_for(self._requests.get(), left)
                )
            except (TimeoutError, asyncio.QueueEmpty):
                break
            if rows + len(request.observations) > self._most:
                return batch, request
            batch.append(request)
            rows += len(request.observations)
        return batch, None
