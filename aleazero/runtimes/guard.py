"""Ends a head's processes when the head itself is gone, however it went: a small process that waits for that.

Run as `python -m aleazero.runtimes.guard SECONDS`, of patience. It reads lines: `+PID`, a process group to look
after; `*PID`, one that the others need; `-PID`, one that has ended. The end of the input is the end of the head: then
all are asked to end, and after a while made to, those that the others need last. Knows only numbers.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

POLL_SECONDS = 0.1


def main(patience: float) -> int:
    """Waits for the end of the input, then ends what is left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the head
    groups: dict[int, bool] = {}  # by number: whether others need it
    for line in sys.stdin:
        sign, number = line[:1], line[1:].strip()
        if number.isdecimal() and sign in "+*":
            groups[int(number)] = sign == "*"
        elif number.isdecimal():
            groups.pop(int(number), None)
    end_all([group for group, needed in groups.items() if not needed], patience)
    end_all([group for group, needed in groups.items() if needed], patience)
    return 0


def end_all(groups: list[int], patience: float) -> None:
    """Asks them to end; kills what does not."""
    for group in groups:
        _signal(group, signal.SIGTERM)
    until = time.monotonic() + patience
    while any(_alive(group) for group in groups) and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
    for group in groups:
        _signal(group, signal.SIGKILL)


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _alive(group: int) -> bool:
    """Whether its first process runs; one that has ended, and that nobody asks for, does not."""
    try:
        os.kill(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    with contextlib.suppress(OSError):
        return Path(f"/proc/{group}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
