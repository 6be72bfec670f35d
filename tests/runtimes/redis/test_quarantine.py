"""Refused slabs are kept and counted; only what a worker has signed is held against it."""

from __future__ import annotations

import pytest

from aleazero.runtimes.redis.quarantine import KEEP_BYTES, KEEP_ENTRIES, Quarantine
from aleazero.runtimes.redis.server import RedisServer
from aleazero.runtimes.slabs import BadSlab
from tests.runtimes.redis.conftest import Party

BAD = BadSlab("policy", "the sum is 3", worker="laptop", claimed="laptop")
FORGED = BadSlab("signature", "not signed", worker=None, claimed="laptop")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_entry_is_kept_with_its_reason_and_worker(party: Party) -> None:
    found = Quarantine(party.head, party.keys)
    found.put(BAD, "5-1", b"x" * (KEEP_BYTES + 5))
    found.put(FORGED, "5-2", b"y")
    first, second = [fields for _, fields in party.head.client.xrange(party.keys.quarantine)]
    assert (first[b"reason"], first[b"worker"], first[b"entry"]) == (b"policy", b"laptop", b"5-1")
    assert first[b"detail"] == b"the sum is 3"
    assert first[b"bytes"] == b"%d" % (KEEP_BYTES + 5)
    assert first[b"data"] == b"x" * KEEP_BYTES
    assert (second[b"worker"], second[b"claimed"]) == (b"", b"laptop")
    assert found.counts == {"laptop": 1, "": 1}
    assert found.reasons == {"policy": 1, "signature": 1}


def test_it_is_capped(party: Party) -> None:
    found = Quarantine(party.head, party.keys)
    for number in range(KEEP_ENTRIES + 20):
        found.put(FORGED, f"{number}-0", b"")
    kept = party.head.client.xrange(party.keys.quarantine)
    assert len(kept) == KEEP_ENTRIES
    assert kept[-1][1][b"entry"] == b"%d-0" % (KEEP_ENTRIES + 19)
    assert found.counts[""] == KEEP_ENTRIES + 20


def test_too_many_in_a_window_bench_a_worker(party: Party) -> None:
    clock = Clock()
    found = Quarantine(party.head, party.keys, bench_after=3, window_seconds=10, clock=clock)
    for seconds in (0, 6, 11):  # three, but not within ten seconds
        clock.now = seconds
        found.put(BAD, "1-1", b"")
    assert not found.benched("laptop")
    clock.now = 12
    found.put(BAD, "1-1", b"")
    assert found.benched("laptop")
    clock.now = 1000
    assert found.benched("laptop"), "until it is pardoned"
    found.pardon("laptop")
    assert not found.benched("laptop")
    found.put(BAD, "1-1", b"")
    assert not found.benched("laptop")


def test_nobody_is_benched_by_what_others_write_in_its_name(party: Party) -> None:
    found = Quarantine(party.head, party.keys, bench_after=2)
    for _ in range(20):
        found.put(FORGED, "1-1", b"")
    assert not found.benched("laptop")


def test_a_server_that_is_away_is_not_waited_for(
    own_server: RedisServer, own_party: Party, caplog: pytest.LogCaptureFixture
) -> None:
    found = Quarantine(own_party.head, own_party.keys, bench_after=1)
    own_server.stop()
    found.put(BAD, "1-1", b"")
    assert found.benched("laptop")
    assert any("could not be kept" in record.getMessage() for record in caplog.records)
