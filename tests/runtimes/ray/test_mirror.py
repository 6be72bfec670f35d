"""A learner's copy of a run on another machine: what changes here is there, whole, and wishes come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import ray

from aleazero.runtimes.ray.mirror import Keeper, Mirror

LEFT_OUT = ("run.lock", "driver.log", "ray-learner")  # the driver's own

pytestmark = pytest.mark.usefixtures("small_cluster")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    for name, text in {"config.toml": "a", "replay/0/1.log": "one", "checkpoints/000000000004/m.json": "4"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for name in LEFT_OUT:
        (folder / name).write_text("7")
    return folder


def mirror(home: Path, tmp_path: Path) -> Mirror:
    keeper = ray.remote(num_cpus=0)(Keeper).remote(home)
    made = Mirror(keeper, tmp_path / "copy")
    made.fetch()
    return made


def contents(folder: Path) -> dict[str, str]:
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_text() for name, path in found.items() if path.name not in LEFT_OUT}


def test_what_changes_goes_back(home: Path, tmp_path: Path) -> None:
    made = mirror(home, tmp_path)
    copy = made.path
    assert contents(copy) == contents(home)
    assert not any((copy / name).exists() for name in LEFT_OUT)
    with (copy / "replay/0/1.log").open("w") as file:  # cut, and grown beyond its old length
        file.write("another one")
    (copy / "metrics.jsonl").write_text("1\n")
    (copy / "checkpoints/000000000008").mkdir()
    (copy / "checkpoints/000000000008/m.json").write_text("8")
    made.send()
    assert contents(home) == contents(copy)
    with (copy / "metrics.jsonl").open("a") as file:
        file.write("2\n")
    (copy / "checkpoints/000000000004/m.json").unlink()
    (copy / "checkpoints/000000000004").rmdir()
    fresh = copy / "checkpoints/000000000008"
    fresh.rename(copy / "checkpoints/.old")
    fresh.mkdir()
    (fresh / "m.json").write_text("eight")
    made.send()
    wanted = {name: text for name, text in contents(copy).items() if "/." not in name}
    assert contents(home) == wanted
    assert not (home / "checkpoints/000000000004").exists()


def test_wishes_come_here_and_reports_go_there(home: Path, tmp_path: Path) -> None:
    made = mirror(home, tmp_path)
    (home / "stop").touch()
    (home / "paused").touch()
    (made.path / "metrics.jsonl").write_text("1\n")
    made.tend()
    assert (made.path / "stop").exists()
    assert (made.path / "paused").exists()
    assert (home / "metrics.jsonl").read_text() == "1\n"
    (home / "paused").unlink()
    made.tend()
    assert not (made.path / "paused").exists()


def test_large_files_go_in_pieces(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aleazero.runtimes.ray.mirror.CHUNK_BYTES", 5)
    made: Any = mirror(home, tmp_path)
    (made.path / "big").write_text("0123456789abc")
    made.send()
    assert (home / "big").read_text() == "0123456789abc"
