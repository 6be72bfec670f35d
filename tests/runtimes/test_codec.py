"""Slabs and weights as bytes: what is honest comes back bit for bit, and nothing else comes back at all."""

from __future__ import annotations

import contextlib
import dataclasses
import hmac
import resource
import struct
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aleazero.assemble import build_parts
from aleazero.export import fingerprint
from aleazero.runtimes.codec import (
    PROTOCOL,
    BadWeights,
    Envelope,
    max_packed_bytes,
    pack_slab,
    pack_weights,
    unpack_slab,
    unpack_weights,
    zstd,
)
from aleazero.runtimes.legal import LegalCheck
from aleazero.runtimes.slabs import REASONS, BadSlab, SlabSchema
from tests.runtimes import wire
from tests.runtimes.support import programs, quick_programs  # noqa: F401 - fixtures
from tests.runtimes.wire import NEWEST, RUN, SECRET, WORKER

SLAB = wire.as_dict(wire.hand_made())
SCHEMA = SlabSchema.of(wire.hand_made(), wire.spec())
PACKED = wire.packed(SCHEMA, SLAB)
PREFIX = struct.Struct("<4sHH")


def unpack(data: bytes, schema: SlabSchema = SCHEMA) -> tuple[Envelope, dict[str, np.ndarray]]:
    return unpack_slab(data, schema, wire.secret_of, run=RUN, newest_version=NEWEST)


def refused(data: bytes, schema: SlabSchema = SCHEMA) -> BadSlab:
    with pytest.raises(BadSlab) as caught:
        unpack(data, schema)
    assert caught.value.reason in REASONS
    return caught.value


def signed(header: Any, body: bytes, *, magic: bytes = b"aleS", protocol: int = PROTOCOL) -> bytes:
    """An entry of a worker that signs whatever it likes."""
    raw = header if isinstance(header, bytes) else msgpack.packb(header)
    data = PREFIX.pack(magic, protocol, len(raw)) + raw + body
    return data + hmac.digest(SECRET, data, "sha256")


def header(**changes: Any) -> list[Any]:
    return list((dataclasses.asdict(wire.envelope(SCHEMA, SLAB)) | changes).values())


def body_of(data: bytes) -> bytes:
    start = PREFIX.size + PREFIX.unpack_from(data)[2]
    return data[start:-32]


# ---- what is honest


@pytest.mark.usefixtures("quick_programs")
@pytest.mark.parametrize("case", wire.CASES)
def test_every_rollout_comes_back_as_it_was(case: str) -> None:
    played = wire.played(case)
    check = LegalCheck(played.game, rows=2**30)
    ended = 0
    for slab in played.slabs:
        assert played.schema.misfits(slab) == []
        sent = wire.envelope(played.schema, slab, sequence=ended)
        data = pack_slab(sent, slab, SECRET)
        assert len(data) <= max_packed_bytes(played.schema)
        got, arrays = unpack(data, played.schema)
        assert got == sent
        assert arrays.keys() == slab.keys()
        for name, array in slab.items():
            assert arrays[name].dtype == array.dtype
            assert arrays[name].flags.aligned
            assert arrays[name].tobytes() == array.tobytes(), name
        check(arrays)
        ended += got.games
    assert ended > 0, "no game ended: the checks of endings saw nothing"


@pytest.mark.usefixtures("quick_programs")
def test_the_schema_is_known_before_anything_is_played() -> None:
    parts = build_parts(wire.config("tictactoe"))
    assert SlabSchema.of(parts.slab_like(), parts.game.spec) == wire.played("tictactoe").schema


def test_noise_that_cannot_be_compressed_is_not_too_large() -> None:
    draw = np.random.default_rng(0)
    like = wire.hand_made(64, 64)
    schema = SlabSchema.of(like, wire.spec())
    noise = {
        n: draw.integers(0, 256, a.nbytes, np.uint8).view(a.dtype).reshape(a.shape)
        for n, a in wire.as_dict(like).items()
    }
    data = pack_slab(wire.envelope(schema, wire.as_dict(like)), noise, SECRET)
    assert schema.nbytes < len(data) <= max_packed_bytes(schema)


