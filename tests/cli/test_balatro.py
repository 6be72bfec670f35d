from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("ALEA_BALATRO_PLAIN", "1")  # the same functions, nothing to compile

from aleazero.cli import balatro
from aleazero.cli.balatro_play import parse
from aleazero.cli.main import run
from aleazero.core.errors import NotationError, UnknownName
from aleazero.games.balatro import actions, saved, text
from aleazero.games.balatro.contest import PLAYERS, Runs, by_rule
from aleazero.games.balatro.fuzz import Fuzzed
from aleazero.host_players import player_of
from aleazero.web.balatro_run import BalatroRun
from tests.games.conftest import quick_compile  # noqa: F401

GOLDEN = Path(__file__).parents[1] / "golden/balatro"


def test_coverage_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["games", "balatro", "--coverage"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[:3] for line in out.splitlines()[1:3]] == [["jokers", "150", "150"], ["tarots", "22", "22"]]
    assert run(["games", "balatro", "--coverage", "--json"]) == 0
    kinds = json.loads(capsys.readouterr().out)["kinds"]
    assert {row["kind"]: row["working"] for row in kinds}["vouchers"] == 32
    assert run(["games", "chess", "--coverage"]) == 2
    assert "is for balatro, not for 'chess'" in capsys.readouterr().err
    assert run(["games", "balatro"]) == 2


def test_balatro_is_among_the_games(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["games", "--json"]) == 0
    listed = {row["name"]: row for row in json.loads(capsys.readouterr().out)["games"]}
    assert listed["balatro"]["actions"] == 1000
    assert listed["balatro"]["players"] == 1


def some_vectors(folder: Path) -> None:
    """The first random streams and scored hands."""
    content = json.loads((GOLDEN / "rng.json").read_text())
    content["vectors"] = content["vectors"][:3]
    (folder / "rng.json").write_text(json.dumps(content))
    content = json.loads((GOLDEN / "scores.json").read_text())
    content["unanimous"], content["majority"] = content["unanimous"][:20], content["majority"][:2]
    (folder / "scores.json").write_text(json.dumps(content))


