"""A packed slab and published weights, as they go through Redis: unpacked to the same arrays, packed as they were."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from tests.frozen.support import (
    WIRE,
    BadSlab,
    BadWeights,
    envelope,
    expect_none,
    misfits,
    named,
    pack_slab,
    pack_weights,
    read_json,
    schema_of,
    shape_text,
    split_slab,
    split_weights,
    tree_of,
    unpack_slab,
    unpack_weights,
)

SLAB, WEIGHTS = WIRE / "slab.bin", WIRE / "weights.bin"
PROTOCOL_AT = struct.calcsize("<4s")  # a 16-bit number behind the magic, in both


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    facts = read_json(WIRE / "wire.json")
    assert isinstance(facts, dict)
    return facts


@pytest.fixture(scope="module")
def slab() -> dict[str, np.ndarray]:
    with np.load(WIRE / "slab.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    with np.load(WIRE / "weights.npz") as arrays:
        return dict(arrays)


def secret_of(kept: dict[str, Any], worker: str) -> bytes | None:
    return kept["secret"].encode() if worker == kept["envelope"]["worker"] else None


def unpack(data: bytes, kept: dict[str, Any], slab: dict[str, np.ndarray]) -> tuple[Any, dict[str, np.ndarray]]:
    schema = schema_of(slab, kept["game"])
    rules = {"run": kept["envelope"]["run"], "newest_version": kept["newest_version"]}
    return unpack_slab(data, schema, lambda worker: secret_of(kept, worker), **rules)


def next_protocol(data: bytes) -> tuple[bytes, str]:
    """Return the same bytes under the next protocol's number, and what a refusal must say."""
    (number,) = struct.unpack_from("<H", data, PROTOCOL_AT)
    other = data[:PROTOCOL_AT] + struct.pack("<H", number + 1) + data[PROTOCOL_AT + 2 :]
    return other, f"protocol {number + 1}, and this version of aleazero speaks {number}"


# ---- slabs


def test_the_schema_is_the_same(kept: dict[str, Any], slab: dict[str, np.ndarray]) -> None:
    """Workers of another version have another fingerprint, and are refused."""
    expect_none(misfits({name: shape_text(array) for name, array in slab.items()}, kept["arrays"]))
    assert schema_of(slab, kept["game"]).fingerprint == kept["envelope"]["schema"]


def test_a_slab_is_unpacked(kept: dict[str, Any], slab: dict[str, np.ndarray]) -> None:
    found, arrays = unpack(SLAB.read_bytes(), kept, slab)
    assert found == envelope(kept["envelope"])
    expect_none(misfits({name: shape_text(array) for name, array in arrays.items()}, kept["arrays"]))
    for name, array in slab.items():
        np.testing.assert_array_equal(arrays[name], array)


def test_a_slab_is_packed_as_it_was(kept: dict[str, Any], slab: dict[str, np.ndarray]) -> None:
    old, new = SLAB.read_bytes(), pack_slab(envelope(kept["envelope"]), slab, kept["secret"].encode())
    (header, body), (frozen, same) = split_slab(new), split_slab(old)
    expect_none(misfits(header, frozen))
    assert header["fields"] == list(kept["envelope"].values())
    assert body == same
    assert unpack(new, kept, slab)[0] == unpack(old, kept, slab)[0]  # both are signed right


def test_a_slab_of_another_protocol_is_refused_by_name(kept: dict[str, Any], slab: dict[str, np.ndarray]) -> None:
    data, said = next_protocol(SLAB.read_bytes())
    with pytest.raises(BadSlab, match=said) as refused:
        unpack(data, kept, slab)
    assert refused.value.reason == "protocol"


def test_a_changed_slab_is_refused(kept: dict[str, Any], slab: dict[str, np.ndarray]) -> None:
    data = bytearray(SLAB.read_bytes())
    data[-40] ^= 1
    with pytest.raises(BadSlab) as refused:
        unpack(bytes(data), kept, slab)
    assert refused.value.reason == "signature"


# ---- weights


def test_weights_are_unpacked(kept: dict[str, Any], weights: dict[str, np.ndarray]) -> None:
    version, found = unpack_weights(WEIGHTS.read_bytes(), tree_of(weights))
    assert version == kept["weights_version"]
    expect_none(misfits({n: shape_text(a) for n, a in named(found).items()}, shapes(weights)))
    for name, array in named(found).items():
        np.testing.assert_array_equal(array, weights[name])


def test_weights_are_packed_as_they_were(kept: dict[str, Any], weights: dict[str, np.ndarray]) -> None:
    (header, found), (frozen, old) = (
        split_weights(data) for data in (pack_weights(kept["weights_version"], tree_of(weights)), WEIGHTS.read_bytes())
    )
    expect_none(misfits(header, frozen))
    expect_none(misfits(shapes(found), shapes(old)))
    for name, array in old.items():
        np.testing.assert_array_equal(found[name], array)


def test_weights_of_another_protocol_are_refused_by_name(weights: dict[str, np.ndarray]) -> None:
    data, said = next_protocol(WEIGHTS.read_bytes())
    with pytest.raises(BadWeights, match=f"the weights have {said}"):
        unpack_weights(data, tree_of(weights))


def shapes(arrays: dict[str, np.ndarray]) -> dict[str, str]:
    return {name: shape_text(array) for name, array in arrays.items()}
