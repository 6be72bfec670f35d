"""A learner fed through Redis learns what a local run learns, and takes every good slab once, whatever comes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from aleazero import checkpoint as checkpoints
from aleazero.config import RunConfig
from aleazero.core.records import Trajectory
from aleazero.runs import new_run
from aleazero.runtimes.codec import Envelope, pack_slab
from aleazero.runtimes.legal import LegalCheck
from aleazero.runtimes.local import LocalRun
from aleazero.runtimes.redis.access import Token
from aleazero.runtimes.redis.intake import Intake
from aleazero.runtimes.redis.quarantine import Quarantine
from aleazero.runtimes.redis.server import RedisServer
from aleazero.runtimes.redis.stream import SlabSender, trim
from aleazero.runtimes.redis.weights import RedisWeights
from aleazero.runtimes.selfplay import SelfPlay
from aleazero.runtimes.slabs import SlabSchema, count_games
from tests.runtimes import wire
from tests.runtimes.redis.conftest import Party
from tests.runtimes.support import (  # noqa: F401 - fixtures
    Recorder,
    StopAfter,
    differences,
    make_run,
    newest,
    programs,
    quick_programs,
    shared_parts,
    tiny,
)


class TakingTurns(Intake):
    """An intake whose one worker plays a rollout when it is asked for one."""

    play: Callable[[], None]

    def step(self) -> Trajectory | None:
        self.play()
        return super().step()


class Cluster:
    """A learner and one worker, each with its own end of a real stream, in lock-step."""

    def __init__(self, party: Party, config: RunConfig, root: Path, name: str = "it") -> None:
        self.party, self.parts = party, shared_parts(config)
        self.token: Token = party.worker(name)
        self.schema = SlabSchema.of(self.parts.slab_like(), self.parts.game.spec)
        self.like = jax.eval_shape(self.parts.model.init, jax.random.key(0))
        published = RedisWeights(party.head, party.keys, self.like)

        def make_intake(parts: Any, sink: Any, weights: Any) -> Intake:
            return TakingTurns(
                party.head, party.keys, self.schema, sink,
                workers=lambda: [self.token.name],
                secret_of=lambda name: self.token.signing_key if name == self.token.name else None,
                newest_version=published.highest,
                legal=LegalCheck(parts.game, 64),
                quarantine=Quarantine(party.head, party.keys),
                wait_seconds=2.0,
            )  # fmt: skip

        folder = new_run(root, name, "")
        folder.write_config(config)
        self.run = LocalRun(self.parts, folder, Recorder(), root=root, weights=published, make_producer=make_intake)
        self.join()

    def join(self, source: int = 0) -> None:
        """The worker starts."""
        link = self.party.link(self.token)
        fetched = RedisWeights(link, self.party.keys, self.like)
        self.sender = SlabSender(link, self.token, self.schema, [source], lambda: self.worker.version)
        self.worker = SelfPlay(self.parts, self.sender, fetched)
        assert isinstance(self.run.producer, TakingTurns)
        self.run.producer.play = self.play

    def play(self) -> None:
        self.worker.step()
        assert self.sender.drain(60)

    def close(self) -> None:
        self.sender.close(5)
        self.run.close()


@pytest.fixture
def cluster(party: Party, tmp_path: Path, quick_programs: None) -> Iterator[Callable[..., Cluster]]:  # noqa: F811
    with contextlib.ExitStack() as stack:

        def make(*assignments: str, name: str = "it") -> Cluster:
            return stack.enter_context(contextlib.closing(Cluster(party, tiny(*assignments), tmp_path, name)))

        yield make


def test_through_redis_it_learns_what_it_learns_locally(
    cluster: Callable[..., Cluster], batches: list[str], tmp_path: Path
) -> None:
    with contextlib.closing(make_run(tiny(), tmp_path / "local")) as local:
        local.train(StopAfter())
    wanted, batches[:] = list(batches), []
    far = cluster()
    far.run.train(StopAfter())
    assert len(wanted) == 40
    assert batches == wanted
    one, other = newest(far.run.folder), newest(local.folder)
    assert one.step == other.step
    for name in other.arrays:
        if not name.startswith("games"):
            assert one.arrays[name].tobytes() == other.arrays[name].tobytes(), name


def test_a_learner_that_was_killed_takes_every_slab_once(cluster: Callable[..., Cluster], batches: list[str]) -> None:
    """It goes back to its checkpoint, and reads again what it had read since."""
    whole = cluster(name="whole")
    whole.run.train(StopAfter())
    wanted, batches[:] = list(batches), []
    first = cluster(name="killed")
    first.run.train(StopAfter(6))
    saved = newest(first.run.folder)
    for _ in range(4):
        first.run._iterate()  # what is learned and taken here is lost
    trim(first.party.head, first.party.keys, saved.facts["intake"]["positions"])
    again = LocalRun(
        first.parts,
        first.run.folder,
        Recorder(),
        weights=RedisWeights(first.party.head, first.party.keys, first.like),
        make_producer=lambda parts, sink, weights: _same(first.run.producer, sink),
    )
    with contextlib.closing(again):
        again.resume(saved, "exact")
        left = iter(range(4))
        producer: Any = again.producer
        producer.play = lambda: None if next(left, None) is not None else first.play()
        again.train(StopAfter())
    assert len(batches) > len(wanted)  # some twice
    assert batches[-1] == wanted[-1]
    assert newest(again.folder).facts["intake"]["slabs"] == newest(whole.run.folder).facts["intake"]["slabs"]


def test_a_checkpoint_lets_go_of_what_it_holds(cluster: Callable[..., Cluster]) -> None:
    far = cluster()
    client, key = far.party.head.client, far.party.keys.slabs(far.token.name)
    far.run.train(StopAfter(4))
    saved = newest(far.run.folder).facts["intake"]["positions"]["it"]
    assert [entry.decode() for entry, _ in client.xrange(key)] == [saved], "all but the last that was read"
    for _ in range(2):
        far.play()
    far.run._iterate()  # a third is played, and one is read
    far.run.save()
    assert client.xlen(key) == 3, "the last that was read, and the two that were not"


def test_a_checkpoint_that_cannot_be_saved_lets_go_of_nothing(
    cluster: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    far = cluster()

    def full(*args: Any) -> None:
        raise checkpoints.CheckpointError("the disk is full")

    monkeypatch.setattr(checkpoints, "save", full)
    far.run.learner.publish()
    for _ in range(3):
        far.run._iterate()
    assert not far.run.save()
    assert far.party.head.client.xlen(far.party.keys.slabs(far.token.name)) == 3


def test_a_full_server_brings_a_checkpoint_early(
    own_server: RedisServer,
    own_party: Party,
    tmp_path: Path,
    quick_programs: None,  # noqa: F811
) -> None:
    own_server.stop()
    with RedisServer(own_server.folder, own_server.head, max_memory_bytes=16 * 2**20):
        config = tiny("checkpoint.every_rows=1000000", "total_rows=100000")
        with contextlib.closing(Cluster(own_party, config, tmp_path)) as far:
            intake = far.run.producer
            assert isinstance(intake, Intake)
            intake._look_seconds = 0.0
            far.run.learner.publish()
            for _ in range(3):
                far.run._iterate()
            assert not intake._presses()
            client = own_party.head.client
            number = 0
            while int(client.info("memory")["used_memory"]) < 0.85 * 16 * 2**20:
                client.set(own_party.keys.public(f"ballast:{number}"), bytes(2**17))
                number += 1
            assert intake._presses()
            far.run.train(StopAfter(2))
            assert checkpoints.steps(far.run.folder.checkpoints), "though none is due for long"
            assert client.xlen(own_party.keys.slabs("it")) == 1
            assert not intake._presses(), "nothing more would go"


def _same(old: Any, sink: Any) -> TakingTurns:
    """An intake with nothing read yet."""
    return TakingTurns(
        old._link, old._keys, old._schema, sink,
        workers=old._workers, secret_of=old._secret_of, newest_version=old._newest_version, legal=old._legal,
        quarantine=old._quarantine, wait_seconds=2.0,
    )  # fmt: skip


class Box:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.got: list[tuple[Trajectory, int]] = []

    def add(self, slab: Trajectory, source: int = 0) -> None:
        self.got.append((slab, source))


class Stream:
    """Workers who may send anything, and an intake of it."""

    def __init__(self, party: Party) -> None:
        self.party, self.box = party, Box()
        self.tokens = {name: party.worker(name) for name in ("laptop", "desktop")}
        self.played = wire.played("tictactoe")
        self.quarantine = Quarantine(party.head, party.keys, bench_after=3)
        self.intake = Intake(
            party.head, party.keys, self.played.schema, self.box,
            workers=lambda: list(self.tokens),
            secret_of=lambda name: self.tokens[name].signing_key if name in self.tokens else None,
            newest_version=lambda: 5,
            legal=LegalCheck(self.played.game, 10**6),
            quarantine=self.quarantine,
            wait_seconds=0.0,
        )  # fmt: skip

    def send(self, worker: str, sequence: int, *, source: int = 1, stream: str | None = None, **changed: Any) -> None:
        slab = self.played.slabs[sequence % 4] | changed
        envelope = Envelope(
            self.party.run, worker, source, sequence, 5, self.played.schema.fingerprint,
            self.played.schema.rows, count_games(slab),
        )  # fmt: skip
        data = pack_slab(envelope, slab, self.tokens[worker].signing_key)
        self.party.head.client.xadd(self.party.keys.slabs(stream or worker), {b"slab": data})

    def take(self) -> list[int]:
        """The sources under which everything that is there was put in."""
        before = len(self.box.got)
        while self.intake.step() is not None:
            pass
        return [source for _, source in self.box.got[before:]]


@pytest.fixture
def stream(party: Party) -> Stream:
    return Stream(party)


def test_sources_are_kept_apart_and_a_gap_cuts_their_games(stream: Stream) -> None:
    for sequence in range(2):
        stream.send("laptop", sequence)
        stream.send("desktop", sequence)
        stream.send("laptop", sequence, source=2)
    lines = stream.take()
    assert sorted(lines) == [0, 0, 1, 1, 2, 2]
    assert stream.intake.rows == 6 * stream.played.schema.rows
    stream.send("laptop", 1)  # again
    stream.send("laptop", 3)  # the third was lost
    stream.send("laptop", 4)
    assert stream.take() == [3, 3]
    assert stream.intake.counts == {"next": 7, "twice": 1, "gap": 1}


def test_bad_slabs_are_refused_and_their_worker_benched(stream: Stream) -> None:
    bad = stream.played.slabs[0]["value"].copy()
    bad[0, 0] = np.nan
    stream.send("desktop", 0, value=bad)
    stream.send("laptop", 0, stream="desktop")  # in a stream that is not its own
    stream.party.head.client.xadd(stream.party.keys.slabs("desktop"), {b"slab": b"nonsense"})
    stream.send("desktop", 1)
    assert stream.take() == [0]
    assert stream.quarantine.reasons == {"not_finite": 1, "worker": 1, "size": 1}
    illegal = stream.played.slabs[0]["state"].copy()
    illegal[:] = 255
    stream.send("desktop", 2, state=illegal)
    stream.send("desktop", 3)
    stream.send("laptop", 0)
    assert stream.quarantine.counts["desktop"] == 2
    assert len(stream.take()) == 1, "the third bad one benched it: what follows is not taken"
    assert stream.quarantine.benched("desktop")
    assert stream.intake.counts["benched"] == 1


def test_it_goes_on_where_its_checkpoint_was(stream: Stream) -> None:
    for sequence in range(3):
        stream.send("laptop", sequence)
    assert stream.intake.step() is not None
    facts = stream.intake.facts()
    again = Stream.__new__(Stream)
    again.__dict__ |= stream.__dict__ | {"box": Box()}
    again.intake = Intake(
        stream.party.head, stream.party.keys, stream.played.schema, again.box,
        workers=stream.intake._workers, secret_of=stream.intake._secret_of, newest_version=lambda: 5,
        legal=stream.intake._legal, quarantine=stream.quarantine, wait_seconds=0.0,
    )  # fmt: skip

    @dataclasses.dataclass
    class Found:
        facts: dict[str, Any]

    again.intake.take_up(Found(facts), "exact")  # type: ignore[arg-type]
    assert again.take() == [0, 0], "the second and the third, of the same games as the first"
    assert again.intake.rows == 3 * stream.played.schema.rows
    np.testing.assert_array_equal(again.box.got[0][0].state, stream.played.slabs[1]["state"])
