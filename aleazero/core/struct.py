"""Frozen dataclasses that JAX can trace: the one way records and states are declared here."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
from jax import Array

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def struct(cls: type[T]) -> type[T]:
    """Makes a class a frozen dataclass and a pytree whose leaves are its fields, in order."""
    data = dataclasses.dataclass(frozen=True)(cls)
    return jax.tree_util.register_dataclass(data)


def replace(record: T, /, **changes: Any) -> T:
    """A copy with some fields changed."""
    return dataclasses.replace(record, **changes)  # type: ignore[type-var]


def where_lanes(condition: Array, yes: Any, no: Any) -> Any:
    """One of two records, or lane by lane of two batches of them."""

    def pick(x: Array, y: Array) -> Array:
        return jnp.where(condition.reshape(*condition.shape, *[1] * (x.ndim - condition.ndim)), x, y)

    return jax.tree.map(pick, yes, no)
