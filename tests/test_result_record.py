"""Result records: what they hold, that they are written whole and never over one another, and what is none."""

from __future__ import annotations

import copy
import datetime
import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from aleazero import __version__, export, result_record
from aleazero.games.registry import make_game
from aleazero.games.tictactoe import TicTacToe
from aleazero.models.build import ModelConfig, build_model
from aleazero.players import make_player
from aleazero.result_record import (
    RecordError,
    checkout,
    describe,
    make_record,
    place_problems,
    read_record,
    write_record,
)
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")

GAME = TicTacToe()
REPORT = {
    "game": "tictactoe",
    "metric": "points_per_game",
    "value": 0.5,
    "low": 0.25,
    "high": None,
    "games": 40,
    "luck": "none",
    "seed": 3,
    "command": "alea eval tictactoe --player solver",
    "anything": {"else": [1, None]},
}


def record(**changes: Any) -> dict[str, Any]:
    return make_record("eval", REPORT | changes, {"player": make_player("solver", GAME)})


def test_a_record_is_the_report_and_where_it_comes_from(tmp_path: Path) -> None:
    made = record()
    assert {key: made[key] for key in REPORT} == REPORT
    assert (made["schema"], made["kind"], made["version"]) == (1, "eval", __version__)
    assert made["players"] == {"player": {"player": "solver", "weights": None, "config": None, "engine": None}}
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(made["time"])
    assert datetime.timedelta(0) <= age < datetime.timedelta(minutes=5)
    assert made["hardware"]["device"] == f"{len(jax.local_devices())} x {jax.local_devices()[0].device_kind}"
    assert made["hardware"]["cores"] >= 1
    path = tmp_path / "record.json"
    write_record(path, made)
    assert read_record(path) == made
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


# ---- which player


def test_networks_are_named_by_their_weights(tmp_path: Path) -> None:
    model = build_model(ModelConfig(width=16, blocks=1), GAME.spec)
    weights = jax.jit(model.init)(jax.random.key(1))
    export.write(tmp_path / "one", model, weights, {})
    export.write(tmp_path / "two", model, jax.tree.map(lambda x: np.nextafter(x, 1), weights), {})
    found = [describe(make_player(f"path:{tmp_path / name},search=none", GAME)) for name in ("one", "two")]
    files = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("one", "two")]
    assert [player["weights"] for player in found] == [hashlib.sha256(data).hexdigest() for data in files]
    assert found[0]["weights"] != found[1]["weights"]
    assert (found[0]["config"], found[0]["engine"]) == (None, None)


def test_engines_by_their_version() -> None:
    pytest.importorskip("gnubg_nn")
    game = make_game("backgammon")
    for text in ("gnubg:ply=1", "pubeval"):
        found = describe(make_player(text, game))  # type: ignore[arg-type]
        assert found["engine"] is not None
        assert found["engine"].startswith("gnubg-nn 1.")
        assert found["weights"] is None


# ---- which program


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True, text=True).stdout


