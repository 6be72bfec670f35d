"""`alea bench`: how fast this machine is, which batch size it likes, and how we stand beside our peers."""

from __future__ import annotations

from typing import Any

from aleazero.bench.command import read_options, show


def bench(*, as_json: bool, verbose: bool, **given: Any) -> int:
    """Measures and prints; 1 if this machine has become slower than its profile by more than is tolerated."""
    return show(read_options(**given), as_json=as_json, verbose=verbose)
