"""`alea export`: the folder it writes plays as the run does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from aleazero.cli.main import run
from tests.cli.conftest import Alea
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")


def test_the_exported_network_plays_as_the_run_does(alea: Alea, runs: Path, tmp_path: Path) -> None:
    report = alea("export", "tiny@64", "--out", tmp_path / "net", "--runs", runs)
    assert (report["run"], report["step"], report["game"]) == ("tiny", 64, "tictactoe")
    assert report["files"] == ["manifest.json", "weights.safetensors"]
    rest = ("--games", 40, "--opening-plies", 3, "--runs", runs)
    of_run, of_folder = (
        alea("eval", "tictactoe", "--player", f"{player},search=none", *rest)
        for player in ("run:tiny@64", report["player"])
    )
    assert {**of_run, "player": "", "command": ""} == {**of_folder, "player": "", "command": ""}


def test_the_newest_checkpoint_goes_into_the_runs_own_folder(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "tiny", "--runs", str(runs)]) == 0
    folder = runs / "tiny" / "export" / "128"
    said = capsys.readouterr().out
    assert str(folder) in said
    assert f"alea play tictactoe --player path:{folder}" in said
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["game"], manifest["facts"]["run"], manifest["facts"]["step"]) == ("tictactoe", "tiny", 128)
    assert manifest["facts"]["rows"] == 2048


def test_onnx_says_the_same_as_the_weights(alea: Alea, runs: Path, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    report = alea("export", "tiny", "--format", "onnx", "--out", tmp_path / "net", "--runs", runs)
    assert report["files"] == ["manifest.json", "network.onnx", "weights.safetensors"]
    assert load_file(tmp_path / "net" / "weights.safetensors")
    session = runtime.InferenceSession(tmp_path / "net" / "network.onnx")
    (given,) = session.get_inputs()
    opinion = session.run(["opinion"], {given.name: np.zeros((2, 3, 3, 2), np.float32)})[0]
    assert opinion.shape == (2, 3)
    assert opinion.sum(-1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["export", "tny"], 2, "did you mean 'tiny'"),
        (["export", "tiny@65"], 2, "known: 128, 64"),
        (["export", "tiny", "--format", "pickle"], 2, "onnx"),
    ],
)
def test_misuse(arguments: list[str], code: int, said: str, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*arguments, "--runs", str(trained)]) == code
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_folder_that_cannot_be_written(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run(["export", "tiny", "--runs", str(runs), "--out", str(tmp_path / "file" / "net")]) == 1
    assert "could not write the network" in capsys.readouterr().err
