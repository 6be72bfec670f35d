"""Records: frozen, traced field by field."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import pytest
from jax import Array

from aleazero.core.struct import replace, struct


@struct
class Pair:
    second: Array
    first: Array


def test_leaves_come_in_the_order_of_the_fields():
    pair = Pair(second=jnp.int32(1), first=jnp.int32(2))
    assert [int(leaf) for leaf in jax.tree.leaves(pair)] == [1, 2]
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(pair)[0]]
    assert paths == [".second", ".first"]


def test_a_record_passes_through_jit():
    turned = jax.jit(lambda pair: Pair(second=pair.first, first=pair.second))(Pair(jnp.int32(1), jnp.int32(2)))
    assert (int(turned.second), int(turned.first)) == (2, 1)


def test_a_record_cannot_be_changed_but_copied():
    pair = Pair(jnp.int32(1), jnp.int32(2))
    with pytest.raises(dataclasses.FrozenInstanceError):
        pair.first = jnp.int32(3)
    other = replace(pair, first=jnp.int32(3))
    assert (int(pair.first), int(other.first), int(other.second)) == (2, 3, 1)
