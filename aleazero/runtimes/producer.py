"""A process that plays games for a learner on the same machine (`python -m aleazero.runtimes.producer FD`).

It is told what to play over a connection that it inherits, plays with the newest weights that lie in a file, and sends
what it played the same way: a send waits until the learner has room, so nothing is dropped. When the learner is gone it
ends. Plays by the same actor as a local run. Knows neither replay nor learning.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys
import time
import tomllib
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from aleazero.assemble import build_parts
from aleazero.config import RunConfig
from aleazero.core.compilation import set_up_compiling
from aleazero.core.records import Trajectory, Weights
from aleazero.core.settings import Layer, build
from aleazero.export import weights_from_bytes, weights_to_bytes
from aleazero.runtimes.lanes import lanes_of
from aleazero.runtimes.selfplay import SelfPlay
from aleazero.runtimes.slabs import SlabSchema

_HEADER = struct.Struct("<qqdd")  # of a slab: its number from 0 on, weights version, seconds played, seconds waited
_BOARD = struct.Struct("<qqq")  # weights version, rows of the run, epoch; before the weights
_SLEEP = 0.05


class FileWeights:
    """The newest weights in a file, whole at every moment, with how far the run is; a store for one writer."""

    def __init__(self, path: Path, like: Any) -> None:
        """`like` are arrays, or shapes, of such weights."""
        self._path, self._like = path, like
        self._stamp: tuple[int, int] | None = None
        self._latest: tuple[int, Weights] | None = None
        self.rows, self.epoch = 0, 0  # of the run, as far as the file knows

    def publish(self, version: int, weights: Weights) -> None:
        """Makes a version known, and how far the run is by now."""
        self._latest = (version, weights)
        fresh = self._path.with_suffix(".new")
        fresh.write_bytes(_BOARD.pack(version, self.rows, self.epoch) + weights_to_bytes(weights))
        fresh.replace(self._path)

    def latest(self) -> tuple[int, Weights]:
        """The newest version: this process's own, or what the file holds."""
        with contextlib.suppress(FileNotFoundError):
            seen = self._path.stat()
            if (seen.st_mtime_ns, seen.st_ino) != self._stamp:
                self._read()
                self._stamp = seen.st_mtime_ns, seen.st_ino
        if self._latest is None:
            raise LookupError(f"no weights in {self._path}")
        return self._latest

    def _read(self) -> None:
        data = self._path.read_bytes()
        version, self.rows, self.epoch = _BOARD.unpack_from(data)
        if self._latest is None or version != self._latest[0]:
            self._latest = version, jax.device_put(weights_from_bytes(data[_BOARD.size :], self._like))


class Said(NamedTuple):
    """What a producer says of a slab."""

    number: int  # of those it has sent, from 0 on
    version: int  # of the weights
    played: float  # seconds
    waited: float  # seconds, until the slab before it was taken


def pack(slab: Trajectory, schema: SlabSchema, said: Said) -> bytes:
    """A slab as bytes for a process of the same machine: numbers as they lie in memory, nothing to be checked."""
    raw = [np.ascontiguousarray(np.asarray(getattr(slab, f.name)).astype(f.dtype, copy=False)) for f in schema.fields]
    return _HEADER.pack(*said) + b"".join(array.tobytes() for array in raw)


def unpack(data: bytes, schema: SlabSchema) -> tuple[dict[str, np.ndarray], Said]:
    """What `pack` packed."""
    if len(data) != _HEADER.size + schema.nbytes:
        raise ValueError(f"a slab of {len(data)} bytes, not {_HEADER.size + schema.nbytes}")
    slab, at = {}, _HEADER.size
    for field in schema.fields:
        count = field.nbytes // np.dtype(field.dtype).itemsize
        slab[field.name] = np.frombuffer(data, field.dtype, count, at).reshape(field.shape)
        at += field.nbytes
    return slab, Said(*_HEADER.unpack_from(data))


class _Sender:
    """The actor's sink: the connection."""

    def __init__(self, connection: Connection, schema: SlabSchema) -> None:
        self._connection, self._schema = connection, schema
        self.version = -1
        self._number, self._waited, self._since = 0, 0.0, time.monotonic()

    def add(self, slab: Trajectory) -> None:
        """Returns when the slab is on its way."""
        jax.block_until_ready(slab)
        began = time.monotonic()
        said = Said(self._number, self.version, began - self._since, self._waited)
        self._connection.send_bytes(pack(slab, self._schema, said))
        self._number, self._since = self._number + 1, time.monotonic()
        self._waited = self._since - began


def play(connection: Connection) -> None:
    """Plays for ever; ends by BrokenPipeError or EOFError when nobody listens any more."""
    order = json.loads(connection.recv_bytes())
    config = build(RunConfig, [Layer("the learner", tomllib.loads(order["config"]))])
    parts = build_parts(config, [jax.local_devices()[0]], Path(order["root"]))
    weights = FileWeights(Path(order["weights"]), jax.eval_shape(parts.model.init, jax.random.key(0)))
    _await(weights)
    sender = _Sender(connection, SlabSchema.of(parts.slab_like(), parts.game.spec))
    lanes = lanes_of([order["source"]], config.selfplay.num_games)
    actor = SelfPlay(parts, sender, weights, lanes, lambda rows: parts.pace(weights.rows, weights.epoch))
    while True:
        sender.version = weights.latest()[0]
        actor.step()


def _await(weights: FileWeights) -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        with contextlib.suppress(LookupError):
            weights.latest()
            return
        time.sleep(_SLEEP)
    raise EOFError


def main() -> int:
    """The process."""
    set_up_compiling()
    connection = Connection(int(sys.argv[1]))
    with contextlib.suppress(BrokenPipeError, EOFError, ConnectionResetError):
        play(connection)
    return 0


if __name__ == "__main__":
    sys.exit(main())
