"""Packed rows: whatever goes in comes out, bit for bit, for any tree of small arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.core.packing import pack_tree, packed_bytes, unpack_tree

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32"]
SHAPES = [(), (1,), (3,), (9,), (2, 3), (0,), (2, 0, 3), (2, 2, 2)]
QUICK = settings(max_examples=12, deadline=None, derandomize=True)


@st.composite
def trees(draw: st.DrawFn) -> Any:
    """A nest of arrays with random bits: every value of every dtype, NaNs included."""
    kinds = draw(st.lists(st.tuples(st.sampled_from(DTYPES), st.sampled_from(SHAPES)), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    leaves = [random_array(rng, jnp.dtype(name), shape) for name, shape in kinds]
    cut = draw(st.integers(0, len(leaves)))
    return {"first": leaves[:cut], "rest": tuple(leaves[cut:])}


def random_array(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> jax.Array:
    if dtype == jnp.bool_:
        return jnp.asarray(rng.random(shape) < 0.5)
    return jnp.asarray(np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape))


def assert_same_bits(one: Any, two: Any) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@QUICK
@given(trees())
def test_what_is_packed_is_unpacked(tree):
    row = pack_tree(tree)
    assert row.dtype == jnp.uint8
    assert row.shape == (packed_bytes(tree),)
    assert_same_bits(unpack_tree(row, tree), tree)
    shapes = jax.eval_shape(lambda: tree)
    assert packed_bytes(shapes) == len(row)
    assert_same_bits(unpack_tree(row, shapes), tree)


@QUICK
@given(trees())
def test_a_row_is_no_longer_than_it_need_be(tree):
    leaves = jax.tree.leaves(tree)
    bits = sum(leaf.size for leaf in leaves if leaf.dtype == jnp.bool_)
    numbers = sum(leaf.nbytes for leaf in leaves if leaf.dtype != jnp.bool_)
    assert packed_bytes(tree) == numbers + -(-bits // 8)


@QUICK
@given(trees(), st.data())
def test_every_bit_counts(tree, data):
    """Two trees that differ in one bit have different rows."""
    leaves, treedef = jax.tree.flatten(tree)
    filled = [i for i, leaf in enumerate(leaves) if leaf.size]
    if not filled:
        return
    index = data.draw(st.sampled_from(filled))
    flat = np.array(leaves[index]).reshape(-1)
    place = data.draw(st.integers(0, len(flat) - 1))
    if flat.dtype == np.bool_:
        flat[place] = not flat[place]
    else:
        octets = flat.view(np.uint8)
        octets[data.draw(st.integers(0, len(octets) - 1))] ^= np.uint8(1 << data.draw(st.integers(0, 7)))
    leaves[index] = jnp.asarray(flat.reshape(leaves[index].shape))
    assert not np.array_equal(pack_tree(jax.tree.unflatten(treedef, leaves)), pack_tree(tree))


def test_a_batch_packs_lane_by_lane():
    rng = np.random.default_rng(0)
    kinds = [("bool", (9,)), ("int8", (3,)), ("float32", ()), ("uint32", (0,)), ("bool", ())]
    batch = [random_array(rng, jnp.dtype(name), (5, *shape)) for name, shape in kinds]
    lanes = [jax.tree.map(lambda x, lane=lane: x[lane], batch) for lane in range(5)]
    rows = jax.jit(jax.vmap(pack_tree))(batch)
    assert rows.shape == (5, 2 + 3 + 4)
    assert np.array_equal(rows, np.stack([pack_tree(lane) for lane in lanes]))
    assert_same_bits(jax.jit(jax.vmap(lambda row: unpack_tree(row, lanes[0])))(rows), batch)


def test_booleans_are_bits_at_the_end():
    tree = [jnp.array([True] + [False] * 6), jnp.array([1, -1], jnp.int8), jnp.array([True, False, True])]
    assert pack_tree(tree).tolist() == [1, 255, 0b10000001, 0b01000000]
