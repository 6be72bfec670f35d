"""Slabs and weights as bytes and back, for any wire. What comes back is checked: nothing else is ever raised or let in.

    slab       magic, protocol, length | header (msgpack) | arrays (raw, little-endian, one zstd frame) | HMAC-SHA256
    weights    magic, protocol, version, SHA-256 | safetensors, named as an exported network's are

A slab is signed with its worker's secret, over everything before the signature. Sizes and the signature are looked at
before anything is unpacked. Knows no Redis, and not where secrets come from.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import struct
import sys
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np

from aleazero.core.errors import AleaError
from aleazero.core.records import Weights
from aleazero.export import ExportError, weights_from_bytes, weights_to_bytes
from aleazero.runtimes.protocol import PROTOCOL
from aleazero.runtimes.slabs import BadSlab, Field, Reason, Slab, SlabSchema, check_contents, count_games, in_order

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_SLAB = struct.Struct("<4sHH")  # magic, protocol, bytes of header
_SLAB_MAGIC = b"aleS"
_SIGNATURE_BYTES = 32
_MAX_HEADER = 512
_LEVEL = 1  # of zstd: 3 is no smaller here, and slower
_WEIGHTS = struct.Struct("<4sHQ32s")  # magic, protocol, version, sha256 of magic to version and all that follows
_WEIGHTS_MAGIC = b"aleW"

SecretOf = Callable[[str], bytes | None]
"""`secret_of(worker)`: what it signs with; None for one who is not, or no longer, known."""


class BadWeights(AleaError):  # noqa: N818 - the name says what they are
    """Bytes that are not the weights of this network, or not as they were published."""


@dataclasses.dataclass(frozen=True)
class Envelope:
    """What a slab says of itself. (worker, source, sequence) names it: a slab that comes twice counts once."""

    run: str
    worker: str
    source: int  # b games that one worker plays, from rollout to rollout
    sequence: int  # counts the source's slabs
    weights_version: int  # that played it
    schema: str  # `SlabSchema.fingerprint`
    rows: int
    games: int  # that are over with a move of this slab


_KINDS = {field.name: str if field.type == "str" else int for field in dataclasses.fields(Envelope)}


def pack_slab(envelope: Envelope, slab: Slab, secret: bytes) -> bytes:
    """A slab as bytes, signed."""
    header = msgpack.packb(dataclasses.astuple(envelope))
    if len(header) > _MAX_HEADER:
        raise ValueError(f"the header has {len(header)} bytes, more than {_MAX_HEADER}: names are too long")
    fields = in_order([Field(n, array.dtype.newbyteorder("<").str, array.shape) for n, array in slab.items()])
    raw = b"".join(slab[field.name].astype(field.dtype, copy=False).tobytes() for field in fields)
    body = zstd.compress(raw, _LEVEL)
    data = _SLAB.pack(_SLAB_MAGIC, PROTOCOL, len(header)) + header + body
    return data + hmac.digest(secret, data, "sha256")


def max_packed_bytes(schema: SlabSchema) -> int:
    """No honest slab has more bytes: zstd adds a little to what it cannot compress."""
    return _SLAB.size + _MAX_HEADER + schema.nbytes + schema.nbytes // 128 + 1024 + _SIGNATURE_BYTES


def unpack_slab(
    data: bytes, schema: SlabSchema, secret_of: SecretOf, *, run: str, newest_version: int
) -> tuple[Envelope, dict[str, np.ndarray]]:
    """The slab, proved to be from its worker, of this run, whole, and full of numbers that self-play writes.

    Raises `BadSlab`, and nothing else, whatever the bytes are. `newest_version` is the highest that was ever published.
    The arrays are views of one buffer, and read-only.
    """
    envelope, body = _open(data, schema, secret_of)
    try:
        _check_envelope(envelope, schema, run, newest_version)
        slab = _arrays(body, schema)
        check_contents(schema, slab)
        if (envelope.rows, envelope.games) != (schema.rows, games := count_games(slab)):
            said = f"{envelope.rows} rows and {envelope.games} games"
            raise BadSlab("count", f"says {said}, and holds {schema.rows} and {games}")
    except BadSlab as bad:
        raise BadSlab(bad.reason, bad.detail, worker=envelope.worker, claimed=envelope.worker) from None
    return envelope, slab


def _open(data: bytes, schema: SlabSchema, secret_of: SecretOf) -> tuple[Envelope, memoryview]:
    """What is known without unpacking: an envelope whose signature holds, and the frame."""
    least, most = _SLAB.size + _SIGNATURE_BYTES, max_packed_bytes(schema)
    if not least <= len(data) <= most:
        raise BadSlab("size", f"{len(data)} bytes, and slabs of this run have {least} to {most}")
    magic, protocol, header_bytes = _SLAB.unpack_from(data)
    if magic != _SLAB_MAGIC:
        raise BadSlab("malformed", f"begins with {magic!r}, not {_SLAB_MAGIC!r}")
    if protocol != PROTOCOL:
        raise BadSlab("protocol", f"protocol {protocol}, and this version of aleazero speaks {PROTOCOL}")
    start = _SLAB.size + header_bytes
    if header_bytes > _MAX_HEADER or start + _SIGNATURE_BYTES > len(data):
        raise BadSlab("malformed", f"says that its header has {header_bytes} bytes")
    envelope = _read_header(data[_SLAB.size : start])
    secret = secret_of(envelope.worker)
    if secret is None:
        raise BadSlab("worker", f"nobody is called {envelope.worker!r}", claimed=envelope.worker)
    signed = memoryview(data)[:-_SIGNATURE_BYTES]
    if not hmac.compare_digest(hmac.digest(secret, signed, "sha256"), data[-_SIGNATURE_BYTES:]):
        raise BadSlab("signature", f"not signed by {envelope.worker!r}", claimed=envelope.worker)
    return envelope, signed[start:]


def _read_header(header: bytes) -> Envelope:
    try:
        values = msgpack.unpackb(header, raw=False, use_list=True, max_array_len=16, max_map_len=0, max_ext_len=0)
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError) as error:
        raise BadSlab("malformed", f"its header is not msgpack: {type(error).__name__}") from None
    if not isinstance(values, list) or len(values) != len(_KINDS):
        raise BadSlab("malformed", f"its header is not a list of {len(_KINDS)}")
    for (name, kind), value in zip(_KINDS.items(), values, strict=True):
        # `type`, not `isinstance`: True is an int.
        if type(value) is not kind or (isinstance(value, int) and not 0 <= value < 2**63):
            raise BadSlab("malformed", f"its {name} is {str(value)[:40]!r}")
    return Envelope(*values)


def _check_envelope(envelope: Envelope, schema: SlabSchema, run: str, newest_version: int) -> None:
    wrong: tuple[Reason, str] | None = None
    if envelope.run != run:
        wrong = "run", f"of run {envelope.run!r}, not {run!r}"
    elif envelope.schema != schema.fingerprint:
        wrong = "schema", f"schema {envelope.schema}, not {schema.fingerprint} ({schema.game} {schema.game_version})"
    elif envelope.weights_version > newest_version:
        wrong = "version", f"played with weights {envelope.weights_version}; the newest are {newest_version}"
    if wrong:
        raise BadSlab(*wrong)


def _arrays(body: memoryview, schema: SlabSchema) -> dict[str, np.ndarray]:
    """Unpack the frame; one that declares another size than the schema's is refused before it is unpacked."""
    frame = zstd.ZstdDecompressor()
    try:
        declared = zstd.get_frame_info(body).decompressed_size
        if declared != schema.nbytes:
            known = f"would unpack to {'an unknown number of' if declared is None else declared} bytes"
            reason: Reason = "shape" if declared is not None and declared < schema.nbytes else "bomb"
            raise BadSlab(reason, f"{known}; slabs of this run have {schema.nbytes}")
        raw = frame.decompress(body, max_length=schema.nbytes + 1)
    except zstd.ZstdError as error:
        raise BadSlab("malformed", f"cannot be unpacked: {error}") from None
    if not frame.eof or frame.unused_data:
        raise BadSlab("malformed", "cannot be unpacked: it is not one whole frame")
    if len(raw) != schema.nbytes:
        raise BadSlab("shape", f"unpacks to {len(raw)} bytes, and says {schema.nbytes}")
    slab, at = {}, 0
    for field in schema.fields:
        count = field.nbytes // np.dtype(field.dtype).itemsize
        slab[field.name] = np.frombuffer(raw, field.dtype, count, at).reshape(field.shape)
        at += field.nbytes
    return slab


