"""A state as one row of bytes, and back: what trees and replay store.

The layout is the state's leaves in order, booleans as bits, everything else as its own bytes. A game that declares
small dtypes gets a compact row for free; one that knows better overrides `Game.pack` and `Game.unpack`.
Knows nothing of any game.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def packed_bytes(like: Any) -> int:
    """The length of a packed row for states shaped as `like`."""
    leaves = jax.tree.leaves(like)
    bits = sum(int(np.prod(leaf.shape)) for leaf in leaves if leaf.dtype == jnp.bool_)
    rest = sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in leaves if leaf.dtype != jnp.bool_)
    return rest + (bits + 7) // 8


def pack_tree(tree: Any) -> Array:
    """One state as `[P]` uint8: the bytes of its numbers, then the bits of its booleans."""
    leaves = jax.tree.leaves(tree)
    numbers = [_to_bytes(leaf) for leaf in leaves if leaf.dtype != jnp.bool_]
    flags = [leaf.reshape(-1) for leaf in leaves if leaf.dtype == jnp.bool_]
    if flags:
        numbers.append(jnp.packbits(jnp.concatenate(flags)))
    return jnp.concatenate(numbers)


def unpack_tree(row: Array, like: Any) -> Any:
    """The state that `pack_tree` packed; `like` gives the shapes and dtypes (arrays or ShapeDtypeStructs)."""
    leaves, treedef = jax.tree.flatten(like)
    at, bit = 0, 0
    numbers_end = sum(int(np.prod(x.shape)) * x.dtype.itemsize for x in leaves if x.dtype != jnp.bool_)
    flags = jnp.unpackbits(row[numbers_end:]).astype(jnp.bool_)
    out = []
    for leaf in leaves:
        size = int(np.prod(leaf.shape))
        if leaf.dtype == jnp.bool_:
            out.append(flags[bit : bit + size].reshape(leaf.shape))
            bit += size
        else:
            out.append(_from_bytes(row[at : at + size * leaf.dtype.itemsize], leaf))
            at += size * leaf.dtype.itemsize
    return jax.tree.unflatten(treedef, out)


def _to_bytes(leaf: Array) -> Array:
    flat = leaf.reshape(-1)
    return flat if flat.dtype == jnp.uint8 else jax.lax.bitcast_convert_type(flat, jnp.uint8).reshape(-1)


def _from_bytes(part: Array, leaf: Any) -> Array:
    width = leaf.dtype.itemsize
    grouped = part.reshape(-1, width) if width > 1 else part
    return jax.lax.bitcast_convert_type(grouped, leaf.dtype).reshape(leaf.shape)
