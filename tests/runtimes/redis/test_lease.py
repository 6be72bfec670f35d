"""One holder at a time: refused by name, taken over when the holder is gone, lost where another has it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import msgpack
import pytest

from aleazero.runtimes.redis.lease import Lease, LeaseTaken
from aleazero.runtimes.redis.server import RedisServer
from tests.runtimes.redis.conftest import Party


def lease(party: Party, seconds: float = 1.0) -> Lease:
    return Lease(party.head, party.keys.lock("head"), "head of this run", seconds)


def put(party: Party, seconds: float = 60.0, **holder: object) -> None:
    said = {"instance": "other", "host": socket.gethostname(), "pid": os.getpid(), "count": 1} | holder
    party.head.client.set(party.keys.lock("head"), msgpack.packb(said), px=round(seconds * 1000))


def test_a_second_one_is_refused_at_once_and_names_the_holder(party: Party) -> None:
    first = lease(party, 30.0)
    first.acquire()
    began = time.monotonic()
    with pytest.raises(LeaseTaken, match=rf"process {os.getpid()} on {socket.gethostname()} is the head of this run"):
        lease(party, 30.0).acquire()
    assert time.monotonic() - began < 10
    first.release()
    second = lease(party, 30.0)
    second.acquire()
    second.release()
    assert party.head.client.get(party.keys.lock("head")) is None


def test_it_is_kept_for_as_long_as_its_holder_lives(party: Party) -> None:
    held = lease(party, 0.4)
    held.acquire()
    time.sleep(1.2)
    held.check()
    put_back = party.head.client.get(party.keys.lock("head"))
    assert msgpack.unpackb(put_back)["instance"] == held.instance
    held.release()


def test_a_process_of_this_machine_that_was_killed_is_followed_at_once(party: Party) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    put(party, pid=process.pid)
    with pytest.raises(LeaseTaken):
        lease(party, 30.0).acquire()
    process.send_signal(signal.SIGKILL)
    process.wait()
    began = time.monotonic()
    heir = lease(party, 30.0)
    heir.acquire()
    assert time.monotonic() - began < 10
    heir.release()


def test_a_holder_elsewhere_is_given_the_time_of_its_lease(party: Party) -> None:
    put(party, host="elsewhere", pid=1, seconds=1.0)
    began = time.monotonic()
    heir = lease(party, 1.0)
    heir.acquire()
    assert 0.5 < time.monotonic() - began < 20
    heir.release()


def test_a_holder_elsewhere_that_renews_it_is_alive(party: Party) -> None:
    put(party, host="elsewhere", pid=1, count=1)
    renewal = threading.Timer(0.3, put, [party], {"host": "elsewhere", "pid": 1, "count": 2})
    renewal.start()
    with pytest.raises(LeaseTaken, match="process 1 on elsewhere"):
        lease(party, 1.0).acquire()
    renewal.join()  # or else it may find the server gone


def test_one_that_slept_finds_that_it_lost_it(party: Party) -> None:
    held = lease(party, 0.5)
    held.acquire()
    held._stop.set()  # as if frozen: nothing is renewed
    held._thread.join()
    time.sleep(0.6)
    put(party, host="elsewhere", pid=7)
    with pytest.raises(LeaseTaken, match="process 7 on elsewhere has become the head of this run"):
        held.check()
    held.release()
    assert msgpack.unpackb(party.head.client.get(party.keys.lock("head")))["pid"] == 7, "another's is left alone"


def test_one_that_slept_and_was_not_followed_goes_on(party: Party) -> None:
    held = lease(party, 0.3)
    held.acquire()
    held._stop.set()
    held._thread.join()
    time.sleep(0.5)
    assert party.head.client.get(party.keys.lock("head")) is None
    held.check()
    assert msgpack.unpackb(party.head.client.get(party.keys.lock("head")))["instance"] == held.instance


def test_a_full_server_does_not_keep_a_learner_from_making_room(own_server: RedisServer, own_party: Party) -> None:
    own_server.stop()
    with RedisServer(own_server.folder, own_server.head, max_memory_bytes=1000):
        assert own_party.head.client.ping()
        held = lease(own_party, 30.0)
        held.acquire()
        held.check()
        held.release()
