"""The inference server: what the network says, joined and padded; gone and back with weights before it answers."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import ray

from aleazero.core.settings import to_toml
from aleazero.runtimes.codec import BadWeights
from aleazero.runtimes.groups import far_parts
from aleazero.runtimes.lanes import lanes_of
from aleazero.runtimes.ray import asker as asker_module
from aleazero.runtimes.ray.asker import ServerAsker, ServerGone, lean
from aleazero.runtimes.ray.far_play import FarGroup, Steps, roll_all
from aleazero.runtimes.ray.inference import InferenceServer, Network, padded
from aleazero.runtimes.ray.messages import Order
from aleazero.runtimes.ray.player import OrderedWeights, Player
from tests.runtimes.support import tiny

CONFIG = tiny("runtime=ray", "ray.inference=server", "ray.groups=2")


@pytest.fixture(scope="module")
def parts(quick_actors: None) -> Any:
    return far_parts(CONFIG, 1)


@pytest.fixture(scope="module")
def weights(parts: Any) -> Any:
    return jax.jit(parts.model.init)(jax.random.key(3))


@pytest.fixture(scope="module")
def server(small_cluster: None, parts: Any) -> Any:
    actor = ray.remote(num_cpus=0, max_restarts=5)(InferenceServer)
    return actor.options(name="server").remote(to_toml(CONFIG), 64, 5.0)


def leaves(weights: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(weights)]


class Beside:
    """Answers at once, with the network in this process."""

    def __init__(self, parts: Any, weights: Any) -> None:
        self._network = jax.jit(
            lambda rows: (parts.model.apply(weights, rows).logits, parts.model.opinion(weights, rows))
        )
        self._answers: dict[int, Any] = {}

    def ask(self, observations: np.ndarray) -> int:
        self._answers[len(self._answers)] = self._network(observations)
        return len(self._answers) - 1

    def wait(self, questions: Any) -> Any:
        return questions[-1], self._answers[questions[-1]]


@pytest.mark.parametrize(
    ("rows", "size"), [(1, 32), (32, 32), (33, 48), (49, 64), (64, 64), (65, 96), (97, 128), (384, 384), (1000, 1024)]
)
def test_batches_have_few_sizes(rows: int, size: int) -> None:
    assert padded(rows) == size


def test_observations_travel_in_fewer_bytes_where_none_is_changed() -> None:
    whole = np.array([[0, 1], [-128, 127]], np.float32)
    assert lean(whole).dtype == np.int8
    assert np.array_equal(lean(whole), whole)
    for value in (0.5, 128, -129, 1e30, np.nan, np.inf):
        rows = np.array([[1, value]], np.float32)
        assert lean(rows) is rows


def test_games_whose_network_is_asked_elsewhere_are_the_games_of_a_rollout(parts: Any, weights: Any) -> None:
    pace, lanes = parts.pace(0), lanes_of([7], 16)
    groups = [FarGroup(Steps(parts), lanes)]
    games, seed = parts.rollout.start(np.uint32(0), lanes), np.uint32(0)
    asker = Beside(parts, weights)
    for number in (0, 8):
        found = roll_all(groups, pace, asker)[0]
        games, wanted = jax.jit(parts.rollout.run)(weights, games, pace, seed, np.uint32(number), lanes)
        for name in ("state", "action", "actions", "ended", "points", "fingerprint", "searched", "random"):
            assert np.array_equal(getattr(found, name), getattr(wanted, name)), name
        for name in ("policy", "opinion", "value"):
            np.testing.assert_allclose(
                np.asarray(getattr(found, name), np.float32), np.asarray(getattr(wanted, name), np.float32), atol=2e-3
            )


def test_requests_are_joined_and_answered_each_with_its_own(server: Any, parts: Any, weights: Any) -> None:
    rows = np.random.default_rng(0).random((40, *parts.game.spec.observation_shape), np.float32)
    assert ray.get(server.infer.remote((0, 1), rows)) is None  # it has no weights yet
    ray.get(server.load.remote((0, 1), [ray.put(leaves(weights))]))
    ray.get(server.figures.remote())
    rows[:3] = rows[:3] > 0.5
    pieces = [lean(rows[:3]), rows[3:10], rows[10:40]]
    answers = ray.get([server.infer.remote((0, 1), piece) for piece in pieces])
    output = parts.model.apply(weights, rows)
    np.testing.assert_allclose(np.concatenate([a[0] for a in answers]), output.logits, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([a[1] for a in answers]), parts.model.opinion(weights, rows), atol=1e-5)
    figures = ray.get(server.figures.remote())
    assert figures["batch_rows"] > 13.5  # 40 rows in fewer than three batches
    assert 0 < figures["batch_fill"] <= 1
    assert 0 < figures["latency_p50_ms"] <= figures["latency_p99_ms"]
    assert figures["waiting_rows"] == 0


def test_a_player_goes_on_when_the_server_is_back(server: Any, weights: Any) -> None:
    actor = ray.remote(num_cpus=1, concurrency_groups={"life": 1})(Player)
    player = actor.remote(to_toml(CONFIG), 2, None, ("server", ray.get_runtime_context().namespace))
    order = Order((0, 5), [ray.put(leaves(weights))], 0, 0, {})
    assert [receipt.number for receipt in ray.get(player.play.remote(order))] == [0, 0]
    under_way = [player.play.remote(order) for _ in range(3)]
    ray.kill(server, no_restart=False)
    receipts = [receipt for played in ray.get(under_way) for receipt in played]
    assert [receipt.number for receipt in receipts] == [1, 1, 2, 2, 3, 3]
    assert len({receipt.source for receipt in receipts}) == 2
    slab = ray.get(receipts[-1].slab[0])
    assert slab["state"].shape[:2] == (8, 16)


def test_more_than_a_few_batches_wait_at_the_door(server: Any, parts: Any, weights: Any) -> None:
    ray.get(server.load.remote((0, 9), [ray.put(leaves(weights))]))
    rows = np.zeros((64, *parts.game.spec.observation_shape), np.float32)
    seen: list[float] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            seen.append(ray.get(server.figures.remote())["waiting_rows"])

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        watcher = pool.submit(watch)
        try:
            answers = ray.get([server.infer.remote((0, 9), rows) for _ in range(60)])
        finally:
            over.set()
        watcher.result()
    assert len(answers) == 60
    assert 64 < max(seen) <= 4 * 64  # some did wait, and no more than may


def test_an_asker_gives_a_server_without_weights_its_own(server: Any, parts: Any, weights: Any, tmp_path: Path) -> None:
    asker = ServerAsker(lambda: server)
    asker.use((0, 20), [ray.put(leaves(weights))])  # newer than any it has
    rows = np.zeros((2, *parts.game.spec.observation_shape), np.float32)
    question = asker.ask(rows)
    answered, (logits, _) = asker.wait([question])
    assert answered == question
    assert logits.shape == (2, parts.game.spec.num_actions)


def test_the_weights_of_a_dead_learner_do_not_answer_for_the_next(server: Any, parts: Any, weights: Any) -> None:
    other = jax.tree.map(lambda leaf: leaf * 0.5, weights)
    rows = np.ones((2, *parts.game.spec.observation_shape), np.float32)
    dead, alive = ServerAsker(lambda: server), ServerAsker(lambda: server)
    dead.use((1, 30), [ray.put(leaves(weights))])
    dead.wait([dead.ask(rows)])
    alive.use((2, 25), [ray.put(leaves(other))])  # it went on from a checkpoint
    _, (logits, _) = alive.wait([alive.ask(rows)])
    np.testing.assert_allclose(logits, parts.model.apply(other, rows).logits, atol=1e-5)
    _, (late, _) = dead.wait([dead.ask(rows)])  # an order of the dead one that is still under way
    np.testing.assert_array_equal(late, logits)


class Slow(InferenceServer):
    """Has to compile for long, or so it looks."""

    async def infer(self, name: Any, observations: np.ndarray) -> Any:
        await asyncio.sleep(2.0)
        return await super().infer(name, observations)


def test_a_server_that_is_alive_and_slow_is_waited_for_and_not_for_ever(
    small_cluster: None, parts: Any, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asker_module, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(asker_module, "PATIENCE_SECONDS", 0.5)
    server = ray.remote(num_cpus=0)(Slow).remote(to_toml(CONFIG), 64, 5.0)
    ray.get(server.load.remote((0, 1), [ray.put(leaves(weights))]))
    asker = ServerAsker(lambda: server)
    asker.use((0, 1), [])
    rows = np.zeros((2, *parts.game.spec.observation_shape), np.float32)
    _, (logits, _) = asker.wait([asker.ask(rows)])
    assert logits.shape == (2, parts.game.spec.num_actions)
    monkeypatch.setattr(asker_module, "COMPILE_SECONDS", 0.5)
    with pytest.raises(ServerGone, match="has not answered for"):
        asker.wait([asker.ask(rows)])
    ray.kill(server)


def test_another_server_by_the_same_name_is_found(small_cluster: None, parts: Any, weights: Any) -> None:
    actor = ray.remote(num_cpus=0)(InferenceServer).options(name="theirs", get_if_exists=True)
    first = actor.remote(to_toml(CONFIG), 64, 5.0)
    asker = ServerAsker(lambda: ray.get_actor("theirs"))
    asker.use((0, 1), [ray.put(leaves(weights))])
    ray.kill(first)
    question = asker.ask(np.zeros((2, *parts.game.spec.observation_shape), np.float32))
    while "theirs" in ray.util.list_named_actors():
        time.sleep(0.05)
    second = actor.remote(to_toml(CONFIG), 64, 5.0)
    assert asker.wait([question])[0] == question
    ray.kill(second)


def test_weights_that_are_not_finite_are_taken_by_nobody(small_cluster: None, parts: Any, weights: Any) -> None:
    wrong = [np.full_like(leaf, np.nan) for leaf in leaves(weights)]
    with pytest.raises(BadWeights, match="version 5 cannot be used: array 0 holds NaN"):
        Network(to_toml(parts.config)).load((1, 5), wrong)
    with pytest.raises(BadWeights, match="version 5 cannot be used: array 0 holds NaN"):
        OrderedWeights(weights).take(Order((1, 5), [ray.put(wrong)], 0, 0, {}))
