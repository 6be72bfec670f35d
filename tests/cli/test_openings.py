"""`alea openings`: the fifteen rolls, best plays and runners-up, alone and beside GNU Backgammon."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from aleazero import export
from aleazero.cli.common import game_of
from aleazero.cli.main import run
from aleazero.models.build import ModelConfig, build_model
from aleazero.players import TurnNetworkPlayer, make_player
from aleazero.result_record import read_record
from tests.cli.conftest import Alea
from tests.games.conftest import quick_compile  # noqa: F401

pytestmark = pytest.mark.usefixtures("quick_compile")

GAME = game_of("backgammon")
ROLLS = ["21", "31", "41", "51", "61", "32", "42", "52", "62", "43", "53", "63", "54", "64", "65"]
START = "4HPwATDgc/ABMA"


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("network")
    model = build_model(ModelConfig(width=16, blocks=1, policy=False), GAME.spec)
    export.write(folder, model, jax.jit(model.init)(jax.random.key(5)), {})
    return f"path:{folder}"


def test_every_opening_roll_with_its_best_two_plays(alea: Alea, player: str, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    report = alea("openings", "backgammon", "--player", player, "--record", file)
    rows = report["openings"]
    assert [row["dice"] for row in rows] == ROLLS
    assert report["value"] == pytest.approx(np.mean([row["equity"] for row in rows]))
    assert (report["metric"], report["same"], report["beside"]) == ("first_move_equity", None, None)
    for row in (rows[1], rows[14]):
        plays = alea("hint", "backgammon", "--position-id", START, "--dice", row["dice"], "--player", player)["plays"]
        assert (row["play"], row["runner_up"]) == (plays[0]["play"], plays[1]["play"])
        assert row["equity"] == pytest.approx(plays[0]["equity"], abs=1e-6)
        assert row["gap"] == pytest.approx(plays[0]["equity"] - plays[1]["equity"], abs=1e-6)
    record = read_record(file)
    assert {key: record[key] for key in report} == report
    assert record["kind"] == "openings"
    assert record["players"]["player"]["weights"] is not None


def test_gnubg_knows_its_openings_and_differs_from_noise(
    alea: Alea, player: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gnubg_nn")
    report = alea("openings", "backgammon", "--player", "gnubg:ply=0", "--beside", player)
    plays = {row["dice"]: row["play"] for row in report["openings"]}
    assert (plays["31"], plays["42"], plays["53"], plays["61"], plays["65"]) == (
        *("8/5 6/5", "8/4 6/4", "8/3 6/3", "13/7 8/7", "24/13"),
    )
    assert report["same"] == sum(row["play"] == row["beside"] for row in report["openings"]) < 15
    assert all(row["same"] == (row["play"] == row["beside"]) for row in report["openings"])
    assert 0.02 < report["value"] < 0.06  # to start is worth a little
    assert run(["openings", "backgammon", "--player", "gnubg:ply=0", "--beside", player]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["dice", "gnubg:ply=0", "equity", "runner-up", "gap", player, "equity"]
    assert lines[2].startswith("31    8/5 6/5      +0.")
    assert lines[-1] == f"the same play in {report['same']} of 15 rolls"
    assert sum("another play" in line for line in lines) == 15 - report["same"]


def test_at_more_plies_the_best_plays_are_looked_at_again(alea: Alea, player: str) -> None:
    deeper = make_player(f"{player},ply=1", GAME)
    assert isinstance(deeper, TurnNetworkPlayer)
    plays = alea("hint", "backgammon", "--position-id", START, "--dice", "64", "--player", f"{player},ply=1")["plays"]
    state = jax.tree.map(lambda x: x[None], GAME.notation.parse_state(f"{START}:64"))
    best = jax.tree.map(lambda x: x[:8], deeper.rank(state))
    values = 3 * np.sort(np.asarray(deeper.weigh(best.afterstates).value))[::-1]
    assert [play["equity"] for play in plays] == pytest.approx(values[:5].tolist(), abs=1e-5)
    assert np.abs(values - 3 * best.value).max() > 1e-4  # and they are not what they were


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pig"], "opening rolls are of backgammon"),
        (["backgammon", "--player", "random"], "player 'random' has no opinion of plays"),
        (["backgammon", "--player", "bundeld", "--beside", "gnubg:ply=7"], "ply is '7'"),
        (["backgammon", "--player", "bundeld", "--beside", "gnubg:ply=7"], "did you mean 'bundled'"),
    ],
)
def test_misuse_exits_with_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["openings", *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_no_gnubg_here(player: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gnubg_nn", None)
    assert run(["openings", "backgammon", "--player", player, "--beside", "gnubg:ply=0"]) == 1
    assert "pip install 'aleazero[gnubg]'" in capsys.readouterr().err
