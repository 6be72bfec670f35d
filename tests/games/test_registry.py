"""Games by name: built-in, by prefix, and from other packages' entry points."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aleazero.core.errors import GameContractError, UnknownName
from aleazero.core.game import Game, HostGame
from aleazero.games.pig import Pig
from aleazero.games.registry import BUILT_IN, game_names, make_game

MODULE = """
from aleazero.games.tictactoe import TicTacToe
from tests.games.tiny import Climb

loaded = True

class Renamed(TicTacToe):
    pass

def climb():
    return Climb()

def nothing():
    return 42

def fails():
    raise RuntimeError("no board was found")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Installs a package with a module and the entry points given; returns the module's name."""

    def install(**points: str) -> str:
        module = f"games_of_{tmp_path.name.replace('-', '_')}"
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (tmp_path / f"{module}.py").write_text(MODULE)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        lines = [f"{name} = {target.format(module)}" for name, target in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[aleazero.games]", *lines, ""]))
        monkeypatch.syspath_prepend(tmp_path)
        return module

    return install


def test_chess_may_show_earlier_positions():
    game = make_game("chess:history=2")
    assert game.spec.observation_shape == (8, 8, 31 + 2 * 12)
    assert make_game("chess:history=2") is game
    for wrong in ("chess:history=9", "chess:history=", "chess:past=2"):
        with pytest.raises(UnknownName, match="chess:history=N"):
            make_game(wrong)


def test_every_built_in_game_is_listed_and_made():
    assert game_names() == sorted(game_names())
    assert set(game_names()) >= {"connect_four", "pig", "quoridor", "tictactoe"}
    for name in BUILT_IN:
        game = make_game(name)
        assert isinstance(game, Game | HostGame)
        assert game.spec.name == name


def test_the_same_name_gives_the_same_object():
    assert make_game("pig") is make_game("pig")
    assert make_game("pgx:tic_tac_toe") is make_game("pgx:tic_tac_toe")
    assert make_game("pgx:tic_tac_toe") is not make_game("tictactoe")


@pytest.mark.parametrize(
    ("name", "near"), [("tictacto", "tictactoe"), ("conect_four", "connect_four"), ("Quoridor", "quoridor")]
)
def test_an_unknown_name_gives_the_nearest(name, near):
    with pytest.raises(UnknownName, match=f"unknown game '{name}': did you mean '{near}'\\? known: ") as caught:
        make_game(name)
    for known in [*game_names(), "pgx:NAME"]:
        assert known in str(caught.value)


def test_nothing_near_is_not_guessed():
    with pytest.raises(UnknownName) as caught:
        make_game("zzzz")
    assert "did you mean" not in str(caught.value)
    assert "tictactoe" in str(caught.value)


def test_a_third_party_game_is_listed_and_loaded_only_when_asked_for(package):
    module = package(entry_made="{}:Renamed", entry_host="{}:climb")
    assert {"entry_made", "entry_host"} <= set(game_names())
    assert module not in sys.modules
    game = make_game("entry_made")
    assert type(game).__name__ == "Renamed"
    assert type(game).__module__ == module
    assert make_game("entry_made") is game
    assert make_game("entry_host").spec.name == "climb"


def test_a_third_party_game_cannot_take_a_built_in_name(package):
    package(pig="{}:Renamed")
    assert game_names().count("pig") == 1
    assert type(make_game.__wrapped__("pig")) is Pig  # what is made, not what was made before


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("{}:missing", "did not load: AttributeError"),
        ("{}_elsewhere:Renamed", "did not load: ModuleNotFoundError"),
        ("{}:fails", "did not load: RuntimeError\\('no board was found'\\)"),
        ("{}:nothing", "made a int, not a Game or HostGame"),
    ],
)
def test_an_entry_point_that_gives_no_game_is_named(package, target, why):
    module = package(entry_bad=target)
    with pytest.raises(GameContractError, match=why) as caught:
        make_game("entry_bad")
    assert caught.value.law == "entry point"
    assert f"game 'entry_bad' ({target.format(module)})" in str(caught.value)
