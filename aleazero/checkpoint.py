"""Checkpoints that last: named trees of arrays and a mapping of facts, written whole or not at all, verified when read.

A checkpoint is the folder `<root>/<step>/` with `manifest.json` and pieces in safetensors format. It is written under
a temporary name, synced to the disk and renamed, so a kill or a full disk leaves the checkpoints of before as they
were. The manifest holds the sha256 of every piece and of itself: one changed bit anywhere is found and named.

Knows neither what the arrays and facts mean nor when to save. One process at a time writes below a root; any number
may read meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors.numpy

from aleazero.core.errors import AleaError, UnknownName
from aleazero.core.files import sync
from aleazero.core.finite import not_finite

FORMAT = 1  # Every format, later ones too, begins its manifest with "sha256" and "format".
FINITE = {"weights", "average", "optimiser", "selves"}  # trees in which NaN and infinity are faults
PIECE_BYTES = 12 * 2**20

_MANIFEST = "manifest.json"
_NO_DIGEST = "0" * 64  # stands in the manifest while its own digest is taken
_PREFIX_BYTES = 24  # a piece's length field, braces and padding
_ENTRY_BYTES = 96  # what a piece's header spends on an array beside its name and shape
# Dtypes that safetensors can name; arrays of others lie in their piece as bytes.
_NAMED_DTYPE = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|bfloat16")
_STEP = re.compile(r"\d{12,}")
_ASIDE = re.compile(r"\.(tmp|old)-(\d+)-(\d+)")  # kind, step, process
_WRITER = threading.Lock()  # so that what this process left aside is never another thread's work
_Cut = tuple[str, int, int]  # the bytes of one array that lie in one piece: its name, from, to


@dataclass(frozen=True)
class CheckpointConfig:
    """When a run saves and what it keeps."""

    every_rows: int = 100_000  # of self-play
    every_epochs: int = 0  # in place of rows, where a run has epochs (learn.games_per_epoch); 0: by rows
    every_games: int = 0  # in place of rows: games that are over; 0: by rows
    keep_last: int = 2  # besides the best one
    keep_weights: int = 32  # versions whose weights stay when their checkpoints go, to play and be measured; 0: none

    def problems(self) -> list[str]:
        """What is wrong with it."""
        least = {"every_rows": 1, "every_epochs": 0, "every_games": 0, "keep_last": 1, "keep_weights": 0}
        both = self.every_epochs and self.every_games
        twice = ["every_epochs and every_games are both given: give one of them"] if both else []
        return twice + [
            f"{name} is {getattr(self, name)}; it must be at least {value}"
            for name, value in least.items()
            if getattr(self, name) < value
        ]


class CheckpointError(AleaError):
    """A checkpoint cannot be written, read or put into the shape that was asked for."""


class DamagedCheckpoint(CheckpointError):  # noqa: N818 - the name says what is wrong
    """A checkpoint's files are not the ones that were written."""

    def __init__(self, path: Path, file: str, what: str) -> None:
        super().__init__(f"checkpoint {path} is damaged: {file} {what}; use an earlier checkpoint, or delete this one")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as read: every array verified, and under the name that `save` gave it."""

    step: int
    path: Path
    facts: dict[str, Any]
    arrays: dict[str, np.ndarray]  # "NAME" or "NAME/PATH/IN/TREE" -> array


def save(
    root: Path, step: int, arrays: Mapping[str, Any], facts: Mapping[str, Any], *, piece_bytes: int = PIECE_BYTES
) -> Path:
    """Writes the checkpoint of `step`, in place of one that is there already, and returns its folder.

    `arrays` are pytrees of arrays or scalars by name; typed random keys are kept as their key data. `facts` are
    anything that JSON can say. `piece_bytes` is the largest size of one file of arrays.
    """
    if step < 0:
        raise CheckpointError(f"a checkpoint's step cannot be {step}: it counts from 0")
    try:
        json.dumps(dict(facts), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the facts cannot be saved as JSON: {error}") from error
    leaves = _named_leaves(arrays)
    pieces = _plan(leaves, piece_bytes)
    manifest = {"sha256": _NO_DIGEST, "format": FORMAT, "step": step, "facts": dict(facts)}
    final, fresh = _folder(root, step), root / f".tmp-{step}-{os.getpid()}"
    with _WRITER:
        try:
            root.mkdir(parents=True, exist_ok=True)
            sync(root.parent)
            _tidy(root)
            fresh.mkdir()
            _write_all(fresh, manifest, leaves, pieces)
            _put_in_place(fresh, final)
        except OSError as error:
            with contextlib.suppress(OSError):
                _tidy(root)
            raise CheckpointError(
                f"could not write checkpoint {final}: {error}; the checkpoints saved before are untouched. "
                "Check the space left on that disk and the right to write there"
            ) from error
    return final


def read(path: Path) -> Checkpoint:
    """The checkpoint in the folder `path`, every byte of it verified."""
    manifest = _read_manifest(path)
    try:
        pieces = {file: _read_piece(path, file, entry["sha256"]) for file, entry in manifest["files"].items()}
        arrays = {name: _join(path, name, entry, pieces) for name, entry in manifest["arrays"].items()}
        step, facts = manifest["step"], manifest["facts"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedCheckpoint(path, _MANIFEST, f"is not a manifest of format {FORMAT} ({error!r})") from error
    for file, rest in pieces.items():
        if rest:
            raise DamagedCheckpoint(path, _MANIFEST, f"does not list what {file} holds: {', '.join(sorted(rest))}")
    if _STEP.fullmatch(path.name) and int(path.name) != step:
        raise DamagedCheckpoint(path, _MANIFEST, f"belongs to step {step}, not to the step its folder is named by")
    return Checkpoint(step, path, facts, arrays)


def restore(checkpoint: Checkpoint, name: str, like: Any) -> Any:
    """The tree saved under `name`, in the structure of `like`; raises with all leaves that are unfit.

    `like` is a tree of arrays, scalars or ShapeDtypeStructs. Leaves come back as numpy arrays, or as typed random keys
    where `like` has them.
    """
    paths, treedef = jax.tree_util.tree_flatten_with_path(like)
    wanted = {_leaf_name(name, path): leaf for path, leaf in paths}
    found = {leaf for leaf in checkpoint.arrays if leaf == name or leaf.startswith(f"{name}/")}
    if wanted and not found:
        known = {leaf.partition("/")[0] for leaf in checkpoint.arrays}
        raise CheckpointError(f"checkpoint {checkpoint.path}: {UnknownName('tree', name, known)}")
    problems = [f"{leaf} is missing" for leaf in wanted if leaf not in found]
    problems += [f"{leaf} is in the checkpoint and was not asked for" for leaf in sorted(found - set(wanted))]
    for leaf in sorted(found & set(wanted)):
        array, (shape, dtype) = checkpoint.arrays[leaf], _signature(wanted[leaf])
        if (array.shape, array.dtype) != (shape, dtype):
            problems.append(f"{leaf} is {array.dtype}{list(array.shape)} and should be {dtype}{list(shape)}")
    if problems:
        raise CheckpointError(
            f"{name!r} in checkpoint {checkpoint.path} does not fit what is to be restored; was it saved with "
            "another config or version? " + "; ".join(problems)
        )
    if name in FINITE and (wrong := not_finite({leaf: checkpoint.arrays[leaf] for leaf in sorted(found)})):
        raise CheckpointError(f"checkpoint {checkpoint.path} cannot be used: {'; '.join(wrong)}")
    return jax.tree.unflatten(treedef, [_as_model(checkpoint.arrays[leaf], model) for leaf, model in wanted.items()])


def steps(root: Path) -> list[int]:
    """The steps that have a checkpoint below `root`, ascending; whether they are intact is not looked at."""
    return sorted(int(path.name) for path in root.glob("*") if _STEP.fullmatch(path.name))


def read_facts(root: Path, step: int) -> dict[str, Any]:
    """The facts of the checkpoint of `step`; its arrays are not looked at."""
    facts: dict[str, Any] = _read_manifest(_folder(root, step))["facts"]
    return facts


def newest(root: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """The newest intact checkpoint, None where there is none; `warn` is told of every damaged one passed over."""
    # A kill between the two renames of a replacement leaves the old checkpoint aside, and nothing in its place.
    folders = {int(match[2]): path for path in root.glob(".old-*") if (match := _ASIDE.fullmatch(path.name))}
    folders |= {step: _folder(root, step) for step in steps(root)}
    for step in sorted(folders, reverse=True):
        try:
            return read(folders[step])
        except DamagedCheckpoint as error:
            warn(str(error))
    return None


def prune(root: Path, keep_last: int, keep: Collection[int]) -> None:
    """Deletes old checkpoints, except the last `keep_last` and the steps in `keep`.

    Of the last ones only those count that have a sound manifest and all files in their size, so that damaged
    checkpoints never crowd out the ones a run would resume from. Contents are not hashed.
    """
    if keep_last < 1:
        raise CheckpointError(f"keep_last is {keep_last}: at least 1 checkpoint must stay to resume from")
    with _WRITER:
        try:
            _tidy(root)
            kept = 0
            for step in reversed(steps(root)):
                if kept < keep_last:
                    with contextlib.suppress(DamagedCheckpoint):
                        _read_manifest(_folder(root, step))
                        kept += 1
                elif step not in keep:
                    _discard(_folder(root, step), step)
        except OSError as error:
            raise CheckpointError(f"could not delete old checkpoints in {root}: {error}") from error


def _folder(root: Path, step: int) -> Path:
    return root / f"{step:012d}"


def _leaf_name(name: str, path: tuple[Any, ...]) -> str:
    inner = jax.tree_util.keystr(path, simple=True, separator="/")
    return f"{name}/{inner}" if path else name


def _named_leaves(trees: Mapping[str, Any]) -> dict[str, np.ndarray]:
    leaves: dict[str, np.ndarray] = {}
    problems = [
        f"{name!r} cannot be a name: a letter comes first, then letters, digits, '_', '.' or '-'"
        for name in trees
        if not re.fullmatch(r"[A-Za-z][\w.-]*", name, re.ASCII)
    ]
    for name, tree in trees.items():
        paths, _ = jax.tree_util.tree_flatten_with_path(tree)
        # All at once, so that the copies from the device run together.
        values = jax.device_get([jax.random.key_data(leaf) if _is_key(leaf) else leaf for _, leaf in paths])
        for (path, _), value in zip(paths, values, strict=True):
            leaf, array = _leaf_name(name, path), np.asarray(value, order="C")
            if leaf in leaves:
                problems.append(f"two leaves are both called {leaf}")
            if _dtype_text(array.dtype) is None:
                problems.append(f"{leaf} has dtype {array.dtype}, and only numbers and booleans can be kept")
            leaves[leaf] = array
    if problems:
        raise CheckpointError("the arrays cannot be saved: " + "; ".join(problems))
    return leaves


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _dtype_text(dtype: np.dtype) -> str | None:
    """How the manifest writes a dtype: by name, or by code where the name leaves something out, as the byte order."""
    for text in (dtype.name, dtype.str):
        with contextlib.suppress(TypeError):
            if dtype.kind not in "OSTU" and np.dtype(text) == dtype:
                return text
    return None


def _signature(model: Any) -> tuple[tuple[int, ...], np.dtype]:
    if _is_key(model):
        model = jax.eval_shape(jax.random.key_data, model)
    elif not hasattr(model, "dtype"):
        model = np.asarray(model)
    return tuple(model.shape), np.dtype(model.dtype)


def _as_model(array: np.ndarray, model: Any) -> Any:
    if not _is_key(model):
        return array
    kind: list[Any] = []  # `key_impl` takes no ShapeDtypeStruct, but does take its tracer.
    jax.eval_shape(lambda keys: kind.append(jax.random.key_impl(keys)), model)
    return jax.random.wrap_key_data(jax.numpy.asarray(array), impl=kind[0])


def _plan(leaves: Mapping[str, np.ndarray], limit: int) -> list[list[_Cut]]:
    """Which bytes of which array each piece holds; only an array that no piece could hold whole is cut."""
    pieces: list[list[_Cut]] = []
    room = 0
    for name, array in leaves.items():
        entry = len(json.dumps(name)) + len(str(array.shape)) + _ENTRY_BYTES
        largest = limit - _PREFIX_BYTES - entry
        if largest < 1:
            raise CheckpointError(f"pieces of {limit} bytes are too small to hold any of {name}")
        stop = 0
        while True:
            start = stop
            if room < entry + (array.nbytes if array.nbytes <= largest else 1):
                pieces.append([])
                room = limit - _PREFIX_BYTES
            stop = min(array.nbytes, start + room - entry)
            pieces[-1].append((name, start, stop))
            room -= entry + stop - start
            if stop == array.nbytes:
                break
    return pieces


def _write_all(folder: Path, manifest: dict[str, Any], leaves: dict[str, np.ndarray], pieces: list[list[_Cut]]) -> None:
    files: dict[str, dict[str, Any]] = {}
    index: dict[str, dict[str, Any]] = {
        name: {"dtype": _dtype_text(array.dtype), "shape": array.shape, "pieces": []} for name, array in leaves.items()
    }
    for number, cuts in enumerate(pieces):
        file = f"arrays-{number:03d}.safetensors"
        data = safetensors.numpy.save({name: _stored(leaves[name], start, stop) for name, start, stop in cuts})
        (folder / file).write_bytes(data)
        files[file] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, _, _ in cuts:
            index[name]["pieces"].append(file)
    text = json.dumps(manifest | {"files": files, "arrays": index}, indent=1, allow_nan=False).encode()
    digest = hashlib.sha256(text).hexdigest()
    (folder / _MANIFEST).write_bytes(text.replace(_NO_DIGEST.encode(), digest.encode(), 1))
    for path in (*folder.iterdir(), folder):
        sync(path)


def _stored(array: np.ndarray, start: int, stop: int) -> np.ndarray:
    if stop - start == array.nbytes and _NAMED_DTYPE.fullmatch(_dtype_text(array.dtype) or ""):
        return array
    return array.reshape(-1).view(np.uint8)[start:stop]


def _put_in_place(fresh: Path, final: Path) -> None:
    root, step = final.parent, int(final.name)
    old = root / f".old-{step}-{os.getpid()}"
    if final.exists():
        os.rename(final, old)
    os.rename(fresh, final)
    sync(root)
    if old.exists():
        _discard(old, step)


def _discard(path: Path, step: int) -> None:
    """Deletes a folder, under a name by which a kill in the middle leaves nothing that looks like a checkpoint."""
    doomed = path.parent / f".tmp-{step}-{os.getpid()}"
    os.rename(path, doomed)
    sync(path.parent)
    shutil.rmtree(doomed, ignore_errors=True)  # What stays behind is no checkpoint; the next save tries again.


def _tidy(root: Path) -> None:
    """Ends what a kill or an error left half done: puts a checkpoint set aside back, deletes temporary folders."""
    for path in sorted(root.glob(".*"), reverse=True):  # .tmp before .old, which is deleted under that name
        match = _ASIDE.fullmatch(path.name)
        if match is None or _alive(int(match[3])):
            continue
        kind, step = match[1], int(match[2])
        if kind == "tmp":
            shutil.rmtree(path, ignore_errors=True)
        elif _folder(root, step).exists():
            _discard(path, step)
        else:
            os.rename(path, _folder(root, step))


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    # Our own number: an earlier process had it too, or a call of ours was interrupted.
    return process != os.getpid()


def _read_file(path: Path, file: str) -> bytes:
    try:
        return (path / file).read_bytes()
    except OSError as error:
        raise DamagedCheckpoint(path, file, f"cannot be read: {error.strerror}") from error


def _read_manifest(path: Path) -> dict[str, Any]:
    """The manifest: unchanged, of a format known here, and with all its files there in their size."""
    data = _read_file(path, _MANIFEST)
    try:
        manifest = json.loads(data)
        digest, version = manifest["sha256"], manifest["format"]
        if hashlib.sha256(data.replace(digest.encode(), _NO_DIGEST.encode(), 1)).hexdigest() != digest:
            raise DamagedCheckpoint(path, _MANIFEST, "has changed since it was written: its sha256 is another")
        if version > FORMAT:
            raise CheckpointError(
                f"checkpoint {path} has format {version}, and this version of aleazero reads formats up to {FORMAT}: "
                "use the version that wrote it, or a newer one"
            )
        sizes = {file: entry["size"] for file, entry in manifest["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedCheckpoint(path, _MANIFEST, f"is not a manifest of format {FORMAT} ({error!r})") from error
    for file, size in sizes.items():
        try:
            there = (path / file).stat().st_size
        except OSError as error:
            raise DamagedCheckpoint(path, file, f"cannot be read: {error.strerror}") from error
        if there != size:
            raise DamagedCheckpoint(path, file, f"has {there} bytes instead of {size}")
    return manifest


def _read_piece(path: Path, file: str, digest: str) -> dict[str, bytes]:
    data = _read_file(path, file)
    if hashlib.sha256(data).hexdigest() != digest:
        raise DamagedCheckpoint(path, file, "has changed since it was written: its sha256 is another")
    try:
        return {name: tensor["data"] for name, tensor in safetensors.deserialize(data)}
    except safetensors.SafetensorError as error:
        raise DamagedCheckpoint(path, file, f"is not in safetensors format ({error})") from error


def _join(path: Path, name: str, entry: Mapping[str, Any], pieces: Mapping[str, dict[str, bytes]]) -> np.ndarray:
    """One array from its pieces, which it is taken out of."""
    parts = []
    for file in entry["pieces"]:
        if name not in pieces.get(file, {}):
            raise DamagedCheckpoint(path, file, f"does not hold {name}, which the manifest says it does")
        parts.append(np.frombuffer(pieces[file].pop(name), np.uint8))
    shape, dtype = tuple(entry["shape"]), np.dtype(entry["dtype"])
    return np.concatenate(parts).view(dtype).reshape(shape)
