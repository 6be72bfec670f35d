"""Exported networks: a folder with weights and a manifest, all that is needed to play, nothing of the run.

    manifest.json          game, its version and facts, the model's settings, where it came from, sha256 of the weights
    weights.safetensors    float32
    network.onnx           on request: observations in, policy logits (if any) and outcome distribution out

Knows checkpoints only as weights that are handed in.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors.numpy

from aleazero.core.errors import AleaError
from aleazero.core.files import replace_file
from aleazero.core.finite import not_finite
from aleazero.core.game import GameSpec
from aleazero.core.records import Weights
from aleazero.core.settings import Layer, build, to_dict
from aleazero.models.build import Model, ModelConfig, build_model
from aleazero.models.onnx import export_onnx

FORMAT = 1


class ExportError(AleaError):
    """An exported network cannot be written, read, or used for this game."""


@dataclasses.dataclass(frozen=True)
class Exported:
    """A network ready to play."""

    model: Model
    weights: Weights
    manifest: dict[str, Any]


def write(folder: Path, model: Model, weights: Weights, facts: Mapping[str, Any], *, onnx: bool = False) -> Path:
    """Writes a folder; files are replaced one by one, the manifest last."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        payload = weights_to_bytes(weights)
        replace_file(folder / "weights.safetensors", payload)
        (folder / "network.onnx").unlink(missing_ok=True)  # one of other weights would contradict these
        if onnx:
            _write_onnx(folder / "network.onnx", model, weights)
        manifest = {
            "format": FORMAT,
            "game": model.spec.name,
            "game_version": model.spec.version,
            "observation_shape": list(model.spec.observation_shape),
            "num_actions": model.spec.num_actions,
            "outcomes": {outcome.name: outcome.points for outcome in model.spec.outcomes},
            "model": to_dict(model.config),
            "sha256": {"weights.safetensors": hashlib.sha256(payload).hexdigest()},
            "facts": dict(facts),
        }
        replace_file(folder / "manifest.json", json.dumps(manifest, indent=2).encode() + b"\n")
    except OSError as error:
        raise ExportError(f"could not write the network to {folder}: {error}") from error
    return folder


def read(folder: Path, spec: GameSpec) -> Exported:
    """The network in a folder, verified, for a game; another game's, or another version's, is refused."""
    manifest = read_manifest(folder)
    if (manifest["game"], manifest["game_version"]) != (spec.name, spec.version):
        raise ExportError(
            f"{folder} holds a network for {manifest['game']} version {manifest['game_version']}, "
            f"not for {spec.name} version {spec.version}"
        )
    model = build_model(build(ModelConfig, [Layer(str(folder / "manifest.json"), manifest["model"])]), spec)
    try:
        payload = (folder / "weights.safetensors").read_bytes()
    except OSError as error:
        raise ExportError(f"{folder} is incomplete: {error}") from error
    if hashlib.sha256(payload).hexdigest() != manifest["sha256"].get("weights.safetensors"):
        raise ExportError(f"{folder / 'weights.safetensors'} is damaged: its sha256 is not the manifest's")
    like = jax.eval_shape(model.init, jax.random.key(0))
    try:
        weights = weights_from_bytes(payload, like)
    except ExportError as error:
        raise ExportError(
            f"{folder / 'weights.safetensors'} cannot be used by the model its manifest describes: {error}"
        ) from error
    return Exported(model, weights, manifest)


def weights_to_bytes(weights: Weights) -> bytes:
    """Weights in safetensors format, each under its path in the tree."""
    payload: bytes = safetensors.numpy.save(_named(weights))
    return payload


def weights_from_bytes(payload: bytes, like: Any) -> Weights:
    """The weights that `weights_to_bytes` wrote, in the structure of `like`; raises with all leaves that are unfit."""
    try:
        arrays = safetensors.numpy.load(payload)
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise ExportError(f"not in safetensors format: {error}") from error
    wanted = _named(like)
    problems = [
        f"{name} is {_kind(arrays.get(name))} and should be {_kind(wanted.get(name))}"
        for name in sorted(arrays.keys() | wanted.keys())
        if _kind(arrays.get(name)) != _kind(wanted.get(name))
    ]
    if problems := problems or not_finite(arrays):
        raise ExportError("; ".join(problems))
    return jax.tree.unflatten(jax.tree.structure(like), [arrays[name] for name in wanted])


def read_manifest(folder: Path) -> dict[str, Any]:
    """What an exported folder says of itself."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    except OSError as error:
        raise ExportError(f"{folder} is no exported network: {error}") from error
    except ValueError as error:
        raise ExportError(f"{folder / 'manifest.json'} is damaged: {error}") from error
    if isinstance(manifest, dict) and manifest.get("format", FORMAT) != FORMAT:
        raise ExportError(f"{folder} has format {manifest['format']}; this version reads format {FORMAT}")
    needed = {"format": int, "game": str, "game_version": int, "model": dict, "sha256": dict}
    if not isinstance(manifest, dict) or any(not isinstance(manifest.get(key), kind) for key, kind in needed.items()):
        raise ExportError(f"{folder / 'manifest.json'} is no network's manifest: it needs {', '.join(needed)}")
    return manifest


def fingerprint(weights: Weights) -> str:
    """The sha256 of the file that `write` writes of these weights."""
    return hashlib.sha256(weights_to_bytes(weights)).hexdigest()


def _named(weights: Weights) -> dict[str, Any]:
    leaves = jax.tree_util.tree_flatten_with_path(weights)[0]
    named = {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in leaves}
    return {n: leaf if isinstance(leaf, jax.ShapeDtypeStruct) else np.asarray(leaf) for n, leaf in named.items()}


def _kind(leaf: Any) -> str:
    return "absent" if leaf is None else f"{leaf.dtype}{list(leaf.shape)}"


def _write_onnx(path: Path, model: Model, weights: Weights) -> None:
    plain = build_model(dataclasses.replace(model.config, compute="float32"), model.spec)

    def network(observation: Any) -> dict[str, Any]:
        output = plain.apply(weights, observation)
        policy = {} if output.logits is None else {"policy_logits": output.logits}
        return policy | {"opinion": plain.opinion_of(output)}

    export_onnx(network, model.input_shape, path, metadata={"game": model.spec.name})
