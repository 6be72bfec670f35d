"""The tests' own rules."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from multiprocessing.context import SpawnProcess
from pathlib import Path

import psutil
import pytest

from tests.others import QUIET, Others

ROOT = Path(__file__).parents[1]


TESTS = """
import pytest

def test_skips():
    pytest.skip("no server")

@pytest.mark.speed
def test_skips_speed():
    pytest.skip("too slow")

SLOW = ["once", "twice", "twice"]

@pytest.mark.speed
@pytest.mark.parametrize("slow", ["never", "once", "twice"])
def test_speed(slow):
    if slow in SLOW:
        SLOW.remove(slow)
        raise AssertionError
"""


@pytest.mark.parametrize(
    ("cores", "required", "outcomes"),
    [
        (0.0, "0", {"skips": "SKIPPED", "speed[once]": "FAILED", "speed[twice]": "FAILED"}),
        (2.0, "1", {"skips": "FAILED", "speed[once]": "PASSED", "speed[twice]": "SKIPPED"}),
    ],
)
def test_what_may_be_skipped(cores: float, required: str, outcomes: dict[str, str], tmp_path: Path) -> None:
    """A test of speed that fails is repeated, and then skipped, on a machine that others keep busy; else it fails."""
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(f"from tests.others import Others\nOthers.cores = lambda self: {cores}\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = speed\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-ra",
        "-p",
        "tests.conftest",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    environment = os.environ | {"ALEA_REQUIRE_ALL": required, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    found = dict(re.findall(r"^test_it.py::test_(\S+) (\w+)", done.stdout, re.MULTILINE))
    assert found == {"skips_speed": "FAILED", "speed[never]": "PASSED"} | outcomes
    assert done.returncode == 1
    assert ("the machine is busy: others use 2.0 cores" in done.stdout) == (cores > QUIET)


def test_the_work_of_others_is_that_of_processes_which_are_not_ours() -> None:
    """These burners are ours; to a process that is asked meanwhile they are others."""
    spawn, cores = multiprocessing.get_context("spawn"), os.cpu_count() or 1
    burners = [spawn.Process(target=burn, daemon=True) for _ in range(cores)]
    measure = "import time; from tests.others import Others; o = Others(); time.sleep(1); print(o.cores())"
    try:
        for burner in burners:
            burner.start()
        while not all(psutil.Process(burner.pid).cpu_times().user > 0.5 for burner in burners):
            time.sleep(0.05)
        others, before, began = Others(), used(burners), time.monotonic()
        told = float(subprocess.check_output([sys.executable, "-c", measure], cwd=ROOT))
        burned = (used(burners) - before) / (time.monotonic() - began)
        assert others.cores() <= cores - burned + 0.2
        assert told > QUIET
    finally:
        for burner in burners:
            burner.kill()


def burn() -> None:
    while True:
        pass


def used(burners: Iterable[SpawnProcess]) -> float:
    return sum(psutil.Process(burner.pid).cpu_times().user for burner in burners)