def test_a_part_of_the_lanes_has_its_own_schema() -> None:
    like = wire.hand_made(4, 12)
    assert SlabSchema.of(like, wire.spec(), lanes=3) == SCHEMA
    assert SlabSchema.of(like, wire.spec()).fingerprint != SCHEMA.fingerprint
    other = dataclasses.replace(wire.spec(), version=wire.spec().version + 1)
    assert SlabSchema.of(wire.hand_made(), other).fingerprint != SCHEMA.fingerprint


# ---- what is not: the outside


def test_sizes_are_looked_at_first() -> None:
    assert refused(b"").reason == "size"
    assert refused(PACKED[:39]).reason == "size"
    assert refused(bytes(max_packed_bytes(SCHEMA) + 1)).reason == "size"


def test_what_is_no_slab_is_malformed() -> None:
    body = body_of(PACKED)
    assert refused(signed(header(), body, magic=b"aleW")).reason == "malformed"
    assert refused(PREFIX.pack(b"aleS", PROTOCOL, 60_000) + PACKED[8:]).reason == "malformed"
    for wrong in (b"", b"\xc1", [1, 2], {"run": RUN}, [[]] * 8, b"\x91" * 400, msgpack.packb(header())[:-1]):
        assert refused(signed(wrong, body)).reason == "malformed", wrong


@pytest.mark.parametrize("change", [{"source": -1}, {"source": True}, {"sequence": 2**63}, {"run": 5}, {"games": "1"}])
def test_a_header_of_wrong_kinds_is_malformed(change: dict[str, Any]) -> None:
    bad = refused(signed(header(**change), body_of(PACKED)))
    assert bad.reason == "malformed"
    assert next(iter(change)) in bad.detail


def test_another_protocol_is_named() -> None:
    bad = refused(signed(header(), body_of(PACKED), protocol=PROTOCOL + 1))
    assert bad.reason == "protocol"
    assert str(PROTOCOL + 1) in bad.detail


def test_a_stranger_and_a_forger_are_not_taken_for_the_worker() -> None:
    stranger = refused(pack_slab(wire.envelope(SCHEMA, SLAB, worker="mallory"), SLAB, SECRET))
    assert (stranger.reason, stranger.worker, stranger.claimed) == ("worker", None, "mallory")
    forged = refused(pack_slab(wire.envelope(SCHEMA, SLAB), SLAB, b"another secret"))
    assert (forged.reason, forged.worker, forged.claimed) == ("signature", None, WORKER)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"run": "away"}, "run"),
        ({"schema": "0" * 32}, "schema"),
        ({"weights_version": NEWEST + 1}, "version"),
        ({"rows": SCHEMA.rows - 1}, "count"),
        ({"games": 0}, "count"),
    ],
)
def test_an_envelope_that_is_wrong_is_the_workers_own(change: dict[str, Any], reason: str) -> None:
    bad = refused(wire.packed(SCHEMA, SLAB, **change))
    assert (bad.reason, bad.worker) == (reason, WORKER)


# ---- what is not: the frame


def frame(declared: int, content: bytes) -> bytes:
    """A zstd frame of one raw block that declares what it likes."""
    block = (len(content) << 3 | 1).to_bytes(3, "little") + content
    return b"\x28\xb5\x2f\xfd\xe0" + declared.to_bytes(8, "little") + block


def test_a_bomb_is_not_lit() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for size in (10 * 10**9, 2**63, SCHEMA.nbytes + 1):
        assert refused(signed(header(), frame(size, b"x" * 100))).reason == "bomb"
    real = zstd.compress(bytes(2**24))
    assert refused(signed(header(), real)).reason == "bomb"
    undeclared = zstd.compress(bytes(SCHEMA.nbytes), options={zstd.CompressionParameter.content_size_flag: 0})
    assert refused(signed(header(), undeclared)).reason == "bomb"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB


def test_a_frame_that_lies_is_found_out() -> None:
    raw = zstd.decompress(body_of(PACKED))
    assert refused(signed(header(), frame(SCHEMA.nbytes, raw + b"x" * 1000))).reason == "malformed"
    assert refused(signed(header(), frame(SCHEMA.nbytes, raw[:-1]))).reason in ("malformed", "shape")
    assert refused(signed(header(), frame(SCHEMA.nbytes - 1, raw[:-1]))).reason == "shape"
    assert refused(signed(header(), body_of(PACKED) + b"more")).reason == "malformed"
    assert refused(signed(header(), b"no frame at all")).reason == "malformed"
    assert refused(signed(header(), b"")).reason == "malformed"
    assert unpack(signed(header(), frame(SCHEMA.nbytes, raw)))[1]["value"].tobytes() == SLAB["value"].tobytes()


