"""A state as one row of bytes, and back: what trees and replay store.

The layout is by dtype: the state's numbers of one dtype after another, in the order of the leaves, then all booleans
as bits. A game that declares small dtypes gets a compact row for free; one that knows better overrides `Game.pack` and
`Game.unpack`. Knows nothing of any game.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def packed_bytes(like: Any) -> int:
    """The length of a packed row for states shaped as `like`."""
    return sum(_group_bytes(dtype, leaves) for dtype, leaves in _groups(jax.tree.leaves(like)))


def pack_tree(tree: Any) -> Array:
    """One state as `[P]` uint8."""
    parts = []
    for dtype, indexed in _groups(jax.tree.leaves(tree)):
        flat = jnp.concatenate([leaf.reshape(-1) for _, leaf in indexed])
        parts.append(jnp.packbits(flat) if dtype == jnp.bool_ else _to_bytes(flat))
    return jnp.concatenate(parts)


def unpack_tree(row: Array, like: Any) -> Any:
    """The state that `pack_tree` packed; `like` gives the shapes and dtypes (arrays or ShapeDtypeStructs)."""
    leaves, treedef = jax.tree.flatten(like)
    out: list[Any] = [None] * len(leaves)
    at = 0
    for dtype, indexed in _groups(leaves):
        part = row[at : at + _group_bytes(dtype, indexed)]
        at += part.shape[0]
        flat = jnp.unpackbits(part).astype(jnp.bool_) if dtype == jnp.bool_ else _from_bytes(part, dtype)
        ends = list(itertools.accumulate(_size(leaf) for _, leaf in indexed))
        for (index, leaf), end in zip(indexed, ends, strict=True):
            out[index] = flat[end - _size(leaf) : end].reshape(leaf.shape)
    return jax.tree.unflatten(treedef, out)


def _groups(leaves: list[Any]) -> list[tuple[Any, list[tuple[int, Any]]]]:
    """Leaves with their places, by dtype; booleans last."""
    dtypes = sorted({leaf.dtype for leaf in leaves}, key=lambda dtype: (dtype == jnp.bool_, dtype.name))
    return [(dtype, [(i, leaf) for i, leaf in enumerate(leaves) if leaf.dtype == dtype]) for dtype in dtypes]


def _size(leaf: Any) -> int:
    return int(np.prod(leaf.shape))


def _group_bytes(dtype: Any, indexed: list[tuple[int, Any]]) -> int:
    count = sum(_size(leaf) for _, leaf in indexed)
    return (count + 7) // 8 if dtype == jnp.bool_ else count * int(dtype.itemsize)


def _to_bytes(flat: Array) -> Array:
    return flat if flat.dtype == jnp.uint8 else jax.lax.bitcast_convert_type(flat, jnp.uint8).reshape(-1)


def _from_bytes(part: Array, dtype: Any) -> Array:
    width = dtype.itemsize
    return jax.lax.bitcast_convert_type(part.reshape(-1, width) if width > 1 else part, dtype)
