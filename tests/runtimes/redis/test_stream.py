"""Slabs through a real stream: in order, none lost, none counted twice, whatever happens to the server meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aleazero.core.records import Trajectory
from aleazero.runtimes.codec import Envelope, unpack_slab
from aleazero.runtimes.redis import stream
from aleazero.runtimes.redis.access import Token
from aleazero.runtimes.redis.link import Link, make_client
from aleazero.runtimes.redis.server import RedisServer
from aleazero.runtimes.redis.stream import Entry, Seen, SenderFailed, SlabReader, SlabSender, trim
from aleazero.runtimes.slabs import SlabSchema
from tests.runtimes import wire
from tests.runtimes.redis.conftest import Party

SOURCES = (11, 12)
SLAB = wire.hand_made(4, 6)
SCHEMA = SlabSchema.of(SLAB, wire.spec(), lanes=3)
BIG = wire.hand_made(64, 128)
BIG_SCHEMA = SlabSchema.of(BIG, wire.spec(), lanes=64)


@contextlib.contextmanager
def sender(link: Link, token: Token, schema: SlabSchema = SCHEMA, queue_rollouts: int = 4) -> Iterator[SlabSender]:
    found = SlabSender(link, token, schema, SOURCES, version=lambda: 5, queue_rollouts=queue_rollouts)
    try:
        yield found
    finally:
        with contextlib.suppress(SenderFailed):
            found.close(0.0)


def read_all(party: Party, token: Token, schema: SlabSchema, seen: Seen) -> tuple[list[Envelope], int]:
    """What a learner would take, and how many entries there were."""
    reader, taken, entries = SlabReader(party.head, party.keys), [], 0
    while found := reader.read([token.name], count=7):
        for entry in found:
            envelope, _ = unpack_slab(entry.data, schema, lambda _: token.signing_key, run=party.run, newest_version=5)
            entries += 1
            if seen.add(envelope) != "twice":
                taken.append(envelope)
    return taken, entries


def names(count: int) -> list[tuple[int, int]]:
    return [(source, sequence) for sequence in range(count) for source in SOURCES]


def test_what_is_added_arrives_in_order_and_by_source(party: Party) -> None:
    token = party.worker()
    slabs = [wire.hand_made(4, 6, seed) for seed in range(5)]
    with sender(party.link(token), token) as sending:
        for slab in slabs:
            sending.add(slab)
        assert sending.drain(60)
        counts = sending.counts
    reader = SlabReader(party.head, party.keys)
    entries = reader.read(["laptop", "nobody"], count=100)
    assert reader.read(["laptop"]) == reader.read([]) == []
    assert len(entries) == 10
    ended = 0
    for number, entry in enumerate(entries):
        envelope, arrays = unpack_slab(entry.data, SCHEMA, lambda _: token.signing_key, run=party.run, newest_version=5)
        rollout, place = divmod(number, 2)
        assert (envelope.worker, envelope.source, envelope.sequence) == ("laptop", SOURCES[place], rollout)
        assert envelope.weights_version == 5
        whole = wire.as_dict(slabs[rollout])
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, whole[name][:, place * 3 : place * 3 + 3])
        ended += envelope.games
    assert counts.slabs_added == counts.slabs_acknowledged == 10
    assert counts.rows_acknowledged == 5 * 24
    assert counts.games_acknowledged == ended > 0
    assert counts.bytes_acknowledged == sum(len(entry.data) for entry in entries)


def test_a_reader_goes_on_where_a_checkpoint_says(party: Party) -> None:
    def add(worker: str, count: int) -> list[Entry]:
        key, texts = party.keys.slabs(worker), [b"%d" % n for n in range(count)]
        return [Entry(worker, party.head.client.xadd(key, {b"slab": text}).decode(), text) for text in texts]

    one, other, both = add("one", 10), add("other", 3), ["one", "other"]
    first = SlabReader(party.head, party.keys)
    assert first.read(both, count=4) == one[:4] + other
    second = SlabReader(party.head, party.keys, first.positions)
    assert second.read(both, count=100) == one[4:]
    assert second.positions == {"one": one[-1].id, "other": other[-1].id}
    assert trim(party.head, party.keys, first.positions) == 3 + 2
    assert second.waiting(both) == 7 + 1
    assert SlabReader(party.head, party.keys, first.positions).read(both, count=1) == one[4:5]
    assert trim(party.head, party.keys, first.positions) == 0
    assert second.read(["new"]) == [] == SlabReader(party.head, party.keys).read(["new"])


def test_a_reader_waits_for_the_first_entry(party: Party) -> None:
    reader = SlabReader(party.head, party.keys)
    began = time.monotonic()
    assert reader.read(["laptop"], wait_seconds=0.2) == []
    assert 0.15 < time.monotonic() - began < 20
    adder = party.link(party.worker())
    adding = threading.Timer(0.2, lambda: adder.client.xadd(party.keys.slabs("laptop"), {b"other": b"x"}))
    adding.start()
    assert [entry.data for entry in reader.read(["laptop"], wait_seconds=60)] == [b""], (
        "an entry without a slab is one of no bytes"
    )
    adding.join()


def test_a_kill_of_the_server_loses_nothing(own_server: RedisServer, own_party: Party) -> None:
    token = own_party.worker()
    killed = threading.Event()

    def kill_and_restart() -> None:
        while own_party.head.client.xlen(own_party.keys.slabs("laptop")) < 10:
            pass
        assert own_server.pid is not None
        os.kill(own_server.pid, signal.SIGKILL)
        killed.set()
        time.sleep(1.5)
        own_server.start()

    accident = threading.Thread(target=kill_and_restart)
    with sender(own_party.link(token), token, queue_rollouts=2) as sending:
        accident.start()
        for number in range(60):
            sending.add(SLAB)
            if number > 20:
                killed.wait(60)
        assert sending.drain(60)
        counts = sending.counts
    accident.join()
    taken, entries = read_all(own_party, token, SCHEMA, Seen())
    assert [(envelope.source, envelope.sequence) for envelope in taken] == names(60)
    assert counts.slabs_acknowledged == 120 <= entries
    assert counts.slabs_sent > 120, "some went twice"
    assert counts.seconds_blocked > 0.5, "the queue was full while the server was away"


def test_a_frozen_server_makes_it_send_again_and_nothing_counts_twice(
    own_server: RedisServer, own_party: Party
) -> None:
    token = own_party.worker()
    client = make_client(own_server.url, token, answer_seconds=0.4)
    with contextlib.closing(Link(client, "here")) as link, sender(link, token) as sending:
        sending.add(SLAB)
        assert sending.drain(60)
        assert own_server.pid is not None
        os.kill(own_server.pid, signal.SIGSTOP)
        sending.add(SLAB)
        time.sleep(1.0)
        assert not sending.drain(0)
        assert sending.waiting == 2
        os.kill(own_server.pid, signal.SIGCONT)
        assert sending.drain(60)
    taken, entries = read_all(own_party, token, SCHEMA, Seen())
    assert [(envelope.source, envelope.sequence) for envelope in taken] == names(2)
    assert entries > 4, "the frozen server had what was sent before it was sent again"


def test_a_full_server_is_waited_for_and_takes_all_in_order(own_server: RedisServer, own_party: Party) -> None:
    token = own_party.worker()
    used = int(own_party.head.client.info("memory")["used_memory"])
    own_server.stop()
    with RedisServer(own_server.folder, own_server.head, max_memory_bytes=used + 4 * 2**20) as small:
        link = own_party.link(token)
        seen, taken, reader = Seen(), [], SlabReader(own_party.head, own_party.keys)

        def learn() -> None:
            for entry in reader.read([token.name], count=4):
                envelope, _ = unpack_slab(
                    entry.data, BIG_SCHEMA, lambda _: token.signing_key, run="own", newest_version=5
                )
                if seen.add(envelope) != "twice":
                    taken.append((envelope.source, envelope.sequence))
                trim(own_party.head, own_party.keys, {token.name: entry.id})

        with sender(link, token, BIG_SCHEMA) as sending:
            adding = threading.Thread(target=lambda: [sending.add(BIG) for _ in range(25)])
            adding.start()
            deadline = time.monotonic() + 60
            while link.trouble != "is out of memory" and time.monotonic() < deadline:
                time.sleep(0.01)
            assert link.trouble == "is out of memory"
            assert sending.counts.slabs_acknowledged < 50
            while len(taken) < 50 and time.monotonic() < deadline + 60:
                learn()
            adding.join()
            assert sending.drain(60)
        assert small.pid is not None
    assert taken == names(25)


def test_a_sender_that_cannot_go_on_says_so(party: Party) -> None:
    token = party.worker()
    wrong = SlabSchema.of(wire.hand_made(4, 3), wire.spec())
    with sender(party.link(token), token, wrong) as sending:
        with pytest.raises(ValueError, match="12 games"):
            sending.add(wire.hand_made(4, 12))
        bad = Trajectory(**{**wire.as_dict(SLAB), "value": np.zeros((4, 6))})
        sending.add(bad)
        with pytest.raises(SenderFailed, match="float64"):
            sending.drain(60)
        with pytest.raises(SenderFailed):
            sending.add(SLAB)


def test_a_revoked_sender_says_so(party: Party) -> None:
    token = party.worker()
    link = party.link(token)
    with sender(link, token) as sending:
        sending.add(SLAB)
        assert sending.drain(60)
        party.head.client.execute_command("ACL DELUSER", token.user)
        sending.add(SLAB)
        with pytest.raises(SenderFailed, match="token"):
            sending.drain(60)


def test_close_gives_up_in_time(own_server: RedisServer, own_party: Party) -> None:
    token = own_party.worker()
    sending = SlabSender(own_party.link(token), token, SCHEMA, SOURCES, version=lambda: 5)
    own_server.stop()
    sending.add(SLAB)
    began = time.monotonic()
    assert not sending.close(0.3)
    assert time.monotonic() - began < 20
    assert sending.waiting == 2
    with pytest.raises(SenderFailed, match="closed"):
        sending.add(SLAB)


def test_what_it_holds_is_bounded(own_server: RedisServer, own_party: Party) -> None:
    """However fast slabs come: while the server is away, `add` waits."""
    token = own_party.worker()
    with sender(own_party.link(token), token, queue_rollouts=2) as sending:
        own_server.stop()
        adding = threading.Thread(target=lambda: [sending.add(SLAB) for _ in range(20)])
        adding.start()
        adding.join(1.0)
        assert adding.is_alive()
        assert 2 * 2 <= sending.waiting <= 5 * 2  # two waiting, two on their way, and the one that `add` waits with
        own_server.start()
        adding.join(60)
        assert sending.drain(60)
        assert sending.counts.seconds_blocked > 0.5


def test_several_rollouts_go_in_one_transaction_until_it_is_full(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BATCH_BYTES", 1)
    token = party.worker()
    with sender(party.link(token), token) as sending:
        for _ in range(8):
            sending.add(SLAB)
        assert sending.drain(60)
    taken, entries = read_all(party, token, SCHEMA, Seen())
    assert entries == 16
    assert [(envelope.source, envelope.sequence) for envelope in taken] == names(8)


# ---- what came already


def envelope(worker: str, source: int, sequence: int) -> Envelope:
    return Envelope("home", worker, source, sequence, 0, "", 1, 0)


def test_seen_tells_the_next_a_gap_and_a_repeat() -> None:
    seen = Seen()
    assert [seen.add(envelope("a", 1, n)) for n in (0, 1, 1, 0, 2, 5, 4, 6)] == [
        *("next", "next", "twice", "twice", "next", "gap", "twice", "next"),
    ]
    assert seen.add(envelope("b", 1, 0)) == "next", "another worker cannot speak for this source"
    assert seen.add(envelope("a", 2, 3)) == "gap"


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 5)), max_size=40), st.integers(0, 40)
)
def test_seen_is_the_same_after_a_checkpoint(slabs: list[tuple[str, int, int]], cut: int) -> None:
    whole, parts, counted = Seen(), Seen(), []
    for number, name in enumerate(slabs):
        if number == cut:
            parts = Seen(json.loads(json.dumps(parts.state())))
        answer = whole.add(envelope(*name))
        assert parts.add(envelope(*name)) == answer
        if answer != "twice":
            counted.append(name)
    assert len(set(counted)) == len(counted)
