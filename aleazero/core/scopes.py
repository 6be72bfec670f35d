"""Names on compiled operations, so that a trace can say which part of the system they belong to.

A name is metadata: it changes neither numbers nor programs. Names nest, and the innermost one counts: what the network
computes for a search is the network's. Knows no part in particular beyond its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar, get_args

import jax

F = TypeVar("F", bound=Callable[..., Any])
Part = Literal["rules", "search", "network", "replay", "update"]
PARTS: tuple[Part, ...] = get_args(Part)
_PREFIX = "alea."  # so that nobody else's scope is taken for one of these
_NAMED = re.compile(rf"{re.escape(_PREFIX)}({'|'.join(PARTS)})\b")


class Scope(Protocol):
    """A context, and a decorator of functions."""

    def __enter__(self) -> object:
        """Begins to name."""

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        """Ends it."""

    def __call__(self, func: F) -> F:
        """The function, with what it traces named."""


def part(name: Part) -> Scope:
    """Names the operations traced in it: `with part("search"):`, or as a decorator."""
    return jax.named_scope(_PREFIX + name)


def part_of(op_name: str) -> Part | None:
    """The part that an operation belongs to, by the path of scopes that it was traced in; None where no scope says."""
    found: list[Part] = _NAMED.findall(op_name)
    return found[-1] if found else None
