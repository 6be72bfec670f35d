from __future__ import annotations

import json
import os

import pytest

os.environ.setdefault("ALEA_BALATRO_PLAIN", "1")  # the same functions, nothing to compile

from aleazero.bridges import balatrobot
from aleazero.cli.main import run
from tests.bridges.chat_endpoint import ChatEndpoint
from tests.bridges.live_game import LiveGame


def test_a_live_game_is_played_from_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(balatrobot, "MOST", 6)  # the game is charmed: it would go on for long
    with LiveGame() as game, ChatEndpoint(lambda question: "no idea") as endpoint:
        player = f"greedy,advisor={endpoint.url}"
        assert run(["balatro", "live", game.url, "--player", player, "--seed", "ALEEB", "--json"]) == 0
        assert game.log[0][1] == "start"
    told = capsys.readouterr()
    done = json.loads(told.out)
    assert (done["decisions"], done["stopped"]) == (6, True)
    assert done["advisor"]["nonsense"] == done["advisor"]["asked"] > 0
    assert "select blind" in told.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["ftp://x"], "http"),
        (["--player", "nobody"], "greedy or expectimax"),
        (["--player", "greedy,advisor=here"], "advisor names no endpoint"),
        (["--player", "greedy,advisor=http://h:99999/v1"], "advisor names no endpoint"),
        (["http://127.0.0.1:99999"], "port"),
        (["--deck", "Rde Deck"], "did you mean 'Red Deck'"),
        (["--give-up", "0"], "more than 0"),
        (["--rest", "0"], "rest is 0"),
    ],
)
def test_mistakes_are_explained(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["balatro", "live", *words]) == 2
    assert why in capsys.readouterr().err


def test_a_game_that_is_not_there_is_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["balatro", "live", "http://127.0.0.1:1", "--give-up", "0.05"]) == 1
    told = capsys.readouterr()
    assert "given up" in told.err
    assert told.out.count("paused") == 1
