"""Judges of backgammon decisions: their strings; `alea rate --judge` and `alea hint --rollout` by a small network."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from aleazero import decisions as decided
from aleazero import export
from aleazero.advice import ENDS
from aleazero.cli import judges
from aleazero.cli.common import game_of
from aleazero.cli.main import run
from aleazero.core.errors import ConfigError, MissingExtra, UnknownName
from aleazero.models.build import ModelConfig, build_model
from aleazero.result_record import read_record
from tests.cli.conftest import Alea
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")

GAME = game_of("backgammon")
LAST = "XGID=-BB----------------a------:0:0:1:21:0:0:0:0:0"  # X has four checkers left, O one on its 6-point


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("network")
    model = build_model(ModelConfig(width=16, blocks=1, policy=False), GAME.spec)
    export.write(folder, model, jax.jit(model.init)(jax.random.key(5)), {})
    return f"path:{folder},endings=network"


@pytest.fixture(scope="module")
def few_lanes() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aleazero.rollouts.LANES", {"cpu": 16})
        yield


# ---- strings


def test_gnubg_is_the_default_and_has_no_options() -> None:
    pytest.importorskip("gnubg_nn")
    judge = judges.make_judge("gnubg", GAME, 0, None)
    assert judge.name == judge.player.name == "gnubg:ply=2"
    with pytest.raises(ConfigError, match="gnubg takes no options"):
        judges.make_judge("gnubg:ply=1", GAME, 0, None)


def test_a_rollout_judge_says_all_that_may_be_left_out(player: str) -> None:
    judge = judges.make_judge(f"rollout: player={player} ;plies = all", GAME, 3, None)
    assert isinstance(judge, judges.RolloutJudge)
    assert judge.name == f"rollout:games=324;plies=all;player={player}"
    assert (judge.rollouts.games, judge.rollouts.plies, judge.rollouts.seed) == (324, None, 3)
    judge = judges.make_judge(f"rollout:games=72;plies=5;player={player}", GAME, 3, None)
    assert isinstance(judge, judges.RolloutJudge)
    assert (judge.rollouts.games, judge.rollouts.plies) == (72, 5)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("rollout:games", ["'games' is no option; write games=324 or plies=7"]),
        ("rollout:gams=36", ["unknown option 'gams': did you mean 'games'?"]),
        ("rollout:games=many;plies=-1", ["games is 'many'; it must be a whole number", "plies is '-1'; it must be a"]),
        ("rollout:games=35;player={}", ["games is 35; it must be a multiple of 36"]),
        ("rollout:plies=0;player={}", ["plies is 0; it must be at least 1"]),
        ("rollout:player=random", ["player 'random' is no network that plays whole turns"]),
        ("rollout:player={},ply=1", ["plays at 1 plies; rollouts play at 0-ply"]),
        ("rollout:player=bundeld", ["unknown player 'bundeld': did you mean 'bundled'?"]),
    ],
)
def test_all_that_is_wrong_with_a_judge_is_said(text: str, problems: list[str], player: str) -> None:
    with pytest.raises(ConfigError) as caught:
        judges.make_judge(text.format(player), GAME, 0, None)
    assert len(str(caught.value).splitlines()) == len(problems)
    for problem in problems:
        assert problem in str(caught.value)


def test_another_judge_is_not_known() -> None:
    with pytest.raises(UnknownName, match=r"unknown judge 'rolout': did you mean 'rollout'\? known: gnubg, rollout"):
        judges.make_judge("rolout", GAME, 0, None)


def test_gnubg_is_an_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gnubg_nn", None)
    with pytest.raises(MissingExtra):
        judges.make_judge("gnubg", GAME, 0, None)
    assert run(["rate", "backgammon", "--player", "random", "--positions", "2"]) == 1
    assert "pip install 'aleazero[gnubg]'" in capsys.readouterr().err


# ---- alea rate


def test_a_players_decisions_rolled_out(
    alea: Alea, player: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_lanes: None
) -> None:
    """And without GNU Backgammon."""
    monkeypatch.setitem(__import__("sys").modules, "gnubg_nn", None)
    saved, file = tmp_path / "decisions.jsonl", tmp_path / "record.json"
    judge = f"rollout:games=36;plies=1;player={player}"
    report = alea(
        *("rate", "backgammon", "--player", "random", "--positions", 3, "--judge", judge),
        *("--save", saved, "--record", file),
    )
    assert (report["decisions"], report["outside"], report["judge"]) == (3, 0, judge)
    assert report["value"] > 0  # random plays are not the best
    assert (report["memg"], report["pr"]) == (report["value"], report["value"] / 2)
    labelled = decided.read(saved)
    assert report["games"] == len({decision.game for decision in labelled})
    for decision in labelled:
        assert decision.halves is not None
        assert len(decision.equity) <= decided.MOST + 1
        np.testing.assert_allclose(decision.halves[0], decision.halves[1], atol=1e-4)  # one roll is all luck
    record = read_record(file)
    assert {key: record[key] for key in report} == report
    assert record["players"]["judge"]["weights"] is not None
    assert record["players"]["player"]["player"] == "random"


def test_labelled_decisions_need_no_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["rate", "backgammon", "--player", "randm", "--decisions", str(tmp_path / "absent"), "--judge", "gnubg"]
    assert run(arguments) == 2
    said = capsys.readouterr().err
    assert "judge is 'gnubg', but the decisions of a file are judged already" in said
    assert "did you mean 'random'" in said


# ---- alea hint


@functools.cache
def state() -> Any:
    return GAME.notation.parse_state(LAST)


def test_plays_rolled_out(alea: Alea, player: str, few_lanes: None, capsys: pytest.CaptureFixture[str]) -> None:
    """O bears off with 27 rolls of 36; else X does, if it took two checkers off now."""
    arguments = ["hint", "backgammon", "--xgid", LAST, "--player", player, "--rollout", "36", "--count", "9"]
    report = alea(*arguments)
    assert "--rollout 36" in report["command"]
    plays = report["plays"]
    assert [play["equity"] for play in plays] == sorted((play["equity"] for play in plays), reverse=True)
    turns = {GAME.notation.format_turn(state(), actions) for actions, _ in GAME.notation.turns(state())}
    assert {play["play"] for play in plays} == turns
    for play in plays:
        assert 0 <= play["error"] < 0.2
        total = sum((1 if end.startswith("win") else -1) * play[end] for end in ENDS)
        assert total == pytest.approx(play["equity"], abs=1e-5)
        assert play["win"] + play["lose"] == pytest.approx(1, abs=1e-5)
    assert plays[0]["play"] == "2/off 1/off"
    assert plays[0]["equity"] == pytest.approx(-0.5, abs=1e-5)  # first rolls are even
    assert plays[1]["equity"] < -0.6
    assert run([*arguments[:-1], "2"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"play +equity +error +behind +win", said)
    assert re.search(r"^  1  2/off 1/off +-0\.500  ±0\.\d{3} {8} +25\.0%", said, re.MULTILINE)
    assert re.search(r"^  2  \S.*  -[01]\.\d{3}  ±0\.\d{3}  -\d\.\d{3} ", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rollout", "35"], "games is 35; it must be a multiple of 36"),
        (["--rollout", "36", "--player", "random"], "player 'random' is no network that plays whole turns"),
    ],
)
def test_hints_that_cannot_be_rolled_out(
    arguments: list[str], said: str, player: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [] if "--player" in arguments else ["--player", player]
    assert run(["hint", "backgammon", "--xgid", LAST, *given, *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
