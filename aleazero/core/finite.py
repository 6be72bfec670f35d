"""Whether weights are numbers: whoever takes weights from elsewhere looks before they play."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def not_finite(arrays: Mapping[str, np.ndarray]) -> list[str]:
    """Return what is wrong: a line for each array that holds NaN or infinity."""
    return [f"{name} holds NaN or infinity" for name, array in arrays.items() if not np.isfinite(array).all()]