# ---- what is not: the contents


def _set(name: str, place: tuple[Any, ...], value: Any) -> Callable[[dict[str, np.ndarray]], None]:
    def change(slab: dict[str, np.ndarray]) -> None:
        slab[name][place] = value

    return change


def _two(*changes: Callable[[dict[str, np.ndarray]], None]) -> Callable[[dict[str, np.ndarray]], None]:
    def change(slab: dict[str, np.ndarray]) -> None:
        for each in changes:
            each(slab)

    return change


AT = (2, 1)
PLAIN = _two(_set("ended", AT, False), _set("points", AT, 0.0))
ENDED = _two(_set("ended", AT, True), _set("points", AT, 1.0))
CONTENTS = {
    "a NaN among values": (_set("value", AT, np.nan), "not_finite"),
    "an infinite policy": (_set("policy", (*AT, 4), np.inf), "not_finite"),
    "a NaN among opinions": (_set("opinion", (*AT, 0), np.nan), "not_finite"),
    "infinite points": (_two(ENDED, _set("points", AT, -np.inf)), "not_finite"),
    "a third player": (_set("to_play", AT, 2), "player"),
    "a negative player": (_set("to_play", AT, -1), "player"),
    "an action too large": (_set("actions", (*AT, 0), 9), "action"),
    "an action below -1": (_set("actions", (*AT, 0), -2), "action"),
    "a played action too large": (_two(_set("random", AT, True), _set("action", AT, 9)), "action"),
    "no action played": (_set("action", AT, -1), "action"),
    "a random move of no action": (_two(_set("random", AT, True), _set("action", AT, -1)), "action"),
    "an action that is not listed": (
        _two(_set("action", AT, 3), _set("actions", (*AT, 3), -1), _set("policy", (*AT, 3), 0)),
        "action",
    ),
    "an action where none is listed": (_set("actions", AT, -1), "action"),
    "a policy of no action": (
        _two(_set("action", AT, 3), _set("actions", (*AT, 5), -1), _set("policy", (*AT, 5), 0.5)),
        "policy",
    ),
    "a negative policy": (_set("policy", (*AT, 0), -0.25), "policy"),
    "a policy of less than one": (_set("policy", AT, 0.1), "policy"),
    "a policy of more than one": (_set("policy", AT, 0.2), "policy"),
    "too much policy in a row that is not searched": (
        _two(_set("searched", AT, False), _set("policy", AT, 0.2)),
        "policy",
    ),
    "an opinion of less than one": (_set("opinion", AT, 0.3), "opinion"),
    "a negative opinion": (_set("opinion", AT, (-0.5, 0.5, 1.0)), "opinion"),
    "a value above one": (_set("value", AT, 1.1), "value"),
    "a value below minus one": (_set("value", AT, -1.1), "value"),
    "points that no outcome has": (_two(ENDED, _set("points", AT, 2.0)), "points"),
    "points of a game that goes on": (_two(PLAIN, _set("points", AT, 1.0)), "points"),
    "ended and truncated": (_two(ENDED, _set("truncated", AT, True)), "flag"),
    "settled and going on": (_two(PLAIN, _set("settled", AT, True)), "flag"),
    "a flag that is 2": (lambda slab: slab["searched"].view(np.uint8).__setitem__(AT, 2), "flag"),
}


@pytest.mark.parametrize("what", CONTENTS)
def test_contents_that_self_play_never_writes_are_refused(what: str) -> None:
    change, reason = CONTENTS[what]
    slab = {name: array.copy() for name, array in SLAB.items()}
    change(slab)
    bad = refused(wire.packed(SCHEMA, slab))
    assert (bad.reason, bad.worker) == (reason, WORKER), bad
    assert "[2, 1" in bad.detail


