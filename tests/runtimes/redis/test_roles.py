"""The roles of a run on many machines in one process: each with its own connection to a real Redis."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import msgpack
import numpy as np
import pytest

from aleazero import checkpoint
from aleazero.config import RunConfig
from aleazero.core.errors import ConfigError
from aleazero.observe.jsonl import JsonlSink
from aleazero.roles.ports import LocalWeights
from aleazero.runs import RunFolder, new_run
from aleazero.runtimes.codec import Envelope, pack_slab
from aleazero.runtimes.redis import learner
from aleazero.runtimes.redis.access import HEAD, Token
from aleazero.runtimes.redis.board import Progress, publish_config, publish_progress, read_config, read_notices
from aleazero.runtimes.redis.coordinator import Coordinator
from aleazero.runtimes.redis.evaluator import EvalWorker
from aleazero.runtimes.redis.game import GameWorker, far_parts, lanes_of
from aleazero.runtimes.redis.home import Address, Home
from aleazero.runtimes.redis.intake import Intake
from aleazero.runtimes.redis.learner import learn
from aleazero.runtimes.redis.lease import LeaseTaken
from aleazero.runtimes.redis.link import Link, connect
from aleazero.runtimes.redis.look import look
from aleazero.runtimes.redis.member import Dismissed, Member
from aleazero.runtimes.redis.server import RedisServer
from aleazero.runtimes.redis.users import admit
from aleazero.runtimes.selfplay import SelfPlay
from aleazero.runtimes.slabs import SlabSchema, count_games
from tests.runtimes.redis.conftest import Party
from tests.runtimes.support import newest, programs, quick_programs, shared_parts, tiny  # noqa: F401 - fixtures
from tests.runtimes.wire import played

SMALL = ("search.kind=direct", "selfplay.num_games=8", "evaluate.opponents=random", "evaluate.games=8")
CONFIG = tiny(*SMALL, "evaluate.every_rows=1280", "selfplay.temperature.end=0.1", "total_rows=2560")


def until(happened: Callable[[], Any], seconds: float = 120.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := happened()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found


def learn_until(run: Run, rows: int) -> None:
    """A learner that is told to stop as soon as it has taken more than so many rows."""
    with pytest.MonkeyPatch.context() as patch:
        take = Intake.step

        def step(intake: Intake) -> Any:
            slab = take(intake)
            if intake.rows > rows:
                run.folder.stop_file.touch()
            return slab

        patch.setattr(Intake, "step", step)
        assert learn(run.folder, run.root).status == "stopped"


class Run:
    """A run with its folder and its head's work, done by a thread, without the head's processes."""

    def __init__(self, server: RedisServer, root: Path, config: RunConfig, name: str) -> None:
        self.root, self.config, self.server = root, config, server
        self.folder = new_run(root, name, "")
        self.folder.write_config(config)
        self.home = Home(self.folder)
        self._stack = contextlib.ExitStack()
        head = self.home.keyring().token(HEAD)
        with contextlib.closing(connect(server.url, server.head)) as owner:
            admit(owner, head)
        self.home.write_address(Address(server.url, server.url, None, "here", 1))
        self.link = self.open(head)
        evals = JsonlSink(self.folder.evals_file)
        self._stack.callback(evals.close)
        self.coordinator = Coordinator(self.home, config, self.link, evals)
        self.coordinator.open()
        self.state: Any = "running"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def _tick(self) -> None:
        while not self._stop.wait(0.05):
            self.coordinator.tick(self.state)

    def open(self, token: Token) -> Link:
        return self._stack.enter_context(contextlib.closing(connect(self.server.url, token)))

    def token(self, name: str) -> Token:
        token = self.home.keyring().token(name)
        admit(self.link, token)
        return token

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._stack.close()


class Working:
    """A worker in a thread of its own."""

    def __init__(self, make: Callable[[Callable[[], bool]], Any]) -> None:
        self.asked, self.failure = False, None
        self.worker = make(lambda: self.asked)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.worker.run()
        except BaseException as error:  # looked at by the test
            self.failure = error

    @property
    def runs(self) -> bool:
        return self._thread.is_alive()

    def finish(self) -> None:
        self.asked = True
        self._thread.join(60)
        assert not self.runs


@pytest.fixture
def make_run(
    server: RedisServer,
    tmp_path: Path,
    quick_programs: None,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., Run]]:
    monkeypatch.setattr(learner, "build_parts", lambda config, _, root: shared_parts(config, root))
    with contextlib.ExitStack() as stack:

        def make(config: RunConfig = CONFIG, name: str = "it") -> Run:
            name = f"{name}-{time.monotonic_ns()}"
            return stack.enter_context(contextlib.closing(Run(server, tmp_path, config, name)))

        yield make


def game_worker(run: Run, name: str = "laptop", games: int = 8) -> Working:
    token = run.token(name)
    return Working(lambda stop: GameWorker(run.open(token), token, num_games=lambda config: games, stop=stop))


def eval_worker(run: Run, name: str) -> Working:
    token = run.token(name)
    return Working(lambda stop: EvalWorker(run.open(token), token, stop=stop))


def test_a_run_is_played_learned_and_measured(make_run: Callable[..., Run], caplog: pytest.LogCaptureFixture) -> None:
    run = make_run()
    workers = [
        game_worker(run, "laptop", 16),
        game_worker(run, "desktop", 16),
        eval_worker(run, "one"),
        eval_worker(run, "two"),
    ]
    until(lambda: len(run.coordinator.registry.alive(time.monotonic(), "eval")) == 2)
    with caplog.at_level(logging.INFO):
        finished = learn(run.folder, run.root)
        assert finished.status == "done"
        until(lambda: run.coordinator._measured["version"] == newest(run.folder).step)
        run.state = "done"
        until(lambda: not any(worker.runs for worker in workers))
    assert [worker.failure for worker in workers] == [None] * 4
    kept = newest(run.folder).facts["intake"]
    assert set(kept["seen"]) == {"laptop", "desktop"}
    assert len(kept["seen"]["laptop"]) == 2, "two groups of eight games"
    assert kept["slabs"] == sum(last + 1 for of in kept["seen"].values() for last in of.values()) == 40
    said = look(run.folder)
    assert (said["rows"], said["weights_version"]) == (2560, newest(run.folder).step)
    assert {worker["name"]: worker["state"] for worker in said["workers"]} == dict.fromkeys(
        ("laptop", "desktop", "one", "two"), "left"
    )
    assert said["refused"] == {}
    reports = [json.loads(line) for line in run.folder.evals_file.read_text().splitlines()]
    assert {report["opponent"] for report in reports} == {"random", "previous"}
    assert all(report["games"] == 8 for report in reports)
    assert reports[-1]["step"] == newest(run.folder).step
    assert [record for record in run.folder.read_reports() if record["kind"] == "eval"] == reports
    for worker, position in kept["positions"].items():
        ((first, _),) = run.link.client.xrange(run.home.keys.slabs(worker), count=1)
        assert first.decode() == position, "what the last checkpoint holds is gone"


def test_a_run_goes_on_where_its_learner_was_stopped(make_run: Callable[..., Run]) -> None:
    run = make_run()
    worker = game_worker(run)
    learn_until(run, 600)
    before = newest(run.folder)
    assert 600 < before.facts["rows"] < 2560
    assert learn(run.folder, run.root).status == "done"
    kept = newest(run.folder).facts
    assert kept["rows"] == 2560
    assert kept["intake"]["slabs"] == sum(n + 1 for of in kept["intake"]["seen"].values() for n in of.values())
    worker.finish()
    assert worker.failure is None


def test_the_best_checkpoint_stays_and_so_does_one_that_is_not_measured_yet(make_run: Callable[..., Run]) -> None:
    run = make_run(dataclasses.replace(CONFIG, checkpoint=dataclasses.replace(CONFIG.checkpoint, keep_last=1)))
    playing = game_worker(run)
    learn_until(run, 1400)
    run.folder.stop_file.unlink()
    offered = msgpack.unpackb(run.link.client.get(run.home.keys.offer))
    assert offered["rows"] == 1280
    assert checkpoint.steps(run.folder.checkpoints) == [offered["step"], newest(run.folder).step]
    measuring = eval_worker(run, "one")
    until(lambda: run.coordinator._measured["version"] == offered["step"])
    score, step = run.coordinator._best or (0.0, 0)
    assert step == offered["step"]
    run.coordinator._best = (score + 1.0, step)  # so that no later one is better
    run.coordinator._keep()
    assert learn(run.folder, run.root).status == "done"
    assert checkpoint.steps(run.folder.checkpoints) == [step, newest(run.folder).step]
    assert newest(run.folder).facts["best"] == [score + 1.0, step]
    until(lambda: run.coordinator._measured["version"] == newest(run.folder).step)
    for worker in (playing, measuring):
        worker.finish()
        assert worker.failure is None


def test_a_second_learner_is_refused(make_run: Callable[..., Run], tmp_path: Path) -> None:
    run = make_run()
    other = {"instance": "other", "host": "elsewhere", "pid": 7, "count": 0}
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(0.2):
            other["count"] = int(other["count"]) + 1
            run.link.client.set(run.home.keys.lock("learner"), msgpack.packb(other), px=10_000)

    run.link.client.set(run.home.keys.lock("learner"), msgpack.packb(other), px=10_000)
    thread = threading.Thread(target=renew)
    thread.start()
    try:
        with pytest.raises(LeaseTaken, match="process 7 on elsewhere is the learner"):
            learn(run.folder, run.root)
    finally:
        stop.set()
        thread.join()
    assert not run.folder.checkpoints.exists()


def test_a_paused_run_is_not_played(make_run: Callable[..., Run]) -> None:
    run = make_run()
    run.state = "paused"
    worker = game_worker(run)
    publish_progress(run.link, run.home.keys, Progress())
    weights = jax.tree.map(np.asarray, _parts().start_learning().average)
    _store(run, weights)
    key = run.home.keys.slabs("laptop")
    time.sleep(1.5)
    assert run.link.client.xlen(key) == 0
    run.state = "running"
    until(lambda: run.link.client.xlen(key) > 0)
    # So is one whose learner is far behind.
    publish_progress(run.link, run.home.keys, Progress(backlog_rows=10**6))
    time.sleep(1.5)
    before = run.link.client.xlen(key)
    time.sleep(0.5)
    assert run.link.client.xlen(key) == before
    worker.finish()
    assert worker.failure is None


def test_a_worker_looks_for_weights_when_what_it_played_is_played(
    make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs run in the background: a worker that went on at once would play many rollouts with the same weights."""
    run = make_run()
    step, slabs, ready = SelfPlay.step, [], []

    def slow(array: Any) -> Any:
        time.sleep(0.2)
        return array

    @jax.jit
    def later(array: Any) -> Any:
        return jax.pure_callback(slow, jax.ShapeDtypeStruct(array.shape, array.dtype), array)

    def watched(actor: SelfPlay) -> Any:
        ready.extend(slab.is_ready() for slab in slabs[-1:])
        slab = step(actor)
        slabs.append(later(slab.ended))
        return dataclasses.replace(slab, ended=slabs[-1])

    monkeypatch.setattr(SelfPlay, "step", watched)
    worker = game_worker(run)
    publish_progress(run.link, run.home.keys, Progress())
    _store(run, jax.tree.map(np.asarray, _parts().start_learning().average))
    until(lambda: len(ready) >= 4)
    worker.finish()
    assert worker.failure is None
    assert all(ready)


