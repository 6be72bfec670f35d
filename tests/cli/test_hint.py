"""`alea hint`: plays in the right order, with chances that add up to their equities; and what it refuses."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from aleazero import export
from aleazero.advice import ENDS
from aleazero.cli.main import run
from aleazero.games.backgammon.boards import rolled, to_boards
from aleazero.games.backgammon.game import Backgammon
from aleazero.models.build import ModelConfig, build_model
from aleazero.players import TurnNetworkPlayer
from tests.cli.conftest import Alea
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")

GAME = Backgammon()
START = "4HPwATDgc/ABMA"
OPENING = "XGID=-b----E-C---eE---c-e----B-:0:0:{}:{}:0:0:0:0:0"
WON = "XGID=--------------------o-----:0:0:1:31:0:0:0:0:0"


@functools.cache
def network() -> TurnNetworkPlayer:
    model = build_model(ModelConfig(width=16, blocks=1, policy=False), GAME.spec)
    return TurnNetworkPlayer(GAME, model, jax.jit(model.init)(jax.random.key(5)), "tiny")


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("network")
    export.write(folder, network().model, network().weights, {})
    return f"path:{folder}"


def equity_of(play: dict[str, Any]) -> float:
    return sum((1 if end.startswith("win") else -1) * play[end] for end in ENDS)


def test_a_networks_plays(alea: Alea, player: str) -> None:
    report = alea("hint", "backgammon", "--position-id", START, "--dice", 13, "--player", player, "--count", 99)
    plays = report["plays"]
    state = GAME.notation.parse_state(OPENING.format(1, 31))
    turns = {GAME.notation.format_turn(state, actions): after for actions, after in GAME.notation.turns(state)}
    assert {play["play"] for play in plays} == turns.keys()
    assert len(plays) == len(turns) == 16
    after = jax.tree.map(lambda *x: np.stack(x), *(turns[play["play"]] for play in plays))
    judged = network().judge(after)
    assert [play["equity"] for play in plays] == pytest.approx(list(3 * np.asarray(judged.value)), abs=1e-5)
    assert [play["equity"] for play in plays] == sorted((play["equity"] for play in plays), reverse=True)
    for play, opinion in zip(plays, np.asarray(judged.opinion), strict=True):
        assert equity_of(play) == pytest.approx(play["equity"], abs=1e-5)
        assert play["win"] + play["lose"] == pytest.approx(1)
        assert play["win_gammon"] == pytest.approx(opinion[1] + opinion[2], abs=1e-6)
        assert play["lose_backgammon"] == pytest.approx(opinion[5], abs=1e-6)
    assert report["position"] == OPENING.format(1, 31)
    assert "--position-id 4HPwATDgc/ABMA --dice 13" in report["command"]


def test_either_way_to_name_a_position_and_either_side(alea: Alea, player: str) -> None:
    for turn in (1, -1):
        report = alea("hint", "backgammon", "--xgid", OPENING.format(turn, 31), "--player", player)
        again = alea("hint", "backgammon", "--position-id", START, "--dice", "31", "--player", player)
        bare = alea("hint", "backgammon", "--xgid", OPENING.format(turn, 31).removeprefix("XGID="), "--player", player)
        assert report["plays"] == again["plays"] == bare["plays"]
        assert len(report["plays"]) == 5


def test_the_rest_of_a_turn_and_a_pass(alea: Alea, player: str) -> None:
    begun = "XGID=-b---AE-B---eE---c-e----B-:0:0:1:10:0:0:0:0:0 +1"
    rest = alea("hint", "backgammon", "--xgid", begun, "--player", player)
    assert {play["play"] for play in rest["plays"]} == {"5/4", "6/5", "8/7", "24/23"}
    stuck = alea("hint", "backgammon", "--xgid", f"XGID=-A{'-' * 17}bbbbbbA:0:0:1:66:0:0:0:0:0", "--player", player)
    assert [play["play"] for play in stuck["plays"]] == ["pass"]


def test_in_words(player: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hint", "backgammon", "--position-id", START, "--dice", "31", "--player", player, "--count", "2"]) == 0
    said = capsys.readouterr().out
    assert "X to play 3 1\n" in said
    assert re.search(r"play +equity +behind +win +gammon +backgammon +lose +gammon +backgammon\n", said)
    first, second = re.findall(r"^ +[12]  .*", said, re.MULTILINE)
    assert re.fullmatch(r"  1  \S[^+-]*[+-]\d\.\d{3} {8}( +\d+\.\d%){6}", first)
    assert re.fullmatch(r"  2  \S[^+-]*[+-]\d\.\d{3}  -\d\.\d{3}( +\d+\.\d%){6}", second)


# ---- GNU Backgammon


@pytest.mark.parametrize("ply", [0, 1])
def test_gnubg_ranks_as_it_plays(alea: Alea, ply: int) -> None:
    pytest.importorskip("gnubg_nn")
    from aleazero.engines.gnubg import Gnubg

    report = alea("hint", "backgammon", "--xgid", OPENING.format(-1, 31), "--player", f"gnubg:ply={ply}")
    best = report["plays"][0]
    assert best["play"] == "8/5 6/5"
    assert [play["equity"] for play in report["plays"]] == sorted((p["equity"] for p in report["plays"]), reverse=True)
    start = to_boards(jax.tree.map(lambda x: x[None], GAME.notation.parse_state(OPENING.format(1, 31))))
    after = Gnubg(ply).choose(start, np.array([[3, 1]]))
    assert best["equity"] == pytest.approx(Gnubg(ply).after_equities(after)[0], abs=1e-6)
    for play in report["plays"]:
        assert equity_of(play) == pytest.approx(play["equity"])
        assert play["win"] + play["lose"] == pytest.approx(1)
        assert 1 > play["win"] > play["win_gammon"] > play["win_backgammon"] > 0


def test_gnubg_at_the_end_of_a_game(alea: Alea) -> None:
    pytest.importorskip("gnubg_nn")
    last = "XGID=-A-----------------o------:0:0:1:31:0:0:0:0:0"
    (play,) = alea("hint", "backgammon", "--xgid", last, "--player", "gnubg:ply=0")["plays"]
    assert play["play"] == "1/off"
    assert [play[end] for end in ENDS] == [1, 1, 0, 0, 0, 0]
    assert play["equity"] == 2


# ---- misuse


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "name one position: --position-id ID --dice 31, or --xgid XGID"),
        (["--position-id", START, "--xgid", WON], "name one position"),
        (["--position-id", START], "a position ID holds no dice: add them"),
        (["--position-id", START, "--dice", ""], "a position ID holds no dice: add them"),
        (["--position-id", START, "--dice", "71"], "dice '71' are not two numbers from 1 to 6"),
        (["--position-id", START, "--dice", "3"], "dice '3' are not two numbers from 1 to 6"),
        (["--position-id", START, "--dice", "311"], "dice '311' are not"),
        (["--position-id", "short", "--dice", "31"], "a position ID has 14 letters"),
        (["--position-id", "/////////////w", "--dice", "31"], "no position ID"),
        (["--position-id", "4HPwATDgc/ABM!", "--dice", "31"], "a position ID has 14 letters"),
        (["--xgid", OPENING.format(1, 31), "--dice", "31"], "an XGID holds its own: leave --dice out"),
        (["--xgid", OPENING.format(1, "00")], "no dice are rolled"),
        (["--xgid", OPENING.format(1, 37)], "dice '37' are not"),
        (["--xgid", WON], "X has won: there are no dice to play"),
        (["--xgid", WON.replace(":31:", ":00:")], "the game is over"),
        (["--xgid", OPENING.format(1, 31).replace("E-C", "F-C")], "X has 16 checkers; there are 15"),
        (["--xgid", "nonsense"], "a position ID has 14 letters"),
        (["--xgid", OPENING.format(1, 31), "--count", "0"], "count is 0; it must be at least 1"),
        (["--xgid", OPENING.format(1, 31), "--player", "random"], "player 'random' has no opinion of plays"),
        (["--xgid", OPENING.format(1, 31), "--player", "gnuby"], "did you mean 'gnubg'"),
    ],
)
def test_misuse_exits_with_2(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    player = [] if "--player" in arguments else ["--player", "random"]
    assert run(["hint", "backgammon", *arguments, *player]) == 2
    printed = capsys.readouterr()
    assert why in " ".join(printed.err.split())
    assert printed.out == ""


def test_other_games_have_no_hints(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hint", "pig", "--xgid", OPENING.format(1, 31)]) == 2
    assert "hints are for backgammon" in capsys.readouterr().err


def test_gnubg_judges_no_half_turn(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gnubg_nn")
    for position in ("XGID=-b---AE-B---eE---c-e----B-:0:0:1:10:0:0:0:0:0 +1", OPENING.format(1, "33") + " +2"):
        assert run(["hint", "backgammon", "--xgid", position, "--player", "gnubg:ply=0"]) == 2
        assert "has no opinion in the middle of a turn" in capsys.readouterr().err


def test_no_gnubg_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gnubg_nn", None)
    assert run(["hint", "backgammon", "--xgid", OPENING.format(1, 31), "--player", "gnubg:ply=0"]) == 1
    assert "pip install 'aleazero[gnubg]'" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("aleazero.engines.gnubg_program.DEBIAN_PLACE", tmp_path / "gnubg")
    assert run(["hint", "backgammon", "--xgid", OPENING.format(1, 31), "--player", "gnubg:engine=debian"]) == 1
    assert "apt-get install gnubg" in capsys.readouterr().err


def test_ranking_lists_every_play_once() -> None:
    """Plays come in chunks; here are more of them than one holds."""
    boards = to_boards(jax.tree.map(lambda x: x[None], GAME.notation.parse_state(OPENING.format(1, 31))))
    for dice in ((1, 1), (2, 1)):
        states = rolled(boards, np.array([dice]), np.array([1]))
        found = network().rank(states)
        pack = jax.jit(jax.vmap(GAME.pack))
        listed = [bytes(row) for row in np.asarray(pack(found.afterstates))]
        turns = GAME.notation.turns(jax.tree.map(lambda x: x[0], states))
        assert sorted(listed) == sorted(bytes(np.asarray(GAME.pack(after))) for _, after in turns)
        assert (np.diff(found.value) <= 0).all()
        again = network().judge(found.afterstates)
        np.testing.assert_allclose(found.value, again.value, atol=1e-6)
        np.testing.assert_allclose(found.opinion, again.opinion, atol=1e-6)
        assert len(turns) > GAME.chunk
