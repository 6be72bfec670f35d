"""Exported networks and those that come with the package: today's program reads them, and exports the same files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frozen.support import (
    BUNDLED,
    EXPORTS,
    RUNS,
    TOLERANCE,
    alea,
    bundled_network,
    digests,
    expect_none,
    export_layout,
    misfits,
    near,
    outputs,
    read_json,
)

pytestmark = pytest.mark.slow

EXPORTED = sorted(path.stem for path in EXPORTS.glob("*.json"))
WITH_ONNX = ("search", "turns")
COMES_WITH_IT = sorted(path.stem for path in BUNDLED.glob("*.json"))


def kept(name: str) -> dict[str, Any]:
    if name == "gym":
        pytest.importorskip("gymnasium")
    facts = read_json(EXPORTS / f"{name}.json")
    assert isinstance(facts, dict)
    return facts


def test_networks_are_kept() -> None:
    assert EXPORTED == ["gym", "search", "turns"]


@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_network_gives_the_numbers_that_it_gave(name: str) -> None:
    facts = kept(name)
    expect_none(misfits(export_layout(EXPORTS / name), facts["layout"]))
    expect_none(near(outputs(f"path:{EXPORTS / name}", facts["game"], facts["outputs"]), facts["outputs"]))
    expect_none(near(facts["outputs"], read_json(RUNS / f"{name}.json")["outputs"]))


@pytest.mark.parametrize("name", EXPORTED)
def test_a_run_is_exported_to_the_same_files(name: str, frozen_runs: Path, tmp_path: Path) -> None:
    facts = kept(name)
    shutil.copytree(frozen_runs / name, tmp_path / name)
    onnx = ("--format", "onnx") if name in WITH_ONNX else ()
    report = alea("export", name, "--runs", tmp_path, "--out", tmp_path / "net", *onnx)
    assert report["files"] == facts["files"]
    expect_none(misfits(export_layout(tmp_path / "net"), facts["layout"]))
    made, old = ((folder / "weights.safetensors").read_bytes() for folder in (tmp_path / "net", EXPORTS / name))
    assert made == old
    new, frozen = (read_json(folder / "manifest.json") for folder in (tmp_path / "net", EXPORTS / name))
    for manifest in (new, frozen):
        del manifest["facts"]["package_version"]
    expect_none(near(new, frozen))


@pytest.mark.parametrize("name", WITH_ONNX)
def test_an_onnx_file_has_the_same_inputs_and_outputs(name: str, frozen_runs: Path, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    shutil.copytree(frozen_runs / name, tmp_path / name)
    alea("export", name, "--runs", tmp_path, "--out", tmp_path / "net", "--format", "onnx")
    new, old = (
        runtime.InferenceSession(folder / "network.onnx", providers=["CPUExecutionProvider"])
        for folder in (tmp_path / "net", EXPORTS / name)
    )
    for ends in ("get_inputs", "get_outputs"):
        described = [[(end.name, end.type, end.shape) for end in getattr(session, ends)()] for session in (new, old)]
        assert described[0] == described[1]
    assert [end.name for end in old.get_outputs()] == ["opinion"] + ["policy_logits"] * (name == "search")
    assert new.get_modelmeta().custom_metadata_map == old.get_modelmeta().custom_metadata_map
    (given,) = old.get_inputs()
    assert given.name == "observation"
    seen = np.random.default_rng(3).integers(0, 2, (4, *given.shape[1:])).astype(np.float32)
    for one, other in zip(*(session.run(None, {given.name: seen}) for session in (new, old)), strict=True):
        np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE / 10)


# ---- networks that come with the package


def test_every_bundled_network_is_kept() -> None:
    games = [game["name"] for game in alea("games")["games"]]
    assert sorted(name for name in games if bundled_network(name) is not None) == COMES_WITH_IT


@pytest.mark.parametrize("game", COMES_WITH_IT)
def test_a_bundled_network_is_the_one_that_it_was(game: str) -> None:
    facts, folder = read_json(BUNDLED / f"{game}.json"), bundled_network(game)
    assert folder is not None
    found = digests(folder)
    expect_none(misfits({name: found.get(name) for name in facts["sha256"]}, facts["sha256"]))
    expect_none(near(outputs("bundled", game, facts["outputs"]), facts["outputs"]))
