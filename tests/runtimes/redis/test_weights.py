"""Weights through Redis: published all at once, fetched once each, and never waited for by the learner."""

from __future__ import annotations

import threading
import time

import jax.numpy as jnp
import numpy as np
import pytest

from aleazero.runtimes.codec import BadWeights
from aleazero.runtimes.redis.server import RedisServer
from aleazero.runtimes.redis.weights import RedisWeights
from tests.runtimes.redis.conftest import Party

LIKE = {"layer": {"kernel": jnp.zeros((20, 30)), "bias": jnp.zeros(30)}}


def tree(number: float) -> dict[str, dict[str, np.ndarray]]:
    return {"layer": {"kernel": np.full((20, 30), number, np.float32), "bias": np.full(30, -number, np.float32)}}


def value(weights: object) -> float:
    """The number a tree was made of; all of it is the same."""
    layer = weights["layer"]  # type: ignore[index]
    numbers = {*np.unique(layer["kernel"]).tolist(), *np.unique(-layer["bias"]).tolist()}
    assert len(numbers) == 1, "of two versions"
    return float(numbers.pop())


def test_a_version_is_fetched_once(party: Party) -> None:
    store = RedisWeights(party.head, party.keys, LIKE)
    token = party.worker()
    player = RedisWeights(party.link(token), party.keys, LIKE)
    with pytest.raises(LookupError):
        player.latest()
    assert store.highest() == -1
    store.publish(0, tree(0))
    for _ in range(5):
        version, weights = player.latest()
        assert (version, value(weights)) == (0, 0.0)
    assert player.fetches == 1
    store.publish(7, tree(7))
    assert (player.latest()[0], value(player.latest()[1])) == (7, 7.0)
    assert player.fetches == 2
    assert store.highest() == 7
    with pytest.raises(ValueError, match="older"):
        store.publish(6, tree(6))


def test_old_versions_go_and_the_newest_stay(party: Party) -> None:
    store = RedisWeights(party.head, party.keys, LIKE, keep=3)
    for version in range(0, 80, 10):
        store.publish(version, tree(version))
    there = [v for v in range(0, 80, 10) if party.head.client.exists(party.keys.weights(v))]
    assert there == [50, 60, 70]
    again = RedisWeights(party.head, party.keys, LIKE, keep=3)  # a learner that began anew knows of them, too
    again.publish(80, tree(80))
    assert not party.head.client.exists(party.keys.weights(50))


def test_a_learner_that_went_back_is_followed(party: Party) -> None:
    RedisWeights(party.head, party.keys, LIKE).publish(120, tree(1))
    player = RedisWeights(party.link(party.worker()), party.keys, LIKE)
    assert player.latest()[0] == 120
    again = RedisWeights(party.head, party.keys, LIKE)
    again.publish(100, tree(2))
    version, weights = player.latest()
    assert (version, value(weights)) == (100, 2.0)
    assert again.highest() == 120, "slabs of the lost version are still on their way"
    again.publish(120, tree(3))
    version, weights = player.latest()
    assert (version, value(weights)) == (120, 3.0), "the same number, other weights"


def test_a_player_never_meets_half_a_version(party: Party) -> None:
    store = RedisWeights(party.head, party.keys, LIKE, keep=2)
    store.publish(0, tree(0))
    links = [party.link(party.worker(f"w{number}")) for number in range(2)]
    failures: list[BaseException] = []
    done = threading.Event()

    def play(number: int) -> None:
        player, last = RedisWeights(links[number], party.keys, LIKE), -1
        try:
            while not done.is_set():
                version, weights = player.latest()
                assert value(weights) == version
                assert version >= last
                last = version
                raw = links[number].client.get(party.keys.public("weights"))
                assert raw is not None
        except BaseException as error:
            failures.append(error)

    players = [threading.Thread(target=play, args=(number,)) for number in range(2)]
    for thread in players:
        thread.start()
    for version in range(1, 300):
        store.publish(version, tree(version))
    done.set()
    for thread in players:
        thread.join()
    assert failures == []


def test_damaged_weights_are_refused(party: Party) -> None:
    store = RedisWeights(party.head, party.keys, LIKE)
    store.publish(3, tree(3))
    key = party.keys.weights(3)
    data = bytearray(party.head.client.get(key))
    data[-1] ^= 1
    party.head.client.set(key, bytes(data))
    player = RedisWeights(party.link(party.worker()), party.keys, LIKE)
    with pytest.raises(BadWeights):
        player.latest()
    party.head.client.set(party.keys.public("weights"), b"nonsense")
    with pytest.raises(BadWeights, match="damaged"):
        player.latest()
    other = RedisWeights(party.head, party.keys, {"layer": {"kernel": jnp.zeros((2, 2))}})
    party.head.client.delete(party.keys.public("weights"))
    store.publish(4, tree(4))
    with pytest.raises(BadWeights, match="layer/bias"):
        other.latest()


def test_neither_side_waits_for_a_server_that_is_away(own_server: RedisServer, own_party: Party) -> None:
    store = RedisWeights(own_party.head, own_party.keys, LIKE)
    player = RedisWeights(own_party.link(own_party.worker()), own_party.keys, LIKE)
    store.publish(1, tree(1))
    assert player.latest()[0] == 1
    own_server.stop()
    began = time.monotonic()
    store.publish(2, tree(2))
    store.publish(3, tree(3))
    assert not store.flush()
    assert player.latest()[0] == 1
    assert time.monotonic() - began < 2
    own_server.start()
    deadline = time.monotonic() + 60
    while not store.flush():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    while player.latest()[0] != 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert store.flush()
    assert not own_party.head.client.exists(own_party.keys.weights(2)), "only the newest was worth sending"