def test_the_commit_of_a_checkout_and_whether_it_was_changed(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("one\n")
    (tmp_path / "notes").write_text("one\n")
    assert checkout(package) == (None, None)  # nobody tracks it
    git(tmp_path, "init", "-q")
    assert checkout(package) == (None, None)  # a checkout that it does not belong to
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    commit = git(tmp_path, "rev-parse", "HEAD").strip()
    assert checkout(package) == (commit, False)
    (tmp_path / "notes").write_text("two\n")
    assert checkout(package) == (commit, False)  # nothing of the package
    (package / "more.py").write_text("")
    assert checkout(package) == (commit, True)
    (package / "more.py").unlink()
    (package / "__init__.py").write_text("two\n")
    assert checkout(package) == (commit, True)


def test_no_git_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert checkout(Path(result_record.__file__).parent) == (None, None)
    assert (record()["commit"], record()["dirty"]) == (None, None)


# ---- files


def test_nothing_is_written_over_unless_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    assert place_problems(None) == place_problems(path) == []
    write_record(path, record())
    with pytest.raises(RecordError, match="there is one already; name another file, or write over it with --force"):
        write_record(path, record(value=0.75))
    assert read_record(path)["value"] == 0.5
    write_record(path, record(value=0.75), force=True)
    assert read_record(path)["value"] == 0.75


def test_a_place_that_cannot_be_written_to_is_said_before_the_work(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "absent" / "record.json"):
        (problem,) = place_problems(place, force=True)
        assert "it must be a file, in a folder that is there" in problem


def test_a_write_that_fails_leaves_the_old_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "record.json"
    write_record(path, record())

    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(result_record.os, "fsync", fail)
    with pytest.raises(RecordError, match=r"record\.json: the disk is full"):
        write_record(path, record(value=0.75), force=True)
    assert read_record(path)["value"] == 0.5
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_record(path, record() | {"more": float("nan")}, force=True)
    assert read_record(path)["value"] == 0.5


# ---- what is none


def changed(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(record()) | changes


PLAYER = {"player": "x", "weights": None, "config": None, "engine": None}
WRONG: dict[str, tuple[Any, list[str]]] = {
    "a list": ([], ["it is no JSON object"]),
    "another schema": (changed(schema=2), ["schema is 2; this version reads 1"]),
    "types": (
        changed(schema="1", games=1.5, value=None, dirty="no", seed=True, low="0"),
        [
            "schema is '1'; it must be int",
            "dirty is 'no'; it must be bool or null",
            "value is None; it must be int or float",
            "low is '0'; it must be int or float or null",
            "games is 1.5; it must be int or null",
            "seed is True; it must be int or null",
        ],
    ),
    "missing": ({"schema": 1, "value": 1}, ["kind is missing", "players is missing", "command is missing"]),
    "kind": (changed(kind="evil"), ["kind is 'evil'; it must be one of eval, rate, openings"]),
    "commit": (changed(commit="123"), ["commit is '123'; it must be all of its hexadecimal digits"]),
    "dirty": (changed(commit=None, dirty=True), ["commit and dirty are null together"]),
    "interval": (changed(low=0.6), ["value is 0.5; it must lie between low (0.6) and high (None)"]),
    "interval above": (changed(low=None, high=0.4), ["value is 0.5; it must lie between low (None) and high (0.4)"]),
    "command": (changed(command="rm -r"), ["command is 'rm -r'; it must begin with alea"]),
    "no time": (changed(time="today"), ["time is 'today'; it must be a date and time in UTC"]),
    "local time": (changed(time="2026-01-31T12:00:00+01:00"), ["it must be a date and time in UTC"]),
    "nobody": (changed(players={}), ["players is empty"]),
    "no player": (changed(players={"player": "x"}), ["players.player is no JSON object"]),
    "players": (
        changed(players={"one": {"player": "x"}, "two": PLAYER | {"weights": "abc"}}),
        [
            "players.one: weights is missing",
            "players.one: config is missing",
            "players.one: engine is missing",
            "players.two: weights is 'abc'; it must be a sha256",
        ],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_all_that_is_wrong_is_named(name: str, tmp_path: Path) -> None:
    content, problems = WRONG[name]
    path = tmp_path / "record.json"
    path.write_text(json.dumps(content))
    with pytest.raises(RecordError) as caught:
        read_record(path)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"record {path}: ") for line in lines)
    for problem in problems:
        assert any(problem in line for line in lines), problem
    if name != "missing":
        assert len(lines) == len(problems)


@pytest.mark.parametrize(
    ("text", "said"), [("{", "Expecting"), ('{"value": NaN}', "NaN is no number in JSON"), (None, "No such file")]
)
def test_what_is_no_json_is_refused(text: str | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(RecordError, match=said):
        read_record(path)