def _parts() -> Any:
    return far_parts(CONFIG, 1)


def _store(run: Run, weights: Any) -> None:
    from aleazero.runtimes.redis.weights import RedisWeights

    RedisWeights(run.link, run.home.keys, jax.eval_shape(_parts().model.init, jax.random.key(0))).publish(0, weights)


def test_bad_slabs_bench_their_worker_and_it_is_told(make_run: Callable[..., Run]) -> None:
    run = make_run(dataclasses.replace(CONFIG, total_rows=10**9))
    worker = game_worker(run)
    token = run.token("laptop")
    learning = threading.Thread(target=learn, args=(run.folder, run.root), daemon=True)
    learning.start()
    until(lambda: look(run.folder).get("rows", 0) > 0)
    like = played("tictactoe")
    slab = {name: array[:, :8] for name, array in like.slabs[0].items()}
    schema = SlabSchema.of(_parts().slab_like(), like.game.spec)
    for sequence in range(12):
        envelope = Envelope(token.run, "laptop", 1, sequence, 10**9, schema.fingerprint, schema.rows, count_games(slab))
        run.link.client.xadd(run.home.keys.slabs("laptop"), {b"slab": pack_slab(envelope, slab, token.signing_key)})
    until(lambda: not worker.runs)
    assert isinstance(worker.failure, Dismissed)
    assert "benched" in str(worker.failure)
    assert look(run.folder)["refused"]["laptop"] >= 10
    run.folder.stop_file.touch()
    learning.join(30)


