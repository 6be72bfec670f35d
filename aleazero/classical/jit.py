"""How this package is compiled: by Numba, without the interpreter lock, so that threads share the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from aleazero.core.errors import MissingExtra

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compiled when it is first called."""
    try:
        import numba
    except ImportError:
        raise MissingExtra("alpha-beta", "numba", "play") from None

    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled
