"""A run of backgammon by whole turns, from end to end: it learns from nothing but the rules, and resumes exactly."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aleazero.observe.reports import LearnReport, SelfPlayReport
from aleazero.runs import RunFolder
from tests.runtimes.support import (  # noqa: F401 - fixtures
    ROOT,
    Recorder,
    StopAfter,
    differences,
    finite,
    make_run,
    newest,
    programs,
    quick_programs,
    statuses,
    train,
    turns,
    write_config,
)

pytestmark = pytest.mark.slow

CONFIG = turns()

# Whoever imports an engine, or GNU Backgammon's library, learns that there is none.
WITHOUT_ENGINES = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("gnubg") or name.startswith("aleazero.engines"):
            raise AssertionError(f"training imports {name}")
sys.meta_path.insert(0, Absent())
from aleazero.run import main
assert main([*sys.argv[1:], "--name", "one", "--set", "evaluate.opponents=random"]) == 0
met = [name for name in sys.modules if name.startswith(("gnubg", "aleazero.engines"))]
assert met == [], met
print("none", flush=True)
main([*sys.argv[1:], "--name", "two", "--set", "evaluate.opponents=gnubg:ply=0"])
"""


def test_training_touches_no_engine(tmp_path: Path, programs: Path) -> None:  # noqa: F811
    """With a match against random; a match against an engine imports it, and shows that this test can see that."""
    file = write_config(CONFIG, tmp_path / "it.toml")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ALEA_")},
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(programs),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "ALEA_RUNS": str(tmp_path / "runs"),
    }
    settings = ("total_rows=384", "evaluate.games=4", "evaluate.luck=true")
    given = [word for setting in settings for word in ("--set", setting)]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ENGINES, str(file), "--preset", "quick", *given],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    folder = RunFolder(tmp_path / "runs" / "one")
    assert statuses(folder) == ["started", "done"], done.stderr
    assert newest(folder).facts["rows"] == 384
    reports = [json.loads(line) for line in folder.metrics_file.read_text().splitlines()]
    matches = [
        (report["opponent"], report["games"], report["luck_off"]) for report in reports if report["kind"] == "eval"
    ]
    assert matches == [("random", 4, True)]
    assert done.stdout.endswith("none\n")
    assert done.returncode != 0
    assert "training imports aleazero.engines" in done.stderr


@pytest.mark.usefixtures("quick_programs")
def test_a_run_stopped_and_resumed_equals_one_that_was_not(tmp_path: Path) -> None:
    sink = Recorder()
    whole = train(CONFIG, tmp_path, "whole", sink)
    parts = train(CONFIG, tmp_path, "parts", stop=5)
    before = newest(parts)
    assert 0 < before.facts["rows"] < CONFIG.total_rows
    assert differences(newest(whole), before) != []
    with contextlib.closing(make_run(CONFIG, tmp_path, "parts")) as run:
        run.resume(before, "exact")
        run.train(StopAfter())
    assert differences(newest(whole), newest(parts)) == []
    assert finite(newest(whole))
    assert newest(whole).facts["rows"] == CONFIG.total_rows
    assert newest(whole).facts["games_finished"] > 0
    assert len(sink.of(SelfPlayReport)) > 5
    assert len(sink.of(LearnReport)) > 5
