"""A batch over the devices that suit it, as training spreads its games. For programs whose lanes are independent.

Does not know what they compute.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from aleazero.core.devices import devices_for

_LANES = "lanes"


@dataclasses.dataclass(frozen=True)
class Spread:
    """Some devices, each with its share of the lanes."""

    mesh: Mesh

    @classmethod
    def of(cls, batch: int) -> Spread:
        """For so many lanes."""
        return cls(Mesh(np.array(devices_for(batch)), (_LANES,)))

    @classmethod
    def over_all(cls) -> Spread:
        """Over every device there is."""
        return cls(Mesh(np.array(jax.local_devices()), (_LANES,)))

    def everywhere(self, tree: Any) -> Any:
        """The tree on every device."""
        return jax.device_put(tree, NamedSharding(self.mesh, P()))

    def lanes(self, tree: Any, axis: int = 0) -> Any:
        """The tree with the lanes, which are that axis of its arrays, shared out."""
        return jax.device_put(tree, NamedSharding(self.mesh, _spec(axis)))

    def function(self, function: Callable[..., Any], *axes: int | None) -> Callable[..., Any]:
        """The function for arguments placed as `axes` say (None: everywhere); lanes come first in what it returns."""
        if self.mesh.size == 1:
            return function
        into = tuple(P() if axis is None else _spec(axis) for axis in axes)
        return jax.shard_map(function, mesh=self.mesh, in_specs=into, out_specs=P(_LANES), check_vma=False)


def _spec(axis: int) -> P:
    return P(*[None] * axis, _LANES)
