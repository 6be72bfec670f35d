"""Runs that die, killed at any moment or out of disk: what is resumed equals a run that never died."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from aleazero import checkpoint
from aleazero.config import RunConfig
from aleazero.core.game import Game
from aleazero.games.registry import make_game
from aleazero.players import load_run_weights
from aleazero.runs import RunFolder
from aleazero.runtimes.start import resume as resume_here
from tests.runtimes.support import (  # noqa: F401 - fixtures
    Child,
    Children,
    differences,
    last_rows,
    newest,
    programs,
    quick_programs,
    shared_parts,
    statuses,
    tiny,
    train,
    write_config,
)

pytestmark = pytest.mark.slow

# Segments of the replay log are small enough to be dropped, and writing a checkpoint takes long enough to be hit.
SLOWLY = """
import functools, os, time
from aleazero.runtimes import slab_log
slab_log.ReplayLog = functools.partial(slab_log.ReplayLog, segment_bytes=40_000)
sync = os.fsync
os.fsync = lambda handle: (time.sleep(0.01), sync(handle))[1]
"""

# The ring goes round in both. Games of Pig take some 100 moves, more than a slab: what a row's target is comes out
# slabs later.
TICTACTOE = tiny("total_rows=3840")
PIG = tiny(
    *("total_rows=5760", "selfplay.num_games=2", "selfplay.moves_per_rollout=64", "selfplay.random_plies=20"),
    *("replay.capacity_rows=4352", "targets.td_lambda=0.9"),
    game="pig",
)
# Rows played when a run is killed, and the moment after them.
POINTS = {
    TICTACTOE: [(1400, "at once"), (2600, "in a save")],
    PIG: [(1000, "in a save"), (2400, "at once"), (4600, "after a save")],
}


@pytest.fixture(scope="module")
def children(programs: Path) -> Children:  # noqa: F811
    return Children(programs)


def start(children: Children, config: RunConfig, folder: RunFolder, before: str = SLOWLY) -> Child:
    file = write_config(config, folder.path.parent / f"{folder.name}.toml")
    return children.start(file, "--preset", "quick", *place(folder), before=before)


def resume(children: Children, folder: RunFolder, how: str = "exact", before: str = SLOWLY) -> Child:
    return children.start("--resume", folder.name, "--how", how, *place(folder)[2:], before=before)


def place(folder: RunFolder) -> list[str | Path]:
    return ["--name", folder.name, "--runs", folder.path.parent]


def ended_well(child: Child) -> str:
    code, printed = child.finish()
    assert code == 0, printed
    return printed


def half_written(folder: RunFolder) -> list[Path]:
    return list(folder.checkpoints.glob(".tmp-*"))


def kill(child: Child, folder: RunFolder, rows: int, moment: str) -> None:
    """Kills a process once it has played so many rows: at once, in the middle of a save, or just after one."""
    child.wait_for(lambda: last_rows(folder) >= rows, f"{rows} rows")
    if moment == "in a save":
        child.wait_for(lambda: half_written(folder), "a save")
    elif moment == "after a save":
        known = checkpoint.steps(folder.checkpoints)
        child.wait_for(lambda: set(checkpoint.steps(folder.checkpoints)) - set(known), "a checkpoint")
    child.kill()
    if moment == "in a save":
        assert half_written(folder), "the kill came too late"


def die_often(children: Children, config: RunConfig, folder: RunFolder) -> None:
    """Kills a run at every point, resumes it each time, and lets it end."""
    child = start(children, config, folder)
    for rows, moment in POINTS[config]:
        kill(child, folder, rows, moment)
        child = resume(children, folder)
    ended_well(child)


@pytest.mark.parametrize("config", [PIG, pytest.param(TICTACTOE, marks=pytest.mark.long)], ids=lambda each: each.game)
def test_a_run_killed_again_and_again_equals_one_never_killed_bit_for_bit(
    children: Children, tmp_path: Path, config: RunConfig
) -> None:
    whole, often = (RunFolder(tmp_path / name) for name in ("whole", "often"))
    ended_well(start(children, config, whole))
    die_often(children, config, often)
    assert differences(newest(often), newest(whole)) == []
    assert newest(often).facts["rows"] == often.read_config().total_rows
    assert newest(often).facts["replay_logged"]
    # The record that the run keeps of itself is that of one run too.
    reports = [json.loads(line) for line in often.metrics_file.read_text().splitlines()]
    learned = [report["step"] for report in reports if report["kind"] == "learn"]
    assert learned == sorted(set(learned))
    assert statuses(often)[0] == "started"
    assert statuses(often)[-1] == "done"
    # What lies before the ring was dropped from the log, and the same of it is left.
    left = [sorted(path.name for path in run.replay.rglob("segment-*")) for run in (whole, often)]
    assert left[0] == left[1]
    assert "segment-000000000000.log" not in left[0]


def test_a_run_killed_before_its_first_checkpoint_must_be_started_anew(children: Children, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "early")
    child = start(children, tiny(), folder)
    child.wait_for(lambda: half_written(folder), "a save")
    child.kill()
    assert half_written(folder)
    assert checkpoint.steps(folder.checkpoints) == []
    for how in ("exact", "weights"):
        code, printed = resume(children, folder, how).finish()
        assert (code, "run 'early' has no usable checkpoint to resume from; start it anew" in printed) == (1, True)
    code, printed = start(children, tiny(), folder).finish()
    assert code == 1
    assert "there is a run 'early'" in printed
    assert "alea runs delete early" in printed


# A disk that is full: no file may grow beyond a limit once the run has a checkpoint, and writes fail with an error.

FULL = """
import os, resource, signal, threading, time
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill():
    while not any(name.isdigit() for name in (os.listdir({root!r}) if os.path.exists({root!r}) else ())):
        time.sleep(0.001)
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
threading.Thread(target=fill, daemon=True).start()
"""


@pytest.fixture(scope="module")
def whole(children: Children, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The tiny run, with few reports, as it ends where the disk has room."""
    folder = RunFolder(tmp_path_factory.mktemp("whole") / "whole")
    ended_well(start(children, FEW_REPORTS, folder, before=""))
    return folder