def test_a_token_serves_one_worker_at_a_time(make_run: Callable[..., Run]) -> None:
    run = make_run()
    token = run.token("laptop")
    first = Member(run.open(token), token, "game", dict)
    assert first.join(lambda: False)
    second = Member(run.open(token), token, "game", dict)
    with pytest.raises(Dismissed, match="its token is in use by a worker on"):
        second.join(lambda: False)
    first.check()
    first.leave()
    second.leave()
    third = Member(run.open(token), token, "game", dict)
    assert third.join(lambda: False), "which has left"
    third.leave()


def test_a_worker_is_told_to_stop(make_run: Callable[..., Run]) -> None:
    run = make_run()
    token = run.token("laptop")
    member = Member(run.open(token), token, "game", dict)
    assert member.join(lambda: False)
    run.link.client.hset(run.home.keys.stops, "laptop", "another start of it")
    time.sleep(1.0)
    assert not member.told_to_stop
    run.link.client.hset(run.home.keys.stops, "laptop", member.instance)
    until(lambda: member.told_to_stop)
    member.leave()


def test_a_run_without_a_head_does_not_answer(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aleazero.runtimes.redis.member.WELCOME_SECONDS", 0.5)
    token = party.worker()
    member = Member(party.link(token), token, "game", dict)
    with pytest.raises(Dismissed, match="does not answer: is it running"):
        member.join(lambda: False)
    member.leave()


def test_settings_travel_as_a_file_s_would(party: Party) -> None:
    with pytest.raises(ConfigError, match="has published no settings"):
        read_config(party.head, party.keys)
    config = dataclasses.replace(CONFIG, seed=77)
    publish_config(party.head, party.keys, config, "first")
    token = party.worker()
    assert read_config(party.link(token), party.keys) == (config, "first")
    said = msgpack.packb({"toml": 'game = "tictactoe"\nsede = 3\n', "incarnation": "x"})
    party.head.client.set(party.keys.public("config"), said)
    with pytest.raises(ConfigError, match="sede"):
        read_config(party.link(token), party.keys)


def test_notices_that_cannot_be_read_say_nothing(party: Party) -> None:
    for name in ("state", "progress", "config"):
        party.head.client.set(party.keys.public(name), b"\xc1nonsense")
    said = read_notices(party.head.client, party.keys)
    assert (said.state, said.progress, said.incarnation) == ("running", Progress(), "")
    party.head.client.set(party.keys.public("progress"), msgpack.packb({"rows": "many", "games": 3, "more": 1}))
    assert read_notices(party.head.client, party.keys).progress == Progress(games=3)


def test_other_sources_play_other_games_and_source_0_those_of_a_local_run(quick_programs: None) -> None:  # noqa: F811
    parts = far_parts(CONFIG, 2)
    weights = LocalWeights()
    weights.publish(0, parts.start_learning().average)

    class Box:
        def add(self, slab: Any) -> None:
            self.slab = jax.device_get(slab)

    found = {}
    for sources in ([0, 5], [5, 0], [7, 2**61]):
        box = Box()
        lanes = lanes_of(sources, 8)
        assert lanes.dtype == jnp.uint32
        SelfPlay(parts, box, weights, lanes).step()
        found |= {(source, place): box.slab.state[:, place * 8 :][:, :8] for place, source in enumerate(sources)}
    np.testing.assert_array_equal(found[0, 0], found[0, 1], "wherever a source lies in a batch")
    np.testing.assert_array_equal(found[5, 0], found[5, 1])
    local = Box()
    SelfPlay(far_parts(CONFIG, 1), local, weights).step()
    np.testing.assert_array_equal(local.slab.state, found[0, 0])
    different = [found[0, 0], found[5, 0], found[7, 0], found[2**61, 1]]
    assert len({array.tobytes() for array in different}) == 4


def test_schedules_reach_a_worker_without_a_new_program(quick_programs: None) -> None:  # noqa: F811
    parts = far_parts(CONFIG, 1)
    weights = LocalWeights()
    weights.publish(0, parts.start_learning().average)
    rows = [0]

    class Nowhere:
        def add(self, slab: Any) -> None:
            jax.block_until_ready(slab)

    actor = SelfPlay(parts, Nowhere(), weights, lanes_of([3], 8), lambda _: parts.pace(rows[0]))
    actor.step()
    with jax.log_compiles(), _no_compilation():
        for rows[0] in (500, 1500, 2560):
            actor.step()
    assert float(parts.pace(0).knobs.temperature) > float(parts.pace(2560).knobs.temperature)


@contextlib.contextmanager
def _no_compilation() -> Iterator[None]:
    records: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record.getMessage())

    handler, logger = Handler(), logging.getLogger("jax")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
    assert [text for text in records if "Compiling" in text] == []


def test_a_run_that_begins_anew_forgets_what_redis_holds_of_it(make_run: Callable[..., Run]) -> None:
    run = make_run()
    run.link.client.xadd(run.home.keys.slabs("laptop"), {b"slab": b"old"})
    incarnation, clear = run.home.incarnation()
    assert not clear
    (run.home.path / "run").unlink()  # as `alea runs reset` leaves it
    again = Coordinator(run.home, run.config, run.link, JsonlSink(run.folder.evals_file))
    again.open()
    again._evals.close()
    assert run.link.client.xlen(run.home.keys.slabs("laptop")) == 0
    assert run.home.incarnation()[0] != incarnation
    assert read_config(run.link, run.home.keys)[1] == run.home.incarnation()[0]
    assert isinstance(run.folder, RunFolder)