HONEST = {
    "the end of a game": ENDED,
    "a game that was stopped": _two(PLAIN, _set("truncated", AT, True)),
    "an ending that is known": _two(ENDED, _set("settled", AT, True)),
    "a row without a policy": _two(_set("searched", AT, False), _set("policy", AT, 0.0)),
    "a random move that the search did not keep": _two(
        *(_set("random", AT, True), _set("searched", AT, False)),
        *(_set("action", AT, 3), _set("actions", (*AT, 3), -1), _set("policy", (*AT, 3), 0)),
    ),
    "a certain policy": _set("policy", AT, np.eye(9, dtype=np.float16)[8]),
}


@pytest.mark.parametrize("what", HONEST)
def test_unusual_contents_that_are_honest_pass(what: str) -> None:
    slab = {name: array.copy() for name, array in SLAB.items()}
    HONEST[what](slab)
    unpack(wire.packed(SCHEMA, slab))


# ---- anything at all


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(PACKED) * 8 - 1))
def test_one_flipped_bit_anywhere_is_found(bit: int) -> None:
    data = bytearray(PACKED)
    data[bit // 8] ^= 1 << bit % 8
    bad = refused(bytes(data))
    assert bad.worker is None, "nobody has signed this"


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_signed_slab_with_flipped_bits_is_refused_or_sound(data: st.DataObject) -> None:
    """A hostile worker signs anything: then the numbers decide, and nothing but a refusal is raised."""
    body = bytearray(body_of(PACKED))
    for bit in data.draw(st.lists(st.integers(0, len(body) * 8 - 1), min_size=1, max_size=4)):
        body[bit // 8] ^= 1 << bit % 8
    with contextlib.suppress(BadSlab):
        _, slab = unpack(signed(header(), bytes(body)))
        assert SCHEMA.misfits(slab) == []
        assert np.isfinite(slab["value"]).all()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=600), st.binary(max_size=2000))
def test_arbitrary_headers_and_frames_are_refused(head: bytes, body: bytes) -> None:
    refused(signed(head, body))
    assert refused(signed(header(), body)).worker == WORKER


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(PACKED) - 1))
def test_a_slab_cut_anywhere_is_refused(length: int) -> None:
    refused(PACKED[:length])


# ---- weights

TREE = {"torso": {"kernel": jnp.arange(12.0).reshape(3, 4), "bias": jnp.zeros(4)}, "scale": jnp.float32(2.0)}
LIKE = jax.eval_shape(lambda: TREE)
WEIGHTS = pack_weights(41, TREE)


def test_weights_come_back_with_their_version() -> None:
    version, tree = unpack_weights(WEIGHTS, LIKE)
    assert version == 41
    assert jax.tree.structure(tree) == jax.tree.structure(TREE)
    jax.tree.map(np.testing.assert_array_equal, tree, TREE)
    assert fingerprint(tree) == fingerprint(TREE)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(WEIGHTS) * 8 - 1))
def test_one_flipped_bit_in_weights_is_found(bit: int) -> None:
    data = bytearray(WEIGHTS)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(BadWeights):
        unpack_weights(bytes(data), LIKE)


def test_weights_of_another_network_are_refused_with_all_that_does_not_fit() -> None:
    other = {"torso": {"kernel": jnp.zeros((3, 5)), "bias": jnp.zeros(4, jnp.float16)}, "head": jnp.zeros(1)}
    with pytest.raises(BadWeights) as caught:
        unpack_weights(WEIGHTS, other)
    for leaf in ("torso/kernel", "torso/bias", "scale", "head"):
        assert leaf in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_weights_that_are_not_finite_are_refused_naming_them(value: float) -> None:
    wrong = jax.tree.map(lambda leaf: np.full_like(leaf, value), TREE["torso"]["kernel"])
    with pytest.raises(BadWeights, match=r"version 3 .*torso/kernel holds NaN or infinity"):
        unpack_weights(pack_weights(3, {**TREE, "torso": {**TREE["torso"], "kernel": wrong}}), LIKE)


def test_what_is_no_weights_is_refused() -> None:
    for data in (b"", b"aleW", PACKED, WEIGHTS[:-1]):
        with pytest.raises(BadWeights):
            unpack_weights(data, LIKE)
    garbage = pack_weights(1, TREE)
    with pytest.raises(BadWeights, match="protocol 9"):
        unpack_weights(garbage[:4] + b"\x09\x00" + garbage[6:], LIKE)
