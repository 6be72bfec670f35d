"""`alea eval`: the match it plays, what it prints, and what it refuses."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aleazero import engine_players
from aleazero.cli import evaluate as command
from aleazero.cli.main import run
from aleazero.core.errors import MissingExtra
from aleazero.core.game import Game
from aleazero.core.settings import fingerprint
from aleazero.games.registry import make_game
from aleazero.play.match import MatchResult
from aleazero.players import TurnNetworkPlayer, make_player
from aleazero.result_record import read_record
from aleazero.runs import find_run
from tests.cli.conftest import Alea
from tests.frozen.shape import check_file, shape_of
from tests.play.test_luck import FirstToken, exact, noisy
from tests.play.test_turns import Toss

KEYS = {
    *("game", "player", "opponent", "games", "score", "score_low", "score_high", "points_per_game", "points_low"),
    *("points_high", "luck_adjusted", "luck_share", "raw_points_per_game", "raw_points_low", "raw_points_high"),
    *("wins", "draws", "losses", "truncated", "elo", "elo_low", "elo_high"),
    *("metric", "value", "low", "high", "luck", "ends", "sprt", "seed", "command"),
}


def test_json_holds_the_match(alea: Alea) -> None:
    report = alea("eval", "tictactoe", "--player", "solver", "--games", 40, "--seed", 3)
    assert set(report) == KEYS
    assert (report["game"], report["player"], report["opponent"]) == ("tictactoe", "solver", "random")
    assert report["wins"] + report["draws"] == report["games"] == 40
    assert (report["losses"], report["truncated"], report["luck_adjusted"], report["seed"]) == (0, 0, False, 3)
    assert report["score"] == (report["wins"] + report["draws"] / 2) / 40
    assert report["points_per_game"] == pytest.approx(report["wins"] / 40)
    assert report["metric"] == "points_per_game"
    assert [report[key] for key in ("value", "low", "high")] == [
        report[key] for key in ("points_per_game", "points_low", "points_high")
    ]
    assert (report["luck"], report["ends"]) == ("none", None)
    assert report["score_low"] < report["score"] < report["score_high"] <= 1
    assert report["elo"] == pytest.approx(400 * math.log10(report["score"] / (1 - report["score"])))
    again = alea(*shlex.split(report["command"])[1:])
    assert again == report


def test_infinities_are_null(alea: Alea, monkeypatch: pytest.MonkeyPatch) -> None:
    report = command.match_report("tictactoe", "a", "b", np.ones((1, 2)))
    assert math.isinf(report["elo"])  # both games won
    assert math.isinf(report["points_low"])  # and the spread of a single pair is not known
    monkeypatch.setattr(command, "match_report", lambda *_: report)
    printed = alea("eval", "tictactoe", "--player", "random", "--games", 40)
    assert [printed[key] for key in ("elo", "elo_high", "points_low", "points_high")] == [None] * 4
    assert printed["score"] == 1.0


def test_words_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", "tictactoe", "--player", "solver", "--games", "40", "--seed", "3"]) == 0
    said = capsys.readouterr().out
    assert "solver against random: 40 games of tictactoe" in said
    assert "lost 0" in said
    for word in ("score", "Elo", "points", "95 %"):
        assert word in said


def test_a_run_is_a_player(alea: Alea, trained: Path) -> None:
    report = alea("eval", "tictactoe", "--player", "run:tiny,search=none", "--games", 40, "--runs", trained)
    assert (report["games"], report["player"]) == (40, "run:tiny,search=none")
    assert f"--runs {trained}" in report["command"]


def test_a_record_is_the_report_with_who_played(alea: Alea, trained: Path, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    arguments = ["eval", "tictactoe", "--games", 20, "--runs", trained, "--record", file]
    arguments += ["--player", "run:tiny,search=none", "--opponent", "run:tiny@64,search=none", "--opening-plies", 2]
    report = alea(*arguments)
    record = read_record(file)
    assert {key: record[key] for key in report} == report
    assert record["kind"] == "eval"
    assert "--record" not in record["command"]  # the command repeats the result, it does not write it again
    player, opponent = record["players"]["player"], record["players"]["opponent"]
    assert (player["player"], opponent["player"]) == ("run:tiny,search=none", "run:tiny@64,search=none")
    assert player["config"] == opponent["config"] == fingerprint(find_run(trained, "tiny").read_config())
    assert player["weights"] != opponent["weights"]  # other checkpoints
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


def test_a_record_is_refused_before_anything_is_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "record.json"
    file.write_text("mine")
    arguments = ["eval", "tictactoe", "--player", "random", "--games", "3", "--record"]
    assert run([*arguments, str(file)]) == 2
    said = capsys.readouterr().err
    assert "there is one already" in said
    assert "games is 3" in said
    assert run([*arguments, str(tmp_path / "absent" / "file")]) == 2
    assert "in a folder that is there" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert run(["eval", "tictactoe", "--player", "random", "--games", "20", "--record", str(file), "--force"]) == 0
    assert read_record(file)["games"] == 20


# ---- how backgammon ends


def test_gammons_and_backgammons_of_either_side() -> None:
    points = np.array([[1.0, -1.0], [2.0, -3.0], [3.0, np.nan], [1.0, -2.0], [-1.0, 1.0]])
    found = command.ends_of(points)
    assert found["player"] == {
        **{"wins": 5, "gammons": 2, "backgammons": 1},
        **{"wins_share": 5 / 9, "gammons_share": 2 / 9, "backgammons_share": 1 / 9},
    }
    assert found["opponent"] == {
        **{"wins": 4, "gammons": 2, "backgammons": 1},
        **{"wins_share": 4 / 9, "gammons_share": 2 / 9, "backgammons_share": 1 / 9},
    }


def test_a_match_of_backgammon_says_how_games_ended(
    alea: Alea, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    points = np.array([[1.0, -1.0], [2.0, -3.0], [-2.0, 1.0]])
    ended = [MatchResult("a", "b", points, np.full((3, 2), 9))]
    monkeypatch.setattr(command, "play_chunks", lambda *_, **__: ended)
    arguments = ["eval", "backgammon", "--player", "random", "--games", "6", "--luck", "none"]
    report = alea(*arguments)
    assert report["ends"] == command.ends_of(points)
    assert report["ends"]["opponent"]["gammons"] == 2
    assert run(arguments) == 0
    said = capsys.readouterr().out
    assert "player   wins 3 (50.0%), gammons 1 (16.7%), backgammons 0 (0.0%)\n" in said
    assert "opponent wins 3 (50.0%), gammons 2 (33.3%), backgammons 1 (16.7%)\n" in said


class Lanes:
    """Remembers how many games it was asked about at once."""

    name = "lanes"

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self._random: Any = make_player("random", make_game("tictactoe"))  # type: ignore[arg-type]

    def choose(self, states: Any, lanes: Array, keys: Array) -> Array:
        self.seen.add(int(lanes.shape[0]))
        return jnp.asarray(self._random.choose(states, lanes, keys))


@pytest.mark.parametrize(("pairs", "chunk", "sizes"), [(10, 4, [4, 4, 4]), (7, 4, [4, 4]), (4, 4, [4])])
def test_large_matches_are_played_in_chunks_of_one_shape(pairs: int, chunk: int, sizes: list[int]) -> None:
    player = Lanes()
    points = [
        result.points
        for result in command.play_chunks(
            make_game("tictactoe"),  # type: ignore[arg-type]
            player,
            make_player("random", make_game("tictactoe")),  # type: ignore[arg-type]
            pairs=pairs,
            seed=2**32 - 1,
            opening_plies=0,
            chunk=chunk,
        )
    ]
    assert [len(part) for part in points] == sizes
    assert len(player.seen) == 1
    if len(points) > 1:
        assert (points[0][:3] != points[1][:3]).any()  # chunks are not the same games again


def test_what_the_last_chunk_has_too_much_is_left_out(alea: Alea, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "CHUNK", 4)
    report = alea("eval", "tictactoe", "--player", "random", "--games", 14)
    assert report["games"] + report["truncated"] == 14


def test_a_sequential_test_stops_when_it_is_decided(
    alea: Alea, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "SPRT_CHUNK", 20)
    report = alea("eval", "tictactoe", "--player", "solver", "--games", 400, "--sprt", "0,100")
    assert report["sprt"]["verdict"] == "accept"
    assert report["games"] in (40, 80)  # of 400
    assert report["sprt"]["llr"] >= report["sprt"]["upper"]
    assert run(["eval", "tictactoe", "--player", "solver", "--games", "40", "--sprt", "0,1"]) == 0
    assert "sprt    continue" in capsys.readouterr().out


def test_the_same_game_again_and_again_is_said(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["eval", "tictactoe", "--player", "run:tiny,search=none", "--opponent", "run:tiny,search=none"]
    assert run([*arguments, "--games", "40", "--runs", str(trained)]) == 0
    assert "--opening-plies" in capsys.readouterr().err
    assert run([*arguments, "--games", "40", "--runs", str(trained), "--opening-plies", "2"]) == 0
    assert "--opening-plies" not in capsys.readouterr().err


def test_all_problems_are_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["eval", "tictactoe", "--player", "randm", "--opponent", "run:nobody", "--games", "7", "--seed", "-1"]
    assert run([*arguments, "--opening-plies", "9", "--sprt", "10,0", "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    for said in (
        "did you mean 'random'",
        "unknown run",
        "games is 7; it must be even",
        "seed is -1",
        "opening-plies is 9; it must be in 0..8",
        "elo0 must be below elo1",
    ):
        assert said in printed.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["eval", "tictactoo", "--player", "random"], "did you mean 'tictactoe'"),
        (["eval", "tictactoe"], "--player"),
        (["eval", "tictactoe", "--player", "random", "--oponent", "solver"], "Did you mean --opponent"),
        (["eval", "tictactoe", "--player", "random", "--sprt", "five"], "as in --sprt 0,10"),
        (["eval", "tictactoe", "--player", "random", "--games", "many"], "--games"),
        (["eval", "quoridor", "--player", "solver"], "quoridor is not solved"),
    ],
)
def test_misuse_exits_with_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_match_without_a_result_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = [MatchResult("a", "b", np.full((1, 2), np.nan), np.full((1, 2), 9))]
    monkeypatch.setattr(command, "play_chunks", lambda *_, **__: stopped)
    assert run(["eval", "tictactoe", "--player", "random", "--games", "2"]) == 1
    assert "no game of 2 came to an end within 9 plies" in capsys.readouterr().err


# ---- luck


def toss(monkeypatch: pytest.MonkeyPatch, judge: Any) -> Game:
    """A game of dice and whole turns in place of the one that is named, and who judges its rolls."""
    game = Toss(16)
    monkeypatch.setattr(command, "game_of", lambda name: game)
    monkeypatch.setattr(command, "_luck_judge", lambda *_: judge)
    monkeypatch.setattr(command, "players_of", lambda *_: [FirstToken(), make_player("random", game)])
    return game


@pytest.mark.parametrize("judge", [exact, noisy(1.0, exactly=0.0)])
def test_luck_is_taken_off_as_far_as_it_explains_the_result(
    judge: Any, alea: Alea, monkeypatch: pytest.MonkeyPatch, regenerate: bool
) -> None:
    toss(monkeypatch, None)
    monkeypatch.setattr(command, "CHUNK", 16)  # luck and points of several chunks belong together
    plain = alea("eval", "toss", "--player", "first", "--games", 64, "--luck", "none")
    assert (plain["luck_adjusted"], plain["luck_share"]) == (False, 0.0)
    toss(monkeypatch, judge)
    report = alea("eval", "toss", "--player", "first", "--games", 64, "--luck", "network")
    check_file("json/eval-luck.txt", shape_of(report), regenerate)
    assert report["luck_adjusted"] is True
    assert report["luck"] == "network"  # whose name a test has not said
    assert "--luck network" in report["command"]
    ends = ("points_per_game", "points_low", "points_high")
    assert [report[f"raw_{name}"] for name in ends] == [plain[name] for name in ends]
    assert [report[name] for name in ("wins", "losses", "elo", "score")] == [
        plain[name] for name in ("wins", "losses", "elo", "score")
    ]
    width, raw = (line["points_high"] - line["points_low"] for line in (report, plain))
    if judge is exact:
        assert 0.5 < report["luck_share"] < 1.5
        assert width < 0.8 * raw
    else:
        assert abs(report["luck_share"]) < 0.2
        assert width <= raw


def test_words_say_that_luck_is_taken_off(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for judge, said in ((exact, True), (None, False)):
        toss(monkeypatch, judge)
        assert run(["eval", "toss", "--player", "first", "--games", "32"]) == 0
        assert ("luck taken off" in capsys.readouterr().out) == said


class Pretended:
    """In place of the judge that starts processes."""

    closed = 0

    def __init__(self, processes: int) -> None:
        assert processes >= 1

    def __call__(self, states: Any) -> np.ndarray:
        return exact(states)

    def close(self) -> None:
        type(self).closed += 1


def test_who_judges_luck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_players, "GnubgJudge", Pretended)
    backgammon, other = make_game("backgammon"), Toss(16)
    assert isinstance(backgammon, Game)
    network = TurnNetworkPlayer(other, None, None, "network")  # type: ignore[arg-type]
    someone = make_player("random", other)

    def judge(wanted: str, game: Game, player: Any, opponent: Any) -> Any:
        problems: list[str] = []
        found = command._luck_judge(wanted, game, player, opponent, problems)
        assert problems == []
        return found

    assert isinstance(judge("auto", backgammon, someone, someone), Pretended)
    assert isinstance(judge("gnubg", backgammon, network, someone), Pretended)
    assert command._named(judge("auto", backgammon, someone, someone), (someone, someone)) == "gnubg:ply=0"
    for pair in ((network, someone), (someone, network)):
        assert command._named(judge("auto", other, *pair), pair) == "network:network"
        assert judge("auto", other, *pair) == network.after_rolls  # GNU knows backgammon only
        assert judge("network", backgammon, *pair) == network.after_rolls
    assert judge("auto", other, someone, someone) is None
    assert judge("none", backgammon, network, network) is None
    assert command._named(None, (network, network)) == "none"
    tictactoe = make_game("tictactoe")
    assert isinstance(tictactoe, Game)
    assert judge("auto", tictactoe, someone, someone) is None

    class Missing(Pretended):
        def __init__(self, processes: int) -> None:
            raise MissingExtra("GNU Backgammon", "gnubg-nn", "gnubg")

    monkeypatch.setattr(engine_players, "GnubgJudge", Missing)
    assert judge("auto", backgammon, network, someone) == network.after_rolls
    assert judge("auto", backgammon, someone, someone) is None
    with pytest.raises(MissingExtra):
        judge("gnubg", backgammon, network, someone)


def test_the_judge_s_processes_end_with_the_match(monkeypatch: pytest.MonkeyPatch, alea: Alea) -> None:
    monkeypatch.setattr(engine_players, "GnubgJudge", Pretended)
    toss(monkeypatch, Pretended(1))
    alea("eval", "toss", "--player", "first", "--games", 32)
    assert Pretended.closed == 1


@pytest.mark.parametrize(
    ("luck", "said"),
    [
        ("gnu", "unknown luck judge 'gnu': did you mean 'gnubg'? known: auto, gnubg, network, none"),
        ("gnubg", "luck is 'gnubg', which knows backgammon, not tictactoe"),
        ("network", "luck is 'network', but neither player is a network that plays whole turns"),
    ],
)
def test_a_judge_that_cannot_be_had_is_refused_with_all_else(
    luck: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", "tictactoe", "--player", "random", "--games", "4", "--luck", luck]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
