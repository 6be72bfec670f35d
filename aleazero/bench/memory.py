"""How much memory this process uses where it computes: by the backend's account, or its resident set on the CPU.

Also how much there is, so that a batch that cannot fit is refused before it is tried. Knows no benchmark.
"""

from __future__ import annotations

import contextlib
import dataclasses
import resource
import sys
from pathlib import Path
from typing import Any

import jax

from aleazero.core.errors import AleaError

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
_SHARE = 0.9  # of what is free: other programs breathe too
GB = 10**9


class DoesNotFit(AleaError):  # noqa: N818 - the name says what happened
    """A batch needs more memory than there is."""


@dataclasses.dataclass(frozen=True)
class Memory:
    """Bytes."""

    in_use: int
    peak: int  # since `forget_peak` where the peak can be forgotten, else since the process began
    source: str  # "device" or "resident set"


def read() -> Memory:
    """What is used now."""
    stats = _device_stats()
    if stats:
        in_use = int(stats.get("bytes_in_use", 0))
        return Memory(in_use, int(stats.get("peak_bytes_in_use", in_use)), "device")
    if _STATUS.exists():
        lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines() if ":" in line)
        return Memory(_kilobytes(lines["VmRSS"]), _kilobytes(lines["VmHWM"]), "resident set")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Memory(most, most, "resident set")


def forget_peak() -> bool:
    """Lets the peak begin anew; False where that cannot be done, as on accelerators."""
    if _device_stats():
        return False
    with contextlib.suppress(OSError):
        _RESET.write_text("5")
        return True
    return False


def available() -> int | None:
    """Bytes that this process may use in all; None where nobody says."""
    stats = _device_stats()
    if stats:
        limit = stats.get("bytes_limit")
        return int(limit) if limit else None
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return None
    lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
    free = _kilobytes(lines["MemAvailable"])
    with contextlib.suppress(OSError, ValueError):  # a container's own limit; "max" where it has none
        group = Path("/sys/fs/cgroup")
        room = int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
        free = min(free, max(room, 0))
    return read().in_use + int(_SHARE * free)


@dataclasses.dataclass(frozen=True)
class Room:
    """How much memory may be used, and who says so."""

    limit: int | None  # bytes; None: nobody knows
    given: bool  # by --memory-limit

    def check(self, what: str, needed: int) -> None:
        """Raises DoesNotFit, with what to do, where so many bytes are too many."""
        if self.limit is not None and needed > self.limit:
            whose = "--memory-limit allows" if self.given else "this machine has room for"
            raise DoesNotFit(
                f"{what} needs about {gigabytes(needed)} GB, and {whose} {gigabytes(self.limit)} GB: "
                "take a smaller batch, or let --discover find the largest that fits"
            )


def room(limit_gb: float | None) -> Room:
    """As given in gigabytes, else what there is."""
    return Room(available() if limit_gb is None else int(limit_gb * GB), limit_gb is not None)


def bytes_of(tree: Any) -> int:
    """Of arrays, or of what only has their shapes."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def gigabytes(count: float) -> str:
    """In few digits."""
    return f"{count / GB:.3g}"


def ran_out(error: BaseException) -> bool:
    """Whether an error says that memory ran out."""
    if isinstance(error, MemoryError):
        return True
    text = str(error)
    return isinstance(error, jax.errors.JaxRuntimeError) and (
        "RESOURCE_EXHAUSTED" in text or "out of memory" in text.lower()
    )


def _device_stats() -> dict[str, Any] | None:
    return jax.local_devices()[0].memory_stats()


def _kilobytes(text: str) -> int:
    return 1024 * int(text.split()[0])