FEW_REPORTS = tiny("observe.every_seconds=1000")


def on_full_disk(children: Children, folder: RunFolder, limit: int) -> tuple[int, str]:
    before = FULL.format(root=str(folder.checkpoints), limit=limit)
    return start(children, FEW_REPORTS, folder, before=before).finish()


def test_a_full_disk_leaves_the_checkpoint_of_before_which_resumes_exactly(
    children: Children, whole: RunFolder, tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path / "full")
    code, printed = on_full_disk(children, folder, limit=4096)  # no checkpoint fits in there
    assert code == 1
    assert f"could not write checkpoint {folder.checkpoints}" in printed
    assert "the checkpoints saved before are untouched" in printed
    assert "the last checkpoint could not be saved" in printed
    assert "alea runs resume full" in printed
    survivor = newest(folder)
    assert survivor.facts["rows"] < FEW_REPORTS.total_rows
    assert half_written(folder) == []
    ended_well(resume(children, folder, before=""))
    assert differences(newest(folder), newest(whole)) == []


def test_without_a_replay_log_a_run_goes_on_but_can_only_be_resumed_from_weights(
    children: Children, whole: RunFolder, tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path / "logless")
    code, printed = on_full_disk(children, folder, limit=100_000)  # checkpoints fit; the log of a whole run does not
    assert code == 0, printed
    assert printed.count("the replay log is given up, so this run can only be resumed from its weights") == 1
    assert differences(newest(folder), newest(whole)) == []
    code, printed = resume(children, folder, before="").finish()
    assert code == 1
    assert f"checkpoint {newest(folder).path} has no replay log to play back" in printed
    assert "--resume weights" in printed
    ended_well(resume(children, folder, "weights", before=""))
    assert newest(folder).facts["replay_logged"]


# Checkpoints of earlier versions: whatever comes later loads them, or refuses them by name.

GOLDEN = Path(__file__).parents[1] / "golden" / "checkpoints"


def test_the_golden_checkpoint_is_made_anew(
    regenerate: bool,
    tmp_path: Path,
    quick_programs: None,  # noqa: F811
) -> None:
    if regenerate:
        made = train(tiny("total_rows=512"), tmp_path, "v1")
        shutil.rmtree(GOLDEN / "v1", ignore_errors=True)
        last = newest(made)
        shutil.copytree(last.path, GOLDEN / "v1" / "checkpoints" / last.path.name)
        shutil.copy(made.config_file, GOLDEN / "v1")
        (GOLDEN / "v1" / "says.json").write_text(json.dumps(what_it_says(GOLDEN, "v1"), indent=1) + "\n")
    size = sum(path.stat().st_size for path in (GOLDEN / "v1").rglob("*") if path.is_file())
    assert size <= 200_000


def what_it_says(root: Path, name: str) -> dict[str, dict[str, list[float]]]:
    """Logits and opinions of a run's network in a few positions."""
    game = make_game("tictactoe")
    assert isinstance(game, Game)
    model, weights = load_run_weights(name, game, root)
    said = {}
    for text in ("XO./.../...", "X.O/.X./...", "XOX/OXO/..."):
        output = model.apply(weights, game.observe(game.notation.parse_state(text))[None])
        said[text] = {"logits": output.logits[0].tolist(), "opinion": model.opinion_of(output)[0].tolist()}
    return said


@pytest.mark.parametrize("version", sorted(path.name for path in GOLDEN.glob("v*")) or ["v1"])
def test_an_old_checkpoint_says_what_it_said_plays_and_goes_on(
    version: str,
    tmp_path: Path,
    quick_programs: None,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aleazero.runtimes.start.build_parts", shared_parts)
    told = json.loads((GOLDEN / version / "says.json").read_text())
    for place, said in what_it_says(GOLDEN, version).items():
        for name, numbers in said.items():
            np.testing.assert_allclose(numbers, told[place][name], rtol=1e-4, atol=1e-5)
    folder = RunFolder(Path(shutil.copytree(GOLDEN / version, tmp_path / version)))
    old = newest(folder)
    more = f"total_rows={old.facts['rows'] + 512}"
    finished = resume_here(version, tmp_path, "weights", [more, "evaluate.opponents=random"], quiet=True)
    assert (finished.status, finished.ratings[0].games) == ("done", 16)
    assert newest(folder).step == old.step + 32
    assert newest(folder).facts["base_steps"] == old.step
