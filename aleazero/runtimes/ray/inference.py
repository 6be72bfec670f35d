"""An actor that answers for a network: requests of all players joined, up to so many rows or so long, in one batch.

Batches are padded to a few compiled sizes. Where more waits than a few batches, requests are kept at the door. After a
restart it has no weights and says so; whoever asks brings them, and only then is there an answer. Knows the network;
not what is asked for.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextlib
import dataclasses
import math
import time
from typing import Any

import jax
import numpy as np
import ray

from aleazero.core.compilation import set_up_compiling
from aleazero.core.records import Weights
from aleazero.runtimes.groups import far_parts_of
from aleazero.runtimes.ray.far_play import Answer
from aleazero.runtimes.ray.messages import Named
from aleazero.runtimes.ray.pulse import Heart
from aleazero.runtimes.ray.weights import received

LEAST_ROWS = 32  # that a batch is padded to
MOST_BATCHES = 4  # that may wait
REMEMBERED = 4096  # latencies


def padded(rows: int) -> int:
    """The compiled size for so many rows: the next power of two, or three quarters of it."""
    size = max(1 << (rows - 1).bit_length(), LEAST_ROWS)
    return size if rows > 3 * size // 4 or size == LEAST_ROWS else 3 * size // 4


def blind() -> bool:
    """Whether this actor has a share of a GPU that JAX does not see."""
    return bool(ray.get_gpu_ids()) and jax.local_devices()[0].platform == "cpu"


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
        game, model = parts.game, parts.model
        self._observation = jax.eval_shape(lambda key: game.observe(game.init(key)), jax.random.key(0))
        self._like = jax.eval_shape(model.init, jax.random.key(0))
        self._weights: Weights | None = None
        self.name = (-1, -1)
        self._rooms: dict[int, np.ndarray] = {}

        def answer(weights: Weights, observations: Any) -> Any:
            output = model.apply(weights, observations)
            return output.logits, model.opinion_of(output)

        self._answer = jax.jit(answer)

    def load(self, name: Named, leaves: list[np.ndarray]) -> None:
        """Takes weights, unless it has newer ones."""
        if name > self.name:
            self._weights = received(name[1], leaves, self._like)
            self.name = name

    def compute(self, observations: list[np.ndarray]) -> list[Answer]:
        """What the network says of each request's rows."""
        ends = np.cumsum([len(rows) for rows in observations]).tolist()
        batch = self._room(padded(ends[-1]))
        np.concatenate(observations, out=batch[: ends[-1]])
        logits, opinions = jax.device_get(self._answer(self._weights, batch))
        return [(logits[i:j], opinions[i:j]) for i, j in zip([0, *ends], ends, strict=False)]

    def _room(self, rows: int) -> np.ndarray:
        """Room for so many rows, used again and again: what an earlier batch left in the padding nobody is told of."""
        if rows not in self._rooms:
            self._rooms[rows] = np.zeros((rows, *self._observation.shape), self._observation.dtype)
        return self._rooms[rows]


class InferenceServer:
    """Joins requests; an asynchronous actor."""

    def __init__(self, config: str, most_rows: int, wait_ms: float, linger_seconds: float = math.inf) -> None:
        """`most_rows` are joined, at most; the first of them waits `wait_ms` for others.

        Once nobody has asked whether it is alive for `linger_seconds` it ends itself.
        """
        self._heart = Heart(linger_seconds)
        set_up_compiling()
        self._network = Network(config)
        self._most, self._wait = most_rows, wait_ms / 1000
        self._requests: collections.deque[_Request] = collections.deque()
        self._waiting = 0  # rows, those that are computed now among them
        self._came, self._left = asyncio.Event(), asyncio.Event()
        self._pool = concurrent.futures.ThreadPoolExecutor(1)
        self._worker: asyncio.Task[None] | None = None
        self._latencies: collections.deque[float] = collections.deque(maxlen=REMEMBERED)
        self._rows, self._room, self._batches, self._since = 0, 0, 0, time.monotonic()

    async def alive(self) -> int:
        """The number of its process."""
        return self._heart.beat()

    async def load(self, name: Named, weights: list[Any]) -> None:
        """Takes weights from the object store."""
        if name > self._network.name:
            leaves = await weights[0]
            await asyncio.get_running_loop().run_in_executor(self._pool, self._network.load, name, leaves)

    async def infer(self, name: Named, observations: np.ndarray) -> Answer | None:
        """Logits and opinions of observations `[N, ...]`; None where it has not got these weights, or newer ones."""
        if self._network.name < name:
            return None
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work())
        rows, came = len(observations), time.monotonic()
        while self._waiting and self._waiting + rows > MOST_BATCHES * self._most:
            await self._left.wait()
        request = _Request(observations, asyncio.get_running_loop().create_future(), came)
        self._requests.append(request)
        self._waiting += rows
        self._came.set()
        answer = await request.answer
        self._latencies.append(time.monotonic() - came)
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
            "blind": float(blind()),
        }
        self._rows, self._room, self._batches, self._since = 0, 0, 0, time.monotonic()
        self._latencies.clear()
        return found

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = await self._gather()
            observations = [request.observations for request in batch]
            rows = sum(map(len, observations))
            try:
                answers = await loop.run_in_executor(self._pool, self._network.compute, observations)
                for request, answer in zip(batch, answers, strict=True):
                    if not request.answer.done():  # or else nobody waits for it any more
                        request.answer.set_result(answer)
            except Exception as error:  # who asked is told; the next batch may be better
                for request in batch:
                    if not request.answer.done():
                        request.answer.set_exception(error)
            self._rows, self._room, self._batches = self._rows + rows, self._room + padded(rows), self._batches + 1
            self._waiting -= rows
            self._left.set()  # wakes who is at the door, and nobody who comes later
            self._left.clear()

    async def _gather(self) -> list[_Request]:
        """Requests that go together: as many as fit, once there are enough or the first has waited long enough."""
        while True:
            rows = sum(len(request.observations) for request in self._requests)
            left = self._requests[0].came + self._wait - time.monotonic() if self._requests else None
            if left is not None and (left <= 0 or rows >= self._most):
                break
            self._came.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._came.wait(), left)
        batch = [self._requests.popleft()]
        room = self._most - len(batch[0].observations)
        while self._requests and len(self._requests[0].observations) <= room:
            batch.append(self._requests.popleft())
            room -= len(batch[-1].observations)
        return batch
