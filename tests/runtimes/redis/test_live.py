"""A real Prometheus scrapes a live run on Redis, head, learner and workers: all panels, and the run's own numbers."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aleazero.observe.catalogue import metric_of
from aleazero.runtimes.redis.desk import HeadDesk
from aleazero.runtimes.redis.learner import learn
from aleazero.runtimes.redis.link import connect
from aleazero.runtimes.redis.server import RedisServer
from tests.runtimes.redis.test_roles import SMALL, Run, Working, eval_worker, game_worker
from tests.runtimes.support import programs, quick_programs, tiny  # noqa: F401 - fixtures

pytest.importorskip("prometheus_client")
pytest.importorskip("psutil")
if shutil.which("prometheus") is None:
    pytest.skip("prometheus is not installed", allow_module_level=True)

from tests.monitor import live as watching
from tests.monitor.live import Live, targets_of, wait, watched

NOT_MADE = ("alarm", "producers", "ppo", "ray", "rllib")  # reports that a healthy run on Redis does not make
HEADS = dict.fromkeys(("eval", "workers"), "head")
ROLES = dict.fromkeys(("run", "learn", "selfplay", "replay", "hardware", "checkpoint"), "train") | HEADS
CONFIG = tiny(
    *SMALL,
    *("total_rows=100000000", "replay.rows_per_new_row=1", "evaluate.every_rows=1280"),
    *("checkpoint.every_rows=2560", "observe.every_seconds=0.4", "observe.hardware_seconds=0.3"),
    *("observe.prometheus=true", "observe.metrics_port=0"),
)


class Desked(Run):
    """A run whose head has a desk."""

    desk: HeadDesk

    def _tick(self) -> None:
        with contextlib.closing(HeadDesk(self.home, self.root, self.config, self.link)) as self.desk:
            self.coordinator._evals = self.desk.evals
            while not self._stop.wait(0.1):
                self.coordinator.tick(self.state)
                self.desk.tick(self.coordinator.registry)


@pytest.fixture(scope="module")
def live(
    server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
    quick_programs: None,  # noqa: F811
) -> Iterator[tuple[Desked, Live]]:
    root = tmp_path_factory.mktemp("live")
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(contextlib.closing(Desked(server, root, CONFIG, f"it-{time.monotonic_ns()}")))
        live = stack.enter_context(watched(run.folder))
        workers: list[Working] = [game_worker(run, "laptop", 8), eval_worker(run, "judge")]
        learner = threading.Thread(target=learn, args=(run.folder, root), daemon=True)
        learner.start()

        def stop() -> None:
            run.folder.stop_file.touch()
            learner.join(60)
            for worker in workers:
                worker.finish()
            assert [worker.failure for worker in workers] == [None, None]

        stack.callback(stop)
        token = run.token("laptop")
        with contextlib.closing(connect(server.url, token)) as link:  # something to be refused
            link.client.xadd(run.home.keys.slabs("laptop"), {b"slab": b"rubbish"})
        # In the order in which they come: each is waited for, and compiling takes long on a busy machine.
        for name in ("cpu_percent", "own_model_version", "training_loss", "checkpoint_version", "evaluation_score"):
            seen = f'count_over_time(alea_{name}{{run="{run.folder.name}"}}[10m]) > 4'
            wait(lambda seen=seen: live.ask(seen), name)
        wait(lambda: live.ask(f'alea_quarantined_by_reason_total{{run="{run.folder.name}"}}'), "the refusal")
        yield run, live


def test_every_panel_has_data(live: tuple[Desked, Live]) -> None:
    watching.assert_panels_have_data(live[1], lambda m: m.report in NOT_MADE or "gpu_" in m.name or "_ante_" in m.name)


def test_every_number_is_the_one_in_the_runs_own_record(live: tuple[Desked, Live]) -> None:
    watching.assert_numbers_are_the_runs_own(live[1], ROLES)


def test_numbers_of_one_scrape_belong_to_one_step(live: tuple[Desked, Live]) -> None:
    watching.assert_one_scrape_is_one_step(live[1])


def test_what_a_worker_says_on_its_page_the_head_has_written(live: tuple[Desked, Live]) -> None:
    records = [record for record in live[1].run.read_reports() if record["kind"] == "workers"]
    fields = {"own_games_per_minute": "games_per_minute", "cpu_percent": "cpu_percent"}
    for name, field in fields.items():
        heard = {record[field].get("laptop") for record in records}
        until = records[-1]["time"] - 3.0  # a sign of life comes every two seconds
        said = {value for _, at, value in live[1].samples(metric_of(name), "game") if at < until}
        assert said & heard
        # One that a busy head comes too late for is replaced by the next.
        assert len(said - heard) <= len(said) / 4


def test_the_head_lists_everybody_in_both_ways(live: tuple[Desked, Live]) -> None:
    run, watched = live
    by_page = {(target.labels["role"], target.labels.get("worker")) for target in run.desk.all_targets()}
    assert by_page == {("head", None), ("train", None), ("game", "laptop"), ("eval", "judge")}
    files = sorted(watched.desk.targets.glob(f"{run.folder.name}*"))
    listed = [target["targets"] for file in files for target in targets_of(file)]
    assert sorted(listed) == sorted([target.address] for target in run.desk.all_targets())
    up = watched.ask(f'up{{run="{run.folder.name}"}} == 1')
    assert {series["metric"]["role"] for series in up} == {"head", "train", "game", "eval"}
    assert not list(Path(watched.desk.targets).glob(".*tmp"))
