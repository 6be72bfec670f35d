"""How busy others keep this machine: tests of speed that fail beside them are no verdict."""

from __future__ import annotations

import time

import psutil

QUIET = 0.25  # cores that others may use


class Others:
    """The work of all but this process and those that it starts, from now on."""

    def __init__(self) -> None:
        self._began, self._work = time.monotonic(), _work_of_others()

    def cores(self) -> float:
        """Return how many cores they have kept busy; the clock of the system ticks a hundred times a second."""
        return (_work_of_others() - self._work - 0.02) / max(time.monotonic() - self._began, 0.02)


def _work_of_others() -> float:
    total = psutil.cpu_times()
    own = psutil.Process()
    mine = sum(own.cpu_times()[:4])  # with its children that have ended
    for child in own.children(recursive=True):
        try:
            mine += sum(child.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return float(sum(total) - total.idle - getattr(total, "iowait", 0.0) - getattr(total, "guest", 0.0) - mine)
