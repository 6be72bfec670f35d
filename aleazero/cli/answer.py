"""What a command answers with: its exit code, and the one object of `--json`. Imports nothing heavy."""

from __future__ import annotations

import json
import math
from typing import Any

DONE, FAILED, MISUSE = 0, 1, 2


def print_json(report: dict[str, Any]) -> None:
    """The one object of `--json`: strict, with null for numbers that JSON cannot write."""
    print(json.dumps(strict(report), allow_nan=False))


def strict(value: Any) -> Any:
    """What JSON can write: null in place of numbers that it cannot."""
    if isinstance(value, dict):
        return {key: strict(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [strict(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
