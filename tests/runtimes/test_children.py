"""No process is left behind: neither when the head ends, nor when it is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aleazero.runtimes.children import Child
from aleazero.runtimes.guard import _alive

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)
HEAD = """
import subprocess, sys, time
from aleazero.runtimes.children import Guard
code = {"soft": "import time; print('up', flush=True); time.sleep(600)", "hard": sys.argv[1]}
children = [
    subprocess.Popen([sys.executable, "-c", code[kind]], start_new_session=True, stdout=subprocess.PIPE)
    for kind in ("soft", "hard", "soft")
]
for child in children:
    child.stdout.readline()
watching = Guard(patience=1.0)
watching.watch([999999])
watching.watch([children[1].pid, children[2].pid], [children[0].pid])
print(*(child.pid for child in children), watching._process.pid, flush=True)
time.sleep(600)
"""


def until(happened: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_a_killed_head_leaves_nothing() -> None:
    head = subprocess.Popen([sys.executable, "-c", HEAD, STUBBORN], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert head.stdout is not None
    server, hard, soft, guard = map(int, head.stdout.readline().split())
    assert all(map(_alive, (server, hard, soft, guard)))
    head.send_signal(signal.SIGKILL)
    head.wait()
    head.stdout.close()
    assert until(lambda: not _alive(soft), 60)
    assert until(lambda: not any(map(_alive, (server, hard, guard))), 60)


def test_a_child_is_started_again_later_and_later(tmp_path: Path) -> None:
    child = Child("it", [], {"SECRET": "hidden"}, tmp_path / "logs" / "it.log")
    child._command = [sys.executable, "-c", "import os; print(os.environ['SECRET'], flush=True); os._exit(3)"]
    pauses = []
    for number in range(3):
        child.start()
        assert child.wait(60)
        assert child.ended() == 3
        assert child.ended() is None, "said once"
        assert child.failures == number + 1
        pauses.append(child._next_start - time.monotonic())
        assert not child.due
        child._next_start = 0.0
        assert child.due
    assert pauses[0] < pauses[1] < pauses[2] < 3
    assert child.log.read_text() == "hidden\n" * 3
    assert child.log.stat().st_mode & 0o777 == 0o600


def test_a_child_killed_by_a_signal_has_not_failed(tmp_path: Path) -> None:
    child = Child("it", [], {}, tmp_path / "it.log")
    child._command = [sys.executable, "-c", "import time; time.sleep(600)"]
    child.start()
    child.kill()
    assert child.wait(60)
    assert child.ended() == -signal.SIGKILL
    assert child.failures == 0
    assert "signal 9" in child.how