def pack_weights(version: int, weights: Weights) -> bytes:
    """Weights as bytes, with their version."""
    payload = weights_to_bytes(weights)
    digest = _weights_digest(version, payload)
    return _WEIGHTS.pack(_WEIGHTS_MAGIC, PROTOCOL, version, digest) + payload


def unpack_weights(data: bytes, like: Any) -> tuple[int, Weights]:
    """The version and the weights, in the structure of `like` (arrays or ShapeDtypeStructs); raises `BadWeights`."""
    if len(data) < _WEIGHTS.size or not data.startswith(_WEIGHTS_MAGIC):
        raise BadWeights(f"{len(data)} bytes that are no published weights")
    _, protocol, version, digest = _WEIGHTS.unpack_from(data)
    if protocol != PROTOCOL:
        raise BadWeights(f"the weights have protocol {protocol}, and this version of aleazero speaks {PROTOCOL}")
    payload = data[_WEIGHTS.size :]
    if not hmac.compare_digest(_weights_digest(version, payload), digest):
        raise BadWeights(f"the weights of version {version} are damaged: their sha256 is another")
    try:
        return version, weights_from_bytes(payload, like)
    except ExportError as error:
        raise BadWeights(f"the weights of version {version} cannot be used by this network: {error}") from error


def _weights_digest(version: int, payload: bytes) -> bytes:
    prefix = _WEIGHTS.pack(_WEIGHTS_MAGIC, PROTOCOL, version, bytes(32))
    return hashlib.sha256(prefix + payload).digest()
