"""Run folders of each algorithm: today's program reads them, plays their networks, goes on, writes the same files."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("ALEA_BALATRO_PLAIN", "1")  # the same functions, nothing to compile

from aleazero.games.balatro.contest import play_runs
from aleazero.host_players import player_of
from tests.frozen.support import (
    RUNS,
    ReplayLog,
    alea,
    checkpoint_layout,
    expect_none,
    flat,
    log_digests,
    log_records,
    misfits,
    near,
    newest,
    outputs,
    read_json,
    report_layout,
    resume,
    row_digests,
    shape_text,
)

pytestmark = pytest.mark.slow

NAMES = sorted(path.stem for path in RUNS.glob("*.json"))
NEEDS = {"gym": ["gymnasium"], "rllib": ["gymnasium"]}  # to read them; all else is in every installation
LOGGED = ("search", "turns")
# Self-play goes by floats: a processor that rounds otherwise may learn a little otherwise, and play the same moves.
RESUMED_TOLERANCE = 1e-3


def kept(name: str) -> dict[str, Any]:
    for package in NEEDS.get(name, []):
        pytest.importorskip(package)
    facts = read_json(RUNS / f"{name}.json")
    assert isinstance(facts, dict)
    return facts


def test_there_is_a_run_of_each_algorithm() -> None:
    assert NAMES == ["balatro", "gym", "ppo", "rllib", "search", "turns"]


def test_runs_are_listed(frozen_runs: Path) -> None:
    listed = {run["name"]: run for run in alea("runs", "list", "--runs", frozen_runs)["runs"]}
    assert sorted(listed) == NAMES
    for name, run in listed.items():
        facts = read_json(RUNS / f"{name}.json")
        assert (run["game"], run["status"], run["rows"]) == (facts["game"], "done", facts["rows"])
        assert (run["total_rows"], run["pid"], run["message"]) == (256 if name == "search" else 128, None, "")
        assert len(run["losses"]) > 1


@pytest.mark.parametrize("name", NAMES)
def test_a_run_has_its_state(name: str, frozen_runs: Path) -> None:
    facts, status = read_json(RUNS / f"{name}.json"), alea("status", name, "--runs", frozen_runs)
    step = int(newest(RUNS / name / "checkpoints").name)
    assert (status["state"], status["rows"], status["step"]) == ("done", facts["rows"], step)
    rated = [(rating["opponent"], rating["games"], rating["step"]) for rating in status["ratings"]]
    assert rated == ([("random", 16, 32)] if name == "search" else [])


@pytest.mark.parametrize("name", NAMES)
def test_its_files_have_the_layout_that_is_written_down(name: str) -> None:
    """Or else the data was changed without its description."""
    facts, folder = read_json(RUNS / f"{name}.json"), RUNS / name
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == facts["files"]
    expect_none(misfits(checkpoint_layout(newest(folder / "checkpoints")), facts["checkpoint"]))
    expect_none(misfits(report_layout((folder / "metrics.jsonl").read_text()), facts["reports"]))
    if "version" in facts:
        expect_none(misfits(checkpoint_layout(newest(folder / "versions")), facts["version"]))


@pytest.mark.parametrize("name", NAMES)
def test_its_network_gives_the_numbers_that_it_gave(name: str, frozen_runs: Path) -> None:
    facts = kept(name)
    found = outputs(f"run:{name}", facts["game"], facts["outputs"], frozen_runs)
    expect_none(near(found, facts["outputs"]))
    assert all(np.isfinite(number) for _, number in flat(found) if number is not None)


def test_weights_are_found_by_step_as_best_and_in_the_registry(frozen_runs: Path) -> None:
    facts = kept("search")
    for player in ("run:search@32", "run:search@best", "registry:tictactoe", "registry:tictactoe@1"):
        expect_none(near(outputs(player, "tictactoe", facts["outputs"], frozen_runs), facts["outputs"]))


def test_weights_stay_when_their_checkpoint_is_gone(frozen_runs: Path, tmp_path: Path) -> None:
    facts = kept("search")
    shutil.copytree(frozen_runs / "search", tmp_path / "search")
    shutil.rmtree(tmp_path / "search" / "checkpoints" / "000000000032")
    expect_none(near(outputs("run:search@32", "tictactoe", facts["outputs"], tmp_path), facts["outputs"]))


def test_they_play(frozen_runs: Path) -> None:
    players = ("--player", "run:search,search=none", "--opponent", "run:ppo,search=none")
    report = alea("eval", "tictactoe", *players, "--games", 4, "--opening-plies", 2, "--runs", frozen_runs)
    assert report["games"] == 4
    choose, moves = player_of("run:balatro", "balatro", frozen_runs)(0), itertools.count()
    alone = play_runs("run:balatro", ["ALEEBALE"], make=lambda *_: lambda batch: choose(batch, next(moves)))
    assert len(alone.ante) == 1
    assert alone.decisions > 0


@pytest.mark.parametrize("name", LOGGED)
def test_its_replay_is_read_row_by_row(name: str, tmp_path: Path) -> None:
    facts = kept(name)
    assert log_digests(RUNS / name) == facts["replay"]
    (folder,) = (RUNS / name / "replay").iterdir()
    log = ReplayLog(Path(shutil.copytree(folder, tmp_path / "log")))
    assert (log.first_number, log.next_number) == (0, len(facts["replay"]))
    (plain,) = log_records(folder).values()
    for number, record in log.read(0, log.next_number):
        assert row_digests(record) == row_digests(plain[number])
        np.testing.assert_array_equal(record["source"], plain[number]["source"])


RESUMED = [pytest.param(name, marks=[pytest.mark.long] if name in ("balatro", "rllib") else []) for name in NAMES]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of Ray
@pytest.mark.parametrize("name", RESUMED)
def test_it_goes_on_and_writes_the_same_files(name: str, frozen_runs: Path, tmp_path: Path) -> None:
    facts = kept(name)
    folder = Path(shutil.copytree(frozen_runs / name, tmp_path / name))
    found = resume(tmp_path, name, facts["rows"])
    if name == "rllib":  # its games are played by processes in any order
        assert (found["status"], found["said"]) == ("done", ["resumed", "done"])
        assert found["rows"] >= 2 * facts["rows"]
        assert found["first_learned"]["step"] > int(newest(RUNS / name / "checkpoints").name)
    else:
        found["outputs"] = outputs(f"run:{name}", facts["game"], facts["outputs"], tmp_path)
        expect_none(near(found, facts["resumed"], RESUMED_TOLERANCE))

    expect_none(misfits(checkpoint_layout(newest(folder / "checkpoints")), facts["checkpoint"]))
    if "version" in facts:
        expect_none(misfits(checkpoint_layout(newest(folder / "versions")), facts["version"]))
    assert {Path(file).parts[0] for file in facts["files"]} <= {path.name for path in folder.iterdir()}
    old_files, new_files = (files_of(newest(place / "checkpoints")) for place in (RUNS / name, folder))
    assert new_files == old_files
    expect_none(missing_reports(RUNS / name / "metrics.jsonl", folder / "metrics.jsonl"))
    if name in LOGGED:
        old, new = (records(place) for place in (RUNS / name, folder))
        assert log_digests(folder)[: len(old)] == facts["replay"]
        assert len(new) > len(old)
        for record in new:
            expect_none(misfits(shapes(record), shapes(old[0])))


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def missing_reports(old: Path, new: Path) -> list[str]:
    """Return which fields of the old reports have gone, or have another type, in those that were appended to them.

    There may be new fields, and a field may be null. A resumed run plays no match here.
    """
    frozen, said = report_layout(old.read_text()), report_layout(new.read_text().removeprefix(old.read_text()))
    wanted = {field: kind for field, kind in frozen.items() if not field.startswith("eval ")}
    nothing = {field for field, kind in said.items() if "null" in (kind, wanted.get(field))}
    return misfits(
        {field: kind for field, kind in said.items() if field in wanted.keys() - nothing},
        {field: kind for field, kind in wanted.items() if field not in nothing},
    )


def records(folder: Path) -> list[dict[str, np.ndarray]]:
    (log,) = (folder / "replay").iterdir()
    return [record for found in log_records(log).values() for record in found]


def shapes(record: dict[str, np.ndarray]) -> dict[str, str]:
    return {name: shape_text(array) for name, array in record.items()}