def test_vectors_are_verified_and_differences_spelled_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some_vectors(tmp_path)
    assert run(["verify", "balatro", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.split()[:4] == ["rng", "3", "of", "3"]
    content = json.loads((tmp_path / "rng.json").read_text())
    content["vectors"][1]["random"][0] += 1e-9
    (tmp_path / "rng.json").write_text(json.dumps(content))
    assert run(["verify", "balatro", str(tmp_path), "--json"]) == 1
    kinds = {row["kind"]: row for row in json.loads(capsys.readouterr().out)["kinds"]}
    assert (kinds["rng"]["passed"], kinds["rng"]["total"]) == (2, 3)
    assert "random is" in kinds["rng"]["first"][0]
    assert kinds["unanimous scores"]["passed"] == 20
    shutil.rmtree(tmp_path)
    assert run(["verify", "balatro", str(tmp_path)]) == 2
    assert run(["verify", "chess", str(GOLDEN)]) == 2


def talk(lines: str, save: Path | None = None, player: str | None = None) -> str:
    out = io.StringIO()
    options: dict[str, Any] = {"deck": "Red Deck", "stake": "White", "last_ante": 8, "save": save, "player": player}
    assert balatro.play("ALEEB", **options, source=io.StringIO(lines), out=out) == 0
    return out.getvalue()


def test_a_run_is_played_saved_and_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.json"
    said = talk("buy 1\nblind\nplya 1\nplay 9\nselect 2\nundo\nplay 1 2\ndiscard 1\nmoves\nhelp\nquit\n", file)
    assert "buy 0 is not legal: a blind is to be chosen, and it is for when the shop is open" in said
    assert "did you mean 'play'" in said
    assert "name one to five different places from 1 to 8" in said
    assert "seed ALEEB" in said
    assert "level 1" in said
    assert "ways to play or discard cards" in said
    assert said.count("score  ") == 1
    assert "the run is left unfinished" in said
    played = saved.read(file)
    pair = actions.A_PLAY + int(np.flatnonzero(actions.SUBSETS == 0b11)[0])
    assert played.actions == (actions.A_SELECT_BLIND, pair, actions.A_DISCARD)
    assert run(["replay", "balatro", str(file)]) == 0
    shown = capsys.readouterr().out
    lines = [line.strip("> ") for line in said.splitlines() if " x " in line or "score   " in line]
    assert lines
    assert all(line in shown for line in lines), "the replay tells the same score"
    assert run(["replay", "balatro", str(file), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [step["action"] for step in report["steps"]] == list(played.actions)
    assert report["end"]["rounds"] == 0
    assert run(["replay", "balatro", str(tmp_path / "none.json")]) == 2


@pytest.mark.usefixtures("quick_compile")
def test_hints_are_our_networks_or_whose_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    lines = "blind\nhint\nquit\n"
    batch = saved.SavedRun("ALEEB").start()
    batch.step(np.array([actions.A_SELECT_BLIND]))
    network = int(player_of("bundled", "balatro")(0)(batch, 1)[0])
    baseline = int(by_rule(batch, PLAYERS["greedy"], 2)[0])
    assert network != baseline
    assert f"> {text.describe(batch.states[0], network)}\n" in talk(lines)
    assert BalatroRun(saved.SavedRun("ALEEB", actions=(actions.A_SELECT_BLIND,))).hint()["action"] == network
    assert f"> {text.describe(batch.states[0], baseline)}\n" in talk(lines, player="greedy")
    assert run(["play", "balatro", "--player", "greddy"]) == 2
    assert "greedy or expectimax" in capsys.readouterr().err


def test_a_saved_run_of_wrong_types_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.json"
    content = {"game": "balatro", "version": saved.VERSION, "actions": [1], "last_ante": 8, "deck": "Red Deck"}
    file.write_text(json.dumps({**content, "stake": 3, "seed": 12345}))
    assert run(["replay", "balatro", str(file)]) == 2
    said = capsys.readouterr().err
    assert "unknown stake '3'" in said
    assert "seed 12345 is no text" in said


def test_matches_of_wrong_numbers_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for option, value in (("--seed", "-3"), ("--games", "1000000000000")):
        assert run(["eval", "balatro", "--player", "random", option, value]) == 2
        assert f"{option[2:]} is {value}" in capsys.readouterr().err


def test_lines_mean_actions() -> None:
    assert parse("play", False) == actions.A_PLAY_SELECTED
    assert parse("skip", True) == actions.A_SKIP_PACK
    assert parse("skip", False) == actions.A_SKIP_BLIND
    assert parse("sell joker 2", False) == actions.A_SELL_JOKER + 1
    assert parse("now 5", False) == actions.A_BUY_AND_USE + 4
    with pytest.raises(NotationError, match="no place 6"):
        parse("now 6", False)
    with pytest.raises(NotationError, match="name one place"):
        parse("buy", False)
    with pytest.raises(UnknownName, match="did you mean 'reroll'"):
        parse("rerol", False)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["balatro", "play", "--seed", "A!B"], "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        (["balatro", "play", "--seed", "AB", "--deck", "Red Dek"], "did you mean 'Red Deck'"),
        (["balatro", "play", "--last-ante", "20"], "8..12"),
        (["eval", "balatro", "--player", "gredy"], "did you mean 'greedy'"),
        (["eval", "balatro", "--player", "greedy", "--games", "0"], "at least 1"),
        (["eval", "balatro", "--player", "greedy", "--seeds", "no-such-file"], "cannot be read"),
        (["balatro", "bench", "--rounds", "0"], "more than 0"),
        (["balatro", "fuzz", "--decisions", "0"], "at least 1"),
        (["balatro", "tables", "no-such-file"], "cannot be read"),
    ],
)
def test_mistakes_are_explained(line: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line) == 2
    assert said in capsys.readouterr().err


def test_a_player_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "seeds.txt").write_text("ALEEB\n2K9H9HN\n")
    assert run(["eval", "balatro", "--player", "random", "--seeds", str(tmp_path / "seeds.txt"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["games"] == 2
    assert report["mean_ante"] == 1
    assert {"win_rate", "win_low", "win_high", "mean_ante", "ante1_clear"} <= set(report)
    assert report["win_low"] == 0 < report["win_high"] < 0.7


def test_reports_count_what_runs_did() -> None:
    ante, won = np.array([1, 2, 8, 8]), np.array([False, False, False, True])
    runs = Runs(["A"] * 4, ante, np.array([1, 4, 23, 24]), won, np.array([1.0, 2, 3, 4]), 100, 2.0)
    report = balatro.run_report("greedy", runs)
    assert (report["win_rate"], report["ante1_clear"], report["mean_ante"]) == (0.25, 0.75, 4.75)
    assert (report["win_low"], report["win_high"]) == pytest.approx((0.0456, 0.6994), abs=1e-4)  # Wilson's, by hand
    assert (report["ante1_low"], report["ante1_high"]) == pytest.approx((0.3006, 0.9544), abs=1e-4)
    assert report["games_per_hour"] == 7200


def test_players_are_measured_beside_one_another_on_the_same_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    """Compiled, a network beside greedy: test_compiled.py."""
    line = ["eval", "balatro", "--player", "random", "--seeds", "1"]
    assert run([*line, "--beside", "random", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    again = found.pop("beside")[0]
    assert {**found, "games_per_hour": 0} == {**again, "games_per_hour": 0}
    assert run([*line, "--beside", "random"]) == 0
    head, titles, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("1 runs of balatro")
    assert "ante 1 beaten" in titles
    assert [row.split()[0] for row in rows] == ["random", "random"]
    assert f"{found['ante1_clear']:.4f} ({found['ante1_low']:.4f} to {found['ante1_high']:.4f})" in rows[0]
    assert run([*line, "--beside", "random", "gredy"]) == 2
    told = capsys.readouterr()
    assert "did you mean 'greedy'" in told.err
    assert told.out == ""


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"ALEEB\n\nNOT A SEED\n2K9H9HN\nA!\n", ["line 3: seed 'NOT A SEED' has ' '", "line 5: seed 'A!' has '!'"]),
        (b"ALEEB\n2K9H9HN\naleeb\n", ["line 3: seed ALEEB is that of line 1"]),
        (b"ALEEB\n\xff\xfe\n", ["cannot be read: 'utf-8'"]),
        (b"\n \n", ["names none"]),
        (b"!\n" * 12, ["line 10: seed '!'", "and 2 more lines"]),
    ],
)
def test_a_file_of_bad_seeds_is_told_line_by_line(
    tmp_path: Path, content: bytes, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "seeds.txt"
    file.write_bytes(content)
    assert run(["eval", "balatro", "--player", "greedy", "--seeds", str(file)]) == 2
    told = capsys.readouterr().err
    assert str(file) in told
    assert [words for words in said if words not in told] == []
    assert "line 11" not in told


def test_what_fuzzing_finds_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = Fuzzed(10, 1, 1.0, 1, {"levels are at least one": 1}, 0, "equal")
    monkeypatch.setattr(balatro.fuzzing, "fuzz", lambda *_, **__: found)
    assert run(["balatro", "fuzz", "--decisions", "5"]) == 1
    assert "levels are at least one" in capsys.readouterr().out
