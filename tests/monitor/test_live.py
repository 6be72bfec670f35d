"""A real Prometheus scrapes a live run: every panel has data, and every number is the one in `metrics.jsonl`."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aleazero.observe.settings import ObserveConfig
from aleazero.runs import RunFolder
from aleazero.runtimes.desk import MetricsPage
from tests.observe import examples
from tests.runtimes.support import Child, Children, programs, tiny, write_config  # noqa: F401 - a fixture

pytest.importorskip("prometheus_client")
pytest.importorskip("psutil")
if shutil.which("prometheus") is None:
    pytest.skip("prometheus is not installed", allow_module_level=True)

from tests.monitor import live as watching
from tests.monitor.live import Live, wait, watched

# Reports that a healthy local run of one process does not make; GPUs it may not have.
NOT_LOCAL = ("workers", "worker", "alarm", "producers", "ppo", "ray", "rllib")
ROLES = dict.fromkeys(("run", "learn", "selfplay", "replay", "eval", "hardware", "checkpoint"), "train")
SETTINGS = (
    *("total_rows=100000000", "search.kind=direct", "learn.updates_per_call=1", "replay.rows_per_new_row=1"),
    *("evaluate.opponents=random", "evaluate.every_rows=2560", "evaluate.games=16", "checkpoint.every_rows=2560"),
    *("observe.every_seconds=0.4", "observe.hardware_seconds=0.3"),
    *("observe.prometheus=true", "observe.metrics_port=0"),
)


@pytest.fixture(scope="module")
def child_and_live(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[tuple[Child, Live]]:  # noqa: F811
    root = tmp_path_factory.mktemp("live")
    config = write_config(tiny(*SETTINGS), root / "it.toml")
    with contextlib.ExitStack() as stack:
        child = Children(programs).start(config, "--preset", "quick", "--name", "it", "--runs", root)
        stack.callback(lambda: child.kill() if child.process.is_alive() else None)
        live = stack.enter_context(watched(RunFolder(root / "it")))
        # In the order in which they come: each is waited for, and compiling takes long on a busy machine.
        for metric in ("cpu_percent", "training_loss", "evaluation_score", "checkpoint_version"):
            seen = f'count_over_time(alea_{metric}{{run="it"}}[10m]) > 4'
            child.wait_for(lambda seen=seen: live.ask(seen) or time.sleep(0.2), metric)
        yield child, live


@pytest.fixture
def live(child_and_live: tuple[Child, Live]) -> Live:
    return child_and_live[1]


def test_every_panel_has_data(live: Live) -> None:
    watching.assert_panels_have_data(
        live, lambda m: m.report in NOT_LOCAL or m.name.startswith("gpu_") or "_ante_" in m.name
    )


def test_every_number_is_the_one_in_the_runs_own_record(live: Live) -> None:
    watching.assert_numbers_are_the_runs_own(live, ROLES)


def test_numbers_of_one_scrape_belong_to_one_step(live: Live) -> None:
    watching.assert_one_scrape_is_one_step(live)


def test_a_run_that_is_killed_is_seen_and_one_that_ends_is_forgotten(child_and_live: tuple[Child, Live]) -> None:
    child, live = child_and_live
    target = live.desk.targets / "it.json"
    assert live.ask('up{run="it"} == 1')
    child.send(signal.SIGKILL)
    child.process.join(watching.PATIENCE)
    wait(lambda: live.ask('up{run="it"} == 0'), "the dead run is not seen")
    assert target.exists()  # or else nobody could be told
    (entry,) = json.loads(target.read_text())
    port = int(entry["targets"][0].rpartition(":")[2])
    heir = MetricsPage(ObserveConfig(metrics_port=port), live.desk.targets / "heir.json", {"run": "heir"})
    try:  # another run has its port now: the dead one stays dead, and gets no numbers of the other
        heir.emit(examples.learn(step=123_456))
        wait(lambda: live.ask('count_over_time(alea_model_version{run="heir"}[1m]) > 3'), "the heir is not seen")
        assert json.loads((live.desk.targets / "heir.json").read_text())[0]["targets"] == entry["targets"]
        assert live.ask('up{run="it"} == 0')
        assert not live.ask('max_over_time(alea_model_version{run="it"}[10m]) == 123456')
    finally:
        heir.close()
    target.unlink()
    wait(lambda: not live.ask('up{run="it"}'), "the run is not forgotten")
